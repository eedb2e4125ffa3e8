//! `learn`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use shelflife_learn::{Aim, Applier};

use super::simulate::{SizeArgs, TransportArg};

const LEARN_HELP: &str = "\
Examples:
  shelflife learn TRACE -o mine.toml --transport scsi --drive ufs-5-groups --fit 90 --applier hook
  shelflife learn TRACE -o mine.toml --transport nvme-raw --drive ./mine-drive.toml --live 92 \\
      --applier watch --relations --for worst

Learned from the first 60 % of the page writes, judged on the rest, beside no hints, the shipped
policies, two clairvoyants, WAL on a drive of its own and 7 % more over-provisioning, under every
victim rule and isolation. Everything printed is simulated. docs/learn.md says how.

Exit codes: 0 a policy was written, 1 none was: nothing beats no hints by more than the noise, or what
does on average costs more than 1 % under some rules, 2 wrong use or input, 3 not permitted.";

/// `shelflife learn`
#[derive(Args, Debug)]
#[command(after_help = LEARN_HELP)]
pub struct LearnArgs {
    /// The trace, of one device
    pub trace: PathBuf,
    /// Where the policy is written; must not exist
    #[arg(short, long, value_name = "POLICY")]
    pub output: PathBuf,
    /// How a hint becomes a stream on the way to the drive, whatever its profile says
    #[arg(long, value_enum)]
    pub transport: TransportArg,
    /// A shipped drive or the path of a profile (docs/simulate.md); may be repeated
    #[arg(long, required = true, value_name = "DRIVE")]
    pub drive: Vec<String>,
    /// Who will set the hints
    #[arg(long, value_enum)]
    pub applier: ApplierArg,
    /// Rules for single relations too (with --applier watch)
    #[arg(long)]
    pub relations: bool,
    /// What to be best at: mean (over all rules and isolations, and bad on none), worst (of them), or the
    /// name of one of the drives, by its own rules
    #[arg(long = "for", default_value = "mean", value_name = "mean|worst|DRIVE")]
    pub aim: String,
    #[command(flatten)]
    pub size: SizeArgs,
    /// Seed of the sample that is searched on, and of hints dealt at random
    #[arg(long, default_value_t = 1, value_name = "S")]
    pub seed: u64,
    /// Machine-readable
    #[arg(long)]
    pub json: bool,
}

/// `--applier`
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ApplierArg {
    /// `shelflife run`: it knows paths, so that an index is a relation
    Hook,
    /// `shelflife watch`: it reads the catalog
    Watch,
}

impl From<ApplierArg> for Applier {
    fn from(applier: ApplierArg) -> Applier {
        match applier {
            ApplierArg::Hook => Applier::Hook,
            ApplierArg::Watch => Applier::Watch,
        }
    }
}

impl LearnArgs {
    /// What `--for` says.
    pub fn aim(&self) -> Aim {
        match self.aim.as_str() {
            "worst" => Aim::Worst,
            "mean" => Aim::Mean,
            name => Aim::Drive(name.to_owned()),
        }
    }
}
