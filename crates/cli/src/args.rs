//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
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
