//! The tree below the roots.
//!
//! Invariant: every step down is an `openat` of one name with `O_NOFOLLOW` from a descriptor of
//! the folder above, so that no rename or link can lead out. The links `pg_wal` and `pg_tblspc/*`
//! are the server's user's to set, who may lead root anywhere: behind them only what a server keeps
//! there is entered, and a file is looked at before it is opened.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, RawDir, RawDirEntry, fstat, openat, statat,
};
use rustix::io::Errno;

use crate::territory::{Error, Root, Territory};
use crate::{Place, Tally, refuse};

/// Folders nested deeper than this are not a database's; they are counted as refused.
const MAX_DEPTH: usize = 64;
/// `progress` is asked once for so many files.
const ASK_EVERY: u64 = 1024;

/// What an entry of `dir` is, links themselves; `None` if it is gone. Some file systems leave the kind
/// out of the listing (`DT_UNKNOWN`, readdir(3)).
pub fn entry_kind(dir: impl AsFd, entry: &RawDirEntry<'_>) -> Option<FileType> {
    match entry.file_type() {
        FileType::Unknown => statat(dir, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)
            .ok()
            .map(|stat| FileType::from_raw_mode(stat.st_mode)),
        kind => Some(kind),
    }
}

pub(crate) fn pass(
    territory: &Territory,
    tally: &mut Tally,
    visit: &mut impl FnMut(&mut Tally, &OwnedFd, &Place<'_>),
    progress: &mut impl FnMut(&Tally) -> bool,
) -> Result<bool, Error> {
    let mut walk = Walk { territory, tally, visit, progress, path: Vec::new() };
    for root in territory.roots() {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let dir = match openat(CWD, &root.path, flags, Mode::empty()) {
            Ok(dir) => dir,
            // a tablespace that was dropped meanwhile
            Err(Errno::NOENT) if !root.called.as_os_str().is_empty() => continue,
            Err(errno) => {
                let source = errno.into();
                return Err(Error::Io { what: "cannot enter it", path: root.path.clone(), source });
            }
        };
        walk.path.clear();
        walk.path.extend_from_slice(root.called.as_os_str().as_bytes());
        if !walk.folder(&dir, 0, top_filter(root)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What of a root's first level is entered.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Top {
    All,
    /// The location of a tablespace may serve several servers, each with a folder of its own.
    OwnVersion,
    /// A WAL folder that lies elsewhere.
    Wal,
}

fn top_filter(root: &Root) -> Top {
    if root.called.starts_with("pg_tblspc") {
        Top::OwnVersion
    } else if root.called.as_os_str().is_empty() {
        Top::All
    } else {
        Top::Wal
    }
}

/// The folders in `pg_wal`, up to version 19.
fn is_in_wal(name: &[u8]) -> bool {
    matches!(name, b"archive_status" | b"summaries")
}

/// Whether `path` from the data folder is `pg_tblspc/OID`: one inside it (in place) is entered as it
/// stands, by no link.
fn is_tablespace(path: &[u8]) -> bool {
    path.strip_prefix(b"pg_tblspc/").is_some_and(|name| !name.contains(&b'/'))
}

struct Walk<'a, V, P> {
    territory: &'a Territory,
    tally: &'a mut Tally,
    visit: &'a mut V,
    progress: &'a mut P,
    /// The path from the data folder to where the walk is.
    path: Vec<u8>,
}

impl<V, P> Walk<'_, V, P>
where
    V: FnMut(&mut Tally, &OwnedFd, &Place<'_>),
    P: FnMut(&Tally) -> bool,
{
    fn folder(&mut self, dir: &OwnedFd, depth: usize, top: Top) -> bool {
        let mut buffer = [MaybeUninit::<u8>::uninit(); 16 * 1024];
        let mut entries = RawDir::new(dir, &mut buffer);
        while let Some(entry) = entries.next() {
            let entry = match entry {
                Ok(entry) => entry,
                // the folder was removed meanwhile
                Err(Errno::NOENT) => break,
                Err(errno) => {
                    refuse(self.tally, errno);
                    break;
                }
            };
            let name = entry.file_name();
            let bytes = name.to_bytes();
            if matches!(bytes, b"." | b"..")
                || (top == Top::OwnVersion && !self.territory.is_own_version(bytes))
            {
                continue;
            }
            let Some(kind) = entry_kind(dir, &entry) else { continue };
            let length = self.path.len();
            if length > 0 {
                self.path.push(b'/');
            }
            self.path.extend_from_slice(bytes);
            let goes_on = match kind {
                FileType::Directory if top == Top::Wal && !is_in_wal(bytes) => true,
                FileType::Directory if depth >= MAX_DEPTH => {
                    refuse(self.tally, Errno::NAMETOOLONG);
                    true
                }
                FileType::Directory => {
                    let top = if is_tablespace(&self.path) { Top::OwnVersion } else { Top::All };
                    match self.open(dir, name, OFlags::DIRECTORY) {
                        Some(below) => self.folder(&below, depth + 1, top),
                        None => true,
                    }
                }
                FileType::RegularFile => self.file(dir, name),
                _ => true,
            };
            self.path.truncate(length);
            if !goes_on {
                return false;
            }
        }
        true
    }

    fn file(&mut self, dir: &OwnedFd, name: &CStr) -> bool {
        match statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if stat.st_uid != self.territory.owner() => {
                self.tally.foreign += 1;
                return true;
            }
            _ => {}
        }
        let Some(file) = self.open(dir, name, OFlags::NONBLOCK | OFlags::NOATIME) else {
            return true;
        };
        match fstat(&file) {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile => {}
            Ok(stat) if stat.st_uid != self.territory.owner() => self.tally.foreign += 1,
            Ok(_) => {
                self.tally.files += 1;
                let base = self.territory.base().as_os_str().as_bytes();
                (self.visit)(self.tally, &file, &Place { base, inside: &self.path });
            }
            Err(errno) => refuse(self.tally, errno),
        }
        !self.tally.files.is_multiple_of(ASK_EVERY) || (self.progress)(self.tally)
    }

    /// Opens `name`; a file that vanished is nothing, a refusal is counted.
    fn open(&mut self, dir: &OwnedFd, name: &CStr, more: OFlags) -> Option<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | more;
        match openat(dir, name, flags, Mode::empty()) {
            Ok(file) => Some(file),
            Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR) => None,
            Err(errno) => {
                refuse(self.tally, errno);
                None
            }
        }
    }
}
