//! Making the two segments of a run.
//!
//! Invariant: every page of a segment is allocated before anyone else can attach it, so that no
//! later shortage of memory can meet a server in the middle of an `open`.

use std::io;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use crate::page::{Counters, Page, RunLine};
use crate::segment::{Access, AttachError, Segment, SegmentId, Shared};

/// What a new run's segments are to hold.
#[derive(Clone, Copy, Debug)]
pub struct Create<'a> {
    /// Data folders that are known beforehand, canonical, without a slash at the end.
    pub roots: &'a [&'a [u8]],
    /// The user whose processes will add to the counters; `None` lets every user add to them
    /// (they are figures to look at, nothing acts on them).
    pub owner: Option<u32>,
}

/// Creates both segments. Hints are off and there is no policy yet.
///
/// # Errors
///
/// Those of `shmget(2)` (too many segments, no memory), `shmat(2)`, `getrandom(2)`.
pub fn create(what: Create<'_>) -> io::Result<(RunLine, Segment<Page>, Segment<Counters>)> {
    let mut cookie = [0u8; 8];
    rustix::rand::getrandom(&mut cookie, rustix::rand::GetRandomFlags::empty())?;
    let cookie = u64::from_ne_bytes(cookie);
    let page_id = Unlinked::new::<Page>(0o644, None)?;
    let counters_mode = if what.owner.is_some() { 0o600 } else { 0o666 };
    let counters_id = Unlinked::new::<Counters>(counters_mode, what.owner)?;
    let page = page_id.attach::<Page>()?;
    page.initialise(cookie, what.roots);
    let counters = counters_id.attach::<Counters>()?;
    counters.initialise(cookie);
    let line = RunLine { page: page_id.keep().0, counters: counters_id.keep().0, cookie };
    Ok((line, page, counters))
}

/// Removes the segment `id` if process `creator` made it; whoever has it attached keeps it.
/// Removing twice is no error.
pub(crate) fn remove(id: SegmentId, creator: u32) {
    if attached(id, creator).is_some() {
        // SAFETY: IPC_RMID takes no pointer.
        unsafe { libc::shmctl(id.0, libc::IPC_RMID, std::ptr::null_mut()) };
    }
}

/// How many processes have the segment attached; `None` if it is gone, also if its number now
/// belongs to a segment that another process than `creator` made.
pub(crate) fn attached(id: SegmentId, creator: u32) -> Option<u64> {
    // SAFETY: shmid_ds is plain numbers, for which all zero is valid.
    let mut status: libc::shmid_ds = unsafe { std::mem::zeroed() };
    // SAFETY: IPC_STAT writes one shmid_ds through the pointer.
    let rc = unsafe { libc::shmctl(id.0, libc::IPC_STAT, &raw mut status) };
    let denied = rc == -1 && std::io::Error::last_os_error().raw_os_error() == Some(libc::EACCES);
    if denied {
        // It is there and another user's; whether anyone has it attached cannot be seen.
        return Some(1);
    }
    (rc != -1 && status.shm_cpid.cast_unsigned() == creator).then_some(status.shm_nattch)
}

/// Makes `owner` the owner of the segment `id`, who may then remove it, too.
pub(crate) fn give(id: SegmentId, owner: u32) -> io::Result<()> {
    // SAFETY: shmid_ds is plain numbers, for which all zero is valid.
    let mut status: libc::shmid_ds = unsafe { std::mem::zeroed() };
    // SAFETY: IPC_STAT writes one shmid_ds through the pointer.
    if unsafe { libc::shmctl(id.0, libc::IPC_STAT, &raw mut status) } == -1 {
        return Err(io::Error::last_os_error());
    }
    status.shm_perm.uid = owner;
    // SAFETY: IPC_SET reads one shmid_ds through the pointer.
    if unsafe { libc::shmctl(id.0, libc::IPC_SET, &raw mut status) } == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// A segment that is removed again unless it is kept.
struct Unlinked(SegmentId);

impl Unlinked {
    fn new<T: Shared>(mode: i32, owner: Option<u32>) -> io::Result<Unlinked> {
        let flags = libc::IPC_CREAT | libc::IPC_EXCL | mode;
        // SAFETY: takes no pointer.
        let id = unsafe { libc::shmget(libc::IPC_PRIVATE, size_of::<T>(), flags) };
        if id == -1 {
            return Err(io::Error::last_os_error());
        }
        let segment = Unlinked(SegmentId(id));
        if let Some(owner) = owner {
            give(segment.0, owner)?;
        }
        Ok(segment)
    }

    fn attach<T: Shared>(&self) -> io::Result<Segment<T>> {
        let segment = Segment::<T>::attach(self.0, Access::ReadWrite).map_err(|e| match e {
            AttachError::Errno(errno) => io::Error::from_raw_os_error(errno),
            other => io::Error::other(other.to_string()),
        })?;
        let start = (&raw const *segment).cast::<AtomicU8>();
        for at in (0..size_of::<T>()).step_by(4096) {
            // SAFETY: within the segment, which is attached for writing, and T is all atomics.
            unsafe { &*start.add(at) }.store(0, Relaxed);
        }
        Ok(segment)
    }

    fn keep(self) -> SegmentId {
        let id = self.0;
        std::mem::forget(self);
        id
    }
}

impl Drop for Unlinked {
    fn drop(&mut self) {
        remove(self.0, std::process::id());
    }
}
