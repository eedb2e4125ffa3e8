//! A made-up server with the faults of a real one, on which the method is tried.
//!
//! Shared by the method test (`method.rs`) and the example that prints the
//! tables of `docs/design/statistics.md`. Every run has its own seed, so results
//! do not depend on the number of threads.

use std::thread;

use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal, StudentT};
use rand_pcg::Pcg64;
use shelflife_trial::stats::{Analysis, Data, Metric, Plan, Round, Verdict, analyse};

/// The effect that is to be found: 3 %.
pub const EFFECT: f64 = 0.03;

/// Blocks of the pilot and of the coverage runs.
pub const BLOCKS: usize = 8;

/// What disturbs the rounds of a made-up server. Logarithms throughout.
#[derive(Clone, Copy)]
pub struct Scenario {
    /// Name in the tables.
    pub name: &'static str,
    /// Arms; the second has the effect, the others none.
    pub arms: usize,
    /// Standard deviation of a round.
    pub sd: f64,
    /// Autocorrelation between neighbouring rounds: AR(1), stationary.
    pub rho: f64,
    /// Innovations from Student's t with 3 degrees of freedom.
    pub heavy: bool,
    /// Linear drift per round.
    pub drift: f64,
    /// Loss of the first round of a block; the second loses a third of it.
    pub first: f64,
    /// Loss of the first round of the run; decays by 1/e in three rounds.
    pub warm_up: f64,
    /// Share of a policy's effect that the following round still has.
    pub carry: f64,
    /// Chance that a round fails and is missing.
    pub missing: f64,
}

const QUIET: Scenario = Scenario {
    name: "independent normal rounds",
    arms: 2,
    sd: 0.03,
    rho: 0.0,
    heavy: false,
    drift: 0.0,
    first: 0.0,
    warm_up: 0.0,
    carry: 0.0,
    missing: 0.0,
};

const ALL: Scenario = Scenario {
    name: "all of these, SD 3 %",
    rho: 0.6,
    heavy: true,
    drift: -0.006,
    first: 0.03,
    warm_up: 0.06,
    ..QUIET
};

/// The faults alone and together; the method test asserts its bounds for these.
pub const SCENARIOS: [Scenario; 8] = [
    QUIET,
    Scenario { name: "drift −0.6 % a round", drift: -0.006, ..QUIET },
    Scenario { name: "AR(1), ρ = 0.6", rho: 0.6, ..QUIET },
    Scenario {
        name: "order: first in block −3 %, warm-up −6 %",
        first: 0.03,
        warm_up: 0.06,
        ..QUIET
    },
    Scenario { name: "t3 tails", heavy: true, ..QUIET },
    ALL,
    Scenario { name: "all of these, SD 5 %", sd: 0.05, ..ALL },
    Scenario { name: "all of these, three arms", arms: 3, ..ALL },
];

/// More of the same, and what no analysis of one round per arm and block can
/// mend: a policy whose effect outlives its round. In the tables only.
#[cfg_attr(test, expect(dead_code, reason = "used by the example"))]
pub const MORE: [Scenario; 5] = [
    Scenario { name: "AR(1), ρ = 0.3", rho: 0.3, ..QUIET },
    Scenario { name: "AR(1), ρ = 0.9", rho: 0.9, ..QUIET },
    Scenario { name: "all of these, SD 2 %", sd: 0.02, ..ALL },
    Scenario { name: "all of these, 5 % of rounds missing", missing: 0.05, ..ALL },
    Scenario { name: "a fifth of the effect outlives the round", carry: 0.2, ..QUIET },
];

/// Rounds of one trial in the given orders.
pub fn measure(scenario: &Scenario, orders: &[Vec<usize>], effect: f64, seed: u64) -> Data {
    let mut random = Pcg64::seed_from_u64(seed);
    let tails = StudentT::new(3.0).unwrap();
    let mut innovation = || -> f64 {
        if scenario.heavy {
            // Variance of Student's t with 3 degrees of freedom: 3.
            tails.sample(&mut random) / 3_f64.sqrt()
        } else {
            StandardNormal.sample(&mut random)
        }
    };
    let of_arm = |arm: usize| if arm == 1 { effect } else { 0.0 };
    let fresh = (1.0 - scenario.rho * scenario.rho).sqrt();
    // A long run-in instead of a formula: t innovations make no t marginal.
    let mut state = 0.0;
    for _ in 0..60 {
        state = scenario.rho * state + fresh * innovation();
    }

    let mut position = 0_u32;
    let mut before = 0;
    let mut blocks = vec![vec![None; scenario.arms]; orders.len()];
    for (rounds, order) in blocks.iter_mut().zip(orders) {
        for (place, &arm) in order.iter().enumerate() {
            state = scenario.rho * state + fresh * innovation();
            let of_place = [scenario.first, scenario.first / 3.0];
            let log = scenario.sd * state + scenario.drift * f64::from(position)
                - of_place.get(place).unwrap_or(&0.0)
                - scenario.warm_up * (-f64::from(position) / 3.0).exp()
                + of_arm(arm)
                + scenario.carry * of_arm(before);
            rounds[arm] = Some(Round { position, value: 1000.0 * log.exp() });
            position += 1;
            before = arm;
        }
    }
    for round in blocks.iter_mut().flatten() {
        if random.random_bool(scenario.missing) {
            *round = None;
        }
    }
    Data {
        arms: (0..scenario.arms).map(|arm| format!("arm-{arm}")).collect(),
        blocks,
        metric: Metric::Throughput,
        reported: None,
        quick: false,
        seed: 1,
    }
}

/// One trial as the tool plans and judges it.
pub fn trial(scenario: &Scenario, blocks: usize, effect: f64, seed: u64) -> Analysis {
    let plan = Plan::new(scenario.arms, blocks, seed).unwrap();
    analyse(&measure(scenario, plan.orders(), effect, seed)).unwrap()
}

/// How the method did in one scenario; shares of all runs.
#[derive(Clone, Copy, Debug)]
pub struct Score {
    /// Intervals that held the true 3 %.
    pub coverage: f64,
    /// Mean half width of the interval, in percent.
    pub half_width: f64,
    /// Trials of equal arms with any verdict "difference".
    pub alarms: f64,
    /// Median number of blocks proposed by pilots.
    pub proposed: u64,
    /// Proposed trials that found the 3 %, in the right direction.
    pub power: f64,
    /// Trend intervals that held the change by linear drift alone.
    pub drift: f64,
}

/// Tries the method: coverage and alarms at eight blocks, power at as many as
/// these, taken as the pilot, propose.
pub fn score(scenario: &Scenario, runs: usize) -> Score {
    let effect = EFFECT.ln_1p();
    let all = parallel(runs, |run| {
        let seed = 3 * run as u64;
        let result = trial(scenario, BLOCKS, effect, seed);
        let interval = result.comparisons[0].estimate.unwrap().interval.unwrap();
        let covered =
            interval.low_percent <= 100.0 * EFFECT && 100.0 * EFFECT <= interval.high_percent;
        let half_width = (interval.high_percent - interval.low_percent) / 2.0;
        let last = (BLOCKS * scenario.arms - 1) as f64;
        let true_drift = 100.0 * (scenario.drift * last).exp_m1();
        let drift = result.drift.unwrap().interval_over_run;
        let drift = drift.low_percent <= true_drift && true_drift <= drift.high_percent;

        let same = trial(scenario, BLOCKS, 0.0, seed + 1);
        let alarm = same.comparisons.iter().any(|arm| arm.verdict == Verdict::Difference);

        let proposed = result.comparisons[0].power.unwrap().blocks_needed.unwrap();
        let real = &trial(scenario, proposed as usize, effect, seed + 2).comparisons[0];
        let found = real.verdict == Verdict::Difference && real.estimate.unwrap().percent > 0.0;
        (covered, half_width, alarm, proposed, found, drift)
    });
    let share = |count: usize| count as f64 / runs as f64;
    let mut proposed: Vec<u64> = all.iter().map(|run| run.3).collect();
    proposed.sort_unstable();
    Score {
        coverage: share(all.iter().filter(|run| run.0).count()),
        half_width: all.iter().map(|run| run.1).sum::<f64>() / runs as f64,
        alarms: share(all.iter().filter(|run| run.2).count()),
        proposed: proposed[runs / 2],
        power: share(all.iter().filter(|run| run.4).count()),
        drift: share(all.iter().filter(|run| run.5).count()),
    }
}

/// The results of `runs` runs in order, computed on all processors.
pub fn parallel<T: Send>(runs: usize, one: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(8);
    let chunk = runs.div_ceil(threads);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|thread| {
                let one = &one;
                let range = (thread * chunk).min(runs)..((thread + 1) * chunk).min(runs);
                scope.spawn(move || range.map(one).collect::<Vec<T>>())
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    })
}
