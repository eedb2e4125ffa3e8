//! A thread that takes what the BPF program sends and hands it to a [`Sink`].
//!
//! Invariants: everything of BPF lives and dies in this one thread; capabilities are dropped in it
//! once the program is attached; what was issued before [`Engine::stop`] is handed on before the
//! thread ends.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use serde::Serialize;

use crate::device::{System, Target};
use crate::error::Error;
use crate::raw::{Issue, Name};

/// What the kernel's side counted.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Tally {
    /// Events without a row: no room in the ring, appends to zones (their place is known only
    /// afterwards), and calls of the program that the kernel passed over since it ran already on
    /// that processor (these may have been of other devices, or reads).
    pub lost: u64,
    /// Of these, appends to zones.
    pub zone_appends: u64,
    /// Flushes.
    pub flushes: u64,
    /// Requests that a driver gave back and got again; recorded once.
    pub retries: u64,
}

/// Whether to go on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Next {
    Go,
    Stop,
}

/// Where events go.
pub(crate) trait Sink: Send {
    /// A file's name, before the event for which it was sent, or never.
    fn name(&mut self, name: Name) -> Result<(), Error>;
    /// An event.
    fn issue(&mut self, issue: &Issue) -> Result<(), Error>;
    /// After each look at the ring.
    fn tick(&mut self, tally: &Tally) -> Result<Next, Error>;
}

/// How the kernel's side is set up.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub target: Target,
    pub system: System,
    /// Bytes of the ring, a power of two of pages.
    pub ring_bytes: u32,
    /// How often the ring is looked at.
    pub drain_every: Duration,
    pub drop_capabilities: bool,
}

impl Setup {
    pub fn new(target: Target) -> Setup {
        Setup {
            target,
            system: System::default(),
            ring_bytes: 32 << 20,
            drain_every: Duration::from_millis(20),
            drop_capabilities: true,
        }
    }
}

/// What was found while the program was loaded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loaded {
    /// Whether the kernel shows the addresses of its functions; if not, direct writes have no file.
    pub addresses: bool,
}

/// The running thread.
pub(crate) struct Engine<S> {
    stop: Sender<()>,
    thread: JoinHandle<(S, Result<Tally, Error>)>,
    pub loaded: Loaded,
}

impl<S: Sink + 'static> Engine<S> {
    /// Loads, attaches and starts taking; returns when it records.
    pub fn start(setup: Setup, sink: S) -> Result<Engine<S>, Error> {
        let (stop, stopped) = mpsc::channel();
        let (ready, is_ready) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("recorder".to_owned())
            .spawn(move || {
                let mut sink = sink;
                let result = run(&setup, &mut sink, &ready, &stopped);
                (sink, result)
            })
            .map_err(Error::io("start a thread for", std::path::Path::new("the recorder")))?;
        match is_ready.recv() {
            Ok(loaded) => Ok(Engine { stop, thread, loaded }),
            Err(_) => match thread.join() {
                Ok((_, Err(error))) => Err(error),
                _ => Err(Error::Panicked),
            },
        }
    }

    /// Whether it ended by itself: an error, or the sink had enough.
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Detaches, takes what is there, and gives the sink back.
    pub fn stop(self) -> Result<(S, Result<Tally, Error>), Error> {
        // an error means that the thread has ended already
        let _ = self.stop.send(());
        self.thread.join().map_err(|_| Error::Panicked)
    }
}

/// Waits until the next look at the ring is due; whether to go on.
pub(crate) fn wait(stopped: &Receiver<()>, time: Duration) -> Next {
    match stopped.recv_timeout(time) {
        Err(RecvTimeoutError::Timeout) => Next::Go,
        // gone without a word: its owner was dropped
        Ok(()) | Err(RecvTimeoutError::Disconnected) => Next::Stop,
    }
}

#[cfg(feature = "bpf")]
use crate::kernel::run;

#[cfg(not(feature = "bpf"))]
fn run(_: &Setup, _: &mut dyn Sink, _: &Sender<Loaded>, _: &Receiver<()>) -> Result<Tally, Error> {
    Err(Error::NotBuilt)
}
