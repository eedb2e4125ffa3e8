//! A recording from start to end: for some time, while a command runs, until a signal.
//!
//! Invariants: the recording ends, and its trace is whole, as soon as there is a reason to end it;
//! a command that was started is waited for in any case, unless a second signal comes.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;

use crate::error::Error;
use crate::privileges::drop_capabilities;
use crate::recorder::{Options, Progress, Recorder, Summary, Warning};

/// How often a look is taken at signals and at the command.
const LOOK: Duration = Duration::from_millis(20);

/// When a recording ends.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Until {
    /// After this time.
    pub time: Option<Duration>,
    /// When this program and its arguments have ended; none if empty.
    pub command: Vec<OsString>,
}

/// Why a recording ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Reason {
    /// The time was over.
    Time,
    /// The trace has the size that it may have.
    MaxBytes,
    /// The command ended.
    Command,
    /// A signal came.
    Signal,
}

/// A recording that came to its end.
#[derive(Debug)]
#[non_exhaustive]
pub struct Recorded {
    /// What it came to.
    pub summary: Summary,
    /// Why it ended.
    pub reason: Reason,
    /// How the command ended; `None` without one, or if a second signal came before.
    pub command: Option<ExitStatus>,
}

/// What the caller's look says, each time it is asked.
#[derive(Clone, Copy, Debug, Default)]
pub struct Signals {
    /// How many signals came that ask to end.
    pub count: usize,
    /// Whether a command does not know of them: SIGTERM, and not Ctrl-C, which a terminal sends to
    /// the command as well.
    pub pass_on: bool,
}

/// Records until one of `until` is true or a signal comes. `look` is called some fifty times a
/// second with what was recorded so far, and once with the warnings.
///
/// # Errors
///
/// As [`Recorder::start`] and [`Recorder::stop`]; or the command cannot be started. If the trace
/// cannot be written further, the command is waited for nevertheless.
pub fn record(
    options: Options,
    until: &Until,
    look: &mut dyn FnMut(&Progress, &[Warning]) -> Signals,
) -> Result<Recorded, Error> {
    let output = options.output.clone();
    let recorder = Recorder::start(options)?;
    let began = Instant::now();
    let mut child = match Running::start(&until.command) {
        Ok(child) => child,
        Err(error) => {
            // of a command that never ran there is nothing to keep; the folder is this recorder's
            drop(recorder);
            let _ = std::fs::remove_dir_all(&output);
            return Err(error);
        }
    };
    // what is left to do needs no rights but to signal the command
    let _ = drop_capabilities(!until.command.is_empty());
    let warnings = recorder.warnings().to_vec();
    let reason = loop {
        let signals = look(&recorder.progress(), &warnings);
        child.tell(signals);
        if child.has_ended()? {
            break Reason::Command;
        }
        // with a command, it decides what a signal means; a second one is meant for the recording
        if signals.count > usize::from(child.is_there()) {
            break Reason::Signal;
        }
        if until.time.is_some_and(|time| began.elapsed() >= time) {
            break Reason::Time;
        }
        if recorder.is_finished() {
            break Reason::MaxBytes;
        }
        std::thread::sleep(LOOK);
    };
    let progress = recorder.progress();
    let summary = recorder.stop();
    while !child.has_ended()? && child.is_there() {
        let signals = look(&progress, &warnings);
        child.tell(signals);
        if signals.count > 1 {
            break;
        }
        std::thread::sleep(LOOK);
    }
    Ok(Recorded { summary: summary?, reason, command: child.status })
}

/// The command, if there is one.
struct Running {
    child: Option<Child>,
    status: Option<ExitStatus>,
    told: bool,
}

impl Running {
    fn start(command: &[OsString]) -> Result<Running, Error> {
        let child = match command {
            [] => None,
            [program, args @ ..] => {
                let child = Command::new(program).args(args).spawn();
                Some(child.map_err(Error::io("start", Path::new(program)))?)
            }
        };
        Ok(Running { child, status: None, told: false })
    }

    fn is_there(&self) -> bool {
        self.child.is_some()
    }

    fn has_ended(&mut self) -> Result<bool, Error> {
        if let (Some(child), None) = (&mut self.child, self.status) {
            let status = child.try_wait();
            self.status = status.map_err(Error::io("wait for", Path::new("the command")))?;
        }
        Ok(self.status.is_some())
    }

    fn tell(&mut self, signals: Signals) {
        if let (Some(child), true, false) = (&self.child, signals.pass_on, self.told)
            && self.status.is_none()
            && let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw)
        {
            // it may be another user's by now; then it is waited for
            let _ = kill_process(pid, Signal::TERM);
            self.told = true;
        }
    }
}
