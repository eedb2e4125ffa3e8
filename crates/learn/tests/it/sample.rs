//! A sample has the quantiles of the whole, within the error that it states.

use rand::{RngExt, SeedableRng};
use shelflife_layout::Class;
use shelflife_learn::{LifetimeOptions, Row};
use shelflife_trace::{Event, Op};

use crate::support::{PAGE, found, row, trace, write};

/// A log, pages of two rates, and files that are written once and discarded.
fn events() -> Vec<Event> {
    let mut rng = rand_pcg::Pcg64Mcg::seed_from_u64(11);
    let (mut events, mut log, mut temp) = (Vec::new(), 0, 0);
    for _ in 0..40_000 {
        events.push(Event { length: 8 * PAGE, ..write(log, 1) });
        log = (log + 8) % 30_000;
        for _ in 0..6 {
            let hot = rng.random_range(0..4) > 0;
            let page = if hot { rng.random_range(0..30_000) } else { rng.random_range(0..90_000) };
            events.push(write(100_000 + page, 2));
        }
        if rng.random_range(0..20) == 0 {
            let spill = Event { length: 64 * PAGE, ..write(300_000 + temp, 3) };
            events.push(spill);
            let old = 300_000 + (temp + 64 * rng.random_range(1..40)) % 6_400;
            events.push(Event { op: Op::Discard, ..Event { length: 64 * PAGE, ..write(old, 3) } });
            temp = (temp + 64) % 6_400;
        }
    }
    events
}

/// The share of a row's data that is dead after so many bytes.
fn dead_after(row: &Row, bytes: u64) -> f64 {
    let curve = &row.host_bytes.curve;
    1.0 - curve.iter().take_while(|point| point.at <= bytes).last().map_or(1.0, |point| point.alive)
}

#[test]
fn quantiles_of_a_sample_are_within_its_error() {
    let folder = tempfile::tempdir().unwrap();
    let classes = [Class::Wal, Class::Relation, Class::Temp];
    let trace = trace(folder.path(), &classes, &events());
    let exact = found(&trace, LifetimeOptions::default());
    for one_in in [16, 64] {
        let sample = found(&trace, LifetimeOptions { one_in, ..LifetimeOptions::default() });
        for sampled in &sample.rows {
            let exact = row(&exact, &sampled.name);
            let error = sampled.rank_error.unwrap();
            let pages = sampled.followed as f64;
            assert!(error < 0.25 && error > 1.0 / pages.sqrt(), "{error} of {pages}");
            assert_eq!((sampled.bytes, sampled.page_writes), (exact.bytes, exact.page_writes));
            let spread = &sampled.host_bytes;
            for (dead, at) in [(0.1, spread.p10), (0.5, spread.median), (0.9, spread.p90)] {
                let at = at.unwrap();
                // a death in steps, such as a log's, is any share at its step
                let (before, after) =
                    (dead_after(exact, at - at / 100), dead_after(exact, at + at / 100));
                assert!(
                    before - error <= dead && dead <= after + error,
                    "{} 1/{one_in}: {dead} at {at}: {before} to {after} ± {error}",
                    sampled.name
                );
            }
            let alive = sampled.share_alive - exact.share_alive;
            assert!(alive.abs() <= error, "{}: {alive} ± {error}", sampled.name);
        }
    }
}

#[test]
fn all_of_it_is_a_sample_of_one_in_one() {
    let folder = tempfile::tempdir().unwrap();
    let trace = trace(folder.path(), &[Class::Wal], &[write(0, 1), write(0, 1)]);
    let found = found(&trace, LifetimeOptions::default());
    assert_eq!((found.total.rank_error, found.total.followed), (None, 2));
}
