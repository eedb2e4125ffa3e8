//! Programs that run to their end: started in a process group of their own, watched, killed on cancel.
//!
//! Invariant: when [`run`] returns, the program is reaped; after a cancel or a limit its whole process group
//! is gone. Output goes to memory files, not pipes, so that a grandchild that keeps an end open cannot
//! block anybody.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::process::Child;
use std::process::Command;
use std::process::ExitStatus;
use std::process::Stdio;
use std::time::Duration;

use rustix::fs::MemfdFlags;
use rustix::process::Pid;
use rustix::process::Signal;

use crate::cancel::Cancel;
use crate::error::Error;
use crate::error::Result;
use crate::error::last_lines;
use crate::error::says_disk_full;
use crate::memory::SharedMemory;
use crate::procfs::Procfs;

/// How long a cancelled program may take for its own orderly end.
const GRACE: Duration = Duration::from_secs(3);

/// The most output kept of one stream, from its beginning.
const OUTPUT_MAX: usize = 4 << 20;

/// How many of the last lines an error shows.
pub(crate) const SHOWN_LINES: usize = 12;

/// What a finished program left.
pub(crate) struct Output {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Output {
    /// The error that this output tells: a full disk, or the program's failure.
    pub(crate) fn failure(&self, program: &str) -> Error {
        let mut lines = last_lines(&self.stderr, SHOWN_LINES);
        if lines.is_empty() {
            lines = last_lines(&self.stdout, SHOWN_LINES);
        }
        if says_disk_full(&self.stderr) {
            return Error::DiskFull { during: program.to_owned(), path: None, lines };
        }
        Error::ProgramFailed { program: program.to_owned(), status: self.status.to_string(), lines }
    }

    /// This output if the program succeeded.
    pub(crate) fn success(self, program: &str) -> Result<Self> {
        if self.status.success() { Ok(self) } else { Err(self.failure(program)) }
    }
}

/// Takes every variable that libpq or the server reads out of `command`'s environment, and speaks
/// English: the caller's shell must not decide what is measured or how it is parsed.
pub(crate) fn clean_environment(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"PG") {
            command.env_remove(name);
        }
    }
    command.env("LC_ALL", "C");
}

/// Runs `command` to its end. Each whole line of its standard error goes to `line` while it runs.
pub(crate) fn run(
    command: &mut Command,
    cancel: &Cancel,
    line: &mut dyn FnMut(&str),
) -> Result<Output> {
    cancel.check()?;
    let path = command.get_program().to_owned();
    let failed = |source| Error::io("cannot run", path.as_ref(), source);
    let memory = |name| {
        let file = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC).map(File::from);
        file.map_err(|errno| failed(errno.into()))
    };
    let (stdout, stderr) = (memory("stdout")?, memory("stderr")?);
    let child = command
        .stdin(Stdio::null())
        .stdout(stdout.try_clone().map_err(failed)?)
        .stderr(stderr.try_clone().map_err(failed)?)
        // The terminal's Ctrl-C goes to the foreground group only: ours decides what it means.
        .process_group(0)
        .spawn()
        .map_err(failed)?;
    let mut child = Group(Some(child));
    let mut lines = LineReader { file: &stderr, read: 0, partial: Vec::new() };
    let status = cancel.until(|| {
        let status = child.try_wait().map_err(failed)?;
        lines.pass(line);
        Ok(status)
    })?;
    lines.pass(line);
    Ok(Output { status, stdout: text(&stdout), stderr: text(&stderr) })
}

/// A child that leads a process group; dropped before its end, the group is ended and the child reaped.
struct Group(Option<Child>);

impl Group {
    fn try_wait(&mut self) -> std::io::Result<Option<ExitStatus>> {
        let Some(child) = &mut self.0 else { return Ok(None) };
        let status = child.try_wait()?;
        if status.is_some() {
            self.0 = None;
        }
        Ok(status)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let Some(mut child) = self.0.take() else { return };
        let Some(pid) = Pid::from_raw(child.id().cast_signed()) else { return };
        let proc = Procfs::default();
        let members = || {
            let mut all = proc.processes().unwrap_or_default();
            all.retain(|process| process.group == Pid::as_raw(Some(pid)));
            all
        };
        let never = Cancel::never();
        let empty = || Ok(members().is_empty().then_some(()));
        // Only the leader is asked to end, and ends its children in order: an `initdb` whose server got the
        // signal too would leave shared memory behind.
        let mut memory = SharedMemory::default();
        members().iter().for_each(|process| memory.note(&proc, process.pid));
        let _ = rustix::process::kill_process(pid, Signal::INT);
        let _ = never.poll(GRACE, empty);
        members().iter().for_each(|process| memory.note(&proc, process.pid));
        // The leader is not reaped yet, so that its group's id cannot mean another group.
        let _ = rustix::process::kill_process_group(pid, Signal::KILL);
        let _ = child.wait();
        let _ = never.poll(GRACE, empty);
        memory.remove();
    }
}

struct LineReader<'a> {
    file: &'a File,
    read: u64,
    partial: Vec<u8>,
}

impl LineReader<'_> {
    fn pass(&mut self, line: &mut dyn FnMut(&str)) {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = self.file.read_at(&mut buffer, self.read) {
            self.read += count as u64;
            self.partial.extend_from_slice(&buffer[..count]);
            while let Some(end) = self.partial.iter().position(|byte| matches!(byte, b'\n' | b'\r'))
            {
                let whole: Vec<u8> = self.partial.drain(..=end).collect();
                let whole = String::from_utf8_lossy(&whole[..end]);
                if !whole.is_empty() {
                    line(&whole);
                }
            }
        }
    }
}

/// The first [`OUTPUT_MAX`] bytes of a memory file. Read by position: the offset is the child's too.
fn text(file: &File) -> String {
    let length = file.metadata().map_or(0, |at| at.len());
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(OUTPUT_MAX).min(OUTPUT_MAX)];
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], filled as u64) {
            Ok(count @ 1..) => filled += count,
            _ => break,
        }
    }
    bytes.truncate(filled);
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;
    use std::sync::atomic::Ordering;

    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn output_status_and_lines_come_back() {
        let mut seen = Vec::new();
        let script = "echo out; printf 'a\\nb\\rc\\n' >&2; exit 3";
        let output = run(&mut shell(script), &Cancel::never(), &mut |line| {
            seen.push(line.to_owned());
        })
        .unwrap();
        assert_eq!(output.stdout, "out\n");
        assert_eq!(seen, ["a", "b", "c"]);
        assert_eq!(output.status.code(), Some(3));
        let told = output.success("sh").map(drop).unwrap_err().to_string();
        assert_eq!(told, "sh failed (exit status: 3):\n  a\n  b\n  c");
    }

    #[test]
    fn a_grandchild_that_keeps_the_output_open_blocks_nobody() {
        let script = "sleep 300 & echo $!";
        let output = run(&mut shell(script), &Cancel::never(), &mut |_| ()).unwrap();
        let pid = output.stdout.trim().parse().unwrap();
        rustix::process::kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    }

    #[test]
    fn cancel_ends_the_whole_group_and_reaps_it() {
        let flag = Arc::new(AtomicBool::new(false));
        let cancel = Cancel::new(Arc::clone(&flag));
        // The shell ignores the polite signal, as a stubborn program would not.
        let script = "sleep 300 & echo $$ $! >&2; wait";
        let mut pids = Vec::new();
        let ended = run(&mut shell(script), &cancel, &mut |line| {
            pids = line.split(' ').map(|pid| pid.parse::<i32>().unwrap()).collect();
            flag.store(true, Ordering::Relaxed);
        });
        assert!(matches!(ended, Err(Error::Interrupted)));
        assert_eq!(pids.len(), 2);
        // Killed, though perhaps not yet reaped by init: a zombie is not alive.
        let gone = Cancel::never().poll(Duration::from_secs(10), || {
            Ok(pids.iter().all(|pid| Procfs::default().process(*pid).is_none()).then_some(()))
        });
        assert_eq!(gone.unwrap(), Some(()));
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = run(&mut Command::new("/nowhere/x"), &Cancel::never(), &mut |_| ());
        assert_eq!(error.map(drop).unwrap_err().to_string(), "cannot run /nowhere/x");
    }
}
