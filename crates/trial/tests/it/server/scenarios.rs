//! Scenarios in small, each on a file system of the trial's own.

use shelflife_trial::filesystem::{Kind, Wanted};
use shelflife_trial::record::{FILE, Record, What};
use shelflife_trial::{Results, Wishes, run};

use super::{Bed, deaf, is_root, skip, spec, tiny};

/// Runs the scenario on a new file system, half full, and gives its results.
fn small(bed: &Bed, scenario: &str, kind: Kind) -> Results {
    let wishes = Wishes {
        scenario: Some(scenario.to_owned()),
        rounds: Some(1),
        // Relations below it are logged as pages even at the minimal level; here all are small.
        settings: vec![("wal_skip_threshold".into(), "0".into())],
        filesystem: Some(Wanted {
            kind,
            device: None,
            size: 3 << 30,
            fill: Some(0.2),
            dirty: Some(16 << 20),
            mount_options: "discard".to_owned(),
        }),
        ..tiny(&["off", "wal-first"])
    };
    let outcome = run(&spec(&wishes), &bed.options(), &mut deaf()).unwrap();
    assert!(outcome.complete && outcome.measured == 2, "{scenario}: {outcome:?}");
    let results = Results::read(&bed.dir()).unwrap();
    bed.assert_left(&[FILE]);
    std::fs::remove_dir_all(bed.dir()).unwrap();
    assert_eq!(results.header.machine.storage.file_system, kind.name());
    assert_eq!(results.header.spec.scenario.as_deref(), Some(scenario));
    let filled = results.records.iter().any(|record| {
        matches!(record, Record::Event(event) if matches!(event.what, What::Filled { bytes, .. } if bytes > 0))
    });
    assert!(filled, "{scenario}");
    results
}

/// WAL and temporary bytes of all rounds.
fn written(results: &Results) -> (u64, u64) {
    let rounds = results.records.iter().filter_map(|record| match record {
        Record::Round(round) => round.measured.as_ref(),
        _ => None,
    });
    rounds.fold((0, 0), |sum, measured| {
        let load = &measured.load;
        (sum.0 + load.wal_bytes.unwrap_or(0), sum.1 + load.temp_bytes.unwrap_or(0))
    })
}

fn bed(name: &str) -> Option<Bed> {
    if !is_root() {
        return skip(name, "only root can mount a file system");
    }
    if !std::path::Path::new("/dev/loop-control").exists() {
        return skip(name, "this kernel has no loop devices");
    }
    Bed::new(name)
}

#[test]
fn root_spill_and_queue_write_what_they_are_for_and_leave_nothing() {
    let name = "root_spill_and_queue_write_what_they_are_for_and_leave_nothing";
    let Some(bed) = bed(name) else { return };
    let (_, temp) = written(&small(&bed, "spill", Kind::Ext4));
    assert!(temp > 1 << 20, "{temp}");
    let (wal, temp) = written(&small(&bed, "queue", Kind::Ext4));
    assert!(wal > 0 && temp == 0, "{wal} {temp}");
}

#[test]
fn root_bulk_loads_write_less_wal_at_the_minimal_level() {
    let Some(bed) = bed("root_bulk_loads_write_less_wal_at_the_minimal_level") else { return };
    let share = |results: &Results| {
        let transactions: u64 = results
            .records
            .iter()
            .filter_map(|record| match record {
                Record::Round(round) => round.measured.as_ref(),
                _ => None,
            })
            .map(|measured| measured.pgbench.transactions)
            .sum();
        written(results).0 / transactions.max(1)
    };
    let minimal = share(&small(&bed, "bulk-load", Kind::Xfs));
    let replica = share(&small(&bed, "bulk-load:replica", Kind::Xfs));
    assert!(replica > minimal, "{replica} at replica, {minimal} at minimal: bytes a transaction");
}

#[test]
fn root_rewrite_drops_partitions_on_btrfs() {
    let Some(bed) = bed("root_rewrite_drops_partitions_on_btrfs") else { return };
    let (wal, _) = written(&small(&bed, "rewrite", Kind::Btrfs));
    assert!(wal > 0);
}
