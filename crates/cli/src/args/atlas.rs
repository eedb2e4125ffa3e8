//! `atlas`.

use std::path::PathBuf;

use clap::Args;

use super::FsArg;
use super::simulate::TransportArg;
use super::trace::parse_bytes;
use crate::verbs::trial::parse_fill;

const ATLAS_HELP: &str = "\
Examples:
  shelflife atlas /srv/atlas
  shelflife atlas /srv/atlas --scenarios tpcb,wal-retained,random-index:v7 --drives fdp-8-initial
  shelflife atlas /srv/atlas --scenarios ./my-load/ --size 8GiB --writes 6 --json

Each scenario is recorded without hints, on a file system of its own in a file on a loop device (in
memory if it fits twice), filled with cold data; then a policy is learned for each drive and judged
with the others on data it has not seen. All write amplification is simulated. What lies in DIR is not
done again: after Ctrl-C the same command goes on. All scenarios take about an hour and a half.
docs/atlas.md says what the figures mean.

Exit codes: 0 done, 1 a scenario or drive failed and is named, 2 wrong use or input, 3 not permitted
or not supported here (recording needs root).";

/// `shelflife atlas`
#[derive(Args, Debug)]
#[command(after_help = ATLAS_HELP)]
pub struct AtlasArgs {
    /// Where recordings and judgements lie
    pub dir: PathBuf,
    /// Scenarios, NAME or NAME:VARIANT, or folders of your own, with a / [default: all that come along]
    #[arg(long, value_name = "S", value_delimiter = ',')]
    pub scenarios: Vec<String>,
    /// Shipped drives or paths of profiles (docs/simulate.md) [default: ufs-5-groups, fdp-8-initial,
    /// warp-samsung]
    #[arg(long, value_name = "D", value_delimiter = ',')]
    pub drives: Vec<String>,
    /// How a hint becomes a stream on the way to the drives [default: what each profile says]
    #[arg(long, value_enum)]
    pub transport: Option<TransportArg>,
    /// The file system
    #[arg(long, value_enum, default_value = "ext4")]
    pub fs: FsArg,
    /// Its size; drives are scaled to it
    #[arg(long, default_value = "2GiB", value_parser = parse_bytes, value_name = "SIZE")]
    pub size: u64,
    /// How full it is at the most, cold data included
    #[arg(long, default_value = "90%", value_parser = parse_fill, value_name = "PERCENT")]
    pub fill: f64,
    /// A recording ends once the size has been written so many times
    #[arg(long, default_value_t = 5.0, value_name = "N")]
    pub writes: f64,
    /// or after so many seconds
    #[arg(long, default_value_t = 300, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub seconds: u32,
    /// The user who runs the servers [default: postgres, or nobody]
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,
    /// Where PostgreSQL's programs are
    #[arg(long, value_name = "DIR")]
    pub pg_bindir: Option<PathBuf>,
    /// Go on without asking where the file system does not fit into memory
    #[arg(long)]
    pub yes: bool,
    /// Write it as one HTML page too, which needs no network
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Machine-readable
    #[arg(long)]
    pub json: bool,
}
