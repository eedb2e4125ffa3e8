//! `apply`: hints on the files that exist now.

use shelflife_layout::Layout;
use shelflife_report::{count, plain};
use shelflife_run::load_policy;
use shelflife_sweep::{Tally, Territory, Wish, sweep};

use crate::args::ApplyArgs;
use crate::done::{Done, Failure, NO, NOT_HERE};
use crate::progress::SweepProgress;

pub fn run(args: &ApplyArgs) -> Result<Done, Failure> {
    let policy = args.policy.as_deref().map(load_policy).transpose()?;
    let table = policy.as_ref().map(shelflife_policy::Policy::compile);
    let postgres = policy.as_ref().is_some_and(|p| p.layout() == Layout::Postgres);
    // Clearing wants no policy: a data folder is taken with its WAL folder and tablespaces.
    let territory = if postgres || args.dir.join("PG_VERSION").is_file() {
        Territory::data_folder(&args.dir)?
    } else {
        Territory::folder(&args.dir)?
    };
    let wish = table.as_ref().map_or(Wish::Clear, Wish::Policy);
    let mut progress = SweepProgress::new();
    let tally = sweep(&territory, wish, |tally| {
        progress.show(territory.base(), tally);
        true
    })?;
    drop(progress);
    let code = code_of(&tally);
    if args.json {
        return Ok(Done::json(&tally)?.with_code(code));
    }
    let folder = territory.base().to_string_lossy();
    let text = format!("{}: {}\n", plain(&folder), in_words(&tally));
    Ok(Done::text(text).with_code(code))
}

/// A sweep in one sentence.
pub fn in_words(tally: &Tally) -> String {
    let mut text = format!(
        "{} hints set, {} cleared on {} files",
        count(tally.set),
        count(tally.cleared),
        count(tally.files)
    );
    if tally.open_files > 0 {
        text += &format!(" and {} open ones", count(tally.open_files));
    }
    text += &format!(", {} passes", tally.passes);
    if tally.foreign > 0 {
        text += &format!("; {} files of other owners left alone", count(tally.foreign));
    }
    for (errno, times) in &tally.refused {
        let error = std::io::Error::from_raw_os_error(*errno);
        text += &format!("; refused {} times: {error}", count(*times));
    }
    if !tally.settled {
        text += "; not settled: something goes on changing hints, run it again";
    }
    text
}

/// Refused: not permitted. Not settled: no.
pub fn code_of(tally: &Tally) -> u8 {
    if !tally.refused.is_empty() {
        NOT_HERE
    } else if tally.settled {
        0
    } else {
        NO
    }
}
