//! What the daemon counts of each folder.
//!
//! Invariant: counting takes no lock but for refusals, which are rare.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use rustix::io::Errno;
use shelflife_layout::Class;
use shelflife_lifetime::Lifetime;
use shelflife_run::{Hinted, Refused};

const CLASSES: usize = 64;
const LIFETIMES: usize = 6;

/// Why a hint was given.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Cause {
    /// Something was opened, made or moved.
    Event,
    /// The daemon went through what is there.
    Sweep,
}

/// The figures of one folder.
#[derive(Debug)]
pub(crate) struct Figures {
    hints: [[AtomicU64; LIFETIMES]; CLASSES],
    pub(crate) swept: AtomicU64,
    pub(crate) again: AtomicU64,
    pub(crate) cleared: AtomicU64,
    pub(crate) foreign: AtomicU64,
    pub(crate) elsewhere: AtomicU64,
    pub(crate) sweeps: AtomicU64,
    pub(crate) overflows: AtomicU64,
    pub(crate) files: AtomicU64,
    pub(crate) open_files: AtomicU64,
    pub(crate) folders: AtomicU64,
    pub(crate) unwatched: AtomicU64,
    pub(crate) sweep_ms: AtomicU64,
    refused: Mutex<BTreeMap<i32, u64>>,
}

impl Default for Figures {
    fn default() -> Figures {
        Figures {
            hints: [const { [const { AtomicU64::new(0) }; LIFETIMES] }; CLASSES],
            swept: AtomicU64::new(0),
            again: AtomicU64::new(0),
            cleared: AtomicU64::new(0),
            foreign: AtomicU64::new(0),
            elsewhere: AtomicU64::new(0),
            sweeps: AtomicU64::new(0),
            overflows: AtomicU64::new(0),
            files: AtomicU64::new(0),
            open_files: AtomicU64::new(0),
            folders: AtomicU64::new(0),
            unwatched: AtomicU64::new(0),
            sweep_ms: AtomicU64::new(0),
            refused: Mutex::new(BTreeMap::new()),
        }
    }
}

impl Figures {
    /// Counts a hint that was given; `again` if the file was there before.
    pub(crate) fn count_hint(&self, class: Class, hint: Lifetime, cause: Cause, again: bool) {
        let row = self.hints.get(usize::from(class.number()));
        if let Some(cell) = row.and_then(|row| row.get(hint.raw() as usize)) {
            cell.fetch_add(1, Relaxed);
        }
        match cause {
            Cause::Sweep => &self.swept,
            Cause::Event if again => &self.again,
            Cause::Event => return,
        }
        .fetch_add(1, Relaxed);
    }

    pub(crate) fn count_foreign(&self) {
        self.foreign.fetch_add(1, Relaxed);
    }

    pub(crate) fn count_refused(&self, errno: Errno) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        *refused.entry(errno.raw_os_error()).or_default() += 1;
    }

    /// Hints given, by class and lifetime, where any.
    pub(crate) fn hints(&self) -> Vec<Hinted> {
        let mut found = Vec::new();
        for class in Class::ALL {
            for lifetime in Lifetime::ALL {
                let cell = self.hints.get(usize::from(class.number()));
                let cell = cell.and_then(|row| row.get(lifetime.raw() as usize));
                let hints = cell.map_or(0, |cell| cell.load(Relaxed));
                if hints > 0 {
                    let (class, lifetime) = (class.name().to_owned(), lifetime.name().to_owned());
                    found.push(Hinted { class, lifetime, hints });
                }
            }
        }
        found
    }

    pub(crate) fn refused(&self) -> Vec<Refused> {
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.iter().map(|(errno, times)| Refused { errno: *errno, times: *times }).collect()
    }
}
