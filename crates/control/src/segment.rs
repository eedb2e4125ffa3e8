//! Attaching System V shared memory as a typed reference.
//!
//! Invariant: a [`Segment`] is attached for as long as it lives, is at least as large as its
//! type, and its type is [`Shared`]: any bytes, written by anyone at any time, are a valid value.

use core::marker::PhantomData;
use core::ptr::NonNull;

use crate::page::PageError;

/// A type that may lie in memory which other processes write.
///
/// # Safety
///
/// `repr(C)`; every field is an atomic or an array or struct of such; every bit pattern is valid.
pub unsafe trait Shared {}

/// The kernel's number of a segment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SegmentId(pub i32);

/// How to attach.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Access {
    /// Loads only. A store through such a reference would fault; the hook makes none.
    ReadOnly,
    /// Loads and stores.
    ReadWrite,
}

/// Why a segment could not be attached.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AttachError {
    /// There is no such segment: it was removed, or the machine was started anew.
    Gone,
    /// The segment belongs to someone else.
    Denied,
    /// Another errno of `shmat` or `shmctl`.
    Errno(i32),
    /// It is there, and not what it should be.
    Page(PageError),
}

impl core::fmt::Display for AttachError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            AttachError::Gone => f.write_str("its shared memory was removed"),
            AttachError::Denied => f.write_str("its shared memory belongs to another user"),
            AttachError::Errno(errno) => write!(f, "shared memory: errno {errno}"),
            AttachError::Page(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for AttachError {}

impl AttachError {
    fn from_errno(errno: i32) -> AttachError {
        match errno {
            libc::EINVAL | libc::EIDRM => AttachError::Gone,
            libc::EACCES | libc::EPERM => AttachError::Denied,
            other => AttachError::Errno(other),
        }
    }
}

/// An attached segment.
#[derive(Debug)]
pub struct Segment<T: Shared> {
    at: NonNull<T>,
    access: Access,
    _owns: PhantomData<T>,
}

// SAFETY: a segment is only a shared reference to atomics.
unsafe impl<T: Shared> Send for Segment<T> {}
// SAFETY: as above.
unsafe impl<T: Shared> Sync for Segment<T> {}

impl<T: Shared> Segment<T> {
    /// Attaches the segment `id`.
    ///
    /// # Errors
    ///
    /// [`AttachError`]; `Page(TooSmall)` if it cannot hold a `T`. The contents are not looked at.
    pub fn attach(id: SegmentId, access: Access) -> Result<Segment<T>, AttachError> {
        let flags = if access == Access::ReadOnly { libc::SHM_RDONLY } else { 0 };
        // SAFETY: a null address lets the kernel choose unused addresses; nothing is replaced.
        let at = unsafe { libc::shmat(id.0, core::ptr::null(), flags) };
        if at as isize == -1 {
            return Err(AttachError::from_errno(errno()));
        }
        let Some(at) = NonNull::new(at.cast::<T>()) else { return Err(AttachError::Gone) };
        let segment = Segment { at, access, _owns: PhantomData };
        // SAFETY: shmid_ds is plain numbers, for which all zero is valid.
        let mut status: libc::shmid_ds = unsafe { core::mem::zeroed() };
        // SAFETY: IPC_STAT writes one shmid_ds through the pointer.
        if unsafe { libc::shmctl(id.0, libc::IPC_STAT, &raw mut status) } == -1 {
            return Err(AttachError::from_errno(errno()));
        }
        // The size of a segment never changes, so checking it after attaching is no race.
        if status.shm_segsz < size_of::<T>() {
            return Err(AttachError::Page(PageError::TooSmall));
        }
        Ok(segment)
    }

    /// How it was attached.
    pub fn access(&self) -> Access {
        self.access
    }

    /// Gives up ownership: the segment stays attached until the process ends or calls `exec`.
    pub fn leak(self) -> &'static T {
        let at = self.at;
        core::mem::forget(self);
        // SAFETY: attached, large enough and aligned (page-aligned), valid for any bytes, and
        // never detached any more.
        unsafe { at.as_ref() }
    }
}

impl<T: Shared> core::ops::Deref for Segment<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: attached while self lives, large enough, page-aligned, valid for any bytes;
        // T is all atomics, so that writes of other processes are no data race.
        unsafe { self.at.as_ref() }
    }
}

impl<T: Shared> Drop for Segment<T> {
    fn drop(&mut self) {
        // SAFETY: `at` came from shmat and is detached once.
        unsafe { libc::shmdt(self.at.as_ptr().cast()) };
    }
}

fn errno() -> i32 {
    // SAFETY: always a valid pointer to this thread's errno.
    unsafe { *libc::__errno_location() }
}
