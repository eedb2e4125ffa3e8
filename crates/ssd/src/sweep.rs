//! Many simulations at once.
//!
//! Invariant: results are ordered as the jobs are; the number of threads changes nothing but the
//! time.

use rayon::prelude::*;

/// Runs `job(i)` for i below `jobs` on all of rayon's threads, and tells `done` of each that ends.
///
/// Memory is that of one job per thread: jobs should make their simulator, not hold it.
pub fn sweep<T: Send>(
    jobs: usize,
    job: impl Fn(usize) -> T + Sync,
    done: impl Fn(usize) + Sync,
) -> Vec<T> {
    let one = |i: usize| {
        let result = job(i);
        done(i);
        result
    };
    // One job per steal: they differ in length, and are long.
    (0..jobs).into_par_iter().with_max_len(1).map(one).collect()
}
