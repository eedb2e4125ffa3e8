//! `simulate`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use shelflife_simulate::Size;
use shelflife_ssd::{Frontier, Hints, Isolation, Transport, Victim};
use shelflife_trace::Usage;

const SIMULATE_HELP: &str = "\
Examples:
  shelflife simulate --workload uniform --op 0.28
  shelflife simulate --workload log+random:50/2 --hints off --hints exact --op 0.07 --victim quota
  shelflife simulate TRACE --policy off --policy wal-first --drive enterprise-28 --fit 90
  shelflife simulate TRACE --drive fdp-8-initial --drive ./mine.toml --fit 85 --repeat --json

Every policy meets every drive. Shipped drives: consumer-7, enterprise-28, fdp-8-initial,
fdp-8-persistent, ufs-5-groups, warp-samsung, warp-fadu. Over-provisioning is T/U - 1, as drives are
sold (0.07 is 7 %), net of open units with --op. Everything printed is simulated.";

/// `shelflife simulate`
#[derive(Args, Debug)]
#[command(
    after_help = SIMULATE_HELP,
    group = clap::ArgGroup::new("writes").args(["trace", "workload"]).required(true),
    group = clap::ArgGroup::new("where").args(["drive", "op"]).required(true).multiple(true),
)]
pub struct SimulateArgs {
    /// A trace
    pub trace: Option<PathBuf>,
    /// uniform, zipf:S, hotcold:SPACE/TRAFFIC, sequential or log+random:SHARE/SPACE (shares of the
    /// pages and of the writes, in percent)
    #[arg(long, value_name = "W")]
    pub workload: Option<String>,
    /// Pages of the workload, of 4 KiB unless the drive has others
    #[arg(long, default_value_t = 1 << 20, value_name = "N", conflicts_with = "trace",
        value_parser = clap::value_parser!(u32).range(1..))]
    pub pages: u32,
    /// How often as many pages are written; the second half counts
    #[arg(long, default_value_t = 12, value_name = "K", conflicts_with = "trace",
        value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub overwrites: u64,
    /// Seed of the workload
    #[arg(long, default_value_t = 1, value_name = "S", conflicts_with = "trace")]
    pub seed: u64,
    /// exact, off or flip:EPS, for workloads of two classes; may be repeated [default: exact]
    #[arg(long, value_name = "HINTS", conflicts_with = "trace", value_parser = parse_hints)]
    pub hints: Vec<Hints>,
    /// off, recorded, a shipped policy or the path of a policy file; may be repeated [default: off,
    /// and recorded if the trace has hints]
    #[arg(long, value_name = "POLICY", conflicts_with = "workload")]
    pub policy: Vec<String>,
    /// A shipped drive or the path of a profile (docs/simulate.md); may be repeated
    #[arg(long, value_name = "DRIVE")]
    pub drive: Vec<String>,
    /// Over-provisioning of a drive as large as what is written; the options below are its rules
    #[arg(long, value_name = "RHO", allow_negative_numbers = true)]
    pub op: Option<f64>,
    /// Pages of its reclaim units
    #[arg(long, default_value_t = 256, value_name = "N", requires = "op")]
    pub ru_pages: u32,
    /// Its streams
    #[arg(long, default_value_t = 6, value_name = "N", requires = "op")]
    pub streams: u32,
    /// Whether copied data of all streams share units
    #[arg(long, value_enum, default_value = "initial", requires = "op")]
    pub isolation: IsolationArg,
    /// Which unit is collected next
    #[arg(long, value_enum, default_value = "greedy", requires = "op")]
    pub victim: VictimArg,
    /// Whether copied data have open units of their own
    #[arg(long, value_enum, default_value = "separate", requires = "op")]
    pub frontier: FrontierArg,
    /// How a hint becomes a stream
    #[arg(long, value_enum, default_value = "ideal", requires = "op")]
    pub transport: TransportArg,
    #[command(flatten)]
    pub size: SizeArgs,
    /// Loop the trace until write amplification is steady
    #[arg(long, conflicts_with = "workload")]
    pub repeat: bool,
    /// Machine-readable
    #[arg(long)]
    pub json: bool,
}

/// How large drives are, and how full. Without either: scaled to the recorded file system and as full as
/// that, if the trace says so; else in their own size, and full.
#[derive(Args, Clone, Copy, Debug)]
#[group(multiple = false)]
pub struct SizeArgs {
    /// Scale drives so that what is written is LIVE percent of them [default: as the recorded file
    /// system was]
    #[arg(long, value_name = "LIVE", allow_negative_numbers = true)]
    pub fit: Option<f64>,
    /// Drives in their own size, LIVE percent of which hold data
    #[arg(long, value_name = "LIVE", allow_negative_numbers = true)]
    pub live: Option<f64>,
}

impl SizeArgs {
    /// The size for a trace of which `usage` is known.
    pub fn size(self, usage: Option<Usage>) -> Size {
        match (self.fit, self.live) {
            (Some(share), _) => Size::Fit(share),
            (None, Some(share)) => Size::Live(share),
            (None, None) => Size::usual(usage),
        }
    }
}

fn parse_hints(text: &str) -> Result<Hints, String> {
    let wrong = || "choose exact, off or flip:EPS, EPS between 0 and 1".to_owned();
    match (text, text.strip_prefix("flip:")) {
        ("exact", _) => Ok(Hints::Exact),
        ("off", _) => Ok(Hints::Off),
        (_, Some(chance)) => match chance.parse() {
            Ok(chance) if (0.0..=1.0).contains(&chance) => Ok(Hints::Flip(chance)),
            _ => Err(wrong()),
        },
        _ => Err(wrong()),
    }
}

/// A choice on the command line for each value of a type of the simulator.
macro_rules! choice {
    ($(#[$doc:meta])* $name:ident: $of:ident { $($variant:ident $help:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, ValueEnum)]
        pub enum $name { $(#[doc = $help] $variant,)* }

        impl From<$name> for $of {
            fn from(chosen: $name) -> $of {
                match chosen { $($name::$variant => $of::$variant,)* }
            }
        }
    };
}

choice! {
    /// `--isolation`
    IsolationArg: Isolation {
        Initial "Copied data of all streams share units",
        Persistent "Copied data stay with their stream",
    }
}
choice! {
    /// `--victim`
    VictimArg: Victim {
        Greedy "The emptiest unit",
        CostBenefit "Emptiness and age",
        Fifo "The oldest unit",
        Quota "The emptiest unit of the stream that holds most above its share",
    }
}
choice! {
    /// `--frontier`
    FrontierArg: Frontier {
        Separate "Copied data never share an open unit with new data",
        Single "They do",
    }
}
choice! {
    /// `--transport`
    TransportArg: Transport {
        Unhinted "Nothing arrives",
        NvmeRaw "A whole NVMe device without file system",
        Scsi "SCSI and UFS groups",
        F2fsFdp "f2fs on FDP: a model",
        F2fsScsi "f2fs on SCSI or UFS: a model",
        Ideal "A stream for each lifetime",
    }
}
