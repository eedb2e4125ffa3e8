//! `prove`.

use std::path::PathBuf;

use clap::Args;

const HELP: &str = "\
Examples:
  sudo shelflife prove /var/lib/postgresql    on the file system of that folder
  sudo shelflife prove /srv/pg --json

Writes at most 3.2 MB of files without a name beside the path, with every hint, through the page cache
and with O_DIRECT, syncs them, and shows what the block layer issued, what the driver sent and what
the drive counted. Nothing is left. Takes less than ten seconds, and wants root.

Exit codes: 0 proven, 1 disproven, 2 wrong use, or no room, 3 not permitted, or it could not be seen.";

/// `shelflife prove`
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub struct ProveArgs {
    /// A folder or file on the file system in question
    pub path: PathBuf,
    /// Machine-readable
    #[arg(long)]
    pub json: bool,
}
