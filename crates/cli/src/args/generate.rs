//! Arguments of `generate`, which is for those who package.

use std::path::PathBuf;

use clap::Args;

/// `shelflife generate`
#[derive(Args, Debug)]
pub struct GenerateArgs {
    /// Folder for man pages and completions; made if need be
    pub dir: PathBuf,
}
