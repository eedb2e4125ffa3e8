//! Everything that can go wrong between a caller's numbers and a result.
//!
//! Invariant: every variant says what was wrong in the caller's terms and what to change; no other
//! way out of the crate exists (nothing panics on input).

use thiserror::Error;

/// Why a simulation cannot be set up or go on.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// A drive without logical pages.
    #[error("the drive has no logical pages: give it at least one")]
    NoPages,
    /// A page size other than 4 or 8 KiB.
    #[error("page size of {0} bytes: choose 4096 or 8192")]
    PageSize(u32),
    /// An RU without pages, or with more than an address can hold.
    #[error("reclaim unit of {0} pages: choose 1 to {max}", max = crate::geometry::MAX_RU_PAGES)]
    RuPages(u32),
    /// No stream, or more than FDP has handles.
    #[error("{0} streams: choose 1 to {max}", max = crate::geometry::MAX_STREAMS)]
    Streams(u32),
    /// Over-provisioning that is not a positive finite number.
    #[error("over-provisioning of {0}: choose a number above 0 (0.07 is 7 %)")]
    OverProvisioning(f64),
    /// An RU that the drive's space does not hold twice.
    #[error(
        "reclaim units of {ru_pages} pages do not fit into a drive with {physical_pages} pages \
         for closed units: choose smaller units or a larger drive"
    )]
    RuTooLarge {
        /// Pages per RU.
        ru_pages: u32,
        /// Pages that remain for closed RUs.
        physical_pages: u64,
    },
    /// As much valid data as space: no victim would ever have a dead page.
    #[error(
        "{logical_pages} logical pages do not fit into {physical_pages} pages of closed reclaim \
         units ({open_rus} open and {reserved_rus} reserved units are taken off): use fewer \
         streams, smaller units, or more over-provisioning"
    )]
    NoSpare {
        /// Logical pages.
        logical_pages: u64,
        /// Pages that remain for closed RUs.
        physical_pages: u64,
        /// RUs held open, one per frontier.
        open_rus: u32,
        /// RUs held back by the drive.
        reserved_rus: u32,
    },
    /// More physical pages than a 32-bit map entry can address.
    #[error(
        "{physical_pages} physical pages in units of {ru_pages} need more than 32-bit addresses: \
         choose 8 KiB pages, a power of two of pages per unit, or a smaller drive"
    )]
    TooManyPages {
        /// Physical pages.
        physical_pages: u64,
        /// Pages per RU.
        ru_pages: u32,
    },
    /// No memory for the maps.
    #[error(
        "no memory for the maps of a drive with {pages} pages (about 9 bytes each): scale the drive \
         down or fit it to the trace"
    )]
    Memory {
        /// Logical pages.
        pages: u64,
    },
    /// A write buffer as large as the drive.
    #[error(
        "a write buffer of {buffer_pages} pages on a drive of {logical_pages}: make it smaller"
    )]
    Buffer {
        /// Pages of the buffer.
        buffer_pages: u64,
        /// Logical pages.
        logical_pages: u64,
    },
    /// An operation beyond the drive's end.
    #[error(
        "operation {operation} covers pages {page} to {end}, but the drive ends at page \
         {logical_pages}: the trace is larger than the drive, use a larger drive or fit it to the \
         trace"
    )]
    OutOfRange {
        /// Ordinal of the operation since the simulator was made, from 0.
        operation: u64,
        /// First page.
        page: u32,
        /// One past the last page.
        end: u64,
        /// Logical pages of the drive.
        logical_pages: u64,
    },
    /// A lifetime that the kernel does not know.
    #[error("operation {operation} has lifetime {lifetime}: lifetimes are 0 to 5")]
    Lifetime {
        /// Ordinal of the operation.
        operation: u64,
        /// The number found.
        lifetime: u8,
    },
    /// More (class, stream) pairs than a byte can name.
    #[error("more than 256 pairs of class and stream: use fewer classes or streams")]
    TooManyTags,
    /// The workload brought no write to measure.
    #[error(
        "the workload wrote no page in the measured part: make it longer or the warm-up shorter"
    )]
    Nothing,
    /// A synthetic workload that makes no sense.
    #[error("workload `{workload}`: {reason}")]
    Workload {
        /// As given.
        workload: String,
        /// What to change.
        reason: String,
    },
    /// The reader of a workload failed.
    #[error("cannot read the workload")]
    Source(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A drive profile that does not parse or contradicts itself.
    #[error("drive profile `{name}`: {reason}")]
    Profile {
        /// File or drive name.
        name: String,
        /// What to change, with line and column where known.
        reason: String,
    },
    /// No shipped drive of that name.
    #[error("no drive `{name}` is shipped: choose one of {known}")]
    UnknownDrive {
        /// As asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// The victim rule found nothing to collect although dead pages exist: a defect of the rule.
    #[error("victim rule `{rule}` found no unit to collect (please report this)")]
    NoVictim {
        /// Name of the rule.
        rule: &'static str,
    },
}
