//! Everything that can be wrong with a request.
//!
//! Invariant: every variant says what to change.

use thiserror::Error;

/// Why there is no report.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The simulator refuses the drive or the workload.
    #[error(transparent)]
    Drive(#[from] shelflife_ssd::Error),
    /// The same, of one drive among several.
    #[error("{drive}")]
    OneDrive {
        /// Name of the drive, or its rules.
        drive: String,
        /// What is wrong with it.
        source: shelflife_ssd::Error,
    },
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] shelflife_trace::Error),
    /// A policy names none of the files that the trace writes.
    #[error("policy {policy} matches none of the trace's files ({there}): {instead}")]
    MatchesNothing {
        /// The policy's name.
        policy: String,
        /// What there is.
        there: String,
        /// What to do.
        instead: String,
    },
    /// No event carries a hint.
    #[error(
        "the trace was recorded without hints, so `recorded` matches nothing in it: use a policy, \
         or `off`"
    )]
    NoHints,
    /// No page is written.
    #[error("the trace holds no write: there is nothing to simulate")]
    NoWrites,
    /// Events of several devices, each with offsets of its own.
    #[error(
        "the trace is of {devices} devices, and a drive is one: take one out with `shelflife trace \
         cut --device`"
    )]
    Devices {
        /// How many.
        devices: usize,
    },
    /// The trace ends beyond the drive.
    #[error(
        "the trace reaches to page {end} and drive {drive} has {logical_pages}: use a larger drive, \
         or scale it to the trace (--fit 90)"
    )]
    LargerThanDrive {
        /// One past the last page written.
        end: u64,
        /// Name of the drive.
        drive: String,
        /// Pages that the drive has.
        logical_pages: u64,
    },
    /// More pages than the simulator addresses.
    #[error(
        "the trace writes to {pages} pages of {page_bytes} bytes, and 2^32 − 1 are the most: cut it"
    )]
    TooManyPages {
        /// Pages.
        pages: u64,
        /// Bytes of each.
        page_bytes: u32,
    },
    /// Over-provisioning outside what is a drive.
    #[error("over-provisioning of {0}: choose a number above 0 and up to 10 (0.07 is 7 %)")]
    OverProvisioning(f64),
    /// A share of live data that is none.
    #[error("live data of {0} %: choose a number above 0 and up to 100")]
    Live(f64),
    /// The drive holds less than the trace writes to.
    #[error(
        "the trace writes to {pages} pages and drive {drive} holds {live} live ones: use a larger \
         drive, a larger --live, or scale it to the trace (--fit 90)"
    )]
    LargerThanLive {
        /// Pages that the trace writes.
        pages: u64,
        /// Name of the drive.
        drive: String,
        /// Pages of it that hold data.
        live: u64,
    },
    /// A share of a drive in its own size, for a workload that has pages and no drive.
    #[error(
        "a workload has no data but its own pages: --fit LIVE scales drives to them, --live is for traces"
    )]
    LiveWorkload,
    /// How full the recorded file system was is not known.
    #[error(
        "the trace does not say how full its file system was: say how full drives are (--fit 90 or \
         --live 90)"
    )]
    NoUsage,
    /// A drive scaled beyond what is simulated.
    #[error(
        "a drive of which the pages written are {live_percent} % has more than 2^32 pages: give a \
         larger share, or fewer pages"
    )]
    TooEmpty {
        /// The share, in percent.
        live_percent: f64,
    },
    /// Hints for a workload of one class.
    #[error(
        "workload {0} has one class, so hints say nothing: use hotcold:SPACE/TRAFFIC or \
         log+random:SHARE/SPACE, or leave --hints out"
    )]
    OneClass(String),
    /// More memory than there is.
    #[error(
        "simulating {drive} takes about {needs_mib} MiB of memory and {available_mib} MiB may be \
         used: scale the drive to what is written (--fit 90), or use fewer pages"
    )]
    Memory {
        /// Name of the drive.
        drive: String,
        /// What it needs.
        needs_mib: u64,
        /// What may be used.
        available_mib: u64,
    },
}
