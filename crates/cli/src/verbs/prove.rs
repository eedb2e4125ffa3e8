//! `prove`: write with every hint, and look at what arrives.

use shelflife_probe::Error;
use shelflife_probe::prove::{Ruling, prove};

use crate::args::ProveArgs;
use crate::done::{Done, Failure, NO, NOT_HERE};
use crate::stop::{INTERRUPTED, on_signals};

pub fn run(args: &ProveArgs) -> Result<Done, Failure> {
    let stop = on_signals()?;
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
