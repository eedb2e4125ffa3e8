//! `doctor`: does a hint set here reach the flash, layer by layer.

use shelflife_probe::{Doctor, Error, Host, Verdict};

use crate::args::DoctorArgs;
use crate::done::{Done, Failure, NO, NOT_HERE};

pub fn run(args: &DoctorArgs) -> Result<Done, Failure> {
    let doctor = Doctor::new(Host::live());
    let report = match (&args.path, &args.pgdata) {
        (Some(path), _) => doctor.path(path).map_err(failure)?,
        (None, Some(pgdata)) => doctor.server(pgdata).map_err(failure)?,
        (None, None) => doctor.everything(),
    };
    let code = match report.verdict {
        None | Some(Verdict::Delivered) => 0,
        Some(Verdict::FileSystemOnly | Verdict::NotDelivered) => NO,
        Some(Verdict::Unknown) => NOT_HERE,
    };
    let done = if args.json { Done::json(&report)? } else { Done::text(report.text()) };
    Ok(done.with_code(code))
}

fn failure(error: Error) -> Failure {
    if error.is_denied() {
        return Failure { code: NOT_HERE, error: error.into() };
    }
    error.into()
}
