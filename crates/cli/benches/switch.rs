//! How long `shelflife switch` takes at 50,000 files under a pgbench load: `make bench-switch`.
//!
//! The files are as many as a server of some thousand tables has; most are empty and no table's,
//! which is all the same to a sweep. What is timed is the whole command, from its start to its
//! end; each time it is asked of the kernel whether anything was left as it had been.

#[path = "../tests/it/held.rs"]
#[allow(dead_code, reason = "the tests need more of it")]
mod held;
#[path = "../tests/it/support.rs"]
#[allow(dead_code, reason = "the tests need more of it")]
mod support;

use std::fs;
use std::time::Instant;

use held::{EXTREME, files_below, held_in, hint};
use support::{Need, Place, initialise, load, said};

const FILES: usize = 50_000;
const ROUNDS: usize = 7;

/// Seconds of processor time of the children that have been waited for: what a machine with nothing
/// else to do would need.
fn cpu_of_children() -> f64 {
    // SAFETY: rusage is plain numbers, for which all zero is valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: getrusage writes one rusage through the pointer.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) };
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

fn main() {
    let Some(place) = Place::new("bench-switch", Need::Server) else { std::process::exit(3) };
    let cluster = place.cluster("c", |options| {
        options.set("checkpoint_timeout", "30s").set("max_wal_size", "1GB");
    });
    place.start(&cluster, &["--policy", "temp-vs-rest"]);
    initialise(&place, &cluster);
    let data = cluster.data().path();
    let there = files_below(data).len();
    let files: Vec<_> =
        (there..FILES).map(|n| data.join(format!("base/5/{}", 10_000_000 + n))).collect();
    for file in &files {
        fs::write(file, "").unwrap();
        place.give(file);
    }
    let _load = load(&place, &cluster, &["-c", "4", "-j", "1"]);
    let mut seconds = Vec::new();
    println!(" files  to   seconds  cpu s  passes  hints changed  left");
    for round in 0..ROUNDS {
        for to in ["on", "off"] {
            let (begun, before) = (Instant::now(), cpu_of_children());
            let told = said(&mut place.as_user(["switch", to, "--json"]));
            let (took, cpu) = (begun.elapsed().as_secs_f64(), cpu_of_children() - before);
            told.expect(0);
            let tally = &told.json()["switched"]["swept"][0]["tally"];
            let changed = tally["set"].as_u64().unwrap() + tally["cleared"].as_u64().unwrap();
            let hinted = files_below(data).iter().filter(|(_, hint)| *hint != 0).count()
                + held_in(data).iter().filter(|file| file.hint != 0).count();
            let left = if to == "off" { hinted } else { 0 };
            let (files, passes) = (&tally["files"], &tally["passes"]);
            println!(
                "{files:>6}  {to:<3}  {took:>7.3}  {cpu:>5.3}  {passes:>6}  {changed:>13}  {left:>4}"
            );
            if to == "off" {
                seconds.push(took);
            } else if round == 0 {
                assert!(files_below(data).iter().any(|(_, hint)| *hint == EXTREME));
            }
        }
    }
    assert_eq!(hint(&data.join("global/pg_control")).unwrap(), 0);
    seconds.sort_by(f64::total_cmp);
    println!(
        "switch off at {FILES} files under pgbench: median {:.3} s, longest {:.3} s of {ROUNDS}",
        seconds[ROUNDS / 2],
        seconds[ROUNDS - 1]
    );
}
