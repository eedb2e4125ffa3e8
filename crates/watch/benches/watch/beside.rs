//! A daemon in a process of its own: this program once more.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use shelflife_control::Registry;
use shelflife_run::{WatchedFolder, watching};
use shelflife_watch::{Daemon, Mode, Options};

use crate::server::be_nice;

/// Set to the folder, by which this program knows that it is to be the daemon.
pub const ROLE: &str = "SHELFLIFE_BENCH_WATCH";
/// What the daemon gives.
pub const POLICY: &str = "temp-vs-rest";
/// As `Nice=` has it in the daemon's unit.
const NICE: i32 = -10;
const MODE: &str = "SHELFLIFE_BENCH_MODE";

/// What the daemon's process does.
pub fn be_the_daemon() {
    let folder = PathBuf::from(std::env::var_os(ROLE).expect("the folder"));
    let mode = match std::env::var(MODE).as_deref() {
        Ok("filesystem") => Mode::FileSystem,
        _ => Mode::Folders,
    };
    let options =
        Options { folders: vec![folder], policy: POLICY.to_owned(), mode, ..Options::default() };
    let registry = Registry::from_environment().expect("a state folder");
    be_nice(NICE);
    let daemon = Daemon::start(options, &registry).expect("a daemon");
    daemon.watch(&mut |_| ()).expect("watched");
}

/// A running daemon.
pub struct Beside {
    child: Child,
    state: PathBuf,
}

impl Beside {
    /// Starts it on `folder` and waits for its first sweep. `state` is a folder of this bench.
    pub fn start(folder: &Path, mode: &str, state: &Path) -> Beside {
        let program = std::env::current_exe().expect("this program");
        Beside::start_by(&mut Command::new(program), folder, mode, state)
    }

    /// The same in real time, before everything that is not.
    pub fn start_in_real_time(folder: &Path, mode: &str, state: &Path) -> Beside {
        let program = std::env::current_exe().expect("this program");
        let mut chrt = Command::new("chrt");
        Beside::start_by(chrt.args(["-r", "1"]).arg(program), folder, mode, state)
    }

    fn start_by(command: &mut Command, folder: &Path, mode: &str, state: &Path) -> Beside {
        let child = command
            .env(ROLE, folder)
            .env(MODE, mode)
            .env("SHELFLIFE_STATE", state)
            .stdout(Stdio::null())
            .spawn()
            .expect("started");
        let mut beside = Beside { child, state: state.to_owned() };
        let end = Instant::now() + Duration::from_secs(300);
        while !beside.figures().is_some_and(|f| f.swept) {
            assert!(beside.child.try_wait().expect("a child").is_none(), "the daemon ended");
            assert!(Instant::now() < end, "no sweep in five minutes");
            std::thread::sleep(Duration::from_millis(100));
        }
        beside
    }

    /// What it says of its folder.
    pub fn figures(&self) -> Option<WatchedFolder> {
        let registry = Registry::at(&self.state).ok()?;
        let run = registry.runs().ok()?.pop()?.ok()?;
        watching(&run).ok()??.folders.pop()
    }

    /// A number in KiB of `/proc/PID/status`.
    pub fn kib(&self, key: &str) -> u64 {
        let text = fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("alive");
        let line = text.lines().find_map(|line| line.strip_prefix(key)).expect("the line");
        line.trim().trim_end_matches(" kB").trim().parse().expect("a number")
    }

    /// Processor time so far, in clock ticks (usually of 10 ms).
    pub fn ticks(&self) -> u64 {
        let text = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).expect("alive");
        let after = text.rsplit(')').next().expect("fields");
        after.split_whitespace().skip(11).take(2).map(|f| f.parse::<u64>().expect("ticks")).sum()
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        let pid = self.child.id().to_string();
        let _ = Command::new("kill").arg(pid).status();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.state);
    }
}

/// A folder that looks like a data folder.
pub fn data_folder(at: &Path) -> PathBuf {
    let data = at.join("data");
    for folder in ["base/pgsql_tmp", "base/5", "global", "pg_wal", "pg_tblspc"] {
        fs::create_dir_all(data.join(folder)).expect("a folder");
    }
    fs::write(data.join("PG_VERSION"), "15\n").expect("a file");
    data
}
