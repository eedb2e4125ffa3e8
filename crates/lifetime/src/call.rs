//! The two `fcntl` calls. No crate of the libc family has them.
//!
//! Invariant: nothing but the calling inode's hint is changed, and an error names its cause.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use crate::{F_GET_RW_HINT, F_SET_RW_HINT, Lifetime};

/// Why a hint could not be read or set.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// `EINVAL`: this kernel (before 4.13, or a sandbox such as gVisor) has no write hints.
    #[error("this kernel or sandbox has no write lifetime hints (EINVAL)")]
    Unsupported,
    /// `EPERM`: since Linux 6.13 only the file's owner or a process with CAP_FOWNER may set a
    /// hint (commit b6512519496e).
    #[error("only the file's owner, or a process with CAP_FOWNER, may set its hint (EPERM)")]
    NotOwner,
    /// `EBADF`: the descriptor was opened with `O_PATH`, which has no `fcntl` hints.
    #[error("the descriptor was opened with O_PATH and takes no hint (EBADF)")]
    PathOnly,
    /// The kernel gave back a number that is no lifetime.
    #[error("the kernel returned {0}, which is not a lifetime (0 to 5)")]
    UnknownValue(u64),
    /// Any other error of the call.
    #[error("fcntl failed")]
    Other(#[source] io::Error),
}

impl Error {
    fn last() -> Error {
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EINVAL) => Error::Unsupported,
            Some(libc::EPERM) => Error::NotOwner,
            Some(libc::EBADF) => Error::PathOnly,
            _ => Error::Other(error),
        }
    }
}

/// Reads the hint of the inode behind `file`. Any open mode but `O_PATH` will do.
///
/// # Errors
///
/// [`Error::Unsupported`], [`Error::PathOnly`], [`Error::UnknownValue`], [`Error::Other`].
pub fn get(file: impl AsFd) -> Result<Lifetime, Error> {
    let mut raw = 0u64;
    // SAFETY: the descriptor is open for the duration of the borrow, and F_GET_RW_HINT writes one
    // u64 through the pointer, which is valid and aligned for that.
    let rc = unsafe { libc::fcntl(file.as_fd().as_raw_fd(), F_GET_RW_HINT, &raw mut raw) };
    if rc == -1 {
        return Err(Error::last());
    }
    Lifetime::from_raw(raw).ok_or(Error::UnknownValue(raw))
}

/// Sets the hint of the inode behind `file`; a read-only descriptor of the owner is enough.
///
/// # Errors
///
/// [`Error::Unsupported`], [`Error::NotOwner`], [`Error::PathOnly`], [`Error::Other`].
pub fn set(file: impl AsFd, lifetime: Lifetime) -> Result<(), Error> {
    let raw = lifetime.raw();
    // SAFETY: the descriptor is open for the duration of the borrow, and F_SET_RW_HINT reads one
    // u64 through the pointer, which is valid and aligned for that.
    let rc = unsafe { libc::fcntl(file.as_fd().as_raw_fd(), F_SET_RW_HINT, &raw const raw) };
    if rc == -1 { Err(Error::last()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use rustix::fs::{Mode, OFlags, open};

    use super::*;

    #[test]
    fn every_lifetime_can_be_set_and_read_back() {
        let file = tempfile::tempfile().expect("a temporary file");
        assert_eq!(get(&file).expect("a new file has a hint"), Lifetime::NotSet);
        for lifetime in Lifetime::ALL {
            set(&file, lifetime).expect("the owner may set");
            assert_eq!(get(&file).expect("and read"), lifetime);
        }
    }

    #[test]
    fn a_read_only_descriptor_is_enough_and_the_hint_is_the_inodes() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        let other = File::open(file.path()).expect("opened a second time");
        set(&other, Lifetime::Long).expect("read-only will do");
        assert_eq!(get(file.as_file()).expect("same inode"), Lifetime::Long);
    }

    #[test]
    fn a_path_descriptor_is_refused_by_name() {
        let fd = open("/tmp", OFlags::PATH, Mode::empty()).expect("O_PATH of a folder");
        assert!(matches!(set(&fd, Lifetime::Short), Err(Error::PathOnly)));
        assert!(matches!(get(&fd), Err(Error::PathOnly)));
    }
}
