//! What the BPF program sends: one record an event, one a name.
//!
//! Invariant: read by offset and checked, so that no unsafe is needed and a record of another
//! layout is told, not believed. `bpf/wire.h` has the same layouts.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use shelflife_lifetime::Lifetime;
use shelflife_mounts::DevNumber;
use shelflife_trace::{Flags, Op};

const ISSUE: u8 = 1;
const NAME: u8 = 2;
const ISSUE_BYTES: usize = 64;
const NAME_HEAD: usize = 24;

/// A file as the kernel tells it from others: an inode number that is reused gets another
/// generation.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct FileKey {
    /// What `stat` says in `st_dev`: of btrfs the subvolume's number.
    pub device: DevNumber,
    /// Number of the inode.
    pub inode: u64,
    /// Its generation (`i_generation`).
    pub generation: u32,
}

/// Whose data a write holds.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Whose {
    /// Nothing in the kernel's structures leads to a file.
    Unknown,
    /// A file's, through the page cache.
    Buffered(FileKey),
    /// A file's, written with O_DIRECT.
    Direct(FileKey),
    /// The file system's metadata.
    Metadata,
    /// The file system's journal or log.
    Journal,
    /// A page of a block device's cache: its file system's metadata, or somebody's who writes to
    /// the device itself.
    BlockDevice(DevNumber),
    /// Written to a block device with O_DIRECT.
    Raw,
}

impl Whose {
    /// The file, if it is one's.
    pub fn file(&self) -> Option<FileKey> {
        match self {
            Whose::Buffered(key) | Whose::Direct(key) => Some(*key),
            _ => None,
        }
    }
}

/// A name of a process, as the kernel keeps it: at most 15 bytes.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Comm([u8; 16]);

impl Comm {
    /// Up to the first NUL.
    pub fn bytes(&self) -> &[u8] {
        self.0.split(|byte| *byte == 0).next().unwrap_or_default()
    }
}

/// One write, discard or write-zeroes as it was issued.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Issue {
    /// Nanoseconds of CLOCK_MONOTONIC.
    pub time: u64,
    /// Bytes from the start of the whole device.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
    /// What is done.
    pub op: Op,
    /// The hint on the bio.
    pub hint: Lifetime,
    /// The write stream on the bio, 0 for none.
    pub stream: u8,
    /// Flags of the bio; FUA of the request.
    pub flags: Flags,
    /// Position in [`crate::Target::leaves`].
    pub device: u16,
    /// Whose data it is.
    pub whose: Whose,
    /// Who issued it.
    pub process: Comm,
}

/// What a file is called.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Name {
    pub key: FileKey,
    /// The file system's own number, as in mountinfo.
    pub file_system: DevNumber,
    /// From the root of the file system.
    pub path: PathBuf,
}

/// Either record.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Record {
    Issue(Issue),
    Name(Name),
}

impl Record {
    /// `None` for anything that the program of this version does not send.
    pub fn parse(bytes: &[u8]) -> Option<Record> {
        match *bytes.first()? {
            ISSUE => issue(bytes.first_chunk()?).map(Record::Issue),
            NAME => name(bytes).map(Record::Name),
            _ => None,
        }
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|b| u16::from_ne_bytes(*b))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|b| u32::from_ne_bytes(*b))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|b| u64::from_ne_bytes(*b))
}

fn issue(bytes: &[u8; ISSUE_BYTES]) -> Option<Issue> {
    let [_, op, hint, stream, flags, whose, ..] = *bytes;
    let device = DevNumber::from_kernel(u32_at(bytes, 12)?);
    let key = FileKey { device, inode: u64_at(bytes, 32)?, generation: u32_at(bytes, 40)? };
    Some(Issue {
        time: u64_at(bytes, 16)?,
        offset: u64_at(bytes, 24)?.checked_mul(512)?,
        length: u32_at(bytes, 8)?.into(),
        op: Op::from_number(op)?,
        hint: Lifetime::from_raw(hint.into())?,
        stream,
        flags: Flags::from_bits(flags)?,
        device: u16_at(bytes, 6)?,
        whose: match whose {
            0 => Whose::Unknown,
            1 => Whose::Buffered(key),
            2 => Whose::Direct(key),
            3 => Whose::Metadata,
            4 => Whose::Journal,
            5 => Whose::BlockDevice(device),
            6 => Whose::Raw,
            _ => return None,
        },
        process: Comm(*bytes.get(48..)?.first_chunk()?),
    })
}

fn name(bytes: &[u8]) -> Option<Name> {
    let device = DevNumber::from_kernel(u32_at(bytes, 4)?);
    let key = FileKey { device, inode: u64_at(bytes, 8)?, generation: u32_at(bytes, 16)? };
    let file_system = DevNumber::from_kernel(u32_at(bytes, 20)?);
    let text = bytes.get(NAME_HEAD..NAME_HEAD + usize::from(u16_at(bytes, 2)?))?;
    let mut path = Vec::with_capacity(text.len() + 1);
    for component in text.strip_suffix(&[0])?.rsplit(|byte| *byte == 0) {
        path.push(b'/');
        path.extend(component);
    }
    Some(Name { key, file_system, path: OsString::from_vec(path).into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> [u8; ISSUE_BYTES] {
        let mut bytes = [0; ISSUE_BYTES];
        bytes[..8].copy_from_slice(&[1, 0, 2, 7, 5, 1, 1, 0]);
        bytes[8..12].copy_from_slice(&4096_u32.to_ne_bytes());
        bytes[12..16].copy_from_slice(&(7 << 20 | 3_u32).to_ne_bytes());
        bytes[16..24].copy_from_slice(&99_u64.to_ne_bytes());
        bytes[24..32].copy_from_slice(&8_u64.to_ne_bytes());
        bytes[32..40].copy_from_slice(&1234_u64.to_ne_bytes());
        bytes[40..44].copy_from_slice(&56_u32.to_ne_bytes());
        bytes[48..52].copy_from_slice(b"a b\0");
        bytes
    }

    #[test]
    fn an_event_is_read_by_offset() {
        let Some(Record::Issue(issue)) = Record::parse(&sample()) else { panic!() };
        let device = DevNumber { major: 7, minor: 3 };
        let key = FileKey { device, inode: 1234, generation: 56 };
        assert_eq!((issue.offset, issue.length, issue.time), (4096, 4096, 99));
        assert_eq!((issue.hint, issue.stream, issue.device), (Lifetime::Short, 7, 1));
        assert_eq!(issue.flags, Flags::SYNC.with(Flags::FUA));
        assert_eq!((issue.whose, issue.process.bytes()), (Whose::Buffered(key), &b"a b"[..]));
    }

    #[test]
    fn what_no_program_sends_is_refused() {
        assert_eq!(Record::parse(&[]), None);
        assert_eq!(Record::parse(&sample()[..63]), None);
        for (at, bad) in [(0, 3), (1, 3), (2, 6), (4, 8), (5, 7), (31, 255)] {
            let mut bytes = sample();
            bytes[at] = bad;
            assert_eq!(Record::parse(&bytes), None, "{at}");
        }
    }

    #[test]
    fn components_come_from_the_file_up() {
        let mut bytes = vec![2, 0, 11, 0];
        bytes.extend([0; 20]);
        bytes.extend(b"16384\x005\0base\0");
        bytes[2] = 13;
        let Some(Record::Name(name)) = Record::parse(&bytes) else { panic!() };
        assert_eq!(name.path, PathBuf::from("/base/5/16384"));
        bytes[2] = 14;
        assert_eq!(Record::parse(&bytes), None);
        bytes[2] = 12; // not ended
        assert_eq!(Record::parse(&bytes), None);
    }
}
