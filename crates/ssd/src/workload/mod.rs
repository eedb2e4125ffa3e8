//! What the host does to the drive: operations, and where they come from.
//!
//! Invariant: a workload yields the same operations whenever it is made from the same parts (seed
//! included), in batches whose size changes nothing.

mod synthetic;
mod zipf;

pub use synthetic::{Hints, Synthetic};

use crate::Error;

/// What an operation does.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[repr(u8)]
pub enum Kind {
    /// Data are written.
    Write,
    /// The range is discarded.
    Trim,
    /// The range reads as zeroes from now on. The drive deallocates it (NVMe Write Zeroes with
    /// DEAC, SCSI WRITE SAME with UNMAP): no flash page is written.
    WriteZeroes,
}

/// One operation of the host. Sixteen bytes, so that a batch stays in the first cache.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Op {
    /// First page.
    pub page: u32,
    /// Pages; 0 does nothing.
    pub pages: u32,
    /// Ordinal of the file written to, `u32::MAX` for none; only the clairvoyant by file looks at it.
    pub file: u32,
    /// Class of the file, an ordinal of the caller's.
    pub class: u16,
    /// What is done.
    pub kind: Kind,
    /// Lifetime as the kernel's number, 0 (NOT_SET) to 5 (EXTREME).
    pub lifetime: u8,
}

impl Op {
    /// A write without hint, class 0.
    pub fn write(page: u32, pages: u32) -> Op {
        Op { page, pages, file: 0, class: 0, kind: Kind::Write, lifetime: 0 }
    }
}

/// Operations that a reader should deliver per call: enough to hide the call, few enough to stay in
/// the first cache.
pub const BATCH: usize = 1024;

/// A source of operations: a trace reader, or a synthetic workload (which never ends).
pub trait Workload {
    /// Appends the next operations (about [`BATCH`]) to `ops`; none at the end.
    ///
    /// # Errors
    ///
    /// [`Error::Source`] with whatever the reader says.
    fn read(&mut self, ops: &mut Vec<Op>) -> Result<(), Error>;
}

/// Operations held in memory.
#[derive(Clone, Debug)]
pub struct Slice<'a> {
    ops: &'a [Op],
}

impl<'a> Slice<'a> {
    /// A workload that yields `ops` once.
    pub fn new(ops: &'a [Op]) -> Slice<'a> {
        Slice { ops }
    }
}

impl Workload for Slice<'_> {
    fn read(&mut self, ops: &mut Vec<Op>) -> Result<(), Error> {
        let (now, later) = self.ops.split_at(BATCH.min(self.ops.len()));
        ops.extend_from_slice(now);
        self.ops = later;
        Ok(())
    }
}

/// A workload begun again whenever it ends, unless it then wrote nothing.
pub struct Repeat<F, W> {
    make: F,
    current: W,
    has_written: bool,
}

impl<F: FnMut() -> Result<W, Error>, W: Workload> Repeat<F, W> {
    /// Repeats what `make` makes.
    ///
    /// # Errors
    ///
    /// Whatever `make` says.
    pub fn new(mut make: F) -> Result<Repeat<F, W>, Error> {
        let current = make()?;
        Ok(Repeat { make, current, has_written: false })
    }
}

impl<F: FnMut() -> Result<W, Error>, W: Workload> Workload for Repeat<F, W> {
    fn read(&mut self, ops: &mut Vec<Op>) -> Result<(), Error> {
        let before = ops.len();
        self.current.read(ops)?;
        if ops.len() == before && self.has_written {
            self.has_written = false;
            self.current = (self.make)()?;
            self.current.read(ops)?;
        }
        self.has_written = self.has_written
            || ops[before..].iter().any(|op| op.kind == Kind::Write && op.pages > 0);
        Ok(())
    }
}
