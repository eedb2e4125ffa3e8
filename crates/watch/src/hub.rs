//! What the threads of the daemon share.
//!
//! Invariant: what is not known any more is swept again rather than guessed.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::Sender;
use std::sync::{Arc, PoisonError, RwLock};

use rustix::io::Errno;
use shelflife_control::Driver;

use crate::fanotify::{Group, Mask};
use crate::folder::Folder;
use crate::folders::{Folders, Place};
use crate::relations::Rules;
use crate::root::{Facts, Not};

/// What the sweeping thread is to do.
#[derive(Debug)]
pub(crate) enum Job {
    /// Everything of this folder.
    Sweep(Arc<Folder>),
    /// Only whether roots came or went.
    Renew(Arc<Folder>),
    /// The tree below one place.
    Tree(Place),
}

/// Shared by all threads.
#[derive(Debug)]
pub(crate) struct Hub {
    pub(crate) driver: Driver,
    /// Folder and name of what is made, moved and, where `files` does not see it, opened.
    pub(crate) names: Group,
    /// Descriptors of what is opened, with the devices that it covers.
    pub(crate) files: Option<(Group, Vec<(u32, u32)>)>,
    pub(crate) places: Folders,
    pub(crate) watched: Vec<Arc<Folder>>,
    pub(crate) jobs: Sender<Job>,
    pub(crate) stop: Arc<AtomicBool>,
    /// The relation rules of the policy that this daemon read last.
    pub(crate) rules: RwLock<Arc<Rules>>,
    /// Seconds since the start at which the reading thread last showed itself.
    pub(crate) alive: AtomicU64,
    /// This process, whose own opens are events too.
    pub(crate) me: i32,
}

impl Hub {
    /// Whether opens on the file system of `facts` come with a descriptor.
    pub(crate) fn covers(&self, facts: &Facts) -> bool {
        self.files.as_ref().is_some_and(|(_, devices)| devices.contains(&facts.device))
    }

    /// What is to be seen of every folder, but opens.
    pub(crate) const NAMES: Mask =
        Mask::CREATE.and(Mask::MOVED_TO).and(Mask::MOVED_FROM).and(Mask::DELETE_SELF);

    /// Asks for a sweep of `folder`, unless one is asked for already.
    pub(crate) fn ask_to_sweep(&self, folder: &Arc<Folder>) {
        if !folder.is_asked.swap(true, Relaxed) {
            self.ask(Job::Sweep(Arc::clone(folder)));
        }
    }

    pub(crate) fn ask(&self, job: Job) {
        // It fails only at the end, when nobody sweeps any more.
        let _ = self.jobs.send(job);
    }

    /// The relation rules in force while the page holds their policy.
    pub(crate) fn rules(&self) -> Arc<Rules> {
        Arc::clone(&self.rules.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether the daemon is to end.
    pub(crate) fn ends(&self) -> bool {
        self.stop.load(Relaxed)
    }
}

/// Counts why there was no file.
pub(crate) fn count_not(folder: &Folder, not: Not) {
    match not {
        Not::AFile => {}
        Not::Ours => folder.figures.count_foreign(),
        Not::Inside => {
            folder.figures.elsewhere.fetch_add(1, Relaxed);
        }
        // more rights than ours were needed, or the file is leased
        Not::Allowed(Errno::INTR) => {}
        Not::Allowed(errno) => folder.figures.count_refused(errno),
    }
}
