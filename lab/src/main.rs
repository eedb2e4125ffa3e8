//! The lab: boots stock kernels in QEMU, builds every stack in them, and holds what `shelflife
//! doctor` predicts and `shelflife prove` shows against what the drive was really told.
//!
//! Invariant: the machine is left as it was. Packages are unpacked below one folder and never
//! installed; a run that is stopped goes on where it was.

mod agree;
mod apt;
mod command;
mod cpio;
mod guest;
mod kernel;
mod matrix;
mod observe;
mod qemu;
mod run;
mod stacks;
mod store;
mod tools;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

/// Boots stock kernels in QEMU and checks what doctor and prove say about write lifetime hints.
///
/// Each kernel × stack is kept below the folder, so a run that was stopped goes on from there. Ends
/// with 0 if every cell agrees, 1 if one does not, 2 on any other trouble.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:\n  lab                       all kernels, all stacks\n  \
    lab --quick               two kernels, ten stacks\n  \
    lab --kernel 6.12 --stack scsi-ext4 --again\n  \
    lab --package linux-image-6.19.8-amd64.deb")]
pub struct Options {
    /// The newest kernel of a series (`6.12`), or `newest` of all; can be repeated.
    #[arg(long, value_name = "SERIES")]
    kernel: Vec<String>,
    /// Packages of another kernel, as files: image, and modules if they are apart.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    package: Vec<PathBuf>,
    /// Only this stack; can be repeated.
    #[arg(long, value_name = "NAME")]
    stack: Vec<String>,
    /// Two kernels and the ten stacks that tell most; writes no matrix.
    #[arg(long)]
    quick: bool,
    /// Run again what has a result.
    #[arg(long)]
    again: bool,
    /// Look for newer kernels: fetch the lists of Debian's suites anew.
    #[arg(long)]
    refresh: bool,
    /// The program to put to the test.
    #[arg(long, value_name = "FILE", default_value = "target/release/shelflife")]
    shelflife: PathBuf,
    /// Packages, unpacked kernels, results.
    #[arg(long, value_name = "FOLDER", default_value = "target/lab")]
    folder: PathBuf,
    /// Where the matrix of a full run goes.
    #[arg(long, value_name = "FILE", default_value = "docs/support-matrix.md")]
    matrix: PathBuf,
    /// List the stacks and end.
    #[arg(long)]
    list: bool,
}

fn main() -> ExitCode {
    let options = Options::parse();
    if options.list {
        for stack in stacks::STACKS {
            println!("{:20} {} · {}", stack.name, stack.medium.title(), stack.title());
        }
        return ExitCode::SUCCESS;
    }
    match run::run(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("lab: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Seconds since 1970.
fn now() -> Result<u64> {
    Ok(std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_secs())
}
