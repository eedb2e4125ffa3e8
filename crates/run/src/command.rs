//! Which data folders a command line is about.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Programs whose `-D` is a data folder even if nothing is there yet.
const TOOLS: [&str; 5] = ["initdb", "pg_ctl", "postgres", "postmaster", "pg_basebackup"];

/// The data folders that `command` names by `-D` or `--pgdata`, by `pg_ctlcluster VERSION NAME`,
/// or, if it does not, that `pgdata` (the variable PGDATA) names. Canonical as far as they exist.
///
/// The servers themselves find their folder without this; it is for their children that are no
/// servers (a `restore_command`) and for programs that name files by absolute path (`initdb`).
pub fn data_folders(command: &[OsString], pgdata: Option<&OsStr>) -> Vec<PathBuf> {
    let base = |arg: &OsString| Path::new(arg).file_name().map(OsStr::to_owned);
    let is_tool = |arg: &OsString| base(arg).is_some_and(|b| TOOLS.iter().any(|t| b == *t));
    let any_tool = command.iter().any(is_tool);
    let mut found: Vec<PathBuf> =
        named(command).filter(|dir| any_tool || dir.join("PG_VERSION").exists()).collect();
    found.extend(debian_clusters(command));
    if found.is_empty() {
        found.extend(pgdata.filter(|v| !v.is_empty()).map(PathBuf::from));
    }
    let mut found: Vec<PathBuf> = found.iter().filter_map(|dir| canonical(dir)).collect();
    found.dedup();
    found
}

fn named(command: &[OsString]) -> impl Iterator<Item = PathBuf> {
    command.iter().enumerate().filter_map(|(at, arg)| {
        let bytes = arg.as_bytes();
        let value = match bytes {
            b"-D" | b"--pgdata" => return command.get(at + 1).map(PathBuf::from),
            _ => bytes.strip_prefix(b"--pgdata=").or_else(|| bytes.strip_prefix(b"-D"))?,
        };
        Some(PathBuf::from(OsString::from_vec(value.to_vec())))
    })
}

/// `pg_ctlcluster 15 main …` (Debian): the folder stands in the cluster's postgresql.conf.
fn debian_clusters(command: &[OsString]) -> Option<PathBuf> {
    let at =
        command.iter().position(|a| Path::new(a).file_name() == Some("pg_ctlcluster".as_ref()))?;
    let mut words = command.get(at + 1..)?.iter().filter(|a| !a.as_bytes().starts_with(b"-"));
    let (version, name) = (words.next()?, words.next()?);
    let file = Path::new("/etc/postgresql").join(version).join(name).join("postgresql.conf");
    data_directory(&fs::read_to_string(file).ok()?)
}

/// The value of `data_directory` in a postgresql.conf.
fn data_directory(conf: &str) -> Option<PathBuf> {
    conf.lines().rev().find_map(|line| {
        let value = line.trim().strip_prefix("data_directory")?.trim_start();
        let value = value.strip_prefix('=').unwrap_or(value).trim_start();
        Some(PathBuf::from(value.strip_prefix('\'')?.split('\'').next()?))
    })
}

/// Canonical; of a folder that is not there yet, below its canonical parent.
fn canonical(dir: &Path) -> Option<PathBuf> {
    if let Ok(path) = dir.canonicalize() {
        return Some(path);
    }
    let dir = std::path::absolute(dir).ok()?;
    Some(dir.parent()?.canonicalize().ok()?.join(dir.file_name()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folders(command: &[&str], pgdata: Option<&str>) -> Vec<PathBuf> {
        let command: Vec<OsString> = command.iter().map(OsString::from).collect();
        data_folders(&command, pgdata.map(OsStr::new))
    }

    #[test]
    fn every_spelling_of_the_option_is_read() {
        let dir = tempfile::tempdir().expect("a folder");
        let data = dir.path().canonicalize().expect("canonical").join("data");
        let text = data.to_str().expect("text");
        for command in [
            vec!["pg_ctl", "-D", text, "start"],
            vec!["/usr/lib/postgresql/15/bin/postgres", &format!("-D{text}")],
            vec!["runuser", "-u", "postgres", "--", "initdb", &format!("--pgdata={text}")],
            vec!["initdb", "--pgdata", text],
        ] {
            assert_eq!(folders(&command, None), std::slice::from_ref(&data), "{command:?}");
        }
        assert_eq!(folders(&["pg_ctl", "start"], Some(text)), std::slice::from_ref(&data));
        assert_eq!(folders(&["pg_ctl", "start"], Some("")), [] as [PathBuf; 0]);
        assert_eq!(folders(&["pg_ctl", "-D"], None), [] as [PathBuf; 0]);
        // another program's -D
        assert_eq!(folders(&["cmake", &format!("-D{text}")], None), [] as [PathBuf; 0]);
        assert_eq!(folders(&["pg_ctl", "-D", "/nonexistent/x/y"], None), [] as [PathBuf; 0]);
    }

    #[test]
    fn the_last_data_directory_of_a_configuration_counts() {
        let conf =
            "#data_directory = 'ConfigDir'\ndata_directory = '/a'\n data_directory='/b' # x\n";
        assert_eq!(data_directory(conf), Some(PathBuf::from("/b")));
        assert_eq!(data_directory("port = 5432\n"), None);
    }
}
