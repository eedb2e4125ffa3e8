//! The probe files.
//!
//! Invariant: they have no name from the moment they exist.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::time::{ClockId, clock_gettime};
use shelflife_lifetime::Lifetime;

use super::{MOST_BYTES, PIECE};
use crate::error::Error;
use crate::live;
use crate::signal::Mode;

/// Left free, in any case.
const SPARE: u64 = 64 << 20;
/// What `O_DIRECT` wants of memory.
const ALIGNMENT: usize = 4096;

/// Where they are made.
#[derive(Debug)]
pub(super) struct Files {
    folder: PathBuf,
    /// Whether ext4 writes data to its journal first.
    journalled: bool,
}

/// One of them.
#[derive(Debug)]
pub(super) struct Probe {
    file: File,
    journalled: bool,
    /// Device and inode.
    pub(super) key: (u64, u64),
}

/// CLOCK_MONOTONIC in nanoseconds.
pub(super) fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000
        + u64::try_from(time.tv_nsec).unwrap_or(0)
}

impl Files {
    /// In `folder`, if there is room and files can be made.
    pub(super) fn make(folder: &Path, journalled: bool) -> Result<Files, Error> {
        let stat = rustix::fs::statvfs(folder).map_err(|e| Error::path(folder)(e.into()))?;
        let free = stat.f_bavail.saturating_mul(stat.f_frsize);
        let all = stat.f_blocks.saturating_mul(stat.f_frsize);
        let full = free < SPARE + MOST_BYTES || free < all / 50;
        if full || (stat.f_files > 0 && stat.f_favail < 100) {
            return Err(Error::Full { path: folder.to_owned(), free });
        }
        tempfile::tempfile_in(folder)
            .map_err(|source| Error::NoFile { path: folder.to_owned(), source })?;
        Ok(Files { folder: folder.to_owned(), journalled })
    }

    /// One for each lifetime, with its hint; or why not.
    pub(super) fn open(&self, mode: Mode) -> Result<Vec<Probe>, String> {
        Lifetime::ALL.into_iter().map(|lifetime| self.one(mode, lifetime)).collect()
    }

    fn one(&self, mode: Mode, lifetime: Lifetime) -> Result<Probe, String> {
        let said = |error: io::Error| error.to_string();
        let file = tempfile::tempfile_in(&self.folder).map_err(said)?;
        if mode == Mode::Direct {
            let flags = rustix::fs::fcntl_getfl(&file).map_err(|e| said(e.into()))?;
            rustix::fs::fcntl_setfl(&file, flags | OFlags::DIRECT)
                .map_err(|_| "the file system has no O_DIRECT".to_owned())?;
        }
        if lifetime != Lifetime::NotSet {
            shelflife_lifetime::set(&file, lifetime).map_err(|error| error.to_string())?;
        }
        let meta = file.metadata().map_err(said)?;
        Ok(Probe { file, journalled: self.journalled, key: (meta.dev(), meta.ino()) })
    }
}

impl Probe {
    /// Writes piece number `n` and waits until the drive has it.
    pub(super) fn put(&self, n: usize, lifetime: Lifetime) -> Result<u64, String> {
        let said = |error: io::Error| error.to_string();
        let mut memory = vec![0u8; PIECE + ALIGNMENT];
        let start = memory.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        let piece = &mut memory[start..start + PIECE];
        // Text as a database has it: not zeroes, and it compresses.
        for (at, line) in piece.chunks_mut(64).enumerate() {
            let text = format!("shelflife probe {lifetime} {n} {at}");
            for (to, from) in line.iter_mut().zip(text.bytes().chain(std::iter::repeat(b'.'))) {
                *to = from;
            }
        }
        self.file.write_all_at(piece, (n * PIECE) as u64).map_err(said)?;
        self.file.sync_all().map_err(said)?;
        // data=journal writes the data to its place at a checkpoint only.
        if self.journalled {
            live::checkpoint(self.file.as_fd());
        }
        Ok(PIECE as u64)
    }

    /// First and last byte of its extents.
    pub(super) fn place(&self) -> Option<(u64, u64)> {
        let extents = live::extents(self.file.as_fd())?;
        let first = extents.iter().map(|(start, _)| *start).min()?;
        let last = extents.iter().map(|(start, len)| start + len).max()?;
        Some((first, last))
    }
}
