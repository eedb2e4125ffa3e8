//! Progress: on standard error, and on a terminal only; of sweeps and of traces after two seconds.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use shelflife_report::count;
use shelflife_sweep::Tally;
use signal_hook::consts::{SIGINT, SIGTERM};

const QUIET: Duration = Duration::from_secs(2);

/// A bar of thousandths, hidden by itself where standard error is no terminal.
pub fn share_bar() -> ProgressBar {
    // the template is a constant that is right
    let style = ProgressStyle::with_template("{bar:24} {msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(1000).with_style(style)
}

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

/// A line that says how many events were read so far, and whether Ctrl-C came.
pub struct EventProgress {
    begun: Instant,
    bar: Option<ProgressBar>,
    what: &'static str,
    /// How many there will be, if that is known.
    total: Option<u64>,
    stop: Arc<AtomicBool>,
}

impl EventProgress {
    /// Nothing is shown yet. From here on SIGINT and SIGTERM end the work, not the process.
    pub fn new(what: &'static str, total: Option<u64>) -> std::io::Result<EventProgress> {
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&stop))?;
        }
        Ok(EventProgress { begun: Instant::now(), bar: None, what, total, stop })
    }

    /// Called now and then; whether to go on.
    pub fn show(&mut self, events: u64) -> bool {
        if self.begun.elapsed() >= QUIET {
            let bar = self.bar.get_or_insert_with(|| match self.total {
                Some(total) => ProgressBar::new(total).with_style(style()),
                None => ProgressBar::no_length(),
            });
            bar.set_position(events);
            bar.set_message(format!("{} {}", count(events), self.what));
        }
        !self.stop.load(Ordering::Relaxed)
    }
}

fn style() -> ProgressStyle {
    // the template is a constant that is right
    ProgressStyle::with_template("{bar:30} {msg}, {eta} left")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
}

impl Drop for EventProgress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
