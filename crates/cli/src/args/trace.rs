//! `import`, `export` and `trace`.

use std::ops::Range;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use shelflife_trace::{ExportFormat, Format, TimeUnit};

const IMPORT_HELP: &str = "\
Examples:
  shelflife import hm_0.csv.gz -o hm                       MSR Cambridge
  shelflife import io_traces.csv --volume 419 -o volume    one volume of Alibaba's
  blkparse sda | shelflife import - -o sda
  shelflife import disk.vscsi --shift -32256 -o disk       a partition that began at sector 63

The format is told from the content. Formats: msr, alibaba, tencent, blkparse, vscsi1, vscsi2, fio,
mqsim, csv (a header line names the columns: offset, length, time_ns, op, hint, stream, flags, device,
process, class, path). Files compressed by gzip or zstd are read as they are. Several files are parts
of one recording, in order. A bad line is an error with its number.";

/// `shelflife import`
#[derive(Args, Debug)]
#[command(after_help = IMPORT_HELP)]
pub struct ImportArgs {
    /// Files; - is standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// The new trace, a folder that does not exist
    #[arg(short, long, value_name = "TRACE")]
    pub output: PathBuf,
    /// The format, where it cannot be told
    #[arg(long)]
    pub format: Option<Format>,
    /// Skip and count bad lines
    #[arg(long)]
    pub skip_bad: bool,
    /// Added to every offset, in bytes
    #[arg(long, default_value_t = 0, allow_negative_numbers = true, value_name = "BYTES")]
    pub shift: i64,
    /// The size of the device: nothing may end beyond it (64GiB, 500GB, …)
    #[arg(long, value_parser = parse_bytes, value_name = "BYTES")]
    pub size: Option<u64>,
    /// Only this device or volume
    #[arg(long, value_name = "NAME")]
    pub volume: Option<String>,
    /// The unit of times in mqsim: ps, ns, us, ms or s
    #[arg(long, value_name = "UNIT")]
    pub time_unit: Option<TimeUnit>,
    /// Machine-readable
    #[arg(long)]
    pub json: bool,
}

const EXPORT_HELP: &str = "\
Examples:
  shelflife export TRACE --to alibaba > trace.csv
  shelflife export TRACE --to csv -o trace.csv

What alibaba has no words for (discards, hints, files) is left out; events left out are counted on
standard error.";

/// `shelflife export`
#[derive(Args, Debug)]
#[command(after_help = EXPORT_HELP)]
pub struct ExportArgs {
    /// The trace
    pub trace: PathBuf,
    /// alibaba or csv
    #[arg(long, value_name = "FORMAT")]
    pub to: ExportFormat,
    /// Where to (default: standard output)
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

const TRACE_HELP: &str = "\
Examples:
  shelflife trace summary TRACE
  shelflife trace cut TRACE -o PART --time 60s..120s
  shelflife trace cut TRACE -o SHARED --anonymize
  shelflife trace merge MONDAY TUESDAY -o BOTH

A trace is a folder of Parquet files: DuckDB, pandas and Polars open it (docs/trace-format.md).";

/// `shelflife trace`
#[derive(Args, Debug)]
#[command(after_help = TRACE_HELP)]
pub struct TraceArgs {
    /// What to do with it.
    #[command(subcommand)]
    pub action: TraceAction,
}

/// What `trace` does.
#[derive(Debug, Subcommand)]
pub enum TraceAction {
    /// Where a trace comes from, and what was counted
    Info {
        /// The trace
        trace: PathBuf,
        /// Machine-readable
        #[arg(long)]
        json: bool,
    },
    /// Read all of it and compare with what it says of itself; exit code 1 if something is wrong
    Check {
        /// The trace
        trace: PathBuf,
        /// Machine-readable
        #[arg(long)]
        json: bool,
    },
    /// The first events
    Head(HeadArgs),
    /// A part of a trace as a new one, perhaps without names
    Cut(CutArgs),
    /// Several traces as a new one, in the order of time
    Merge {
        /// The traces
        #[arg(required = true, value_name = "TRACE")]
        traces: Vec<PathBuf>,
        /// The new trace
        #[arg(short, long, value_name = "TRACE")]
        output: PathBuf,
        /// Machine-readable
        #[arg(long)]
        json: bool,
    },
    /// Bytes, writes, sequentiality, overwrites and distinct pages by class, relation, hint, process
    Summary {
        /// The trace
        trace: PathBuf,
        /// Lines of each table; all of them in JSON
        #[arg(long, default_value_t = 20)]
        top: usize,
        /// Machine-readable
        #[arg(long)]
        json: bool,
    },
}

/// `shelflife trace head`
#[derive(Args, Debug)]
pub struct HeadArgs {
    /// The trace
    pub trace: PathBuf,
    /// How many events
    #[arg(short = 'n', long, default_value_t = 10)]
    pub events: usize,
    /// Machine-readable
    #[arg(long)]
    pub json: bool,
}

/// `shelflife trace cut`
#[derive(Args, Debug)]
pub struct CutArgs {
    /// The trace
    pub trace: PathBuf,
    /// The new trace
    #[arg(short, long, value_name = "TRACE")]
    pub output: PathBuf,
    /// From and to since the beginning, the end not included: 60s..120s, 1500ms.., ..2min
    #[arg(long, value_parser = parse_times, value_name = "FROM..TO")]
    pub time: Option<Range<u64>>,
    /// Events that begin in these bytes of the device: 0..10GiB
    #[arg(long, value_parser = parse_offsets, value_name = "FROM..TO")]
    pub offset: Option<Range<u64>>,
    /// Only this device, by its number in `trace info`
    #[arg(long, value_name = "NUMBER")]
    pub device: Option<u16>,
    /// Replace paths, names of relations, databases, tablespaces and devices; classes stay, and so
    /// do the names of processes
    #[arg(long)]
    pub anonymize: bool,
    /// Machine-readable
    #[arg(long)]
    pub json: bool,
}

const BYTES: &[(&str, u64)] = &[
    ("", 1),
    ("B", 1),
    ("kB", 1000),
    ("MB", 1000 * 1000),
    ("GB", 1000 * 1000 * 1000),
    ("TB", 1000 * 1000 * 1000 * 1000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
];

const TIMES: &[(&str, u64)] = &[
    ("ns", 1),
    ("us", 1000),
    ("ms", 1000 * 1000),
    ("s", 1000 * 1000 * 1000),
    ("min", 60 * 1000 * 1000 * 1000),
    ("h", 3600 * 1000 * 1000 * 1000),
];

pub(crate) fn parse_bytes(text: &str) -> Result<u64, String> {
    parse_units(text, BYTES)
}

/// Nanoseconds.
pub(crate) fn parse_time(text: &str) -> Result<u64, String> {
    parse_units(text, TIMES)
}

fn parse_times(text: &str) -> Result<Range<u64>, String> {
    parse_range(text, TIMES)
}

fn parse_offsets(text: &str) -> Result<Range<u64>, String> {
    parse_range(text, BYTES)
}

fn parse_units(text: &str, units: &[(&str, u64)]) -> Result<u64, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let unit = unit.trim();
    let names: Vec<&str> = units.iter().map(|(name, _)| *name).filter(|n| !n.is_empty()).collect();
    let expected = || format!("expected a whole number and one of {}", names.join(", "));
    let number: u64 = number.parse().map_err(|_| expected())?;
    let known = units.iter().find(|(name, _)| *name == unit);
    // zero is zero in every unit
    let factor = if number == 0 && unit.is_empty() { 1 } else { known.ok_or_else(expected)?.1 };
    number.checked_mul(factor).ok_or_else(|| "too large".to_owned())
}

fn parse_range(text: &str, units: &[(&str, u64)]) -> Result<Range<u64>, String> {
    let (from, to) = text.split_once("..").ok_or("expected FROM..TO")?;
    let from = if from.is_empty() { 0 } else { parse_units(from, units)? };
    let to = if to.is_empty() { u64::MAX } else { parse_units(to, units)? };
    match from < to {
        true => Ok(from..to),
        false => Err("the end must be after the beginning".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_their_units() {
        assert_eq!(parse_times("60s..2min"), Ok(60_000_000_000..120_000_000_000));
        assert_eq!(parse_times("..1500ms"), Ok(0..1_500_000_000));
        assert_eq!(parse_times("0..1ns"), Ok(0..1));
        assert_eq!(parse_offsets("4KiB.."), Ok(4096..u64::MAX));
        assert_eq!(parse_offsets("512..1kB"), Ok(512..1000));
        for bad in ["", "5s", "5..6", "6s..5s", "-1s..", "1.5s..", "99999999999h.."] {
            assert!(parse_times(bad).is_err(), "{bad}");
        }
        assert!(parse_bytes("1e9").is_err());
    }
}
