//! One error type for the crate: every variant names the place and what to do about it.

use std::fmt;
use std::io;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

/// This crate's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, where, and what helps.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The caller's [`crate::Cancel`] flag was raised.
    #[error("interrupted")]
    Interrupted,

    /// A wait took longer than its limit.
    #[error("{what}: not done after {} s", .limit.as_secs_f32())]
    Timeout {
        /// What was waited for.
        what: String,
        /// The limit that passed.
        limit: Duration,
    },

    /// No folder holds all the programs needed.
    #[error(
        "no PostgreSQL server found (needed in one folder: initdb, pg_ctl, postgres, pgbench); looked at:{}\n\
         install it (Debian, Ubuntu: apt-get install postgresql; Fedora, RHEL: dnf install postgresql-server \
         postgresql-contrib) or name its folder with --pg-bindir",
        Looked::list(.looked)
    )]
    ProgramsNotFound {
        /// Every place looked at, in order.
        looked: Vec<Looked>,
    },

    /// An optional program is not installed beside the server.
    #[error("{} is missing: install {package}", .program.display())]
    ProgramMissing {
        /// Where it should be.
        program: PathBuf,
        /// The package that has it.
        package: &'static str,
    },

    /// The program's version is none that this crate knows.
    #[error("{} is version {version}: 13 to 19 are supported", .program.display())]
    UnsupportedVersion {
        /// The program asked, or the data folder read.
        program: PathBuf,
        /// What it answered.
        version: String,
    },

    /// Data folder and programs are of different major versions.
    #[error(
        "{} was made by PostgreSQL {folder}, the programs in {} are version {programs}: name the \
         matching programs with --pg-bindir", .path.display(), .bindir.display()
    )]
    VersionMismatch {
        /// The data folder.
        path: PathBuf,
        /// Its major version.
        folder: u16,
        /// Where the programs are.
        bindir: PathBuf,
        /// Their major version.
        programs: u16,
    },

    /// A program ended with an error.
    #[error("{program} failed ({status}){}", Lines(.lines))]
    ProgramFailed {
        /// The program's name.
        program: String,
        /// Its exit status in words.
        status: String,
        /// The last lines that it printed.
        lines: Vec<String>,
    },

    /// A program's output could not be understood.
    #[error("{source_name}: {why}: {line:?}")]
    Unreadable {
        /// The program or file that was read.
        source_name: String,
        /// What is wrong with it.
        why: &'static str,
        /// The line at fault, or empty where a line is missing.
        line: String,
    },

    /// A server user that does not exist.
    #[error("no user named {name}: name an unprivileged user that exists")]
    UnknownUser {
        /// The name looked up.
        name: String,
    },

    /// The server would run as root, which PostgreSQL refuses.
    #[error("PostgreSQL does not run as root: name an unprivileged user for it")]
    RootUser,

    /// Only root can start a server as somebody else.
    #[error("only root can run the server as {wanted} (this is {current}): name no other user")]
    NotRoot {
        /// The user asked for.
        wanted: String,
        /// The user that this process is.
        current: String,
    },

    /// A folder that the server's user cannot enter.
    #[error(
        "user {user} cannot enter {} (needed to reach {}): choose a folder that it can reach, or \
         allow it with chmod o+x", .folder.display(), .target.display()
    )]
    Unreachable {
        /// The first folder on the way that refuses.
        folder: PathBuf,
        /// Where the way should lead.
        target: PathBuf,
        /// The server's user.
        user: String,
    },

    /// A new cluster's folder holds something already.
    #[error("{} is not empty: a throwaway cluster needs a new or an empty folder", .path.display())]
    NotEmpty {
        /// The folder.
        path: PathBuf,
    },

    /// The folder is no PostgreSQL data folder.
    #[error("{} is not a PostgreSQL data folder: {why}", .path.display())]
    NotADataFolder {
        /// The folder.
        path: PathBuf,
        /// What is missing or wrong.
        why: String,
    },

    /// The data folder belongs to somebody else than the server's user.
    #[error(
        "{} belongs to user id {owner}, the server would run as {user} (user id {uid}): run it as its \
         owner, or chown -R it", .path.display()
    )]
    WrongOwner {
        /// The data folder.
        path: PathBuf,
        /// Who owns it.
        owner: u32,
        /// The server's user.
        user: String,
        /// The server's user id.
        uid: u32,
    },

    /// A server runs in the data folder already.
    #[error("a server (process {pid}) runs in {}: stop it first (pg_ctl stop)", .path.display())]
    AlreadyRunning {
        /// The data folder.
        path: PathBuf,
        /// The postmaster.
        pid: i32,
    },

    /// Processes of a dead server still work in the data folder.
    #[error(
        "the server of {} is dead, but its processes {pids:?} still run: wait for them, or end them \
         with kill -QUIT", .path.display()
    )]
    Orphans {
        /// The data folder.
        path: PathBuf,
        /// The processes left.
        pids: Vec<i32>,
    },

    /// `postmaster.pid` names a living process that is no server of this folder.
    #[error(
        "{}/postmaster.pid names process {pid} ({command}), which is no server of this folder: the \
         server that wrote it is dead; delete that file", .path.display()
    )]
    StalePidFile {
        /// The data folder.
        path: PathBuf,
        /// The process named.
        pid: i32,
        /// What that process is.
        command: String,
    },

    /// The server ended before it took connections.
    #[error("the server in {} does not start ({status}){}", .path.display(), Lines(.lines))]
    ServerRefused {
        /// The data folder.
        path: PathBuf,
        /// Its exit status in words.
        status: String,
        /// The last lines of its log.
        lines: Vec<String>,
    },

    /// The server ended while it was needed.
    #[error("the server in {} has died ({status}){}", .path.display(), Lines(.lines))]
    ServerDied {
        /// The data folder.
        path: PathBuf,
        /// Its exit status in words.
        status: String,
        /// The last lines of its log.
        lines: Vec<String>,
    },

    /// A cluster that must run does not.
    #[error("the server in {} is not running", .path.display())]
    NotRunning {
        /// The data folder.
        path: PathBuf,
    },

    /// A cluster that must be stopped runs.
    #[error("the server in {} must be stopped for {what}", .path.display())]
    MustBeStopped {
        /// The data folder.
        path: PathBuf,
        /// What needs it stopped.
        what: &'static str,
    },

    /// No room left on the file system.
    #[error("disk full during {during}{}{}", place(.path.as_deref()), Lines(.lines))]
    DiskFull {
        /// What was under way.
        during: String,
        /// Where the room is missing, if known.
        path: Option<PathBuf>,
        /// The last lines that the program or server printed.
        lines: Vec<String>,
    },

    /// No folder with a path short enough for a Unix socket.
    #[error(
        "no folder for the server's Unix socket: {} leaves no room in the 107 bytes of a socket address",
        .path.display()
    )]
    SocketPath {
        /// The shortest one tried.
        path: PathBuf,
    },

    /// A setting's name or value that cannot stand in a configuration file.
    #[error("setting {name:?}: {why}")]
    BadSetting {
        /// The setting's name.
        name: String,
        /// What is wrong.
        why: &'static str,
    },

    /// A connection string that cannot be read.
    #[error("connection string: {why}")]
    BadDsn {
        /// What is wrong; never the string itself, which may hold a password.
        why: String,
    },

    /// The server could not be reached.
    #[error("cannot connect to {target}")]
    Connect {
        /// Where to, without password.
        target: String,
        /// What the client library says.
        #[source]
        source: Box<postgres::Error>,
    },

    /// A statement failed.
    #[error("{what} failed")]
    Query {
        /// The statement or its purpose.
        what: String,
        /// What the server says.
        #[source]
        source: Box<postgres::Error>,
    },

    /// The operating system refused something.
    #[error("{what} {}", .path.display())]
    Io {
        /// What was tried, as a verb: "cannot read".
        what: &'static str,
        /// On which path.
        path: PathBuf,
        /// What it said.
        #[source]
        source: io::Error,
    },
}

impl Error {
    /// The error with its causes, in one line: what the server says is one of them.
    pub fn in_full(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        text.replace('\n', " ")
    }

    /// An [`Error::Io`] of `path`, or [`Error::DiskFull`] if that is what it means.
    pub(crate) fn io(what: &'static str, path: &Path, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Error::DiskFull {
                during: format!("{what} {}", path.display()),
                path: Some(path.to_owned()),
                lines: Vec::new(),
            },
            _ => Error::Io { what, path: path.to_owned(), source },
        }
    }

    /// Whether the caller's own wish to stop was the cause.
    pub fn is_interrupted(&self) -> bool {
        matches!(self, Error::Interrupted)
    }
}

/// Whether this line says that a disk is full (`strerror` in the C locale, which this crate gives to every
/// program that it starts).
pub(crate) fn says_disk_full(line: &str) -> bool {
    line.contains("No space left on device") || line.contains("Disk quota exceeded")
}

/// Whether the file system of `path` has no room left for its users. A log on a full disk cannot say so.
pub(crate) fn is_disk_full(path: &Path) -> bool {
    rustix::fs::statvfs(path).is_ok_and(|at| at.f_bavail == 0 && at.f_blocks > 0)
}

/// The last `count` non-empty lines of `text`.
pub(crate) fn last_lines(text: &str, count: usize) -> Vec<String> {
    // A carriage return is how progress overwrites its own line.
    let mut lines: Vec<String> = text
        .rsplit(['\n', '\r'])
        .filter(|line| !line.trim().is_empty())
        .take(count)
        .map(|line| line.trim_end().to_owned())
        .collect();
    lines.reverse();
    lines
}

fn place(path: Option<&Path>) -> String {
    path.map(|path| format!(" ({})", path.display())).unwrap_or_default()
}

/// A place where the programs were looked for, and what was wrong there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Looked {
    /// The folder, or the command that should have named one.
    pub place: String,
    /// What was wrong: "no initdb, postgres".
    pub found: String,
}

impl Looked {
    fn list(looked: &[Looked]) -> String {
        looked.iter().map(|at| format!("\n  {}: {}", at.place, at.found)).collect()
    }
}

/// Lines of a program's own output, indented under the message.
struct Lines<'a>(&'a [String]);

impl fmt::Display for Lines<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.0.is_empty() {
            out.write_str(":")?;
        }
        self.0.iter().try_for_each(|line| write!(out, "\n  {line}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_lines_are_in_order_and_not_empty() {
        assert_eq!(last_lines("a\n\nb \n \nc\n", 2), ["b", "c"]);
        assert_eq!(last_lines("", 2), Vec::<String>::new());
    }

    #[test]
    fn lines_stand_indented_under_the_message() {
        let error = Error::ProgramFailed {
            program: "initdb".into(),
            status: "exit status: 1".into(),
            lines: vec!["one".into(), "two".into()],
        };
        assert_eq!(error.to_string(), "initdb failed (exit status: 1):\n  one\n  two");
    }

    #[test]
    fn a_full_disk_is_told_from_other_failures() {
        let full = io::Error::from_raw_os_error(libc::ENOSPC);
        assert!(matches!(
            Error::io("cannot write", Path::new("/"), full),
            Error::DiskFull { path: Some(_), .. }
        ));
        assert!(says_disk_full("x: No space left on device"));
        assert!(!says_disk_full("No such file or directory"));
    }
}
