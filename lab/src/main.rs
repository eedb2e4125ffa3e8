//! The lab: boots stock kernels in QEMU, builds every stack in them, and holds what `shelflife
//! doctor` predicts and `shelflife prove` shows against what the drive was really told.
//!
//! Invariant: the machine is left as it was. Packages are unpacked below one folder and never
//! installed; a run that is stopped goes on where it was.

mod agree;
mod apt;
mod batch;
mod command;
mod cpio;
mod epoch;
mod guest;
mod kernel;
mod lab;
mod listen;
mod matrix;
mod observe;
mod qemu;
mod record;
mod run;
mod server;
mod stacks;
mod store;
mod tools;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};

use crate::lab::CannotRun;

/// Stock kernels in QEMU: what a drive is really told of write lifetime hints.
///
/// Ends with 0 if all is as it should be, 1 if something is not, 2 on any other trouble.
#[derive(Debug, Parser)]
struct Options {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    part: Part,
}

/// What all parts have in common.
#[derive(Debug, Args)]
pub struct Common {
    /// The program to put to the test
    #[arg(long, global = true, value_name = "FILE", default_value = "target/release/shelflife")]
    shelflife: PathBuf,
    /// Packages, unpacked kernels, results
    #[arg(long, global = true, value_name = "FOLDER", default_value = "target/lab")]
    folder: PathBuf,
    /// Look for newer kernels: fetch the lists of Debian's suites anew
    #[arg(long, global = true)]
    refresh: bool,
}

#[derive(Debug, Subcommand)]
enum Part {
    /// Every stack on every kernel: what doctor predicts and prove shows, against what the drive saw
    Stacks(StacksOptions),
    /// The matrix from the results at hand, without booting anything
    Matrix {
        /// Where it goes
        #[arg(long, value_name = "FILE", default_value = "docs/support-matrix.md")]
        matrix: PathBuf,
    },
    /// The recorder: is every byte recorded with its file, hint and stream?
    Record(KernelOption),
    /// PostgreSQL under the hook: do WAL and relations get to different handles?
    Postgres(KernelOption),
    /// PostgreSQL under the hook, and the power is cut
    Power(PowerOptions),
    /// A trial whose rounds are epochs on a whole namespace, broken off and resumed
    Epoch(KernelOption),
    /// The stacks
    List,
}

/// `stacks`
#[derive(Debug, Args)]
#[command(
    after_help = "Each kernel × stack is kept below the folder: a run that was stopped goes on \
    from there.\n\nExamples:\n  lab stacks                       all kernels, all stacks\n  \
    lab stacks --quick               two kernels, ten stacks\n  \
    lab stacks --kernel 6.12 --stack scsi-ext4 --again\n  \
    lab stacks --package linux-image-6.19.8-amd64.deb"
)]
pub struct StacksOptions {
    /// The newest kernel of a series (`6.12`), or `newest` of all; can be repeated
    #[arg(long, value_name = "SERIES")]
    kernel: Vec<String>,
    /// Packages of another kernel, as files: image, and modules if they are apart
    #[arg(long, value_name = "FILE", num_args = 1..)]
    package: Vec<PathBuf>,
    /// Only this stack; can be repeated
    #[arg(long, value_name = "NAME")]
    stack: Vec<String>,
    /// Two kernels and the ten stacks that tell most; writes no matrix. Where the lab cannot run, says
    /// so as a skipped test does and ends with 0
    #[arg(long)]
    quick: bool,
    /// Run again what has a result
    #[arg(long)]
    again: bool,
    /// Where the matrix of a full run goes
    #[arg(long, value_name = "FILE", default_value = "docs/support-matrix.md")]
    matrix: PathBuf,
}

/// A kernel.
#[derive(Debug, Args)]
pub struct KernelOption {
    /// The newest kernel of a series, or of all
    #[arg(long, value_name = "SERIES", default_value = "newest")]
    kernel: String,
}

/// `power`
#[derive(Debug, Args)]
pub struct PowerOptions {
    #[command(flatten)]
    kernel: KernelOption,
    /// How often, for each file system
    #[arg(long, value_name = "N", default_value_t = 10)]
    cuts: u32,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let common = &options.common;
    let done = match &options.part {
        Part::Stacks(stacks) => run::run(common, stacks),
        Part::Matrix { matrix } => run::matrix(common, matrix),
        Part::Record(kernel) => record::record(common, kernel),
        Part::Postgres(kernel) => server::postgres(common, kernel),
        Part::Power(power) => server::power(common, power),
        Part::Epoch(kernel) => epoch::epoch(common, kernel),
        Part::List => {
            for stack in stacks::STACKS {
                println!("{:20} {} · {}", stack.name, stack.medium.title(), stack.title());
            }
            Ok(true)
        }
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) if is_quick(&options.part) && error.is::<CannotRun>() => {
            println!("skipped: lab-quick: {error}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("lab: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// The quick lab is one check among others: where it cannot be made, it is counted as skipped.
fn is_quick(part: &Part) -> bool {
    matches!(part, Part::Stacks(StacksOptions { quick: true, .. }))
}

/// Seconds since 1970.
fn now() -> Result<u64> {
    Ok(std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_secs())
}
