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
}
