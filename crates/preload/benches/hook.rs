//! What the hook adds to an `open`: `make bench-hook`.
//!
//! Alternating rounds of the same program: open+close, open+fcntl+close by hand, and open+close
//! under the hook. The bound is hooked / by hand, the median over rounds of ratios in one round,
//! so that a machine that changes its speed changes all three.

#[path = "../tests/it/support.rs"]
#[allow(dead_code, unused_imports, reason = "shared with the tests, which use all of it")]
mod support;

use std::fs;
use std::process::Command;

use support::{Bed, for_postgres, text};

const ROUNDS: usize = 41;
const OPENS: &str = "200000";
/// Hooked against the same call by hand.
const BOUND: f64 = 1.10;

fn main() {
    // `cargo test --benches` only wants to know that it runs.
    if std::env::args().any(|a| a == "--test") {
        return;
    }
    let bed = Bed::new(&for_postgres(), &[]);
    let program = bed.compile("bench", "postgres");
    let data = bed.folder("data");
    fs::create_dir_all(data.join("base/5")).expect("a folder");
    fs::write(data.join("PG_VERSION"), "15\n").expect("a file");
    for file in 16384..16400 {
        fs::write(data.join(format!("base/5/{file}")), "").expect("a file");
    }
    let time = |mut command: Command, mode: &str| -> f64 {
        let output = command.arg(&data).args([OPENS, mode]).output().expect("started");
        text(&output).trim().parse().expect("a number")
    };
    let (mut plain, mut by_hand, mut hooked, mut ratios) = (vec![], vec![], vec![], vec![]);
    for round in 0..ROUNDS {
        let mut three = [0.0; 3];
        for turn in 0..3 {
            let what = (round + turn) % 3;
            three[what] = match what {
                0 => time(Command::new(&program), "plain"),
                1 => time(Command::new(&program), "fcntl"),
                _ => time(bed.command(&program), "plain"),
            };
        }
        plain.push(three[0]);
        by_hand.push(three[1]);
        hooked.push(three[2]);
        ratios.push(three[2] / three[1]);
    }
    let ratio = median(&mut ratios);
    println!(
        "hooked / (open + fcntl + close) = {ratio:.3}, median of {ROUNDS} rounds (bound {BOUND})"
    );
    let (low, high) = (ratios[ROUNDS / 10], ratios[ROUNDS - 1 - ROUNDS / 10]);
    println!("  ratio, 10th to 90th percentile  {low:.3} to {high:.3}");
    println!("  open + close                    {:.0} ns", median(&mut plain));
    println!("  open + fcntl + close            {:.0} ns", median(&mut by_hand));
    println!("  open + close under the hook     {:.0} ns", median(&mut hooked));
    println!("  fastest rounds: {:.0}, {:.0}, {:.0} ns", plain[0], by_hand[0], hooked[0]);
    drop(bed); // exit runs no destructors, and the run's segments must go
    std::process::exit(i32::from(ratio > BOUND));
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
