//! `lifetimes`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use shelflife_learn::By;

const LIFETIMES_HELP: &str = "\
Examples:
  shelflife lifetimes TRACE
  shelflife lifetimes TRACE --by relation
  shelflife lifetimes TRACE --by file --sample 1/64 --json
  shelflife lifetimes TRACE --csv > curves.csv

A page lives from the write that touches it to the next one, or to a discard. Its lifetime is the
host's writes to the device meanwhile (and the time). What is alive at the end has lived at least so
long, and counts so: \"> 3.2 GB\" says that more was alive then. docs/lifetimes.md has the rest.";

/// `shelflife lifetimes`
#[derive(Args, Debug)]
#[command(after_help = LIFETIMES_HELP)]
pub struct LifetimesArgs {
    /// The trace
    pub trace: PathBuf,
    /// What to tell apart
    #[arg(long, value_enum, default_value = "class")]
    pub by: ByArg,
    /// Follow one page in so many, chosen by its address: for traces of large drives
    #[arg(long, default_value = "1/1", value_name = "1/N", value_parser = parse_sample)]
    pub sample: u32,
    /// Lines to show
    #[arg(long, default_value_t = 30, value_name = "N")]
    pub top: usize,
    /// The survival curves as CSV
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
    /// Machine-readable
    #[arg(long)]
    pub json: bool,
}

/// `--by`
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ByArg {
    /// Class of file
    Class,
    /// Relation, where a catalog named it
    Relation,
    /// File
    File,
    /// Process that issued the write
    Process,
}

impl From<ByArg> for By {
    fn from(by: ByArg) -> By {
        match by {
            ByArg::Class => By::Class,
            ByArg::Relation => By::Relation,
            ByArg::File => By::File,
            ByArg::Process => By::Process,
        }
    }
}

fn parse_sample(text: &str) -> Result<u32, String> {
    let one_in = text.strip_prefix("1/").and_then(|n| n.parse().ok());
    one_in
        .filter(|n| (1..=1 << 20).contains(n))
        .ok_or_else(|| "choose 1/N, N from 1 (every page) to 1048576, such as 1/64".to_owned())
}
