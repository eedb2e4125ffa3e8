//! `doctor`.

use std::path::PathBuf;

use clap::Args;

const HELP: &str = "\
Examples:
  shelflife doctor                        every block device, and the folders of running servers
  shelflife doctor /var/lib/postgresql    layer by layer from a path to the drive
  shelflife doctor --pgdata /srv/pg       data folder, WAL folder and every tablespace
  sudo shelflife doctor /dev/nvme0n1      a raw device; root may ask the drive itself

It reads and asks, and writes nothing. What it says is a prediction: `shelflife prove PATH` shows it.

Exit codes: 0 delivered, or the list was printed; 1 not delivered, or used by the file system only;
2 wrong use; 3 unknown, or not permitted.";

/// `shelflife doctor`
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub struct DoctorArgs {
    /// A file, folder or block device (default: list everything)
    #[arg(value_name = "PATH|DEVICE")]
    pub path: Option<PathBuf>,
    /// A server's data folder: it, its WAL folder and its tablespaces
    #[arg(long, value_name = "DIR", conflicts_with = "path")]
    pub pgdata: Option<PathBuf>,
    /// Machine-readable
    #[arg(long)]
    pub json: bool,
}
