//! Where PostgreSQL's programs are, and of which version.
//!
//! Invariant: a [`Programs`] names one folder in which all the needed programs lie, of one supported version;
//! nothing is ever mixed from two installations.

use std::cmp::Reverse;
use std::ffi::OsStr;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use serde::Deserialize;
use serde::Serialize;

use crate::cancel::Cancel;
use crate::child;
use crate::error::Error;
use crate::error::Looked;
use crate::error::Result;

/// Without these four nothing here works.
const NEEDED: [&str; 4] = ["initdb", "pg_ctl", "postgres", "pgbench"];

/// The major versions that this crate knows.
const SUPPORTED: std::ops::RangeInclusive<u16> = 13..=19;

/// Folders that hold one installation per version: Debian's, PGDG's RPMs', and the source's default.
const VERSION_FOLDERS: [(&str, &str); 3] =
    [("usr/lib/postgresql", ""), ("usr", "pgsql-"), ("usr/local", "pgsql")];

/// A PostgreSQL version: 15.18 is major 15, minor 18. Betas and release candidates have minor 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Version {
    /// Major version: 13 to 19.
    pub major: u16,
    /// Minor version.
    pub minor: u16,
}

impl Version {
    /// Reads `server_version_num`: 150018 is 15.18.
    pub fn from_number(number: u32) -> Self {
        let part = |value| u16::try_from(value).unwrap_or(u16::MAX);
        Version { major: part(number / 10_000), minor: part(number % 10_000) }
    }

    /// Reads what `PROGRAM --version` prints: `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)`,
    /// also `17beta2`, `18rc1`, `19devel`.
    pub fn parse(line: &str) -> Option<Self> {
        let (_, rest) = line.split_once("(PostgreSQL) ")?;
        let word = rest.split_ascii_whitespace().next()?;
        let digits = word.find(|c: char| !c.is_ascii_digit()).unwrap_or(word.len());
        let major = word[..digits].parse().ok()?;
        let minor = match word[digits..].strip_prefix('.') {
            Some(minor) => minor.parse().ok()?,
            None => 0,
        };
        Some(Version { major, minor })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{}", self.major, self.minor)
    }
}

/// Where to look for the programs.
#[derive(Clone, Debug)]
pub struct Search {
    /// The folder that the user named; then no other place counts.
    pub bindir: Option<PathBuf>,
    /// A value of `PATH`: folders separated by colons.
    pub path: OsString,
    /// The root below which version folders are looked for: `/`.
    pub root: PathBuf,
}

impl Search {
    /// The user's choice first, then this process's `PATH`, then the version folders of the system.
    pub fn new(bindir: Option<PathBuf>) -> Self {
        Search { bindir, path: std::env::var_os("PATH").unwrap_or_default(), root: "/".into() }
    }
}

/// One installation of PostgreSQL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Programs {
    bindir: PathBuf,
    version: Version,
}

impl Programs {
    /// Looks for the programs: only in `search.bindir` if that is given; else in what `pg_config --bindir`
    /// prints, in every folder of `PATH`, and in version folders, newest first.
    ///
    /// # Errors
    /// [`Error::ProgramsNotFound`] lists every place and what it lacks; [`Error::UnsupportedVersion`] if
    /// what was found is none of 13 to 19.
    pub fn find(search: &Search) -> Result<Self> {
        let mut looked = Vec::new();
        let mut rejected = None;
        for (place, bindir) in places(search) {
            let bindir = match bindir {
                Ok(bindir) => bindir,
                Err(found) => {
                    looked.push(Looked { place, found });
                    continue;
                }
            };
            if let Some(found) = lacks(&bindir) {
                looked.push(Looked { place, found });
                continue;
            }
            match ask_version(&bindir) {
                Ok(version) => return Ok(Programs { bindir, version }),
                Err(error) => {
                    looked.push(Looked { place, found: error.to_string() });
                    rejected.get_or_insert(error);
                }
            }
        }
        Err(rejected.unwrap_or(Error::ProgramsNotFound { looked }))
    }

    /// The folder of the programs.
    pub fn bindir(&self) -> &Path {
        &self.bindir
    }

    /// Their version.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The path of `initdb`.
    pub fn initdb(&self) -> PathBuf {
        self.bindir.join("initdb")
    }

    /// The path of `pg_ctl`.
    pub fn pg_ctl(&self) -> PathBuf {
        self.bindir.join("pg_ctl")
    }

    /// The path of `postgres`.
    pub fn postgres(&self) -> PathBuf {
        self.bindir.join("postgres")
    }

    /// The path of `pgbench`.
    pub fn pgbench(&self) -> PathBuf {
        self.bindir.join("pgbench")
    }

    /// The path of `pg_amcheck` (since 14).
    ///
    /// # Errors
    /// [`Error::ProgramMissing`].
    pub fn pg_amcheck(&self) -> Result<PathBuf> {
        self.optional("pg_amcheck", "postgresql, version 14 or newer (RPM: postgresql-contrib)")
    }

    /// The path of `pg_checksums`.
    ///
    /// # Errors
    /// [`Error::ProgramMissing`].
    pub fn pg_checksums(&self) -> Result<PathBuf> {
        self.optional("pg_checksums", "postgresql (RPM: postgresql-server)")
    }

    fn optional(&self, name: &str, package: &'static str) -> Result<PathBuf> {
        let program = self.bindir.join(name);
        if is_program(&program) {
            Ok(program)
        } else {
            Err(Error::ProgramMissing { program, package })
        }
    }
}

/// Every place in order: how it is called, and the folder or why there is none.
fn places(search: &Search) -> Vec<(String, Result<PathBuf, String>)> {
    if let Some(bindir) = &search.bindir {
        return vec![(format!("--pg-bindir {}", bindir.display()), Ok(bindir.clone()))];
    }
    let mut places = vec![("pg_config --bindir".to_owned(), ask_pg_config(&search.path))];
    for folder in std::env::split_paths(&search.path).filter(|folder| folder.is_absolute()) {
        places.push((format!("PATH {}", folder.display()), Ok(folder)));
    }
    for (parent, prefix) in VERSION_FOLDERS {
        let parent = search.root.join(parent);
        let found = version_folders(&parent, prefix);
        if found.is_empty() {
            let name = parent.join(format!("{prefix}*")).join("bin");
            places.push((name.display().to_string(), Err("no such folder".to_owned())));
        }
        for folder in found {
            places.push((folder.display().to_string(), Ok(folder)));
        }
    }
    places
}

/// `PARENT/PREFIX*/bin`, the highest number first.
fn version_folders(parent: &Path, prefix: &str) -> Vec<PathBuf> {
    let mut found: Vec<(Reverse<u32>, PathBuf)> = fs::read_dir(parent)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name();
            let number = name.to_str()?.strip_prefix(prefix)?;
            // The source's default folder carries no number.
            let number = if number.is_empty() { 0 } else { number.parse().ok()? };
            let folder = entry.path().join("bin");
            folder.is_dir().then_some((Reverse(number), folder))
        })
        .collect();
    found.sort();
    found.into_iter().map(|(_, folder)| folder).collect()
}

fn ask_pg_config(path: &OsStr) -> Result<PathBuf, String> {
    let program = std::env::split_paths(path)
        .map(|folder| folder.join("pg_config"))
        .find(|program| program.is_absolute() && is_program(program))
        .ok_or("no pg_config in PATH")?;
    let mut command = Command::new(&program);
    command.arg("--bindir");
    let output = child::run(&mut command, &Cancel::never(), &mut |_| ())
        .and_then(|output| output.success("pg_config"))
        .map_err(|error| error.to_string())?;
    let folder = PathBuf::from(output.stdout.trim_end());
    if folder.is_absolute() { Ok(folder) } else { Err(format!("it printed {:?}", output.stdout)) }
}

/// What `bindir` lacks, in words; `None` if it has all that is needed.
fn lacks(bindir: &Path) -> Option<String> {
    if !bindir.is_dir() {
        return Some("no such folder".to_owned());
    }
    let missing: Vec<&str> =
        NEEDED.into_iter().filter(|name| !is_program(&bindir.join(name))).collect();
    (!missing.is_empty()).then(|| format!("no {}", missing.join(", ")))
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|at| at.is_file() && at.permissions().mode() & 0o111 != 0)
}

fn ask_version(bindir: &Path) -> Result<Version> {
    let program = bindir.join("postgres");
    let mut command = Command::new(&program);
    command.arg("--version");
    child::clean_environment(&mut command);
    let output =
        child::run(&mut command, &Cancel::never(), &mut |_| ())?.success("postgres --version")?;
    let line = output.stdout.trim_end();
    match Version::parse(line) {
        Some(version) if SUPPORTED.contains(&version.major) => Ok(version),
        _ => Err(Error::UnsupportedVersion { program, version: line.to_owned() }),
    }
}

/// Whether `major` is a version that this crate knows.
pub(crate) fn is_supported(major: u16) -> bool {
    SUPPORTED.contains(&major)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An installation of shell scripts that answer like the real programs.
    fn install(bindir: &Path, version: &str, names: &[&str]) {
        fs::create_dir_all(bindir).unwrap();
        for name in names {
            let file = bindir.join(name);
            fs::write(&file, format!("#!/bin/sh\necho '{name} (PostgreSQL) {version}'\n")).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }

    fn script(file: &Path, text: &str) {
        fs::write(file, text).unwrap();
        fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn search(root: &Path) -> Search {
        Search { bindir: None, path: OsString::new(), root: root.to_owned() }
    }

    #[test]
    fn versions_of_every_form_are_read() {
        let read = |text: &str| Version::parse(text).map(|v| (v.major, v.minor));
        assert_eq!(read("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n"), Some((15, 18)));
        assert_eq!(read("postgres (PostgreSQL) 13.0"), Some((13, 0)));
        assert_eq!(read("postgres (PostgreSQL) 17beta2"), Some((17, 0)));
        assert_eq!(read("postgres (PostgreSQL) 19devel"), Some((19, 0)));
        assert_eq!(read("postgres (EnterpriseDB) 15.1"), None);
        assert_eq!(read("postgres (PostgreSQL) x"), None);
        assert_eq!(read("postgres (PostgreSQL) 15.x"), None);
        assert_eq!(Version::from_number(150_018), Version { major: 15, minor: 18 });
    }

    #[test]
    fn version_folders_go_newest_first_by_number() {
        let root = tempfile::tempdir().unwrap();
        for version in ["9.6", "13", "15", "17"] {
            install(
                &root.path().join("usr/lib/postgresql").join(version).join("bin"),
                version,
                &[],
            );
        }
        install(&root.path().join("usr/lib/postgresql/15/bin"), "15.2", &NEEDED);
        install(&root.path().join("usr/pgsql-16/bin"), "16.1", &NEEDED);
        let found = Programs::find(&search(root.path())).unwrap();
        // 17 is newer and looked at first, but incomplete.
        assert_eq!(found.bindir(), root.path().join("usr/lib/postgresql/15/bin"));
        assert_eq!(found.version(), Version { major: 15, minor: 2 });
        fs::remove_file(root.path().join("usr/lib/postgresql/15/bin/pgbench")).unwrap();
        let found = Programs::find(&search(root.path())).unwrap();
        assert_eq!(found.version().major, 16);
    }

    #[test]
    fn the_search_goes_on_when_pg_config_names_a_folder_without_server() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("path");
        fs::create_dir(&path).unwrap();
        script(&path.join("pg_config"), "#!/bin/sh\necho /nowhere/bin\n");
        install(&root.path().join("usr/local/pgsql/bin"), "14.9", &NEEDED);
        let mut search = search(root.path());
        search.path = path.clone().into();
        assert_eq!(Programs::find(&search).unwrap().version().major, 14);
        // And ends at pg_config's folder when that is complete.
        let other = root.path().join("other");
        install(&other, "13.5", &NEEDED);
        script(&path.join("pg_config"), &format!("#!/bin/sh\necho {}\n", other.display()));
        assert_eq!(Programs::find(&search).unwrap().version().major, 13);
    }

    #[test]
    fn what_was_not_found_is_told_place_by_place() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("path");
        install(&path, "15.1", &["initdb", "postgres"]);
        let mut search = search(root.path());
        search.path = path.clone().into();
        let told = Programs::find(&search).unwrap_err().to_string();
        assert!(told.contains("pg_config --bindir: no pg_config in PATH"), "{told}");
        assert!(told.contains(&format!("PATH {}: no pg_ctl, pgbench", path.display())), "{told}");
        assert!(told.contains("usr/lib/postgresql/*/bin: no such folder"), "{told}");
        assert!(told.contains("apt-get install postgresql"), "{told}");
    }

    #[test]
    fn a_named_folder_is_the_only_place() {
        let root = tempfile::tempdir().unwrap();
        install(&root.path().join("usr/pgsql-16/bin"), "16.1", &NEEDED);
        let mut search = search(root.path());
        search.bindir = Some(root.path().join("none"));
        let told = Programs::find(&search).unwrap_err().to_string();
        assert!(told.contains("none: no such folder"), "{told}");
        assert!(!told.contains("pgsql-16"), "{told}");
    }

    #[test]
    fn an_unknown_version_is_refused_by_name() {
        let root = tempfile::tempdir().unwrap();
        let bindir = root.path().join("old");
        install(&bindir, "12.3", &NEEDED);
        let mut search = search(root.path());
        search.bindir = Some(bindir);
        let told = Programs::find(&search).unwrap_err();
        assert!(matches!(told, Error::UnsupportedVersion { .. }), "{told}");
        assert!(told.to_string().contains("12.3"), "{told}");
    }

    #[test]
    fn optional_programs_name_their_package() {
        let root = tempfile::tempdir().unwrap();
        install(root.path(), "15.1", &NEEDED);
        install(root.path(), "15.1", &["pg_checksums"]);
        let mut search = search(root.path());
        search.bindir = Some(root.path().to_owned());
        let programs = Programs::find(&search).unwrap();
        programs.pg_checksums().unwrap();
        assert!(matches!(programs.pg_amcheck(), Err(Error::ProgramMissing { .. })));
    }
}
