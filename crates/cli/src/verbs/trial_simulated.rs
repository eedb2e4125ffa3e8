//! The simulated part of a trial's answer.

use std::sync::atomic::{AtomicBool, Ordering};

use indicatif::ProgressBar;
use shelflife_report::{Table, figure};
use shelflife_trial::{Results, Simulated, Waf, simulated};

use crate::verbs::simulate::memory;

/// Simulates the recorded rounds; a line for the notes if that cannot be done.
pub fn of(results: &Results, stop: &AtomicBool) -> (Option<Simulated>, Option<String>) {
    if !results.header.recorded {
        return (None, None);
    }
    // Hidden by itself where standard error is no terminal.
    let bar = ProgressBar::new_spinner().with_message("simulating the recorded rounds");
    let found = simulated(results, memory(), &mut || {
        bar.tick();
        !stop.load(Ordering::Relaxed)
    });
    bar.finish_and_clear();
    match found {
        Ok(found) => (found, None),
        Err(error) if error.is_interrupted() => {
            (None, Some("not simulated: broken off".to_owned()))
        }
        Err(error) => (None, Some(format!("not simulated: {:#}", anyhow::Error::from(error)))),
    }
}

/// Write amplification by arm, headed *simulated*.
pub fn in_words(simulated: &Simulated) -> String {
    let mut heads = vec!["WAF".to_owned()];
    for percent in &simulated.full_percent {
        heads.push(format!("{} % full", figure(*percent)));
        heads.push("in its own rounds".to_owned());
    }
    let mut table = Table::new(heads.clone()).right(1..heads.len());
    let percent = |share: f64| format!("{:.1}", share * 100.0);
    let shown = |waf: Option<&Waf>| match waf {
        None => "-".to_owned(),
        Some(Waf { waf, saved }) if saved.least == 0.0 && saved.most == 0.0 => {
            format!("{:.3}", waf.mean)
        }
        Some(Waf { waf, saved }) if simulated.blocks > 1 => format!(
            "{:.3}  {} % ({} … {})",
            waf.mean,
            percent(saved.mean),
            percent(saved.least),
            percent(saved.most)
        ),
        Some(Waf { waf, saved }) => format!("{:.3}  {} %", waf.mean, percent(saved.mean)),
    };
    for arm in &simulated.arms {
        let mut row = vec![arm.label.clone()];
        for at in 0..simulated.full_percent.len() {
            row.push(shown(arm.predicted.get(at)));
            row.push(shown(arm.recorded.get(at)));
        }
        table.row(row);
    }
    format!(
        "simulated: write amplification of what was recorded without hints, under each policy, and of each \
         arm's own\nrounds with the hints that they had; what is saved against the same rounds without hints, \
         with the least and the\nmost of {} blocks; drive {}, scaled, as full as the columns say\n{table}\n",
        simulated.blocks, simulated.drive
    )
}
