//! Simulations side by side.
//!
//! Invariant: results are in the order of the jobs, whatever the number of threads.

use std::sync::atomic::{AtomicUsize, Ordering};

use shelflife_ssd::{Config, Outcome, Placing, Plan, Window, simulate_placed, sweep};

use crate::Error;
use crate::passes::{Part, Passes};

/// How far it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LearnProgress {
    /// What is done now.
    pub stage: Stage,
    /// Events read, or simulations done.
    pub done: u64,
    /// Of so many, as far as that is known; of the search the most that it may take.
    pub of: u64,
}

/// What is done.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Stage {
    /// The trace is read, twice.
    Reading,
    /// Groupings are tried on a sample of the first part.
    Searching,
    /// The best are tried on all of the first part.
    Comparing,
    /// The best is judged on the second part, beside others.
    Judging,
}

/// What is kept of a simulation.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub waf: f64,
    /// Of a part that is judged, that of its end in each pass.
    pub passes: Vec<f64>,
    /// Units that were collected since counting began, by their share of valid pages, in twentieths from 0.
    pub victims: [u64; 20],
}

impl Found {
    fn new(outcome: Outcome, part: &Part<'_>) -> Found {
        let victims = outcome.victims_by_valid_ratio;
        if !part.is_judged() {
            return Found { waf: outcome.waf, passes: Vec::new(), victims };
        }
        let ends = part.counted(&outcome.windows);
        let pages = |of: fn(&Window) -> u64| ends.iter().map(of).sum::<u64>() as f64;
        let waf = pages(|end| end.flash_pages) / pages(|end| end.host_pages);
        let waf = if waf.is_finite() { waf } else { outcome.waf };
        Found { waf, passes: ends.iter().map(Window::waf).collect(), victims }
    }

    /// The ratio to `off` in each pass.
    pub fn ratios(&self, off: &Found) -> Vec<f64> {
        self.passes.iter().zip(&off.passes).map(|(own, off)| own / off).collect()
    }

    /// Two drives as one, of which this has `share` (0 to 1) of the host's writes.
    pub fn beside(&self, other: &Found, share: f64) -> Found {
        let both = |own: f64, other: f64| own * share + other * (1.0 - share);
        let passes = self.passes.iter().zip(&other.passes).map(|(own, other)| both(*own, *other));
        Found {
            waf: both(self.waf, other.waf),
            passes: passes.collect(),
            victims: std::array::from_fn(|bin| self.victims[bin] + other.victims[bin]),
        }
    }
}

/// One simulation.
pub(crate) fn one(
    config: &Config,
    plan: &Plan,
    part: &Part<'_>,
    mut workload: Passes<'_>,
    placing: Placing,
) -> Result<Found, Error> {
    Ok(Found::new(simulate_placed(config, plan, &mut workload, placing)?, part))
}

/// Runs jobs and tells of them.
pub(crate) struct Runner<'a> {
    pool: Option<rayon::ThreadPool>,
    progress: &'a (dyn Fn(LearnProgress) + Sync),
    done: AtomicUsize,
}

impl<'a> Runner<'a> {
    /// As many threads as memory allows, if a job takes `needs` bytes.
    pub fn new(
        needs: u64,
        memory_bytes: Option<u64>,
        progress: &'a (dyn Fn(LearnProgress) + Sync),
    ) -> Runner<'a> {
        let most = memory_bytes.map_or(u64::MAX, |bytes| bytes / needs.max(1)).max(1);
        let threads = rayon::current_num_threads().min(usize::try_from(most).unwrap_or(usize::MAX));
        // no more threads to be had: the caller's
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().ok();
        Runner { pool, progress, done: AtomicUsize::new(0) }
    }

    /// Runs all jobs of a stage that has `of` in all; the count goes on until [`Runner::stage`].
    pub fn run<T: Send>(
        &self,
        stage: Stage,
        of: usize,
        jobs: usize,
        job: impl Fn(usize) -> T + Sync + Send,
    ) -> Vec<T> {
        let ended = |_| {
            let done = self.done.fetch_add(1, Ordering::Relaxed) as u64 + 1;
            (self.progress)(LearnProgress { stage, done, of: (of as u64).max(done) });
        };
        match &self.pool {
            Some(pool) => pool.install(|| sweep(jobs, job, ended)),
            None => (0..jobs).map(|at| (job(at), ended(at)).0).collect(),
        }
    }

    /// Another stage begins.
    pub fn stage(&self) {
        self.done.store(0, Ordering::Relaxed);
    }
}
