//! The command line.

mod atlas;
mod doctor;
mod generate;
mod learn;
mod lifetimes;
mod prove;
mod record;
mod simulate;
mod trace;
mod watch;

pub use atlas::AtlasArgs;
pub use doctor::DoctorArgs;
pub use generate::GenerateArgs;
pub use learn::LearnArgs;
pub use lifetimes::LifetimesArgs;
pub use prove::ProveArgs;
pub use record::RecordArgs;
pub use simulate::SimulateArgs;
pub use trace::{CutArgs, ExportArgs, HeadArgs, ImportArgs, TraceAction, TraceArgs};
pub use watch::{WatchArgs, WatchLayout, WatchMode};

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use shelflife_lifetime::Lifetime;

/// Exit codes, as every verb has them.
const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  the answer is \"no\", or a check failed
  2  wrong use or input
  3  not permitted, or not supported here";

/// Tell flash how long data will live: write lifetime hints for an unmodified PostgreSQL.
#[derive(Debug, Parser)]
#[command(version, after_help = EXIT_CODES, infer_subcommands = false)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Start a program under hints
    Run(RunArgs),
    /// Hint a running server from outside, without a restart
    Watch(WatchArgs),
    /// Show runs, their counters, and whether the hook is really loaded
    Status(StatusArgs),
    /// Switch hints off, on, or to another policy while the server runs
    Switch(SwitchArgs),
    /// Set or clear hints on the files that exist now
    Apply(ApplyArgs),
    /// Read, set or clear the hint of files
    Hint(HintArgs),
    /// List, show, check and explain policies
    Policy(PolicyArgs),
    /// Does a hint set here reach the flash, layer by layer
    Doctor(DoctorArgs),
    /// Write with every hint and show what arrives at the drive
    Prove(ProveArgs),
    /// Compare policies on a real server, in paired rounds
    Trial(Box<TrialArgs>),
    /// Scenarios, policies and drives in one table: best and worst cases
    Atlas(Box<AtlasArgs>),
    /// Record what is written to a drive, with hint and file
    Record(RecordArgs),
    /// Make a trace of a recording in another format
    Import(ImportArgs),
    /// Write a trace in another format
    Export(ExportArgs),
    /// Look at a trace, check, cut, anonymise, merge and summarise it
    Trace(TraceArgs),
    /// How long what is written lives, by class of file, relation, file or process
    Lifetimes(LifetimesArgs),
    /// Write man pages and completions
    #[command(hide = true)]
    Generate(GenerateArgs),
    /// What write amplification drives would have under policies, for a trace or a workload
    Simulate(Box<SimulateArgs>),
    /// The policy that suits a trace and drives, judged on what it has not seen
    Learn(Box<LearnArgs>),
}

const RUN_HELP: &str = "\
Examples:
  shelflife run -- pg_ctl -D /srv/pg -l /srv/pg.log start
  shelflife run --policy temp-vs-rest --name main -- /usr/lib/postgresql/15/bin/postgres -D /srv/pg
  shelflife run --dry-run -- pg_ctl -D /srv/pg start     count what would be hinted

The program keeps its process number, signals and exit status: shelflife becomes it. In a systemd
unit, put `shelflife run --` before the command of ExecStart.";

/// `shelflife run`
#[derive(Args, Debug)]
#[command(after_help = RUN_HELP)]
pub struct RunArgs {
    /// A shipped policy or the path of a policy file
    #[arg(long, default_value = "wal-first", value_name = "POLICY")]
    pub policy: String,
    /// Count the files that would be hinted, hint none
    #[arg(long)]
    pub dry_run: bool,
    /// The run's name for `switch` and `status` (default: the lowest free number)
    #[arg(long)]
    pub name: Option<String>,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// `shelflife status`
#[derive(Args, Debug)]
#[command(after_help = "Exit code 1: no run, or a server that should carry the hook does not.")]
pub struct StatusArgs {
    /// Only this run
    #[arg(long, value_name = "NAME")]
    pub run: Option<String>,
    /// Machine-readable
    #[arg(long)]
    pub json: bool,
}

const SWITCH_HELP: &str = "\
Examples:
  shelflife switch off
  shelflife switch wal-first --run main
  shelflife switch ./my-policy.toml

Files opened from now on follow at once; then a sweep puts right what is open and what lies in the
data folder, and repeats until a pass changes nothing.";

/// `shelflife switch`
#[derive(Args, Debug)]
#[command(after_help = SWITCH_HELP)]
pub struct SwitchArgs {
    /// off, on, a shipped policy or the path of a policy file
    #[arg(value_name = "off|on|POLICY")]
    pub to: String,
    /// The run to switch, if there are several
    #[arg(long, value_name = "NAME")]
    pub run: Option<String>,
    /// Machine-readable
    #[arg(long)]
    pub json: bool,
}

const APPLY_HELP: &str = "\
Examples:
  shelflife apply /srv/pg --policy wal-first
  shelflife apply /srv/pg --clear

A hint lives in memory, with the file's inode: files that are closed and forgotten by the kernel
lose it, and so does everything at a reboot.";

/// `shelflife apply`
#[derive(Args, Debug)]
#[command(
    after_help = APPLY_HELP,
    group = clap::ArgGroup::new("wish").args(["policy", "clear"]).required(true),
)]
pub struct ApplyArgs {
    /// The data folder (with a policy of layout "paths": any folder)
    pub dir: PathBuf,
    /// A shipped policy or the path of a policy file
    #[arg(long, value_name = "POLICY")]
    pub policy: Option<String>,
    /// Take all hints away
    #[arg(long)]
    pub clear: bool,
    /// Machine-readable
    #[arg(long)]
    pub json: bool,
}

const HINT_HELP: &str = "\
Examples:
  shelflife hint get /srv/pg/pg_wal/*
  shelflife hint set short -r /srv/pg/base/pgsql_tmp
  shelflife hint clear -r /srv/pg

Lifetimes: not-set, none, short, medium, long, extreme. That a hint is set says nothing about
whether it reaches the drive.";

/// `shelflife hint`
#[derive(Args, Debug)]
#[command(after_help = HINT_HELP)]
pub struct HintArgs {
    /// What to do with the files.
    #[command(subcommand)]
    pub action: HintAction,
}

/// What `hint` does.
#[derive(Debug, Subcommand)]
pub enum HintAction {
    /// Print the hint that each file carries
    Get(HintPaths),
    /// Set it
    Set {
        /// not-set, none, short, medium, long or extreme
        #[arg(value_parser = parse_lifetime)]
        lifetime: Lifetime,
        /// Which files.
        #[command(flatten)]
        paths: HintPaths,
    },
    /// Set it back to not-set
    Clear(HintPaths),
}

fn parse_lifetime(text: &str) -> Result<Lifetime, String> {
    if text == "off" {
        return Err("off is the switch, not a lifetime; `hint clear` takes a hint away".to_owned());
    }
    text.parse().map_err(|e: shelflife_lifetime::UnknownLifetime| e.to_string())
}

/// Which files `hint` is about.
#[derive(Args, Debug)]
pub struct HintPaths {
    /// Files; with -r also folders
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// All regular files below the folders, following no links
    #[arg(short, long)]
    pub recursive: bool,
    /// Machine-readable
    #[arg(long)]
    pub json: bool,
}

const POLICY_HELP: &str = "\
Examples:
  shelflife policy show wal-first
  shelflife policy check ./my-policy.toml
  shelflife policy explain --policy wal-first pg_wal/000000010000000000000001 base/5/16384";

/// `shelflife policy`
#[derive(Args, Debug)]
#[command(after_help = POLICY_HELP)]
pub struct PolicyArgs {
    /// What to do with it.
    #[command(subcommand)]
    pub action: PolicyAction,
}

/// What `policy` does.
#[derive(Debug, Subcommand)]
pub enum PolicyAction {
    /// The policies that come along
    List {
        /// Machine-readable
        #[arg(long)]
        json: bool,
    },
    /// What a policy gives each class of file, and why
    Show {
        /// A shipped policy or the path of a policy file
        policy: String,
        /// The text as it is, comments and all: a start for one of your own
        #[arg(long, conflicts_with = "json")]
        source: bool,
        /// Machine-readable
        #[arg(long)]
        json: bool,
    },
    /// Errors and doubtful rules, with line and column; exit code 1 if there are any
    Check {
        /// Shipped policies or paths of policy files
        #[arg(required = true)]
        policies: Vec<String>,
        /// Machine-readable
        #[arg(long)]
        json: bool,
    },
    /// What would these paths get, and why
    Explain {
        /// A shipped policy or the path of a policy file
        #[arg(long, default_value = "wal-first", value_name = "POLICY")]
        policy: String,
        /// The data folder that absolute paths lie in (default: found above the path, if it exists)
        #[arg(long, value_name = "DIR")]
        pgdata: Option<PathBuf>,
        /// Paths: relative ones are taken from the data folder; they need not exist
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<PathBuf>,
        /// Machine-readable
        #[arg(long)]
        json: bool,
    },
}

const TRIAL_HELP: &str = "\
Examples:
  shelflife trial --preset quick --policies off,temp-vs-rest,wal-first
  shelflife trial --policies off,wal-first --dir /srv/trial --scale 200 --rounds 12
  shelflife trial --policies off,off                          A/A: does the method see what is not there?
  shelflife trial --policies off,wal-first --rate 500         latency at a rate that the server can keep
  shelflife trial --policies off,wal-first --dsn 'host=/run/postgresql user=postgres' --own-database sl
  shelflife trial --policies off,wal-first --fs f2fs --device /dev/nvme0n1 --fill 80%
                                                              epochs on a whole empty drive with FDP
  shelflife trial --resume /srv/trial
  shelflife trial --read /srv/trial --html trial.html         the page of a trial that was

In each block every arm runs once, in random order; arms are compared with the first one, block by
block. The results stay in the folder: docs/trial.md describes them.

Exit codes: 0 done, 1 rounds failed, 2 wrong use or input, 3 not possible here, 130 interrupted.";

/// A set of defaults.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum PresetArg {
    /// Eight blocks of two-minute rounds on 0.75 GB
    Standard,
    /// At most a minute of load: an interval, never a verdict
    Quick,
    /// pgbench -s 200 -i, pgbench -T 600 -c 2 -j 2, max_wal_size 4 GB
    Classic,
}

/// What `--fs` makes.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum FsArg {
    /// ext4
    Ext4,
    /// XFS
    Xfs,
    /// btrfs
    Btrfs,
    /// f2fs
    F2fs,
}

impl From<FsArg> for shelflife_trial::filesystem::Kind {
    fn from(fs: FsArg) -> Self {
        match fs {
            FsArg::Ext4 => Self::Ext4,
            FsArg::Xfs => Self::Xfs,
            FsArg::Btrfs => Self::Btrfs,
            FsArg::F2fs => Self::F2fs,
        }
    }
}

/// `shelflife trial`
#[derive(Args, Debug)]
#[command(after_help = TRIAL_HELP)]
pub struct TrialArgs {
    /// The arms, the first being the base: off, shipped policies, paths of policy files
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "off,temp-vs-rest",
        value_name = "ARM,ARM…"
    )]
    pub policies: Vec<String>,
    /// Defaults for all that follows
    #[arg(long, value_enum, default_value = "standard")]
    pub preset: PresetArg,
    /// Folder for the cluster and the results, on the drive that is meant (default: a new one in
    /// /var/tmp)
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// A running server instead of a cluster of its own: it must be under the hook, and local
    #[arg(long, requires = "own_database", value_name = "CONNINFO")]
    pub dsn: Option<String>,
    /// The database that the trial makes on the running server, and drops
    #[arg(long, requires = "dsn", value_name = "NAME")]
    pub own_database: Option<String>,
    /// Blocks: each arm runs once in each
    #[arg(long, value_name = "N")]
    pub rounds: Option<usize>,
    /// Length of a round
    #[arg(long, value_name = "S")]
    pub seconds: Option<u32>,
    /// pgbench's scale, 15 MB each
    #[arg(long, value_name = "N")]
    pub scale: Option<u32>,
    /// Connections
    #[arg(long, value_name = "N")]
    pub clients: Option<u32>,
    /// Threads of pgbench
    #[arg(long, value_name = "N")]
    pub jobs: Option<u32>,
    /// Transactions to start per second; compares the mean latency instead of tps
    #[arg(long, value_name = "TPS")]
    pub rate: Option<f64>,
    /// A pgbench script and its weight, or simple-update or select-only, instead of tpcb-like; may
    /// be repeated
    #[arg(long, value_name = "FILE[@W]")]
    pub script: Vec<String>,
    /// A scenario: tpcb, spill, bulk-load, rewrite, timeseries, queue, random-index, freeze,
    /// unlogged, wal-share, wal-retained, wal-no-recycle; or the path of a folder (docs/trial.md)
    #[arg(long, value_name = "NAME[:VARIANT]", conflicts_with_all = ["script", "dsn"])]
    pub scenario: Option<String>,
    /// Make a file system for the cluster, in a file on a loop device: needs root
    #[arg(long, value_enum, value_name = "FS", conflicts_with = "dsn")]
    pub fs: Option<FsArg>,
    /// Its size
    #[arg(long, value_name = "SIZE", default_value = "4GiB", requires = "fs", value_parser = trace::parse_bytes)]
    pub size: u64,
    /// Make it on this whole device instead, anew for each round, which is an epoch: all of the device is
    /// trimmed, then written three times over, and write amplification measured by the drive's own counters.
    /// All that is on it is lost; it must be empty (docs/trial.md)
    #[arg(long, value_name = "DEVICE", requires = "fs",
        conflicts_with_all = ["dsn", "size", "rate", "record", "try_record"])]
    pub device: Option<PathBuf>,
    /// Fill it with cold data up to so much before the rounds: write amplification is a matter of fill
    #[arg(long, value_name = "PERCENT", requires = "fs", value_parser = crate::verbs::trial::parse_fill)]
    pub fill: Option<f64>,
    /// Let it have no more dirty pages than this, so that temporary files reach the drive
    #[arg(long, value_name = "SIZE", requires = "fs", value_parser = trace::parse_bytes)]
    pub dirty: Option<u64>,
    /// How it is mounted
    #[arg(long, value_name = "OPTIONS", default_value = "discard", requires = "fs")]
    pub mount_options: String,
    /// A setting of the trial's own server; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = crate::verbs::trial::parse_setting)]
    pub set: Vec<(String, String)>,
    /// Seed of the order and of pgbench, to repeat a trial
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Where PostgreSQL's programs are
    #[arg(long, value_name = "DIR")]
    pub pg_bindir: Option<PathBuf>,
    /// Who runs the server, if started by root (default: postgres)
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,
    /// Go on without asking how much will be written
    #[arg(short, long)]
    pub yes: bool,
    /// Keep the cluster, stopped
    #[arg(long)]
    pub keep: bool,
    /// Record the block writes of all rounds into this folder, a trace each (docs/record.md)
    #[arg(long, value_name = "DIR", conflicts_with = "read")]
    pub record: Option<PathBuf>,
    /// The same where this machine can record; else go on without, and say so
    #[arg(long, value_name = "DIR", conflicts_with_all = ["record", "read"])]
    pub try_record: Option<PathBuf>,
    /// Go on with the trial in this folder, as it was planned
    #[arg(
        long,
        value_name = "DIR",
        conflicts_with_all = ["policies", "preset", "dir", "rounds", "seconds", "scale", "clients",
            "jobs", "rate", "script", "scenario", "fs", "device", "set", "seed", "read"]
    )]
    pub resume: Option<PathBuf>,
    /// Only show what these results say: a file, or a trial's folder
    #[arg(long, value_name = "RESULTS", conflicts_with_all = ["dsn", "keep", "yes"])]
    pub read: Option<PathBuf>,
    /// Write the answer as an HTML page too: one file, with pictures
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Machine-readable
    #[arg(long)]
    pub json: bool,
}
