//! The layout of the page and of the counters, byte for byte what lies in shared memory.
//!
//! Invariant: one writer at a time (the registry's lock), any number of readers. A policy is
//! written into the slot that no reader is directed to, then [`State`] moves; a reader that sees
//! the same state before and after has read one whole policy.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

use shelflife_layout::{Class, Table};
use shelflife_lifetime::Lifetime;

use crate::segment::Shared;

/// The version of both layouts. Readers refuse any other.
pub const VERSION: u32 = 1;
/// `SHLFPAGE` as a little-endian number.
const PAGE_MAGIC: u64 = u64::from_le_bytes(*b"SHLFPAGE");
/// `SHLFCNTR` as a little-endian number.
const COUNTERS_MAGIC: u64 = u64::from_le_bytes(*b"SHLFCNTR");

/// The longest folder that fits, in bytes. Longer data folders are not recognised by the hook.
pub const MAX_PATH: usize = 1000;
const MAX_DIRS: usize = 4;
const NAME_BYTES: usize = 64;
const MAX_ERRNO: usize = 160;
const MAX_CLASSES: usize = 64;

/// Columns of the counters: one for each lifetime, then [`COLUMN_NO_RULE`].
pub const COLUMNS: usize = 8;
/// The column of opened files for which the policy has no lifetime.
pub const COLUMN_NO_RULE: usize = 6;

/// Why a page or counters cannot be used.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PageError {
    /// The magic is another: zeroed, or no page of ours.
    NotAPage,
    /// Written by another version of Shelflife.
    Version(u32),
    /// The segment is smaller than the layout.
    TooSmall,
    /// The checksum of the fixed part is wrong.
    Damaged,
    /// A page, but of another run: its number was used again.
    AnotherRun,
}

impl core::fmt::Display for PageError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            PageError::NotAPage => f.write_str("it is zeroed or not a control page"),
            PageError::Version(version) => write!(
                f,
                "it has version {version} and this build of shelflife knows {VERSION}; \
                 use the shelflife that started the run"
            ),
            PageError::TooSmall => f.write_str("it is too small for a control page"),
            PageError::Damaged => f.write_str("its checksum is wrong"),
            PageError::AnotherRun => f.write_str("it belongs to another run"),
        }
    }
}

impl core::error::Error for PageError {}

/// Switch and generation, one word, so that a reader sees them together.
///
/// From the lowest bit: on, slot of the policy, dry run; then the generation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct State(u64);

impl State {
    #[cfg(feature = "std")]
    fn new(generation: u64, on: bool, slot: usize, dry_run: bool) -> State {
        let slot = slot as u64 & 1;
        State(generation << 3 | u64::from(dry_run) << 2 | slot << 1 | u64::from(on))
    }

    /// Grows by one with every change.
    pub fn generation(self) -> u64 {
        self.0 >> 3
    }

    /// Whether hints are given.
    pub fn is_on(self) -> bool {
        self.0 & 1 != 0
    }

    /// Whether opens are only counted and no hint is given.
    pub fn is_dry_run(self) -> bool {
        self.0 & 4 != 0
    }

    fn slot(self) -> usize {
        (self.0 >> 1 & 1) as usize
    }
}

/// A path of up to [`MAX_PATH`] bytes.
#[repr(C)]
#[derive(Debug)]
pub struct Dir {
    len: AtomicU32,
    bytes: [AtomicU8; MAX_PATH],
}

impl Dir {
    /// An empty path, for statics.
    pub const fn new() -> Dir {
        Dir { len: AtomicU32::new(0), bytes: [const { AtomicU8::new(0) }; MAX_PATH] }
    }

    /// Whether there is no path.
    pub fn is_empty(&self) -> bool {
        self.len.load(Acquire) == 0
    }

    /// Whether this is `path`; an empty one is no path.
    pub fn is(&self, path: &[u8]) -> bool {
        let bytes = self.bytes.get(..self.len.load(Acquire) as usize);
        bytes.is_some_and(|bytes| {
            !bytes.is_empty()
                && bytes.len() == path.len()
                && bytes.iter().zip(path).all(|(a, b)| a.load(Relaxed) == *b)
        })
    }

    /// Whether `path` lies below this folder: the part after it and its slash.
    pub fn below<'p>(&self, path: &'p [u8]) -> Option<&'p [u8]> {
        let (head, rest) = path.split_at_checked(self.len.load(Acquire) as usize)?;
        match rest {
            [b'/', rest @ ..] if self.is(head) && !shelflife_layout::path::climbs(rest) => {
                Some(rest)
            }
            _ => None,
        }
    }

    /// Copies the path into `buffer`: the part that was filled.
    pub fn read<'b>(&self, buffer: &'b mut [u8; MAX_PATH]) -> &'b [u8] {
        let len = (self.len.load(Acquire) as usize).min(MAX_PATH);
        for (to, from) in buffer.iter_mut().zip(&self.bytes) {
            *to = from.load(Relaxed);
        }
        buffer.get(..len).unwrap_or_default()
    }

    /// Stores `path`; one that is too long is stored as empty, which matches nothing.
    pub fn write(&self, path: &[u8]) {
        let len = if path.len() <= MAX_PATH { path.len() } else { 0 };
        for (to, from) in self.bytes.iter().zip(path) {
            to.store(*from, Relaxed);
        }
        self.len.store(len as u32, Release);
    }
}

impl Default for Dir {
    fn default() -> Dir {
        Dir::new()
    }
}

#[repr(C)]
#[derive(Debug)]
struct Slot {
    name: [AtomicU8; NAME_BYTES],
    checksum: AtomicU64,
    table: Table,
}

/// The control page.
#[repr(C)]
#[derive(Debug)]
pub struct Page {
    magic: AtomicU64,
    version: AtomicU32,
    size: AtomicU32,
    cookie: AtomicU64,
    checksum: AtomicU64,
    state: AtomicU64,
    roots: [Dir; MAX_DIRS],
    slots: [Slot; 2],
}

// SAFETY: repr(C), all fields are atomics or arrays of such structs, and any bytes are valid.
unsafe impl Shared for Page {}

impl Page {
    /// Fills a fresh page: switched off, the first policy not yet published.
    ///
    /// `roots` are the data folders that are known beforehand, as the kernel spells them; those
    /// that do not fit are left out, and it is said how many fitted.
    #[cfg(feature = "std")]
    pub(crate) fn initialise(&self, cookie: u64, roots: &[&[u8]]) -> usize {
        self.version.store(VERSION, Relaxed);
        self.size.store(size_of::<Page>() as u32, Relaxed);
        self.cookie.store(cookie, Relaxed);
        let mut fitted = 0;
        for (to, from) in self.roots.iter().zip(roots.iter().filter(|r| r.len() <= MAX_PATH)) {
            to.write(from);
            fitted += 1;
        }
        for slot in &self.slots {
            slot.table.clear(shelflife_layout::Layout::Paths);
            slot.checksum.store(slot.table.checksum(), Relaxed);
        }
        self.checksum.store(self.fixed_checksum(), Relaxed);
        self.magic.store(PAGE_MAGIC, Release);
        fitted
    }

    /// Checks magic, version, size, checksum of the fixed part, and that it is the run `cookie`.
    ///
    /// # Errors
    ///
    /// All of [`PageError`] but `TooSmall`.
    pub fn validate(&self, cookie: u64) -> Result<(), PageError> {
        if self.magic.load(Acquire) != PAGE_MAGIC {
            return Err(PageError::NotAPage);
        }
        match self.version.load(Relaxed) {
            VERSION => {}
            other => return Err(PageError::Version(other)),
        }
        if self.size.load(Relaxed) as usize != size_of::<Page>()
            || self.checksum.load(Relaxed) != self.fixed_checksum()
        {
            return Err(PageError::Damaged);
        }
        if self.cookie.load(Relaxed) == cookie { Ok(()) } else { Err(PageError::AnotherRun) }
    }

    fn fixed_checksum(&self) -> u64 {
        let mut hash = 0xcbf2_9ce4_8422_2325u64;
        let mut word = |w: u64| hash = (hash ^ w).wrapping_mul(0x0000_0100_0000_01b3);
        word(u64::from(self.version.load(Relaxed)));
        word(u64::from(self.size.load(Relaxed)));
        word(self.cookie.load(Relaxed));
        for root in &self.roots {
            word(u64::from(root.len.load(Relaxed)));
            root.bytes.iter().for_each(|b| word(u64::from(b.load(Relaxed))));
        }
        hash
    }

    /// Switch and generation as they are now.
    pub fn state(&self) -> State {
        State(self.state.load(Acquire))
    }

    /// The policy that `state` directs to.
    pub fn table(&self, state: State) -> &Table {
        let [even, odd] = &self.slots;
        if state.slot() == 0 { &even.table } else { &odd.table }
    }

    /// The name of the policy that `state` directs to, as bytes without padding, if the policy
    /// is undamaged.
    pub fn policy_name<'b>(&self, state: State, buffer: &'b mut [u8; 64]) -> Option<&'b [u8]> {
        let slot = self.slots.get(state.slot())?;
        for (to, from) in buffer.iter_mut().zip(&slot.name) {
            *to = from.load(Relaxed);
        }
        if slot.checksum.load(Relaxed) != slot.table.checksum() {
            return None;
        }
        let len = buffer.iter().position(|&b| b == 0).unwrap_or(NAME_BYTES);
        buffer.get(..len)
    }

    /// The data folders that were known beforehand.
    pub fn roots(&self) -> impl Iterator<Item = &Dir> {
        self.roots.iter().filter(|r| r.len.load(Relaxed) != 0)
    }

    /// Publishes a policy (at most 64 bytes of `name` are kept) and switches hints on.
    ///
    /// Only for the one writer who holds the run's lock.
    #[cfg(feature = "std")]
    pub(crate) fn publish(&self, table: &Table, name: &str, dry_run: bool) {
        let now = self.state();
        let slot = 1 - now.slot();
        let [even, odd] = &self.slots;
        let to = if slot == 0 { even } else { odd };
        to.table.copy_from(table);
        for (at, cell) in to.name.iter().enumerate() {
            cell.store(name.as_bytes().get(at).copied().unwrap_or(0), Relaxed);
        }
        to.checksum.store(to.table.checksum(), Relaxed);
        self.move_to(State::new(now.generation() + 1, true, slot, dry_run));
    }

    /// Switches hints on or off and keeps the policy.
    ///
    /// Only for the one writer who holds the run's lock.
    #[cfg(feature = "std")]
    pub(crate) fn switch(&self, on: bool) {
        let now = self.state();
        self.move_to(State::new(now.generation() + 1, on, now.slot(), now.is_dry_run()));
    }

    #[cfg(feature = "std")]
    fn move_to(&self, state: State) {
        self.state.store(state.0, Release);
    }
}

/// What the hooks of a run have done.
#[repr(C)]
#[derive(Debug)]
pub struct Counters {
    magic: AtomicU64,
    version: AtomicU32,
    size: AtomicU32,
    cookie: AtomicU64,
    opens: [[AtomicU64; COLUMNS]; MAX_CLASSES],
    refused: [AtomicU64; MAX_ERRNO],
}

// SAFETY: repr(C), all fields are atomics or arrays of them, and any bytes are valid.
unsafe impl Shared for Counters {}

impl Counters {
    /// Fills fresh counters.
    #[cfg(feature = "std")]
    pub(crate) fn initialise(&self, cookie: u64) {
        self.version.store(VERSION, Relaxed);
        self.size.store(size_of::<Counters>() as u32, Relaxed);
        self.cookie.store(cookie, Relaxed);
        self.magic.store(COUNTERS_MAGIC, Release);
    }

    /// Checks magic, version, size and run.
    ///
    /// # Errors
    ///
    /// All of [`PageError`] but `TooSmall`.
    pub fn validate(&self, cookie: u64) -> Result<(), PageError> {
        if self.magic.load(Acquire) != COUNTERS_MAGIC {
            return Err(PageError::NotAPage);
        }
        match self.version.load(Relaxed) {
            VERSION => {}
            other => return Err(PageError::Version(other)),
        }
        if self.size.load(Relaxed) as usize != size_of::<Counters>() {
            return Err(PageError::Damaged);
        }
        if self.cookie.load(Relaxed) == cookie { Ok(()) } else { Err(PageError::AnotherRun) }
    }

    /// Counts one opened file of `class`, and what the policy says of it.
    pub fn count(&self, class: Class, lifetime: Option<Lifetime>) {
        let column = lifetime.map_or(COLUMN_NO_RULE, |l| l.raw() as usize);
        let cell = self.opens.get(usize::from(class.number())).and_then(|row| row.get(column));
        if let Some(cell) = cell {
            cell.fetch_add(1, Relaxed);
        }
    }

    /// Counts one call that the kernel refused with `errno`.
    pub fn count_refused(&self, errno: i32) {
        let cell = usize::try_from(errno).ok().and_then(|at| self.refused.get(at));
        if let Some(cell) = cell.or(self.refused.first()) {
            cell.fetch_add(1, Relaxed);
        }
    }

    /// Opened files of `class` in `column`.
    pub fn opens(&self, class: Class, column: usize) -> u64 {
        let row = self.opens.get(usize::from(class.number()));
        row.and_then(|row| row.get(column)).map_or(0, |cell| cell.load(Relaxed))
    }

    /// Refused calls by errno, where any; 0 stands for a number out of range.
    pub fn refused(&self) -> impl Iterator<Item = (i32, u64)> {
        (0..).zip(&self.refused).map(|(e, n)| (e, n.load(Relaxed))).filter(|(_, n)| *n > 0)
    }
}

/// The one line of the file `page` in a run's folder, through which the hook finds the segments.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RunLine {
    /// Identifier of the page's segment.
    pub page: i32,
    /// Identifier of the counters' segment.
    pub counters: i32,
    /// The run's own number, which both segments carry.
    pub cookie: u64,
}

impl RunLine {
    /// Reads `shelflife-run 1 PAGE COUNTERS COOKIE\n`: decimal, decimal, hexadecimal.
    pub fn parse(line: &[u8]) -> Option<RunLine> {
        let line = line.strip_prefix(b"shelflife-run 1 ")?.strip_suffix(b"\n")?;
        let mut words = line.split(|&b| b == b' ');
        let mut number = |radix| {
            let digits = core::str::from_utf8(words.next()?).ok()?;
            u64::from_str_radix(digits, radix).ok()
        };
        let found = RunLine {
            page: i32::try_from(number(10)?).ok()?,
            counters: i32::try_from(number(10)?).ok()?,
            cookie: number(16)?,
        };
        words.next().is_none().then_some(found)
    }
}

impl core::fmt::Display for RunLine {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        writeln!(f, "shelflife-run 1 {} {} {:016x}", self.page, self.counters, self.cookie)
    }
}
