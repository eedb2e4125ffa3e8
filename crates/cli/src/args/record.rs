//! `record`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use super::trace::{parse_bytes, parse_time};

const RECORD_HELP: &str = "\
Examples:
  shelflife record -o day.trace --path /srv/pg --for 10min
  shelflife record -o t --path /srv/pg --pg -- pgbench -c 2 -T 60
  shelflife record -o t --device /dev/nvme0n1 --max-bytes 1GB

Needs root, or CAP_BPF and CAP_PERFMON (with CAP_SYSLOG and CAP_DAC_READ_SEARCH for all names). What
lies dirty in the page cache when the recording ends was not written, and is not in the trace. Ctrl-C
ends the recording, with a command when the command ends; a second one ends it at once.

Exit codes: that of the command if it failed (128 + N for signal N), else 1 if events were lost, 2
wrong use or input, 3 not permitted or not supported here.";

/// `shelflife record`
#[derive(Args, Debug)]
#[command(
    after_help = RECORD_HELP,
    group = clap::ArgGroup::new("what").args(["device", "path"]).required(true),
)]
pub struct RecordArgs {
    /// The trace: a folder that does not exist yet
    #[arg(short, long, value_name = "TRACE")]
    pub output: PathBuf,
    /// Record this device, or those below it; of a partition the whole drive
    #[arg(long, value_name = "DEV")]
    pub device: Option<PathBuf>,
    /// Record the devices that this file or folder lies on
    #[arg(long, value_name = "DIR")]
    pub path: Option<PathBuf>,
    /// End after this time: 90s, 10min, 2h
    #[arg(long = "for", value_name = "TIME", value_parser = parse_time)]
    pub time: Option<u64>,
    /// End before the trace takes more than this: 500MB, 2GiB
    #[arg(long, value_name = "N", value_parser = parse_bytes)]
    pub max_bytes: Option<u64>,
    /// The policy that hints come from, to be noted in the trace
    #[arg(long, value_name = "NAME")]
    pub policy: Option<String>,
    /// Name relations as PostgreSQL's catalogs do: of every server whose files are written (auto, by its
    /// socket and as its owner), or of the one at this address
    #[arg(long, value_name = "CONNINFO", num_args = 0..=1, default_missing_value = "auto")]
    pub pg: Option<String>,
    /// Machine-readable
    #[arg(long)]
    pub json: bool,
    /// Record while this program runs
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}
