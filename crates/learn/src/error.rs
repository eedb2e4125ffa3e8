//! Everything that can be wrong with a question about lifetimes.
//!
//! Invariant: every variant says what to change.

use thiserror::Error;

/// Why there is no answer.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The trace cannot be read, or the caller's `progress` answered `false`
    /// ([`shelflife_trace::Error::Stopped`]).
    #[error(transparent)]
    Trace(#[from] shelflife_trace::Error),
    /// No page is written.
    #[error("{trace} holds no write: without one, nothing lives or dies")]
    NoWrites {
        /// The trace's folder.
        trace: String,
    },
    /// More pages than there is memory for.
    #[error(
        "the trace writes to more pages than {limit_mib} MiB of memory can follow ({page_bytes} \
         bytes each): follow every 64th only (--sample 1/64)"
    )]
    Memory {
        /// What may be used.
        limit_mib: u64,
        /// What a page takes.
        page_bytes: usize,
    },
    /// A sample of nothing.
    #[error("a sample of 1/{0}: choose 1/1 to 1/1048576")]
    Sample(u32),
    /// A trace that does not fit into memory.
    #[error(
        "the trace's {events} events take {needs_mib} MiB of memory and {limit_mib} MiB may be \
         used: cut it (`shelflife trace cut --time`)"
    )]
    TooLong {
        /// Events.
        events: u64,
        /// What they take.
        needs_mib: u64,
        /// What may be used.
        limit_mib: u64,
    },
    /// Drives with pages of several sizes.
    #[error("the drives have pages of several sizes: learn for those of one size at a time")]
    PageSizes,
    /// No drive.
    #[error("no drive to learn for: give at least one")]
    NoDrive,
    /// An aim at a drive that is not there.
    #[error("no drive `{wanted}` among those to learn for ({there})")]
    NoSuchDrive {
        /// As asked for.
        wanted: String,
        /// The names there are.
        there: String,
    },
    /// A transport by which nothing arrives.
    #[error(
        "transport {transport} with {streams} streams tells no lifetime from no hint: there is \
         nothing to learn; choose another transport or a drive with more streams"
    )]
    NothingArrives {
        /// The transport.
        transport: &'static str,
        /// Streams of the drive.
        streams: u32,
    },
    /// Relations for an applier that has no catalog.
    #[error("the hook cannot tell relations: use --applier watch, or leave --relations out")]
    Relations,
    /// A trace that says of no file what it is.
    #[error(
        "the trace names no file that a policy could name, as imported traces mostly do: record \
         one"
    )]
    NoFiles,
    /// A trace too short to learn from one part and be judged on another.
    #[error("the trace is too short: both its parts must write, and {pages} pages are all it has")]
    TooShort {
        /// Page writes.
        pages: u64,
    },
    /// A simulation cannot be made.
    #[error(transparent)]
    Simulate(#[from] shelflife_simulate::Error),
    /// The simulator refuses.
    #[error(transparent)]
    Drive(#[from] shelflife_ssd::Error),
    /// More memory than there is.
    #[error(
        "simulating {drive} takes about {needs_mib} MiB of memory and {limit_mib} MiB may be used: \
         scale the drive to what is written (--fit 90)"
    )]
    DriveMemory {
        /// Name of the drive.
        drive: String,
        /// What it needs.
        needs_mib: u64,
        /// What may be used.
        limit_mib: u64,
    },
    /// The policy that was learned is none: a defect of the writer.
    #[error("the learned policy is not valid, please report this")]
    Policy(#[from] shelflife_policy::Error),
}
