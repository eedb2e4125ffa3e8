//! Going through what is there: marking folders, hinting files.
//!
//! Invariant: a folder is marked before it is listed, so that what is made meanwhile is either
//! listed or an event; and a place that another root has pinned is left to that root.
//!
//! Opens are marked after the folder was gone through: this thread's own would be events, which cost
//! as much as a third of all. What is opened before is there, and is gone through.

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use rustix::fs::{FileType, RawDir};
use rustix::io::Errno;
use shelflife_sweep::{entry_kind, processes_in};

use crate::fanotify::{Handle, Mask};
use crate::figures::Cause;
use crate::folder::Folder;
use crate::folders::Place;
use crate::hint::treat;
use crate::hub::{Hub, Job, count_not};
use crate::root::{Facts, look_at_held, open_file, open_folder, open_looked, path_of};

/// Folders nested deeper than this are not a database's.
const MAX_DEPTH: usize = 64;
/// At most so many files a second: what a sweep takes from a server that needs the processor.
const RATE: u32 = 300_000;
/// The clock is asked once for so many files.
const ASK_EVERY: u32 = 1024;

/// Holds a sweep to [`RATE`], and ends it when the daemon ends.
struct Pace {
    begun: Instant,
    files: u32,
}

impl Pace {
    fn goes_on(&mut self, hub: &Hub) -> bool {
        self.files += 1;
        if !self.files.is_multiple_of(ASK_EVERY) {
            return true;
        }
        let due = Duration::from_secs(1) * self.files / RATE;
        if let Some(early) = due.checked_sub(self.begun.elapsed()) {
            std::thread::sleep(early);
        }
        !hub.ends()
    }
}

/// One walk below one root.
pub(crate) struct Walk<'a> {
    hub: &'a Hub,
    cause: Cause,
    pace: Pace,
    /// The walk ends after so many entries.
    limit: u64,
    seen: u64,
    /// Regular files that were hinted, or needed no hint.
    pub(crate) files: u64,
    /// Whether it was broken off.
    pub(crate) incomplete: bool,
}

impl<'a> Walk<'a> {
    /// A walk that ends early after `limit` entries.
    pub(crate) fn new(hub: &'a Hub, cause: Cause, limit: u64) -> Walk<'a> {
        let pace = Pace { begun: Instant::now(), files: 0 };
        Walk { hub, cause, pace, limit, seen: 0, files: 0, incomplete: false }
    }

    /// The tree at `place`.
    pub(crate) fn tree(&mut self, place: &Place) {
        match place.root.folder(&place.rest, place.folder.owner()) {
            Ok((dir, facts)) => self.folder(place, &dir, &facts, 0),
            Err(not) => count_not(&place.folder, not),
        }
    }

    fn folder(&mut self, place: &Place, dir: &OwnedFd, facts: &Facts, depth: usize) {
        let marked = Handle::of(dir).and_then(|handle| {
            self.hub.names.mark_folder(dir, Hub::NAMES)?;
            self.hub.places.insert(handle, place.clone());
            Ok(())
        });
        self.entries(place, dir, depth);
        let marked = marked.and_then(|()| match self.hub.covers(facts) {
            true => Ok(()),
            false => self.hub.names.mark_folder(dir, Mask::OPEN),
        });
        if marked.is_err() {
            place.folder.figures.unwatched.fetch_add(1, Relaxed);
        }
    }

    fn entries(&mut self, place: &Place, dir: &OwnedFd, depth: usize) {
        let mut buffer = [MaybeUninit::<u8>::uninit(); 16 * 1024];
        let mut entries = RawDir::new(dir, &mut buffer);
        while let Some(entry) = entries.next() {
            let entry = match entry {
                Ok(entry) => entry,
                Err(Errno::NOENT) => return,
                Err(errno) => return place.folder.figures.count_refused(errno),
            };
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            self.seen += 1;
            if self.seen > self.limit || self.incomplete {
                self.incomplete = true;
                return;
            }
            let Some(kind) = entry_kind(dir, &entry) else { continue };
            match kind {
                FileType::Directory => self.enter(place, dir, name.to_bytes(), depth),
                FileType::RegularFile => {
                    self.file(place, dir, name.to_bytes());
                    if !self.pace.goes_on(self.hub) {
                        self.incomplete = true;
                    }
                }
                _ => {}
            }
        }
    }

    fn enter(&mut self, place: &Place, dir: &OwnedFd, name: &[u8], depth: usize) {
        if place.rest.is_empty() && !place.root.admits_folder(name) {
            return;
        }
        if depth >= MAX_DEPTH {
            return place.folder.figures.count_refused(Errno::NAMETOOLONG);
        }
        match open_folder(dir, name, place.folder.owner()) {
            Ok((_, facts)) if place.folder.is_root(&facts) => {}
            Ok((below, facts)) => {
                let rest = place.entry(name).into();
                let place = Place { rest, ..place.clone() };
                self.folder(&place, &below, &facts, depth + 1);
            }
            Err(not) => count_not(&place.folder, not),
        }
    }

    fn file(&mut self, place: &Place, dir: &OwnedFd, name: &[u8]) {
        match open_file(dir, name, place.folder.owner()) {
            Ok((file, facts)) => {
                self.files += 1;
                let inside = place.root.inside(&place.entry(name));
                treat(&self.hub.driver, &place.folder, &file, &facts, &inside, self.cause);
            }
            Err(not) => count_not(&place.folder, not),
        }
    }
}

/// Hints what the processes that work in the data folder hold open, unlinked files too; how many
/// descriptors of ours there were.
fn held(hub: &Hub, folder: &Folder) -> u64 {
    let mut count = 0;
    let mut buffer = Vec::new();
    for pid in processes_in(folder.base()) {
        let Ok(entries) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { continue };
        let numbers = entries.flatten().filter_map(|e| e.file_name().to_str()?.parse().ok());
        for fd in numbers {
            let Some(look) = look_at_held(pid, fd) else { continue };
            let Ok(facts) = crate::root::facts(&look) else { continue };
            if facts.kind != FileType::RegularFile || facts.owner != folder.owner() {
                continue;
            }
            let Some(path) = path_of(&look, &mut buffer) else { continue };
            let Some((root, at)) = folder.root_of(&path, facts.mount) else { continue };
            match open_looked(&look, folder.owner()) {
                Ok((file, facts)) => {
                    count += 1;
                    let inside = root.inside(path.get(at..).unwrap_or_default());
                    treat(&hub.driver, folder, &file, &facts, &inside, Cause::Sweep);
                }
                Err(not) => count_not(folder, not),
            }
        }
    }
    count
}

/// Looks which roots `folder` has now; the new ones. `None` if the folder is gone.
fn renew(hub: &Hub, folder: &Arc<Folder>) -> Option<Vec<Place>> {
    let before = folder.roots();
    let renewed = folder.renew_roots();
    if !matches!(renewed, Ok(false)) {
        hub.places.remove_stale(folder);
    }
    renewed.ok()?;
    let rest: Arc<[u8]> = Arc::new([]);
    let roots = folder.roots();
    let new = roots.iter().filter(|root| !before.iter().any(|b| Arc::ptr_eq(b, root)));
    Some(
        new.map(|root| Place {
            folder: Arc::clone(folder),
            root: Arc::clone(root),
            rest: Arc::clone(&rest),
        })
        .collect(),
    )
}

/// Everything: descriptors, all trees, and once more descriptors, for what was opened before its
/// folder was marked and unlinked before it was listed.
fn sweep(hub: &Hub, folder: &Arc<Folder>) {
    let begun = Instant::now();
    // What is asked from now on may be too late for this sweep.
    folder.is_asked.store(false, Relaxed);
    if renew(hub, folder).is_none() {
        return;
    }
    folder.figures.unwatched.store(0, Relaxed);
    held(hub, folder);
    let mut walk = Walk::new(hub, Cause::Sweep, u64::MAX);
    for root in folder.roots().iter() {
        let (folder, root) = (Arc::clone(folder), Arc::clone(root));
        walk.tree(&Place { folder, root, rest: Arc::new([]) });
    }
    let open_files = held(hub, folder);
    let figures = &folder.figures;
    figures.files.store(walk.files, Relaxed);
    figures.open_files.store(open_files, Relaxed);
    figures.folders.store(hub.places.count(folder) as u64, Relaxed);
    figures.sweep_ms.store(begun.elapsed().as_millis() as u64, Relaxed);
    if !walk.incomplete {
        figures.sweeps.fetch_add(1, Relaxed);
    }
}

/// Does one job of the sweeping thread.
pub(crate) fn work(hub: &Hub, job: Job) {
    match job {
        Job::Sweep(folder) => sweep(hub, &folder),
        Job::Renew(folder) => {
            for place in renew(hub, &folder).unwrap_or_default() {
                Walk::new(hub, Cause::Sweep, u64::MAX).tree(&place);
            }
        }
        Job::Tree(place) => Walk::new(hub, Cause::Sweep, u64::MAX).tree(&place),
    }
}

/// A file of which only the name in a marked folder is known.
pub(crate) fn named(hub: &Hub, place: &Place, name: &[u8]) {
    let rest = place.entry(name);
    if !place.root.admits(&rest) {
        return;
    }
    match place.root.file(&rest, place.folder.owner()) {
        Ok((file, facts)) => {
            let inside = place.root.inside(&rest);
            treat(&hub.driver, &place.folder, &file, &facts, &inside, Cause::Event);
        }
        Err(not) => count_not(&place.folder, not),
    }
}

/// A file that an event brought, wherever it lies; touched only if it lies in a root.
pub(crate) fn brought(hub: &Hub, file: &OwnedFd, buffer: &mut Vec<u8>) {
    let Ok(facts) = crate::root::facts(file) else { return };
    if facts.kind != FileType::RegularFile {
        return;
    }
    let ours = |folder: &&Arc<Folder>| {
        folder.owner() == facts.owner
            && folder.roots().iter().any(|root| root.facts().mount == facts.mount)
    };
    if !hub.watched.iter().any(|folder| ours(&folder)) {
        return;
    }
    let Some(path) = path_of(file, buffer) else { return };
    let found = hub.watched.iter().filter(ours).find_map(|folder| {
        let (root, at) = folder.root_of(&path, facts.mount)?;
        Some((folder, root, at))
    });
    if let Some((folder, root, at)) = found {
        let inside = root.inside(path.get(at..).unwrap_or_default());
        treat(&hub.driver, folder, file, &facts, &inside, Cause::Event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::Not;

    #[test]
    fn refusals_are_counted_by_what_they_mean() {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = Folder::open(dir.path(), false).expect("a folder");
        for not in [Not::AFile, Not::Ours, Not::Inside, Not::Allowed(Errno::ACCESS)] {
            count_not(&folder, not);
        }
        assert_eq!(folder.figures.foreign.load(Relaxed), 1);
        assert_eq!(folder.figures.elsewhere.load(Relaxed), 1);
        assert_eq!(folder.figures.refused().len(), 1);
    }
}
