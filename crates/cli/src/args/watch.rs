//! Arguments of `watch`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

const WATCH_HELP: &str = "\
Examples:
  shelflife watch /var/lib/postgresql/15/main
  shelflife watch /srv/pg1 /srv/pg2 --policy temp-vs-rest --name main
  shelflife watch /srv/pg --policy learned.toml --relations=shelflife
  shelflife watch --config /etc/shelflife.toml

It stays in the foreground and ends at SIGTERM or Ctrl-C; SIGHUP reads the policy again. `status` shows
what it does, `switch` changes it. Started as root it becomes the files' owner and keeps no capability.
A server needs no restart. docs/operate.md says when the hook (`run`) is the better choice.";

/// How opens are seen.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum WatchMode {
    /// `filesystem` if allowed (CAP_SYS_ADMIN), else `folders`
    Auto,
    /// Marks on every folder: no rights but the owner's
    Folders,
    /// Marks on whole file systems
    Filesystem,
}

/// How the folders are laid out.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum WatchLayout {
    /// PostgreSQL data folders
    Postgres,
    /// Plain folders, for policies of layout "paths"
    Paths,
}

/// `shelflife watch`
#[derive(Args, Debug)]
#[command(
    after_help = WATCH_HELP,
    group = clap::ArgGroup::new("what").args(["folders", "config"]).required(true),
)]
pub struct WatchArgs {
    /// Data folders, all of one owner
    #[arg(value_name = "DIR")]
    pub folders: Vec<PathBuf>,
    /// A shipped policy or the path of a policy file (default: wal-first)
    #[arg(long, value_name = "POLICY", conflicts_with = "config")]
    pub policy: Option<String>,
    /// What the policy must be for (default: what it says)
    #[arg(long, value_enum, conflicts_with = "config")]
    pub layout: Option<WatchLayout>,
    /// Folders and all the rest from a file
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// How opens are seen
    #[arg(long, value_enum, conflicts_with = "config")]
    pub mode: Option<WatchMode>,
    /// The run's name for `switch` and `status` (default: the lowest free number)
    #[arg(long, conflicts_with = "config")]
    pub name: Option<String>,
    /// Read the servers' catalogs, so that rules for one relation and for the classes index, toast and
    /// unlogged apply; as this role (default: named like the files' owner)
    #[arg(
        long, value_name = "ROLE", num_args = 0..=1, require_equals = true, default_missing_value = "",
        conflicts_with = "config"
    )]
    pub relations: Option<String>,
    /// Count the files that would be hinted, hint none
    #[arg(long)]
    pub dry_run: bool,
}
