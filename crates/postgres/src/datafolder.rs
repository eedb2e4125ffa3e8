//! What a data folder says of itself, whether its server runs or not.
//!
//! Invariant: only reads. A server counts as running only if the process that `postmaster.pid` names is
//! alive *and* works in this folder; the file alone proves nothing after a crash.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::path::PathBuf;

use serde::Serialize;

use crate::dsn::Dsn;
use crate::error::Error;
use crate::error::Result;
use crate::procfs::FolderId;
use crate::procfs::Process;
use crate::procfs::Procfs;
use crate::programs::is_supported;

/// A PostgreSQL data folder.
#[derive(Clone, Debug)]
pub struct DataFolder {
    path: PathBuf,
    major: u16,
    uid: u32,
    gid: u32,
    id: FolderId,
    proc: Procfs,
}

/// A tablespace outside `base` and `global`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Tablespace {
    /// Its object id, the name in `pg_tblspc`.
    pub oid: u32,
    /// The folder with its files, links resolved.
    pub path: PathBuf,
    /// Whether it lies in `pg_tblspc` itself (`allow_in_place_tablespaces`, 15 and newer).
    pub in_place: bool,
}

/// The contents of `postmaster.pid` (`src/include/utils/pidfile.h`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PidFile {
    /// Process id of the postmaster; a standalone backend writes it negated.
    pub pid: i32,
    /// Port number; part of the socket's name.
    pub port: Option<u16>,
    /// First folder of its Unix sockets.
    pub socket_folder: Option<PathBuf>,
    /// `starting`, `stopping`, `ready` or `standby`; absent in the first moments of a start.
    pub status: Option<String>,
}

impl PidFile {
    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines().map(str::trim);
        let pid = lines.next()?.parse().ok()?;
        let mut rest = lines.skip(2);
        let port = rest.next().and_then(|port| port.parse().ok());
        let socket_folder = rest.next().filter(|folder| !folder.is_empty()).map(PathBuf::from);
        let status = rest.nth(2).filter(|status| !status.is_empty()).map(str::to_owned);
        Some(PidFile { pid, port, socket_folder, status })
    }

    /// Whether the server takes connections (a standby: read-only ones).
    pub fn is_ready(&self) -> bool {
        matches!(self.status.as_deref(), Some("ready" | "standby"))
    }
}

impl DataFolder {
    /// Recognises the data folder at `path` by `PG_VERSION` and `global/pg_control`.
    ///
    /// # Errors
    /// [`Error::NotADataFolder`] says what is missing; [`Error::UnsupportedVersion`]; [`Error::Io`] if it
    /// may not be read.
    pub fn open(path: &Path) -> Result<Self> {
        Self::open_with(path, Procfs::default())
    }

    /// As [`DataFolder::open`], asking `proc` for its processes.
    ///
    /// # Errors
    /// As [`DataFolder::open`].
    pub fn open_with(path: &Path, proc: Procfs) -> Result<Self> {
        let not = |why: &str| Error::NotADataFolder { path: path.to_owned(), why: why.to_owned() };
        let meta = match fs::metadata(path) {
            Ok(meta) if meta.is_dir() => meta,
            Ok(_) => return Err(not("it is a file")),
            Err(source) if source.kind() == io::ErrorKind::NotFound => {
                return Err(not("no such folder"));
            }
            Err(source) => return Err(Error::io("cannot read", path, source)),
        };
        let version = path.join("PG_VERSION");
        let text = match fs::read_to_string(&version) {
            Ok(text) => text,
            Err(source) if source.kind() == io::ErrorKind::NotFound => {
                return Err(not("it has no file PG_VERSION"));
            }
            Err(source) if source.kind() == io::ErrorKind::InvalidData => {
                return Err(not("its PG_VERSION is not text"));
            }
            Err(source) => return Err(Error::io("cannot read", &version, source)),
        };
        let Ok(major) = text.trim().parse::<u16>() else {
            // Up to 9.6 the major version had two parts.
            let shown = text.trim().chars().take(20).collect();
            return Err(Error::UnsupportedVersion { program: version, version: shown });
        };
        if !is_supported(major) {
            let shown = major.to_string();
            return Err(Error::UnsupportedVersion { program: version, version: shown });
        }
        let control = path.join("global/pg_control");
        match fs::metadata(&control) {
            Ok(meta) if meta.is_file() && meta.len() > 0 => {}
            Ok(_) => return Err(not("its global/pg_control is empty")),
            Err(source) if source.kind() == io::ErrorKind::NotFound => {
                return Err(not("it has no file global/pg_control"));
            }
            Err(source) => return Err(Error::io("cannot read", &control, source)),
        }
        let failed = |source| Error::io("cannot read", path, source);
        Ok(DataFolder {
            path: path.canonicalize().map_err(failed)?,
            major,
            uid: meta.uid(),
            gid: meta.gid(),
            id: FolderId::of(path).map_err(failed)?,
            proc,
        })
    }

    /// The folders in which servers run on this machine, as far as they can be seen.
    ///
    /// # Errors
    /// [`Error::Io`] if the processes cannot be listed.
    pub fn running() -> Result<Vec<Self>> {
        Self::running_with(&Procfs::default())
    }

    /// As [`DataFolder::running`], asking `proc`.
    ///
    /// # Errors
    /// As [`DataFolder::running`].
    pub fn running_with(proc: &Procfs) -> Result<Vec<Self>> {
        let mut found: Vec<Self> = Vec::new();
        for process in proc.processes()?.iter().filter(|process| process.is_server()) {
            // What vanishes meanwhile, or is no server's folder, is simply not there.
            let Some(path) = proc.working_path(process.pid) else { continue };
            let Ok(folder) = Self::open_with(&path, proc.clone()) else { continue };
            if !found.iter().any(|known| known.id == folder.id)
                && matches!(folder.postmaster(), Ok(Some(_)))
            {
                found.push(folder);
            }
        }
        Ok(found)
    }

    /// The address of the server that runs here, by its Unix socket; `None` if it has none, or does not take
    /// connections (yet).
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn local_dsn(&self, user: &str, database: &str) -> Result<Option<Dsn>> {
        let Some(file) = self.pid_file()?.filter(PidFile::is_ready) else { return Ok(None) };
        let (Some(port), Some(sockets)) = (file.port, file.socket_folder) else { return Ok(None) };
        // A relative one counts from the data folder.
        Ok(Some(Dsn::unix(&self.path.join(sockets), port, user, database)))
    }

    /// The folder's path, absolute and without links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Major version, 13 to 19.
    pub fn major(&self) -> u16 {
        self.major
    }

    /// Owner's user id, which is the server's.
    pub fn uid(&self) -> u32 {
        self.uid
    }

    /// Group id.
    pub fn gid(&self) -> u32 {
        self.gid
    }

    /// The folder as the kernel knows it.
    pub fn id(&self) -> FolderId {
        self.id
    }

    /// Where the WAL is, links resolved: `pg_wal` itself or what it leads to.
    ///
    /// # Errors
    /// [`Error::Io`] if the link leads nowhere.
    pub fn wal_folder(&self) -> Result<PathBuf> {
        let path = self.path.join("pg_wal");
        path.canonicalize().map_err(|source| Error::io("cannot follow", &path, source))
    }

    /// The tablespaces outside `base` and `global`, by object id.
    ///
    /// # Errors
    /// [`Error::Io`], also for a link that leads nowhere.
    pub fn tablespaces(&self) -> Result<Vec<Tablespace>> {
        let folder = self.path.join("pg_tblspc");
        let failed = |source| Error::io("cannot list", &folder, source);
        let mut found = Vec::new();
        for entry in fs::read_dir(&folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let Some(oid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            let link = entry.path();
            let in_place = entry.file_type().map_err(failed)?.is_dir();
            let path = link.canonicalize();
            let path = path.map_err(|source| Error::io("cannot follow", &link, source))?;
            found.push(Tablespace { oid, path, in_place });
        }
        found.sort_by_key(|tablespace| tablespace.oid);
        Ok(found)
    }

    /// The contents of `postmaster.pid`; `None` if there is none, or only a torn one.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn pid_file(&self) -> Result<Option<PidFile>> {
        let path = self.path.join("postmaster.pid");
        match fs::read(&path) {
            Ok(raw) => Ok(PidFile::parse(&String::from_utf8_lossy(&raw))),
            Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(Error::io("cannot read", &path, source)),
        }
    }

    /// The postmaster, if one runs in this folder.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn postmaster(&self) -> Result<Option<Process>> {
        let Some(file) = self.pid_file()? else { return Ok(None) };
        // A standalone backend (`postgres --single`) marks itself by a negative number.
        let process = self.proc.process(file.pid.saturating_abs());
        Ok(process.filter(|process| self.proc.working_folder(process.pid) == Some(self.id)))
    }

    /// The postmaster first, then its children; empty if no server runs.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn server_processes(&self) -> Result<Vec<Process>> {
        let Some(postmaster) = self.postmaster()? else { return Ok(Vec::new()) };
        let mut found = self.proc.processes()?;
        found.retain(|process| process.parent == postmaster.pid);
        found.insert(0, postmaster);
        Ok(found)
    }

    /// Every server process that works in this folder, also of a dead postmaster.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn all_processes(&self) -> Result<Vec<Process>> {
        self.proc.servers_in(self.id)
    }

    /// Whether it is set up as a standby (`standby.signal`); a running server is asked by
    /// [`crate::Session::is_in_recovery`].
    pub fn is_standby(&self) -> bool {
        self.path.join("standby.signal").exists()
    }

    /// Whether a server could start here now.
    ///
    /// # Errors
    /// [`Error::AlreadyRunning`], [`Error::Orphans`], [`Error::StalePidFile`].
    pub fn check_startable(&self) -> Result<()> {
        if let Some(postmaster) = self.postmaster()? {
            return Err(Error::AlreadyRunning { path: self.path.clone(), pid: postmaster.pid });
        }
        let left = self.all_processes()?;
        if !left.is_empty() {
            let pids = left.iter().map(|process| process.pid).collect();
            return Err(Error::Orphans { path: self.path.clone(), pids });
        }
        let Some(file) = self.pid_file()? else { return Ok(()) };
        let pid = file.pid.saturating_abs();
        // The server itself forgives a pid file whose process is gone or belongs to another user; it
        // gives up on a living one of its own user (CreateLockFile in miscinit.c).
        if self.proc.process(pid).is_some() && self.proc.user(pid) == Some(self.uid) {
            let command = self.proc.title(pid).unwrap_or_default();
            return Err(Error::StalePidFile { path: self.path.clone(), pid, command });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn folder(version: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("PG_VERSION"), version).unwrap();
        fs::create_dir(root.path().join("global")).unwrap();
        fs::write(root.path().join("global/pg_control"), [1]).unwrap();
        fs::create_dir(root.path().join("pg_tblspc")).unwrap();
        root
    }

    fn process(proc: &Path, pid: i32, parent: i32, cwd: &Path) {
        let folder = proc.join(pid.to_string());
        fs::create_dir_all(&folder).unwrap();
        let stat =
            format!("{pid} (postgres) S {parent} 10 10 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 55 0\n");
        fs::write(folder.join("stat"), stat).unwrap();
        fs::write(folder.join("cmdline"), "something else\0").unwrap();
        symlink(cwd, folder.join("cwd")).unwrap();
    }

    #[test]
    fn what_is_missing_is_said() {
        let told = |path: &Path| DataFolder::open(path).unwrap_err().to_string();
        let empty = tempfile::tempdir().unwrap();
        assert!(told(empty.path()).ends_with("it has no file PG_VERSION"));
        assert!(told(&empty.path().join("x")).ends_with("no such folder"));
        fs::write(empty.path().join("PG_VERSION"), "15\n").unwrap();
        assert!(told(&empty.path().join("PG_VERSION")).ends_with("it is a file"));
        assert!(told(empty.path()).ends_with("it has no file global/pg_control"));
        fs::write(empty.path().join("PG_VERSION"), "9.6\n").unwrap();
        assert!(told(empty.path()).contains("is version 9.6: 13 to 19"));
        fs::write(empty.path().join("PG_VERSION"), [0xff, 0xfe]).unwrap();
        assert!(told(empty.path()).ends_with("not text"));
    }

    #[test]
    fn every_supported_version_is_recognised() {
        for major in 13..=19 {
            let root = folder(&format!("{major}\n"));
            assert_eq!(DataFolder::open(root.path()).unwrap().major(), major);
        }
        assert!(DataFolder::open(folder("12\n").path()).is_err());
        assert!(DataFolder::open(folder("20\n").path()).is_err());
    }

    #[test]
    fn wal_and_tablespaces_are_followed() {
        let root = folder("15\n");
        let away = tempfile::tempdir().unwrap();
        let data = DataFolder::open(root.path()).unwrap();
        assert!(data.wal_folder().unwrap_err().to_string().contains("pg_wal"));
        symlink(away.path(), root.path().join("pg_wal")).unwrap();
        symlink(away.path(), root.path().join("pg_tblspc/16400")).unwrap();
        fs::create_dir(root.path().join("pg_tblspc/16390")).unwrap();
        fs::write(root.path().join("pg_tblspc/note"), "").unwrap();
        let real = away.path().canonicalize().unwrap();
        assert_eq!(data.wal_folder().unwrap(), real);
        let inside = data.path().join("pg_tblspc/16390");
        assert_eq!(
            data.tablespaces().unwrap(),
            [
                Tablespace { oid: 16390, path: inside, in_place: true },
                Tablespace { oid: 16400, path: real, in_place: false },
            ]
        );
        assert!(!data.is_standby());
        fs::write(root.path().join("standby.signal"), "").unwrap();
        assert!(data.is_standby());
    }

    #[test]
    fn pid_files_are_read_in_every_stage() {
        let whole = "4711\n/data\n1700000000\n5433\n/tmp\n*\n  5433001   32769\nready   \n";
        let file = PidFile::parse(whole).unwrap();
        assert_eq!((file.pid, file.port), (4711, Some(5433)));
        assert_eq!(file.socket_folder.as_deref(), Some(Path::new("/tmp")));
        assert!(file.is_ready());
        // No Unix socket: an empty line.
        let file =
            PidFile::parse("4711\n/data\n17\n5433\n\nlocalhost\n  1  2\nstarting\n").unwrap();
        assert_eq!(file.socket_folder, None);
        assert!(!file.is_ready());
        let file = PidFile::parse("-12\n/data\n").unwrap();
        assert_eq!((file.pid, file.status), (-12, None));
        assert_eq!(PidFile::parse(""), None);
        assert_eq!(PidFile::parse("x\n"), None);
    }

    #[test]
    fn only_a_process_in_the_folder_is_its_server() {
        let root = folder("15\n");
        let proc = tempfile::tempdir().unwrap();
        let data = DataFolder::open_with(root.path(), Procfs::at(proc.path())).unwrap();
        data.check_startable().unwrap();
        fs::write(root.path().join("postmaster.pid"), "4711\n").unwrap();
        assert_eq!(data.postmaster().unwrap(), None);
        data.check_startable().unwrap();
        // The id went to a process elsewhere: no server, but the real one would refuse to start.
        process(proc.path(), 4711, 1, proc.path());
        assert_eq!(data.postmaster().unwrap(), None);
        match data.check_startable() {
            Err(Error::StalePidFile { pid: 4711, command, .. }) => {
                assert_eq!(command, "something else");
            }
            other => panic!("{other:?}"),
        }
        fs::remove_dir_all(proc.path().join("4711")).unwrap();
        process(proc.path(), 4711, 1, root.path());
        process(proc.path(), 4712, 4711, root.path());
        process(proc.path(), 4713, 1, root.path());
        let pids = |list: Vec<Process>| list.iter().map(|one| one.pid).collect::<Vec<_>>();
        assert_eq!(pids(data.server_processes().unwrap()), [4711, 4712]);
        assert_eq!(pids(data.all_processes().unwrap()), [4711, 4712, 4713]);
        let running = DataFolder::running_with(&Procfs::at(proc.path())).unwrap();
        assert_eq!(running.iter().map(DataFolder::path).collect::<Vec<_>>(), [data.path()]);
        assert!(data.local_dsn("me", "d").unwrap().is_none(), "it does not say that it is ready");
        fs::write(root.path().join("postmaster.pid"), "4711\nx\n1\n5433\ns\n*\n1 2\nready\n")
            .unwrap();
        let dsn = data.local_dsn("me", "d").unwrap().unwrap();
        assert_eq!(dsn.socket_folder().unwrap(), data.path().join("s"));
        assert!(matches!(data.check_startable(), Err(Error::AlreadyRunning { pid: 4711, .. })));
        fs::remove_dir_all(proc.path().join("4711")).unwrap();
        match data.check_startable() {
            Err(Error::Orphans { pids, .. }) => assert_eq!(pids, [4712, 4713]),
            other => panic!("{other:?}"),
        }
    }
}
