//! Prints the tables of `docs/design/statistics.md`: the method and what it was
//! chosen from, tried on a made-up server. The first argument is the number of
//! runs per row (10,000 unless given).
//!
//! ```text
//! cargo run --release -p shelflife-trial --example method
//! ```

mod alternatives;
#[path = "../../tests/it/sim.rs"]
mod sim;

use std::process::ExitCode;

use alternatives::{INTERVALS, ORDERS, PLANNINGS};
use shelflife_trial::stats::{Pair, fit_pairs};
use sim::{BLOCKS, EFFECT, MORE, SCENARIOS, Scenario, measure, parallel, score, trial};

fn main() -> ExitCode {
    let runs = match std::env::args().nth(1).map(|runs| runs.parse()) {
        None => 10_000,
        Some(Ok(runs)) if runs > 0 => runs,
        Some(_) => {
            eprintln!("usage: method [RUNS]: runs per row, a positive whole number");
            return ExitCode::from(2);
        }
    };
    let few: Vec<&Scenario> = [0, 2, 3, 4, 5].map(|index| &SCENARIOS[index]).to_vec();

    println!("### The method ({runs} runs a row, {BLOCKS} blocks, true effect 3 %)\n");
    println!("| rounds | coverage | half width | A/A alarms | blocks proposed | power | trend |");
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    for scenario in SCENARIOS.iter().chain(&MORE) {
        let score = score(scenario, runs);
        println!(
            "| {} | {} | ±{:.2} % | {} | {} | {} | {} |",
            scenario.name,
            share(score.coverage),
            score.half_width,
            share(score.alarms),
            score.proposed,
            share(score.power),
            share(score.drift),
        );
    }

    println!("\n### Coverage by number of blocks\n");
    println!("| rounds | 3 | 4 | 5 | 6 | 8 | 12 | 16 | 32 |");
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    for scenario in &few {
        let cells = [3, 4, 5, 6, 8, 12, 16, 32].map(|blocks| {
            let held = covered(runs, |seed| {
                let orders = alternatives::by_plan(scenario.arms, blocks, seed);
                alternatives::regression(&measure(scenario, &orders, EFFECT.ln_1p(), seed))
            });
            share(held.0)
        });
        println!("| {} | {} |", scenario.name, cells.join(" | "));
    }

    println!("\n### Other intervals from the same rounds: coverage and half width\n");
    heading(&few);
    for (name, interval) in INTERVALS {
        row(&few, name, runs, |scenario, seed| {
            let orders = alternatives::by_plan(scenario.arms, BLOCKS, seed);
            interval(&measure(scenario, &orders, EFFECT.ln_1p(), seed))
        });
    }

    println!("\n### Other orders, the same interval: coverage and half width\n");
    heading(&few);
    for (name, orders) in ORDERS {
        row(&few, name, runs, |scenario, seed| {
            let orders = orders(scenario.arms, BLOCKS, seed);
            alternatives::regression(&measure(scenario, &orders, EFFECT.ln_1p(), seed))
        });
    }

    println!("\n### Other ways to propose a number of blocks: median, power\n");
    heading(&few);
    for (name, blocks) in PLANNINGS {
        let cells: Vec<String> = few
            .iter()
            .map(|scenario| {
                let mut all = parallel(runs, |run| {
                    let seed = 3 * run as u64;
                    let pilot = measure_pairs(scenario, BLOCKS, seed);
                    let proposed = blocks(&fit_pairs(&pilot).expect("no round is missing"));
                    let real = trial(scenario, proposed, EFFECT.ln_1p(), seed + 2);
                    let found = &real.comparisons[0];
                    let found = found.verdict == shelflife_trial::stats::Verdict::Difference
                        && found.estimate.is_some_and(|estimate| estimate.percent > 0.0);
                    (proposed, found)
                });
                all.sort_unstable();
                let found = all.iter().filter(|run| run.1).count() as f64 / runs as f64;
                format!("{}, {}", all[runs / 2].0, share(found))
            })
            .collect();
        println!("| {name} | {} |", cells.join(" | "));
    }
    ExitCode::SUCCESS
}

fn measure_pairs(scenario: &Scenario, blocks: usize, seed: u64) -> Vec<Pair> {
    let orders = alternatives::by_plan(scenario.arms, blocks, seed);
    alternatives::pairs(&measure(scenario, &orders, EFFECT.ln_1p(), seed))
}

fn heading(scenarios: &[&Scenario]) {
    let names: Vec<&str> = scenarios.iter().map(|scenario| scenario.name).collect();
    println!("| | {} |", names.join(" | "));
    println!("|{}", " --- |".repeat(names.len() + 1));
}

fn row(
    scenarios: &[&Scenario],
    name: &str,
    runs: usize,
    interval: impl Fn(&Scenario, u64) -> (f64, f64) + Sync,
) {
    let cells: Vec<String> = scenarios
        .iter()
        .map(|scenario| {
            let (coverage, width) = covered(runs, |seed| interval(scenario, seed));
            format!("{} ±{:.2} %", share(coverage), 100.0 * width)
        })
        .collect();
    println!("| {name} | {} |", cells.join(" | "));
}

/// Share of intervals (of the log ratio) that hold the effect, and their mean half
/// width as a fraction of the metric.
fn covered(runs: usize, one: impl Fn(u64) -> (f64, f64) + Sync) -> (f64, f64) {
    let all = parallel(runs, |run| one(3 * run as u64));
    let effect = EFFECT.ln_1p();
    let held = all.iter().filter(|(low, high)| *low <= effect && effect <= *high);
    let width = all.iter().map(|(low, high)| (high.exp_m1() - low.exp_m1()) / 2.0).sum::<f64>();
    (held.count() as f64 / runs as f64, width / runs as f64)
}

fn share(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}
