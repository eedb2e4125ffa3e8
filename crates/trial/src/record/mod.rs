//! The results on disk: JSON lines, described in `docs/trial.md`.
//!
//! Invariant: whatever an analysis needs is in the file; nothing of it depends on when or where it is
//! read.

mod file;
#[cfg(test)]
pub(crate) mod fixtures;

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use shelflife_postgres::pgbench::Summary;
use shelflife_postgres::{Counters, Gauges};
use shelflife_trace::Volume;

use crate::estimate::Estimate;
use crate::machine::{Machine, Strain};
use crate::probe::Probe;
use crate::spec::Spec;

pub use file::Results;
pub(crate) use file::Writer;

/// The newest version of the format: that of trials whose rounds are epochs on a device. All others are
/// written as version 1, which older programs read.
pub const VERSION: u32 = 2;

/// The value of `format` in the first line.
pub const FORMAT: &str = "shelflife-trial";

/// Name of the results in a trial's folder.
pub const FILE: &str = "results.jsonl";

/// A line of the results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "kebab-case")]
pub enum Record {
    /// The first line.
    Header(Box<Header>),
    /// Something that happened.
    Event(Event),
    /// A look at the storage between blocks.
    Probe(ProbeAt),
    /// A round.
    Round(Box<Round>),
}

/// What was fixed before the first round, and on what machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// [`FORMAT`].
    pub format: String,
    /// 1, or [`VERSION`] if the rounds are epochs.
    pub version: u32,
    /// Version of the program that wrote it.
    pub shelflife: String,
    /// Seconds since 1970.
    pub started: u64,
    /// What the trial does.
    pub spec: Spec,
    /// For each block the arms in the order in which they run.
    pub orders: Vec<Vec<usize>>,
    /// The machine.
    pub machine: Machine,
    /// The server.
    pub server: ServerFacts,
    /// What was expected to be written.
    pub estimate: Estimate,
    /// Whether the block writes of all rounds are recorded; if not, those of none are.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recorded: bool,
    /// The device, if the rounds are epochs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceFacts>,
}

/// A drive's namespace that epochs run on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceFacts {
    /// `nvme0n1`.
    pub name: String,
    /// The drive's model.
    pub model: String,
    /// Its serial number.
    pub serial: String,
    /// Bytes of the namespace.
    pub size: u64,
    /// Who counts.
    pub counters: CounterSource,
    /// Bytes of a reclaim unit, if the drive says.
    pub reclaim_unit: Option<u64>,
}

/// Which of a drive's counters are read. Both count for an endurance group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CounterSource {
    /// FDP Statistics (log page 22h), in bytes.
    FdpStatistics,
    /// Endurance Group Information (log page 09h), in units of 10⁹ bytes.
    EnduranceGroup,
}

/// A server as it was when the trial began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerFacts {
    /// Whether it is the trial's own cluster.
    pub own: bool,
    /// Its version: `15.18`.
    pub version: String,
    /// Its major version.
    pub major: u16,
    /// The database in which the load runs.
    pub database: String,
    /// Its data folder.
    pub data_folder: PathBuf,
    /// Settings that decide what is written, and where their values come from.
    pub settings: Vec<SettingAt>,
}

/// A setting of the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingAt {
    /// Its name.
    pub name: String,
    /// Its value with unit.
    pub value: String,
    /// Where the value comes from: `default`, `configuration file`, …
    pub source: String,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Seconds since 1970.
    pub at: u64,
    /// What.
    #[serde(flatten)]
    pub what: What,
}

/// What can happen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum What {
    /// The database is loaded and aged.
    Aged {
        /// Ageing loads.
        rounds: u32,
        /// Whether size and WAL files had settled.
        settled: bool,
        /// The database and its WAL then.
        gauges: Gauges,
    },
    /// Cold data were added to the trial's own file system.
    Filled {
        /// Bytes of them.
        bytes: u64,
        /// How much of the file system was then in use, 0 to 1.
        share: f64,
    },
    /// The trial went on after it had ended early.
    Resumed {
        /// The block that begins now.
        block: usize,
        /// Rounds of this block from before, which are in no analysis.
        dropped: usize,
        /// Whether the cluster was lost and made anew.
        rebuilt: bool,
    },
    /// The trial ended early.
    Ended {
        /// Why.
        why: String,
    },
    /// Something that the reader of the results should know.
    Warning {
        /// What.
        text: String,
    },
    /// All rounds are done.
    Finished,
}

/// A look at the storage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProbeAt {
    /// Seconds since 1970.
    pub at: u64,
    /// The block that follows.
    pub block: usize,
    /// What was measured.
    #[serde(flatten)]
    pub probe: Probe,
}

/// A round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// Seconds since 1970, at its end.
    pub at: u64,
    /// Its place in the plan, from 0.
    pub position: u32,
    /// Its block, from 0.
    pub block: usize,
    /// Its arm, from 0.
    pub arm: usize,
    /// The arm's label.
    pub label: String,
    /// Length of everything that belongs to it, preparation and end included, in s.
    pub took_s: f64,
    /// Whether it began before size and WAL files had settled.
    pub transient: bool,
    /// What was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Box<Measured>>,
    /// Why nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// What a round came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The primary metric.
    pub value: f64,
    /// All that pgbench printed.
    pub pgbench: Summary,
    /// Percentiles over all transactions, from pgbench's log.
    pub latency: Option<Latency>,
    /// The same for each script, if there are several.
    pub script_latency: Vec<Option<Latency>>,
    /// What the server counted from the load's beginning to its end.
    pub load: Counters,
    /// The same with the checkpoint that ends the round.
    pub whole: Counters,
    /// Checkpoints begun by the server itself during the load.
    pub checkpoints: Option<u64>,
    /// Of these, whole within the load, at least.
    pub whole_checkpoints: u64,
    /// The database and its WAL before the load.
    pub before: Gauges,
    /// And at the end of the round.
    pub after: Gauges,
    /// How the hints were switched and checked.
    pub hints: Hints,
    /// Files opened for writing under the hook during the load, by class.
    pub opened: Vec<Opened>,
    /// What the machine did during the load.
    pub machine: Strain,
    /// What was written to the server's devices, if that is recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<Recorded>,
    /// What the drive counted, if the round was an epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<Epoch>,
}

/// What was written in an epoch, by the drive's own counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Epoch {
    /// Bytes of cold data, written before.
    pub cold_bytes: u64,
    /// Until the capacity was written once under the load.
    pub precondition: Written,
    /// Then once more.
    pub first_half: Written,
    /// And once more: this is what counts.
    pub last_half: Written,
}

/// Bytes written in a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// By hosts to the drive, as it counts.
    pub host_bytes: u64,
    /// By the drive to its media, the host's included, as it counts.
    pub media_bytes: u64,
    /// To this device, by the block layer's count.
    pub issued_bytes: u64,
}

impl Written {
    /// Write amplification: media bytes for a host byte. Not finite if no host byte was counted.
    pub fn waf(&self) -> f64 {
        self.media_bytes as f64 / self.host_bytes as f64
    }
}

/// What was issued to the server's devices from the load's beginning until everything was on the
/// storage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    /// The trace.
    pub trace: PathBuf,
    /// Writes, discards and write-zeroes in it.
    pub events: u64,
    /// Bytes of the writes.
    pub written_bytes: u64,
    /// Discards.
    pub discards: u64,
    /// Events that the recorder lost.
    pub lost: u64,
    /// The share of the bytes that is a file's, the journal's or metadata, 0 to 1.
    pub attributed: Option<f64>,
    /// Relation files of transactions that were never seen committed.
    pub uncommitted_files: u64,
    /// Writes and bytes by class of file and hint.
    pub blocks: Vec<Volume>,
}

/// Latencies in µs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Transactions.
    pub count: u64,
    /// Mean.
    pub mean_us: f64,
    /// Half are faster.
    pub p50_us: u64,
    /// 95 of 100 are faster.
    pub p95_us: u64,
    /// 99 of 100 are faster.
    pub p99_us: u64,
    /// The slowest.
    pub max_us: u64,
}

impl From<shelflife_postgres::pgbench::Percentiles> for Latency {
    fn from(from: shelflife_postgres::pgbench::Percentiles) -> Latency {
        Latency {
            count: from.count,
            mean_us: from.mean_us,
            p50_us: from.p50_us,
            p95_us: from.p95_us,
            p99_us: from.p99_us,
            max_us: from.max_us,
        }
    }
}

/// How the hints of a round were switched and checked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hints {
    /// Hints set by the sweep.
    pub set: u64,
    /// Hints cleared by the sweep.
    pub cleared: u64,
    /// Time of switch and sweep in ms.
    pub sweep_ms: u64,
    /// Descriptors open for writing in server processes whose hint was read before the load.
    pub checked_before: u64,
    /// The same in the midst of the warm-up, under load.
    pub checked_under_load: u64,
}

/// Files of a class that were opened for writing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opened {
    /// The class.
    pub class: String,
    /// What the policy gives it.
    pub lifetime: Option<String>,
    /// How often.
    pub opens: u64,
}

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}
