//! Traces whose lifetimes are known.

use rand::{RngExt, SeedableRng};
use shelflife_layout::Class;
use shelflife_learn::{By, LifetimeOptions};
use shelflife_trace::{Event, FileEntry, FileId, Op, ProcessId};

use crate::support::{PAGE, found, near, row, trace, trace_of, write};

const FILES: [Class; 2] = [Class::Wal, Class::Relation];

/// Half of the writes go round in `log` pages, the others hit `random` pages at random.
fn mixed(events: u64, log: u64, random: u64) -> Vec<Event> {
    let mut rng = rand_pcg::Pcg64Mcg::seed_from_u64(3);
    let one = |n: u64| match n % 2 {
        0 => write(n / 2 % log, 1),
        _ => write(log + rng.random_range(0..random), 2),
    };
    let events = (0..events).map(one).enumerate();
    events.map(|(n, event)| Event { time: n as u64 * 1_000_000, ..event }).collect()
}

#[test]
fn quantiles_are_within_a_percent() {
    let folder = tempfile::tempdir().unwrap();
    let events = mixed(1_200_000, 5_000, 20_000);
    let found = found(&trace(folder.path(), &FILES, &events), LifetimeOptions::default());
    let log = row(&found, "wal");
    let round = (2 * 5_000 * PAGE) as f64;
    for quantile in [log.host_bytes.p10, log.host_bytes.median, log.host_bytes.p90] {
        assert!(near(quantile, round, 0.01), "{log:?}");
    }
    assert!(near(log.time_ns.median, 10_000e6, 0.01), "{log:?}");
    assert_eq!((log.died, log.alive, log.followed), (595_000, 5_000, 600_000));
    // deaths at random: a share p is dead after −ln(1 − p) rounds
    let random = row(&found, "relation");
    let round = (2 * 20_000 * PAGE) as f64;
    for (dead, quantile) in [
        (0.1_f64, random.host_bytes.p10),
        (0.5, random.host_bytes.median),
        (0.9, random.host_bytes.p90),
    ] {
        assert!(near(quantile, -(1.0 - dead).ln() * round, 0.01), "{dead} {random:?}");
    }
    assert_eq!(found.total.followed, 1_200_000);
    assert_eq!(found.total.bytes, 1_200_000 * PAGE);
}

/// A trace so short that most of what would die late has not died yet: taking only the dead, the
/// median would be a third too short; taking the living for dead, as well.
#[test]
fn what_is_alive_at_the_end_is_censored() {
    let folder = tempfile::tempdir().unwrap();
    let mut rng = rand_pcg::Pcg64Mcg::seed_from_u64(5);
    let events: Vec<Event> = (0..600_000).map(|_| write(rng.random_range(0..400_000), 2)).collect();
    let found = found(&trace(folder.path(), &FILES, &events), LifetimeOptions::default());
    let row = row(&found, "relation");
    assert!(row.share_alive > 0.45, "{row:?}");
    assert!(near(row.host_bytes.median, std::f64::consts::LN_2 * (400_000 * PAGE) as f64, 0.01));
    assert_eq!(row.host_bytes.p90, None);
    assert!(near(Some(row.host_bytes.longest), (600_000 * PAGE) as f64, 0.01));
}

#[test]
fn discards_end_lives_and_their_edges_do_not() {
    let folder = tempfile::tempdir().unwrap();
    let discard = Event { op: Op::Discard, offset: 1, length: 2 * PAGE, ..Event::default() };
    let whole = Event { op: Op::WriteZeroes, offset: 0, length: 1 << 60, ..Event::default() };
    let elsewhere = Event { device: 1, ..whole };
    let events = [write(0, 1), write(1, 1), write(2, 1), discard, elsewhere, write(9, 2), whole];
    let found = found(&trace(folder.path(), &FILES, &events), LifetimeOptions::default());
    assert_eq!((found.total.died, found.total.alive), (4, 0));
    let log = row(&found, "wal");
    // pages 0 and 2 at the end, page 1 by the first discard
    assert_eq!(log.host_bytes.longest, 4 * PAGE + 64);
    assert_eq!(log.host_bytes.p10, Some(2 * PAGE + 32));
}

#[test]
fn each_device_has_its_own_clock() {
    let folder = tempfile::tempdir().unwrap();
    let other = |page| Event { device: 1, ..write(page, 2) };
    let events = [write(0, 1), other(0), other(1), other(2), write(0, 1)];
    let found = found(&trace(folder.path(), &FILES, &events), LifetimeOptions::default());
    assert_eq!(row(&found, "wal").host_bytes.median, Some(PAGE + 16));
}

#[test]
fn relations_files_and_processes_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let mut heap = FileEntry::new(Class::Relation.into()).at("base/5/7");
    (heap.relation, heap.database) = (Some("public.hot".into()), Some("app".into()));
    let index = heap.clone().at("base/5/8");
    let files = [heap, index, FileEntry::new(Class::Wal.into())];
    let by_process =
        |page, file, process| Event { process: ProcessId(process), ..write(page, file) };
    let events =
        [by_process(0, 1, 1), by_process(1, 2, 1), by_process(2, 3, 2), by_process(3, 0, 0)];
    let trace = trace_of(folder.path(), files, &events, |_| ());
    let names = |by| {
        let found = found(&trace, LifetimeOptions { by, ..LifetimeOptions::default() });
        let row = |row: &shelflife_learn::Row| format!("{} {}", row.name, row.page_writes);
        let mut names: Vec<String> = found.rows.iter().map(row).collect();
        names.sort();
        names
    };
    assert_eq!(names(By::Class), ["relation 2", "unknown 1", "wal 1"]);
    assert_eq!(names(By::Relation), ["(unknown) 1", "(wal) 1", "app/public.hot 2"]);
    assert_eq!(
        names(By::File),
        ["base/5/7 1", "base/5/8 1", "file 0 (unknown) 1", "file 3 (wal) 1"]
    );
    assert_eq!(names(By::Process), ["kworker 1", "postgres 2", "unknown 1"]);
}

#[test]
fn on_copy_on_write_an_address_lives_and_lost_events_are_said() {
    let folder = tempfile::tempdir().unwrap();
    let event = Event { file: FileId(1), ..write(0, 1) };
    let files = [FileEntry::new(Class::Wal.into())];
    let trace = trace_of(folder.path(), files, &[event], |meta| {
        meta.file_system = Some("btrfs".into());
        meta.counts.lost = 7;
    });
    let found = found(&trace, LifetimeOptions::default());
    assert_eq!(found.unit, "address");
    assert!(found.notes.iter().any(|note| note.contains("lifetimes of addresses")));
}
