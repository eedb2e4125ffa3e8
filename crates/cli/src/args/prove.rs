//! `prove`.

use std::path::PathBuf;

use clap::Args;

const HELP: &str = "\
Examples:
  sudo shelflife prove /var/lib/postgresql    on the file system of that folder
  sudo shelflife prove /srv/pg /srv/wal       on both, watched together
  sudo shelflife prove /srv/pg --json

Writes at most 3.2 MB of files without a name beside each path, with every hint, through the page cache
and with O_DIRECT, syncs them, and shows what the block layer issued, what the driver sent and what
the drive counted. Nothing is left. Takes a few seconds, on a slow drive up to half a minute a path, and
wants root. If one of several paths is refused, nothing is written to any.

Exit codes: 0 proven, 1 disproven, 2 wrong use, or no room, 3 not permitted, or it could not be seen; of
several paths the highest.";

/// `shelflife prove`
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub struct ProveArgs {
    /// Folders or files on the file systems in question
    #[arg(value_name = "PATH", required = true)]
    pub paths: Vec<PathBuf>,
    /// Machine-readable
    #[arg(long)]
    pub json: bool,
}
