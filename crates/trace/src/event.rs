//! One write, and many of them in columns.
//!
//! Invariant: all columns of a [`Batch`] have the same length, so that an event is one position in
//! each of them.

use std::fmt;
use std::str::FromStr;

use shelflife_lifetime::Lifetime;

/// What is done to the range.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[repr(u8)]
pub enum Op {
    /// Data are written (`REQ_OP_WRITE`).
    #[default]
    Write = 0,
    /// The range is discarded (`REQ_OP_DISCARD`).
    Discard = 1,
    /// The range reads as zeroes from now on (`REQ_OP_WRITE_ZEROES`).
    WriteZeroes = 2,
}

impl Op {
    /// All three, by number.
    pub const ALL: [Op; 3] = [Op::Write, Op::Discard, Op::WriteZeroes];

    /// The number in column `op`.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The operation with this number.
    pub fn from_number(number: u8) -> Option<Op> {
        Op::ALL.get(usize::from(number)).copied()
    }

    /// The name in tables, JSON and CSV: `write`, `discard`, `write-zeroes`.
    pub const fn name(self) -> &'static str {
        match self {
            Op::Write => "write",
            Op::Discard => "discard",
            Op::WriteZeroes => "write-zeroes",
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Flags of a request (`include/linux/blk_types.h`).
#[derive(Clone, Copy, Default, Eq, Hash, PartialEq)]
pub struct Flags(u8);

impl Flags {
    /// None.
    pub const NONE: Flags = Flags(0);
    /// `REQ_SYNC`: somebody waits for it.
    pub const SYNC: Flags = Flags(1);
    /// `REQ_META`: the file system calls it metadata.
    pub const META: Flags = Flags(2);
    /// `REQ_FUA`: through the drive's cache.
    pub const FUA: Flags = Flags(4);

    const NAMES: [(Flags, &'static str); 3] =
        [(Flags::SYNC, "sync"), (Flags::META, "meta"), (Flags::FUA, "fua")];

    /// The bits in column `flags`.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Flags with these bits; `None` if a bit has no meaning.
    pub const fn from_bits(bits: u8) -> Option<Flags> {
        if bits < 8 { Some(Flags(bits)) } else { None }
    }

    /// Whether all of `other` are set.
    pub const fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both together.
    #[must_use]
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

impl fmt::Display for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set: Vec<&str> =
            Flags::NAMES.iter().filter(|(flag, _)| self.contains(*flag)).map(|(_, n)| *n).collect();
        f.pad(&set.join("+"))
    }
}

impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Flags({self})")
    }
}

/// The text was not flags: `sync`, `meta` and `fua`, joined by `+`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct UnknownFlag;

impl FromStr for Flags {
    type Err = UnknownFlag;

    fn from_str(text: &str) -> Result<Flags, UnknownFlag> {
        let mut flags = Flags::NONE;
        for name in text.split('+').filter(|name| !name.is_empty()) {
            let known = Flags::NAMES.iter().find(|(_, n)| *n == name).ok_or(UnknownFlag)?;
            flags = flags.with(known.0);
        }
        Ok(flags)
    }
}

/// A row of the file table. Row 0 is the file that nobody knows.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct FileId(pub u32);

impl FileId {
    /// Not attributed to a file.
    pub const UNKNOWN: FileId = FileId(0);
}

/// The name of a process, in the table of the reader or writer that gave the number. 0: unknown.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ProcessId(pub u16);

impl ProcessId {
    /// Not recorded.
    pub const UNKNOWN: ProcessId = ProcessId(0);
}

/// One write, discard or write-zeroes, at the moment it was issued.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Event {
    /// Nanoseconds since the trace's time 0 ([`crate::Meta::start_unix_ns`]).
    pub time: u64,
    /// Bytes from the start of the whole device.
    pub offset: u64,
    /// Bytes, at least 1.
    pub length: u64,
    /// What is done.
    pub op: Op,
    /// The hint on the request.
    pub hint: Lifetime,
    /// The write stream on the request (`bi_write_stream`), 0 for none.
    pub stream: u8,
    /// Flags of the request.
    pub flags: Flags,
    /// Position in [`crate::Meta::devices`].
    pub device: u16,
    /// Who issued it. The kernel's writeback threads issue most buffered writes.
    pub process: ProcessId,
    /// Whose data it is.
    pub file: FileId,
}

impl Event {
    /// One past the last byte. A reader gives no event for which this overflows.
    pub const fn end(&self) -> u64 {
        self.offset.saturating_add(self.length)
    }

    /// The pages of `page_size` bytes that the range touches, as first and count.
    pub fn pages(&self, page_size: u64) -> (u64, u64) {
        let (size, last) = (page_size.max(1), self.end().saturating_sub(1));
        let first = self.offset / size;
        (first, if self.length == 0 { 0 } else { last / size - first + 1 })
    }
}

/// Events in columns: what the simulator and other tight loops want.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    pub(crate) time: Vec<u64>,
    pub(crate) offset: Vec<u64>,
    pub(crate) length: Vec<u64>,
    pub(crate) op: Vec<Op>,
    pub(crate) hint: Vec<Lifetime>,
    pub(crate) stream: Vec<u8>,
    pub(crate) flags: Vec<Flags>,
    pub(crate) device: Vec<u16>,
    pub(crate) process: Vec<ProcessId>,
    pub(crate) file: Vec<FileId>,
}

impl Batch {
    /// An empty batch with room for `events`.
    pub fn with_capacity(events: usize) -> Batch {
        Batch {
            time: Vec::with_capacity(events),
            offset: Vec::with_capacity(events),
            length: Vec::with_capacity(events),
            op: Vec::with_capacity(events),
            hint: Vec::with_capacity(events),
            stream: Vec::with_capacity(events),
            flags: Vec::with_capacity(events),
            device: Vec::with_capacity(events),
            process: Vec::with_capacity(events),
            file: Vec::with_capacity(events),
        }
    }

    /// How many events.
    pub fn len(&self) -> usize {
        self.time.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.time.is_empty()
    }

    /// Takes all events out, keeping the memory.
    pub fn clear(&mut self) {
        self.time.clear();
        self.offset.clear();
        self.length.clear();
        self.op.clear();
        self.hint.clear();
        self.stream.clear();
        self.flags.clear();
        self.device.clear();
        self.process.clear();
        self.file.clear();
    }

    /// Adds one at the end.
    #[inline]
    pub fn push(&mut self, event: &Event) {
        self.time.push(event.time);
        self.offset.push(event.offset);
        self.length.push(event.length);
        self.op.push(event.op);
        self.hint.push(event.hint);
        self.stream.push(event.stream);
        self.flags.push(event.flags);
        self.device.push(event.device);
        self.process.push(event.process);
        self.file.push(event.file);
    }

    /// The event at position `at`; `None` past the end.
    #[inline]
    pub fn get(&self, at: usize) -> Option<Event> {
        if at >= self.len() {
            return None;
        }
        Some(Event {
            time: self.time[at],
            offset: self.offset[at],
            length: self.length[at],
            op: self.op[at],
            hint: self.hint[at],
            stream: self.stream[at],
            flags: self.flags[at],
            device: self.device[at],
            process: self.process[at],
            file: self.file[at],
        })
    }

    /// All events in order.
    pub fn iter(&self) -> impl Iterator<Item = Event> + '_ {
        (0..self.len()).map_while(|at| self.get(at))
    }

    /// Nanoseconds since the trace's time 0.
    pub fn time(&self) -> &[u64] {
        &self.time
    }

    /// Bytes from the start of the device.
    pub fn offset(&self) -> &[u64] {
        &self.offset
    }

    /// Bytes.
    pub fn length(&self) -> &[u64] {
        &self.length
    }

    /// What is done.
    pub fn op(&self) -> &[Op] {
        &self.op
    }

    /// Hints on the requests.
    pub fn hint(&self) -> &[Lifetime] {
        &self.hint
    }

    /// Write streams on the requests.
    pub fn stream(&self) -> &[u8] {
        &self.stream
    }

    /// Flags of the requests.
    pub fn flags(&self) -> &[Flags] {
        &self.flags
    }

    /// Positions in [`crate::Meta::devices`].
    pub fn device(&self) -> &[u16] {
        &self.device
    }

    /// Who issued them.
    pub fn process(&self) -> &[ProcessId] {
        &self.process
    }

    /// Whose data they are.
    pub fn file(&self) -> &[FileId] {
        &self.file
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_return_from_their_names() {
        for bits in 0..8 {
            let flags = Flags::from_bits(bits).unwrap();
            assert_eq!(flags.to_string().parse(), Ok(flags));
        }
        assert_eq!(Flags::from_bits(8), None);
        assert_eq!("sync+x".parse::<Flags>(), Err(UnknownFlag));
    }

    #[test]
    fn each_touched_page_counts() {
        let event = |offset, length| Event { offset, length, ..Event::default() };
        assert_eq!(event(0, 4096).pages(4096), (0, 1));
        assert_eq!(event(512, 4096).pages(4096), (0, 2));
        assert_eq!(event(4095, 2).pages(4096), (0, 2));
        assert_eq!(event(8192, 1).pages(4096), (2, 1));
        assert_eq!(event(8192, 0).pages(4096), (2, 0));
        assert_eq!(event(u64::MAX, u64::MAX).pages(4096).1, 1);
    }
}
