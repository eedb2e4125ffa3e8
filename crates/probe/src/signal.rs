//! What travels with a write: the hint and the stream, for each lifetime and both ways of writing.
//!
//! Invariant: `None` means that it is not known, never that there is nothing; nothing is 0.

use serde::Serialize;
use shelflife_lifetime::Lifetime;

/// How a program writes.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Through the page cache, as PostgreSQL does by default.
    Buffered,
    /// `O_DIRECT`.
    Direct,
}

/// The two fields of a block request (`include/linux/blk_types.h`).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Signal {
    /// `bi_write_hint`, 0 to 5.
    pub hint: Option<u8>,
    /// `bi_write_stream`, 0 for none.
    pub stream: Option<u16>,
}

impl Signal {
    /// Nothing travels.
    pub(crate) const NOTHING: Signal = Signal { hint: Some(0), stream: Some(0) };
    /// It is not known what does.
    pub(crate) const UNKNOWN: Signal = Signal { hint: None, stream: None };
}

/// Something for each way of writing and each lifetime, in the kernel's order.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Grid<T> {
    /// Through the page cache.
    pub buffered: [T; 6],
    /// `O_DIRECT`.
    pub direct: [T; 6],
}

impl<T: Copy> Grid<T> {
    /// Made from way and lifetime.
    pub(crate) fn new(mut make: impl FnMut(Mode, Lifetime) -> T) -> Grid<T> {
        let buffered = Lifetime::ALL.map(|lifetime| make(Mode::Buffered, lifetime));
        Grid { buffered, direct: Lifetime::ALL.map(|lifetime| make(Mode::Direct, lifetime)) }
    }

    pub(crate) fn all(value: T) -> Grid<T> {
        Grid { buffered: [value; 6], direct: [value; 6] }
    }

    pub(crate) fn map<U: Copy>(&self, mut to: impl FnMut(T) -> U) -> Grid<U> {
        Grid { buffered: self.buffered.map(&mut to), direct: self.direct.map(&mut to) }
    }

    /// The values for one way of writing, in the kernel's order.
    pub fn of(&self, mode: Mode) -> &[T; 6] {
        match mode {
            Mode::Buffered => &self.buffered,
            Mode::Direct => &self.direct,
        }
    }
}
