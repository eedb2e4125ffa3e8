//! The thread that answers events.
//!
//! Invariant: it waits for nothing but the kernel: what takes longer than a few hundred files goes
//! to the sweeping thread.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::fanotify::{Event, Mask};
use crate::figures::Cause;
use crate::folders::Place;
use crate::hint::is_idle;
use crate::hub::{Hub, Job};
use crate::walk::{Walk, brought, named};

/// Room for about two thousand events.
const BUFFER: usize = 128 * 1024;
/// A new folder with more entries than this is walked by the other thread.
const AT_ONCE: u64 = 256;

/// Answers events until the daemon ends. `wake` becomes readable then.
pub(crate) fn read(hub: &Hub, wake: impl AsFd, begun: Instant) -> std::io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    let mut path = Vec::new();
    while !hub.ends() {
        hub.alive.store(begun.elapsed().as_secs(), Relaxed);
        let mut ready =
            vec![PollFd::new(&wake, PollFlags::IN), PollFd::new(&hub.names, PollFlags::IN)];
        ready.extend(hub.files.iter().map(|(group, _)| PollFd::new(group, PollFlags::IN)));
        let second = Timespec { tv_sec: 1, tv_nsec: 0 };
        match poll(&mut ready, Some(&second)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        if let Some((files, _)) = &hub.files {
            files.read(&mut buffer, &mut |event| opened(hub, &event, &mut path))?;
        }
        hub.names.read(&mut buffer, &mut |event| happened(hub, &event))?;
    }
    Ok(())
}

/// An event with a descriptor.
fn opened(hub: &Hub, event: &Event<'_>, path: &mut Vec<u8>) {
    if event.mask.has(Mask::OVERFLOW) {
        return overflow(hub);
    }
    if let Some(file) = event.file.as_ref().filter(|_| event.pid != hub.me) {
        brought(hub, file, path);
    }
}

/// An event with folder and name.
fn happened(hub: &Hub, event: &Event<'_>) {
    let mask = event.mask;
    if mask.has(Mask::OVERFLOW) {
        return overflow(hub);
    }
    let Some((handle, name)) = event.place.as_ref().filter(|_| event.pid != hub.me) else { return };
    if mask.has(Mask::DELETE_SELF) && name.is_empty() {
        if let Some(place) = hub.places.remove(handle)
            && place.rest.is_empty()
        {
            hub.ask(Job::Renew(place.folder));
        }
        return;
    }
    let Some(place) = hub.places.find(handle).filter(|_| !name.is_empty()) else { return };
    if mask.has(Mask::FOLDER) {
        if mask.has(Mask::MOVED_FROM) {
            hub.places.remove_below(&place.root, &place.entry(name));
        }
        if mask.has(Mask::CREATE.and(Mask::MOVED_TO)) {
            new_folder(hub, &place, name);
        }
        return;
    }
    if mask.has(Mask::CREATE.and(Mask::MOVED_TO).and(Mask::MOVED_FROM)) && place.is_pg_tblspc() {
        return hub.ask(Job::Renew(Arc::clone(&place.folder)));
    }
    // Where opens come with a descriptor, a creation needs no second look.
    let opened =
        mask.has(Mask::OPEN) || (mask.has(Mask::CREATE) && !hub.covers(place.root.facts()));
    let inside = place.root.inside(&place.entry(name));
    // What was moved may bring a hint that its new name is not to have.
    let given =
        mask.has(Mask::MOVED_TO) || (opened && !is_idle(&hub.driver, &place.folder, &inside));
    if given {
        named(hub, &place, name);
    }
}

fn new_folder(hub: &Hub, above: &Place, name: &[u8]) {
    let rest = above.entry(name);
    if above.rest.is_empty() && !above.root.admits_folder(name) {
        return;
    }
    let place = Place { rest: rest.into(), ..above.clone() };
    let mut walk = Walk::new(hub, Cause::Event, AT_ONCE);
    walk.tree(&place);
    if walk.incomplete {
        hub.ask(Job::Tree(place));
    }
}

/// Events were lost: nobody knows which files they were about.
fn overflow(hub: &Hub) {
    for folder in &hub.watched {
        folder.figures.overflows.fetch_add(1, Relaxed);
        hub.ask_to_sweep(folder);
    }
}
