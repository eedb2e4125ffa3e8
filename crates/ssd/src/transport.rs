//! Lifetime → stream: what of a file's hint is left when it arrives at the drive.
//!
//! Invariant: the stream returned is below the number of streams, whatever the lifetime.
//!
//! The mappings are those of the kernel (`block/fops.c`, `drivers/nvme/host/core.c`,
//! `drivers/scsi/sd.c`, `fs/f2fs/segment.c`).

use serde::{Deserialize, Serialize};
use shelflife_lifetime::Lifetime;

/// How a lifetime becomes a stream.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// A whole NVMe FDP device opened with O_DIRECT (Linux ≥ 6.16): hint h is write stream h, and
    /// stream s is handle s − 1; 0, or more than there are handles, is handle 0. Five handles at
    /// most are reached.
    NvmeRaw,
    /// SCSI and UFS (Linux ≥ 6.9): group = min(hint, groups), NOT_SET is group 0 (no group).
    /// Stream 0 is the data without a group, so N groups are N + 1 streams.
    Scsi,
    /// f2fs on a whole FDP namespace (Linux ≥ 7.2): SHORT shares the handle of untagged data
    /// (node, metadata), EXTREME is cold, the rest is warm.
    F2fsFdp,
    /// f2fs on SCSI or UFS (Linux ≥ 6.10): hot → group of SHORT, cold → group of EXTREME, warm → no
    /// group.
    F2fsScsi,
    /// One stream per lifetime.
    Ideal,
    /// Nothing arrives: everything is stream 0.
    Unhinted,
}

impl Transport {
    /// All transports.
    pub const ALL: [Transport; 6] = [
        Transport::NvmeRaw,
        Transport::Scsi,
        Transport::F2fsFdp,
        Transport::F2fsScsi,
        Transport::Ideal,
        Transport::Unhinted,
    ];

    /// The name used in results and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Transport::NvmeRaw => "nvme-raw",
            Transport::Scsi => "scsi",
            Transport::F2fsFdp => "f2fs-fdp",
            Transport::F2fsScsi => "f2fs-scsi",
            Transport::Ideal => "ideal",
            Transport::Unhinted => "unhinted",
        }
    }

    /// Whether it describes f2fs, hence is a model of it for data recorded elsewhere.
    pub fn is_f2fs(self) -> bool {
        matches!(self, Transport::F2fsFdp | Transport::F2fsScsi)
    }

    /// The stream, 0 to `streams` − 1, that data of `lifetime` are written to.
    ///
    /// `Ideal` counts lifetimes from NOT_SET and puts what there are no streams for into the last.
    pub fn stream(self, lifetime: Lifetime, streams: u32) -> u32 {
        let hint = lifetime.raw() as u32;
        let last = streams.saturating_sub(1);
        // Write streams of NVMe count from 1, and stream s is placement handle s − 1.
        let handle = |stream: u32| match stream {
            0 => 0,
            s if s > streams => 0,
            s => s - 1,
        };
        match self {
            Transport::Unhinted => 0,
            Transport::Ideal | Transport::Scsi => hint.min(last),
            Transport::NvmeRaw => handle(hint),
            Transport::F2fsFdp => handle(match lifetime {
                Lifetime::Extreme if streams < 3 => streams,
                Lifetime::Extreme => 3,
                Lifetime::Short => 1,
                _ if streams < 3 => 1,
                _ => 2,
            }),
            Transport::F2fsScsi => match lifetime {
                Lifetime::Short | Lifetime::Extreme => hint.min(last),
                _ => 0,
            },
        }
    }
}
