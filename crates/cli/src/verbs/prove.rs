//! `prove`: write with every hint, and look at what arrives.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use shelflife_probe::Error;
use shelflife_probe::prove::{Ruling, prove};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::args::ProveArgs;
use crate::done::{Done, Failure, NO, NOT_HERE};

/// As a shell has it for a program that SIGINT ended.
const INTERRUPTED: u8 = 130;

pub fn run(args: &ProveArgs) -> Result<Done, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let proof = prove(&args.paths, &stop).map_err(failure)?;
    let code = match proof.ruling {
        Ruling::Proven => 0,
        Ruling::Disproven => NO,
        Ruling::Unknown => NOT_HERE,
    };
    let done = if args.json { Done::json(&proof)? } else { Done::text(proof.text()) };
    Ok(done.with_code(code))
}

fn failure(error: Error) -> Failure {
    let code = match &error {
        Error::Interrupted => INTERRUPTED,
        error if error.is_denied() => NOT_HERE,
        _ => return error.into(),
    };
    Failure { code, error: error.into() }
}
