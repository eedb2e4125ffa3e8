//! One run of a cluster's server: from `postgres` being started until its last process is gone.
//!
//! Invariant: dropping a [`Server`] leaves no process of it, and, if it did not end by itself, none of its
//! shared memory.

use std::ffi::OsString;
use std::fs::File;
use std::fs::OpenOptions;
use std::io::Read;
use std::io::Seek;
use std::io::SeekFrom;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::ExitStatus;
use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;

use rustix::process::Pid;
use rustix::process::Signal;

use super::ClusterOptions;
use super::PORT;
use super::StopMode;
use super::home::Home;
use crate::cancel::Cancel;
use crate::child;
use crate::datafolder::DataFolder;
use crate::error::Error;
use crate::error::Result;
use crate::error::is_disk_full;
use crate::error::last_lines;
use crate::error::says_disk_full;
use crate::memory::SharedMemory;
use crate::procfs::Process;
use crate::procfs::Procfs;
use crate::user::ServerUser;

/// An immediate stop: the postmaster itself kills its children after five seconds.
pub(super) const IMMEDIATE_LIMIT: Duration = Duration::from_secs(30);

/// How long the children of a dead postmaster may take to notice; then again until they are killed.
const ORPHAN_PATIENCE: Duration = Duration::from_secs(5);

/// The most of a log that is read for an error message.
const LOG_MAX: u64 = 64 << 10;

#[derive(Debug)]
pub(super) struct Server {
    child: Child,
    exited: Option<ExitStatus>,
    data: DataFolder,
    proc: Procfs,
    /// Every process of this server seen so far, dead ones included: descent cannot be read any more once
    /// a parent is dead.
    seen: Vec<Process>,
    memory: SharedMemory,
    /// The last process is gone, and by an end that cleans up after itself.
    ended: bool,
    log: PathBuf,
    log_start: u64,
}

impl Server {
    /// Starts `postgres`; see [`Server::await_ready`]. `memory` is what an earlier server left.
    pub(super) fn spawn(
        options: &ClusterOptions,
        user: &ServerUser,
        home: &Home,
        data: DataFolder,
        memory: SharedMemory,
    ) -> Result<Self> {
        let log = home.log();
        let failed = |source| Error::io("cannot write", &log, source);
        let mut open = OpenOptions::new();
        open.create(true).append(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
        let file = open.open(&log).map_err(failed)?;
        let log_start = file.metadata().map_err(failed)?.len();
        let program = options.programs.postgres();
        let mut command = Command::new(&program);
        command.arg("-D").arg(data.path());
        command.args(arguments(home));
        user.apply(&mut command);
        child::clean_environment(&mut command);
        command.envs(options.server_env.iter().map(|(name, value)| (name, value)));
        command
            .current_dir(data.path())
            .stdin(Stdio::null())
            .stdout(file.try_clone().map_err(failed)?)
            .stderr(file)
            .process_group(0);
        let child = command.spawn().map_err(|e| Error::io("cannot run", &program, e))?;
        Ok(Server {
            child,
            exited: None,
            data,
            proc: Procfs::default(),
            seen: Vec::new(),
            memory,
            ended: false,
            log,
            log_start,
        })
    }

    /// Waits until the server takes connections.
    pub(super) fn await_ready(&mut self, options: &ClusterOptions) -> Result<()> {
        let ready = options.cancel.poll(options.start_limit, || {
            if let Some(status) = self.exit_status() {
                return Err(self.refusal(status));
            }
            Ok(self.says_ready().then_some(()))
        })?;
        if ready.is_none() {
            let what = format!("start of the server in {}", self.data.path().display());
            return Err(Error::Timeout { what, limit: options.start_limit });
        }
        // Now its segments are mapped; a server that somebody kills later cannot be asked any more.
        self.remember()
    }

    fn refusal(&self, status: ExitStatus) -> Error {
        let lines = last_lines(&self.log_since_start(), child::SHOWN_LINES);
        let path = self.data.path().to_owned();
        if lines.iter().any(|line| says_disk_full(line)) || is_disk_full(&path) {
            let during = "the server's start".to_owned();
            return Error::DiskFull { during, path: Some(path), lines };
        }
        Error::ServerRefused { path, status: status.to_string(), lines }
    }

    pub(super) fn pid(&self) -> i32 {
        self.child.id().cast_signed()
    }

    /// The postmaster's exit status once it is dead.
    pub(super) fn exit_status(&mut self) -> Option<ExitStatus> {
        if self.exited.is_none() {
            // An error means that the kernel has reaped it: SIGCHLD is ignored in this process.
            self.exited = self.child.try_wait().unwrap_or(Some(ExitStatus::default()));
        }
        self.exited
    }

    pub(super) fn says_ready(&self) -> bool {
        let file = self.data.pid_file().ok().flatten();
        file.is_some_and(|file| file.pid == self.pid() && file.is_ready())
    }

    pub(super) fn log_since_start(&self) -> String {
        tail(&self.log, self.log_start)
    }

    /// Makes the server read its configuration again.
    pub(super) fn reload(&mut self) {
        self.signal(Signal::HUP);
    }

    /// Signals the postmaster. Its id is safe to use as long as it is not reaped.
    fn signal(&mut self, signal: Signal) {
        if self.exit_status().is_none() {
            send(self.pid(), signal);
        }
    }

    /// Stops the server in order and waits for all its processes.
    pub(super) fn stop(&mut self, mode: StopMode, limit: Duration, cancel: &Cancel) -> Result<()> {
        self.remember()?;
        self.signal(match mode {
            StopMode::Smart => Signal::TERM,
            StopMode::Fast => Signal::INT,
            StopMode::Immediate => Signal::QUIT,
        });
        let exited = cancel.poll(limit, || Ok(self.exit_status()))?;
        if exited.is_none() {
            let what = format!("stop of the server in {}", self.data.path().display());
            return Err(Error::Timeout { what, limit });
        }
        self.await_family(cancel)?;
        self.ended = exited.is_some_and(|status| status.code().is_some());
        Ok(())
    }

    /// Kills the postmaster; its children end by themselves or are ended.
    pub(super) fn kill(&mut self, cancel: &Cancel) -> Result<()> {
        self.remember()?;
        self.signal(Signal::KILL);
        cancel.until(|| Ok(self.exit_status()))?;
        self.await_family(cancel)
    }

    /// Hands over the memory of a dead server to the next one in the same folder, whose start frees it better
    /// than this crate could: PostgreSQL knows all its segments.
    pub(super) fn into_memory(mut self) -> SharedMemory {
        self.ended = true;
        std::mem::take(&mut self.memory)
    }

    /// Notes the processes that there are now, and their shared memory.
    fn remember(&mut self) -> Result<()> {
        let family = self.family()?;
        for process in family {
            self.memory.note(&self.proc, process.pid);
            if !self.seen.iter().any(|known| known.is_same(&process)) {
                self.seen.push(process);
            }
        }
        Ok(())
    }

    /// The server's living processes: those in its folder, those seen before, and their descendants.
    fn family(&self) -> Result<Vec<Process>> {
        let mut roots = self.data.all_processes()?;
        if self.exited.is_none() {
            roots.extend(self.proc.process(self.pid()));
        }
        roots.extend(self.seen.iter().cloned());
        self.proc.family(&roots)
    }

    /// After the postmaster's death: waits for the rest. Who has not gone after five seconds is asked by
    /// SIGQUIT, after ten killed.
    pub(super) fn await_family(&mut self, cancel: &Cancel) -> Result<()> {
        let start = Instant::now();
        let mut asked = false;
        let gone = cancel.poll(Duration::from_secs(60), || {
            self.remember()?;
            let left = self.family()?;
            if left.is_empty() {
                return Ok(Some(()));
            }
            let signal = match start.elapsed() {
                time if time > ORPHAN_PATIENCE * 2 => Signal::KILL,
                time if time > ORPHAN_PATIENCE && !asked => {
                    asked = true;
                    Signal::QUIT
                }
                _ => return Ok(None),
            };
            self.end(&left, signal);
            Ok(None)
        })?;
        match gone {
            Some(()) => Ok(()),
            None => {
                let pids = self.family()?.iter().map(|process| process.pid).collect();
                Err(Error::Orphans { path: self.data.path().to_owned(), pids })
            }
        }
    }

    fn end(&self, processes: &[Process], signal: Signal) {
        for process in processes.iter().filter(|process| self.proc.is_alive(process)) {
            send(process.pid, signal);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        // The last resort; who wants an orderly end has called `stop`.
        let _ = self.remember();
        self.signal(Signal::KILL);
        let _ = self.child.wait();
        self.exited.get_or_insert_default();
        for _ in 0..100 {
            match self.family() {
                Ok(left) if left.is_empty() => break,
                Ok(left) => self.end(&left, Signal::KILL),
                Err(_) => break,
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        self.memory.remove();
    }
}

/// What decides where the server can be reached. On the command line it wins over whatever a configuration
/// file says.
pub(super) fn arguments(home: &Home) -> Vec<OsString> {
    let mut socket = OsString::from("unix_socket_directories=");
    socket.push(home.socket());
    let port = format!("port={PORT}").into();
    [OsString::from("listen_addresses="), port, socket]
        .into_iter()
        .flat_map(|setting| [OsString::from("-c"), setting])
        .collect()
}

/// Ends every server process that works in `data`, whoever started it: the postmaster by an immediate stop,
/// what is left after [`IMMEDIATE_LIMIT`] by SIGKILL.
pub(super) fn end_all(data: &DataFolder) -> Result<()> {
    let proc = Procfs::default();
    let start = Instant::now();
    let mut asked = Vec::new();
    let gone = Cancel::never().poll(IMMEDIATE_LIMIT * 2, || {
        let left = data.all_processes()?;
        if left.is_empty() {
            return Ok(Some(()));
        }
        let all_at_once = start.elapsed() > IMMEDIATE_LIMIT;
        let postmaster = data.postmaster()?.filter(|_| !all_at_once);
        for process in postmaster.iter().chain(left.iter().filter(|_| postmaster.is_none())) {
            let signal = if all_at_once { Signal::KILL } else { Signal::QUIT };
            if !asked.contains(&(process.pid, signal)) && proc.is_alive(process) {
                asked.push((process.pid, signal));
                send(process.pid, signal);
            }
        }
        Ok(None)
    })?;
    gone.ok_or_else(|| Error::Timeout {
        what: format!("end of the server in {}", data.path().display()),
        limit: IMMEDIATE_LIMIT * 2,
    })
}

fn send(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        // Gone already is as good.
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// What `path` holds from `start` on, at most its last 64 KiB; empty if it cannot be read.
pub(super) fn tail(path: &Path, start: u64) -> String {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(start.max(length.saturating_sub(LOG_MAX))))?;
        let mut bytes = Vec::new();
        file.take(LOG_MAX).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    String::from_utf8_lossy(&read().unwrap_or_default()).into_owned()
}
