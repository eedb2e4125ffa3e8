//! Any bytes as the results of a trial: reading and analysing them ends in an answer or an error.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use shelflife_trial::Results;

fuzz_target!(|data: &[u8]| {
    if let Ok(results) = Results::from_reader(data, Path::new("results")) {
        let _ = results.outcome().map(|outcome| outcome.answer);
    }
});
