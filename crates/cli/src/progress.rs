//! Progress of sweeps: on standard error, on a terminal, and only after two seconds.

use std::path::Path;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use shelflife_sweep::Tally;

const QUIET: Duration = Duration::from_secs(2);

/// A line that says how far a sweep is.
pub struct SweepProgress {
    begun: Instant,
    bar: Option<ProgressBar>,
    /// Files of the first pass: what a later one has ahead of it.
    total: u64,
}

impl SweepProgress {
    /// Nothing is shown yet.
    pub fn new() -> SweepProgress {
        SweepProgress { begun: Instant::now(), bar: None, total: 0 }
    }

    /// Called by the sweep now and then.
    pub fn show(&mut self, folder: &Path, tally: &Tally) {
        self.total = self.total.max(tally.files);
        if self.begun.elapsed() < QUIET {
            return;
        }
        // hidden by itself where standard error is no terminal
        let bar = self.bar.get_or_insert_with(ProgressBar::no_length);
        let ahead = if tally.passes > 1 { format!(" of {}", self.total) } else { String::new() };
        bar.set_message(format!(
            "{}: pass {}, {}{ahead} files, {} hints changed",
            folder.display(),
            tally.passes,
            tally.files,
            tally.set + tally.cleared
        ));
        bar.tick();
    }
}

impl Drop for SweepProgress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
