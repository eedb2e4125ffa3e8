//! The few facts of `/proc` by which a server's processes are known: parent, session, start time,
//! working folder.
//!
//! Invariant: a process is identified by its id *and* its start time, so that a reused id is never taken
//! for the process that had it before. A process that vanishes while it is read is simply not there.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::path::PathBuf;

use serde::Serialize;

use crate::error::Error;
use crate::error::Result;

/// A process as `/proc/PID/stat` shows it (proc(5)).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Process {
    /// Process id.
    pub pid: i32,
    /// Parent's process id.
    pub parent: i32,
    /// Process group id.
    pub group: i32,
    /// Session id; each PostgreSQL backend leads a session of its own.
    pub session: i32,
    /// Start time in clock ticks since boot.
    pub started: u64,
    /// Name of the program file, at most 15 bytes.
    pub name: String,
    /// State letter; `Z` and `X` are dead.
    #[serde(skip)]
    pub state: char,
}

impl Process {
    /// Whether this is the same process as `other`: same id and same start.
    pub fn is_same(&self, other: &Process) -> bool {
        self.pid == other.pid && self.started == other.started
    }

    fn is_dead(&self) -> bool {
        matches!(self.state, 'Z' | 'X' | 'x')
    }

    /// Whether the program file's name is that of a PostgreSQL server.
    pub fn is_server(&self) -> bool {
        matches!(self.name.as_str(), "postgres" | "postmaster")
    }
}

/// A folder as the kernel knows it, whatever path leads there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FolderId {
    device: u64,
    inode: u64,
}

impl FolderId {
    /// The folder at `path`, links followed.
    pub fn of(path: &Path) -> io::Result<Self> {
        fs::metadata(path).map(|at| FolderId { device: at.dev(), inode: at.ino() })
    }
}

/// A mounted procfs, or a folder that looks like one.
#[derive(Clone, Debug)]
pub struct Procfs {
    root: PathBuf,
}

impl Default for Procfs {
    fn default() -> Self {
        Procfs::at("/proc")
    }
}

impl Procfs {
    /// The procfs mounted at `root`.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Procfs { root: root.into() }
    }

    /// The process `pid`, if it is alive.
    pub fn process(&self, pid: i32) -> Option<Process> {
        let stat = fs::read(self.root.join(pid.to_string()).join("stat")).ok()?;
        parse_stat(&String::from_utf8_lossy(&stat)).filter(|process| !process.is_dead())
    }

    /// Every living process that can be seen.
    pub fn processes(&self) -> Result<Vec<Process>> {
        let failed = |source| Error::io("cannot list", &self.root, source);
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.root).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            let pid = name.to_str().and_then(|name| name.parse().ok());
            found.extend(pid.and_then(|pid| self.process(pid)));
        }
        found.sort_by_key(|process| process.pid);
        Ok(found)
    }

    /// The working folder of `pid`; `None` if the process is gone or belongs to somebody else
    /// (the link is readable by its own user and by root only).
    pub fn working_folder(&self, pid: i32) -> Option<FolderId> {
        FolderId::of(&self.root.join(pid.to_string()).join("cwd")).ok()
    }

    /// The path of the working folder of `pid`, as this process sees it. `None` as above, or if the folder
    /// was removed.
    pub fn working_path(&self, pid: i32) -> Option<PathBuf> {
        let path = fs::read_link(self.root.join(pid.to_string()).join("cwd")).ok()?;
        // In another mount namespace the same path may be another folder, or none.
        (FolderId::of(&path).ok()? == self.working_folder(pid)?).then_some(path)
    }

    /// The effective user id of `pid`.
    pub fn user(&self, pid: i32) -> Option<u32> {
        fs::metadata(self.root.join(pid.to_string())).ok().map(|at| at.uid())
    }

    /// The command line of `pid`, or its process title where it has set one; arguments joined by spaces.
    pub fn title(&self, pid: i32) -> Option<String> {
        let raw = fs::read(self.root.join(pid.to_string()).join("cmdline")).ok()?;
        let text = String::from_utf8_lossy(&raw).replace('\0', " ");
        Some(text.trim_end().to_owned())
    }

    /// The memory map of `pid` (`/proc/PID/maps`), if it may be read.
    pub(crate) fn maps(&self, pid: i32) -> Option<String> {
        let raw = fs::read(self.root.join(pid.to_string()).join("maps")).ok()?;
        Some(String::from_utf8_lossy(&raw).into_owned())
    }

    /// The server processes whose working folder is `folder`. Other programs that happen to be there
    /// (a shell of the user) are left out by their name.
    pub fn servers_in(&self, folder: FolderId) -> Result<Vec<Process>> {
        let mut all = self.processes()?;
        all.retain(|process| {
            process.is_server() && self.working_folder(process.pid) == Some(folder)
        });
        Ok(all)
    }

    /// `roots` that are still alive, and all that descends from them or shares a session with one of
    /// them: a command that the server started stays in its session when its parent dies.
    pub fn family(&self, roots: &[Process]) -> Result<Vec<Process>> {
        let all = self.processes()?;
        Ok(family_of(&all, roots))
    }

    /// Whether this very process is still alive.
    pub fn is_alive(&self, process: &Process) -> bool {
        self.process(process.pid).is_some_and(|now| now.is_same(process))
    }
}

fn family_of(all: &[Process], roots: &[Process]) -> Vec<Process> {
    let is_root = |process: &Process| roots.iter().any(|root| root.is_same(process));
    let mut family: Vec<Process> = all.iter().filter(|process| is_root(process)).cloned().collect();
    // Sessions of roots that are dead by now still bind their children. The caller's own session is no
    // sign of kinship: only a session that a root *leads* counts, and only until its id is reused.
    let led: Vec<i32> = roots
        .iter()
        .filter(|root| root.pid == root.session)
        .filter(|root| !all.iter().any(|one| one.pid == root.pid && !one.is_same(root)))
        .map(|root| root.session)
        .collect();
    loop {
        let next: Vec<Process> = all
            .iter()
            .filter(|process| !family.iter().any(|known| known.is_same(process)))
            .filter(|process| {
                led.contains(&process.session)
                    || family.iter().any(|known| known.pid == process.parent)
            })
            .cloned()
            .collect();
        if next.is_empty() {
            return family;
        }
        family.extend(next);
    }
}

/// `PID (NAME) STATE PPID PGRP SESSION … STARTTIME …`; the name may hold spaces and parentheses.
fn parse_stat(stat: &str) -> Option<Process> {
    let (head, rest) = stat.rsplit_once(')')?;
    let (pid, name) = head.split_once('(')?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    let session = fields.next()?.parse().ok()?;
    // Field 22 of the line; session was field 6.
    let started = fields.nth(15)?.parse().ok()?;
    Some(Process {
        pid: pid.trim().parse().ok()?,
        parent,
        group,
        session,
        started,
        name: name.to_owned(),
        state,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "4711 (post) (gres) S 4700 4709 4711 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 987654 \
                        228000000 500 18446744073709551615 0 0";

    fn process(pid: i32, parent: i32, session: i32) -> Process {
        Process {
            pid,
            parent,
            group: pid,
            session,
            started: 1,
            name: "postgres".into(),
            state: 'S',
        }
    }

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let process = parse_stat(STAT).unwrap();
        assert_eq!(process.name, "post) (gres");
        assert_eq!((process.pid, process.parent, process.session), (4711, 4700, 4711));
        assert_eq!((process.group, process.started, process.state), (4709, 987654, 'S'));
    }

    #[test]
    fn torn_lines_are_no_process() {
        for cut in 0..STAT.find("987654").unwrap() {
            assert_eq!(parse_stat(&STAT[..cut]), None, "{cut}");
        }
    }

    #[test]
    fn a_made_up_tree_is_read_like_the_real_one() {
        let root = tempfile::tempdir().unwrap();
        let data = tempfile::tempdir().unwrap();
        for (pid, name, state) in [(10, "postgres", 'S'), (11, "bash", 'S'), (12, "postgres", 'Z')]
        {
            let folder = root.path().join(pid.to_string());
            fs::create_dir(&folder).unwrap();
            let stat =
                format!("{pid} ({name}) {state} 1 10 10 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 55 0\n");
            fs::write(folder.join("stat"), stat).unwrap();
            fs::write(folder.join("cmdline"), "postgres\0-D\0/x\0").unwrap();
            std::os::unix::fs::symlink(data.path(), folder.join("cwd")).unwrap();
        }
        fs::create_dir(root.path().join("sys")).unwrap();
        let proc = Procfs::at(root.path());
        let id = FolderId::of(data.path()).unwrap();
        let pids = |list: Vec<Process>| list.iter().map(|one| one.pid).collect::<Vec<_>>();
        assert_eq!(pids(proc.processes().unwrap()), [10, 11], "a zombie is not alive");
        assert_eq!(pids(proc.servers_in(id).unwrap()), [10], "a shell is no server");
        assert_eq!(proc.title(10).unwrap(), "postgres -D /x");
        assert_eq!(proc.working_path(10).as_deref(), Some(data.path()));
        assert_eq!(proc.working_path(4711), None);
        assert!(proc.is_alive(&proc.process(10).unwrap()));
    }

    #[test]
    fn a_family_holds_descendants_and_led_sessions_but_no_neighbours() {
        let all = [
            process(1, 0, 1),
            process(50, 1, 40), // the postmaster, in the session of whoever started it
            process(51, 50, 51), // archiver
            process(52, 51, 51), // sh of archive_command
            process(53, 1, 51), // its orphaned child
            process(60, 1, 40), // a neighbour in the starter's session
        ];
        let roots = [process(50, 1, 40), process(51, 50, 51)];
        let mut pids: Vec<i32> = family_of(&all, &roots).iter().map(|one| one.pid).collect();
        pids.sort_unstable();
        assert_eq!(pids, [50, 51, 52, 53]);
        // Both roots dead: the orphan is still known by its session.
        let pids: Vec<i32> = family_of(&all[4..], &roots).iter().map(|one| one.pid).collect();
        assert_eq!(pids, [53]);
        let reused = Process { started: 2, ..process(51, 1, 51) };
        let strangers = [reused, process(54, 51, 51)];
        assert!(family_of(&strangers, &roots).is_empty(), "a reused id is another process");
    }
}
