//! Watching a device for a short time, without a trace.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use shelflife_lifetime::Lifetime;
use shelflife_trace::Op;

use crate::device::Target;
use crate::engine::{Engine, Next, Setup, Sink, Tally};
use crate::error::Error;
use crate::raw::{FileKey, Issue, Name};

/// The most events that are kept; beyond, they are counted in [`Seen::not_kept`].
const MOST: usize = 1 << 20;

/// A watch under way.
///
/// ```no_run
/// use shelflife_record::{Target, Watch};
///
/// let watch = Watch::start(&Target::of_path("/srv/pg".as_ref())?)?;
/// // … write and sync …
/// for (what, sum) in watch.stop()?.sums() {
///     println!("{what:?}: {} bytes in {} writes", sum.bytes, sum.events);
/// }
/// # Ok::<(), shelflife_record::Error>(())
/// ```
pub struct Watch {
    engine: Engine<Collecting>,
    shared: Arc<Mutex<Seen>>,
}

/// What was seen.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Seen {
    /// The events in the order in which they came.
    pub events: Vec<Issue>,
    /// Events that came after a million others.
    pub not_kept: u64,
    /// What the kernel's side counted.
    pub tally: Tally,
    /// Whether the kernel shows the addresses of its functions; if not, direct writes have no
    /// file.
    pub addresses: bool,
}

/// What writes have in common.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub struct What {
    /// The file; `None` for the journal, metadata and what is not known.
    pub file: Option<FileKey>,
    /// What was done.
    pub op: Op,
    /// The hint on the bios.
    pub hint: Lifetime,
    /// The write stream on the bios.
    pub stream: u8,
    /// Position of the device in [`Target::leaves`].
    pub device: u16,
}

/// How much of it there was.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Sum {
    /// How many bios.
    pub events: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Seen {
    /// Sums by file, operation, hint, stream and device.
    pub fn sums(&self) -> BTreeMap<What, Sum> {
        let mut sums = BTreeMap::<What, Sum>::new();
        for issue in &self.events {
            let what = What {
                file: issue.whose.file(),
                op: issue.op,
                hint: issue.hint,
                stream: issue.stream,
                device: issue.device,
            };
            let sum = sums.entry(what).or_default();
            sum.events += 1;
            sum.bytes += issue.length;
        }
        sums
    }
}

impl Watch {
    /// Starts to watch; when it returns, every request that is issued from now on is seen.
    ///
    /// # Errors
    ///
    /// Rights are missing, or the kernel cannot do it.
    pub fn start(target: &Target) -> Result<Watch, Error> {
        let mut setup = Setup::new(target.clone());
        setup.ring_bytes = 4 << 20;
        let shared = Arc::new(Mutex::new(Seen::default()));
        let engine = Engine::start(setup, Collecting(Arc::clone(&shared)))?;
        Ok(Watch { engine, shared })
    }

    /// What was seen so far and was not taken yet. Events come here some 20 ms after they were
    /// issued.
    pub fn take(&self) -> Vec<Issue> {
        let mut seen = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut seen.events)
    }

    /// Ends the watch. What was issued before is in what it gives back.
    ///
    /// # Errors
    ///
    /// The thread ended in a panic.
    pub fn stop(self) -> Result<Seen, Error> {
        let addresses = self.engine.loaded.addresses;
        let (_, tally) = self.engine.stop()?;
        let mut seen = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let mut seen = std::mem::take(&mut *seen);
        seen.tally = tally?;
        seen.addresses = addresses;
        Ok(seen)
    }
}

struct Collecting(Arc<Mutex<Seen>>);

impl Sink for Collecting {
    fn name(&mut self, _: Name) -> Result<(), Error> {
        Ok(())
    }

    fn issue(&mut self, issue: &Issue) -> Result<(), Error> {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.events.len() < MOST {
            seen.events.push(*issue);
        } else {
            seen.not_kept += 1;
        }
        Ok(())
    }

    fn tick(&mut self, _: &Tally) -> Result<Next, Error> {
        Ok(Next::Go)
    }
}
