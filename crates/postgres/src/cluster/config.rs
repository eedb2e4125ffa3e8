//! The settings of a throwaway cluster, in a file of their own that `postgresql.conf` includes.
//!
//! Invariant: what is written is read back by the server as exactly the given name and value.

use std::fs;
use std::fs::File;
use std::fs::OpenOptions;
use std::io;
use std::io::Read;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::error::Error;
use crate::error::Result;
use crate::user::ServerUser;

const MAIN_FILE: &str = "postgresql.conf";
const FILE: &str = "shelflife.conf";
const INCLUDE: &str = "include = 'shelflife.conf'\n";

/// These decide where the server can be reached and are the cluster's own business.
const RESERVED: [&str; 5] =
    ["listen_addresses", "port", "unix_socket_directories", "data_directory", "config_file"];

/// That every setting can be written.
pub(super) fn check(settings: &[(String, String)]) -> Result<()> {
    for (name, value) in settings {
        let bad = |why| Err(Error::BadSetting { name: name.clone(), why });
        let is_word = |part: &str| {
            part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '$')
        };
        // An extension's setting has a dot: `auto_explain.log_min_duration`.
        if !name.split('.').all(is_word) {
            return bad("not a setting's name");
        }
        if RESERVED.iter().any(|reserved| reserved.eq_ignore_ascii_case(name)) {
            return bad("a throwaway cluster sets it itself");
        }
        if value.contains('\0') {
            return bad("its value holds a zero byte");
        }
    }
    Ok(())
}

/// Makes `postgresql.conf` include our file, once.
pub(super) fn include(data: &Path) -> Result<()> {
    if is_included(data)? {
        return Ok(());
    }
    let path = data.join(MAIN_FILE);
    let failed = |source| Error::io("cannot change", &path, source);
    let mut file = open(OpenOptions::new().append(true), &path).map_err(failed)?;
    write!(file, "\n{INCLUDE}").map_err(failed)
}

/// Whether `postgresql.conf` includes our file, as that of every throwaway cluster does.
pub(super) fn is_included(data: &Path) -> Result<bool> {
    let path = data.join(MAIN_FILE);
    let failed = |source| Error::io("cannot read", &path, source);
    let mut text = Vec::new();
    let mut file = open(OpenOptions::new().read(true), &path).map_err(failed)?;
    file.read_to_end(&mut text).map_err(failed)?;
    Ok(text.windows(INCLUDE.len()).any(|part| part == INCLUDE.as_bytes()))
}

/// The folder belongs to the server's user, who may have put a link there: root must not follow it.
fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    options.custom_flags(libc::O_NOFOLLOW).open(path)
}

/// Replaces our file by rename, so that a reload never reads half of it.
pub(super) fn write(data: &Path, settings: &[(String, String)], user: &ServerUser) -> Result<()> {
    let (path, draft) = (data.join(FILE), data.join("shelflife.conf.new"));
    let failed = |source| Error::io("cannot write", &draft, source);
    match fs::remove_file(&draft) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => return Err(failed(source)),
        _ => {}
    }
    // `create_new` follows no link.
    let mut file =
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft).map_err(failed)?;
    file.write_all(text(settings).as_bytes()).map_err(failed)?;
    user.own_file(&file).map_err(failed)?;
    fs::rename(&draft, &path).map_err(|source| Error::io("cannot write", &path, source))
}

fn text(settings: &[(String, String)]) -> String {
    settings.iter().map(|(name, value)| format!("{name} = {}\n", quote(value))).collect()
}

/// A string of the configuration file's grammar (`src/backend/utils/misc/guc-file.l`).
pub(super) fn quote(value: &str) -> String {
    let mut quoted = String::from("'");
    for c in value.chars() {
        match c {
            '\'' => quoted.push_str("''"),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            c => quoted.push(c),
        }
    }
    quoted.push('\'');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_quoted() {
        assert_eq!(quote("1GB"), "'1GB'");
        assert_eq!(quote("a'b\\c\nd"), r"'a''b\\c\nd'");
    }

    #[test]
    fn names_that_would_break_the_file_are_refused() {
        let check = |name: &str, value: &str| check(&[(name.to_owned(), value.to_owned())]);
        check("work_mem", "64kB").unwrap();
        check("auto_explain.log_analyze", "on").unwrap();
        for name in ["", "a b", "a=b", "a\n", "1a", "a.", ".a", "include 'x'"] {
            assert!(matches!(check(name, "1"), Err(Error::BadSetting { .. })), "{name:?}");
        }
        check("Port", "1").unwrap_err();
        check("work_mem", "a\0b").unwrap_err();
    }

    #[test]
    fn the_include_stands_once() {
        let data = tempfile::tempdir().unwrap();
        let conf = data.path().join("postgresql.conf");
        fs::write(&conf, "# made by initdb\nport = 1").unwrap();
        include(data.path()).unwrap();
        include(data.path()).unwrap();
        let text = fs::read_to_string(conf).unwrap();
        assert_eq!(text, format!("# made by initdb\nport = 1\n{INCLUDE}"));
    }
}
