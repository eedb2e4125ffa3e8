//! Trials whose rounds are recorded.

use shelflife_trace::Trace;
use shelflife_trial::record::{Record, What};
use shelflife_trial::{Error, Recording, Results, resume, run};

use super::{Bed, deaf, skip, spec, stop_at, tiny};
use shelflife_trial::Phase;

#[test]
fn root_bpf_every_round_has_a_trace_of_its_own() {
    const NAME: &str = "root_bpf_every_round_has_a_trace_of_its_own";
    let Some(bed) = Bed::new(NAME) else { return };
    let mut options = bed.options();
    options.keep = true;
    let traces = bed.folder.path().join("traces");
    options.record = Some(Recording { dir: traces.clone(), optional: false });
    let wishes = tiny(&["off", "wal-first"]);
    // Broken off in the second round, and resumed: its trace is there twice.
    let mut ear = stop_at(&bed.stop, Phase::Measuring, 2);
    match run(&spec(&wishes), &options, &mut ear) {
        Err(Error::Record(error)) if error.is_denied() => {
            skip::<()>(NAME, &error.to_string());
            return;
        }
        ended => assert!(ended.as_ref().is_err_and(Error::is_interrupted), "{ended:?}"),
    }
    bed.stop.store(false, std::sync::atomic::Ordering::Relaxed);
    let without = bed.options();
    let told = resume(&without, &mut deaf()).unwrap_err().to_string();
    assert!(
        told.contains("begun with recorded rounds, now there is rounds not recorded"),
        "{told}"
    );
    let mut ear = deaf();
    let outcome = resume(&options, &mut ear).unwrap();
    assert!(outcome.complete);
    for round in &ear.rounds {
        let recorded = round.measured.as_ref().unwrap().recorded.as_ref().unwrap();
        assert_eq!(recorded.lost, 0);
        // Others write to the same device, perhaps in ways that show no file.
        assert!(recorded.attributed.is_some_and(|share| share > 0.0 && share <= 1.0));
        let sum: u64 = recorded.blocks.iter().map(|volume| volume.bytes).sum();
        assert_eq!(sum, recorded.written_bytes);
        let wal = |hint: &str| {
            let of = recorded.blocks.iter().filter(|v| v.class == "wal" && v.hint == hint);
            of.map(|volume| volume.bytes).sum::<u64>()
        };
        // The hook's work, seen where the requests leave for the driver.
        let (seen, other) = match round.label.as_str() {
            "off" => (wal("not-set"), wal("short")),
            _ => (wal("short"), wal("not-set")),
        };
        assert!(seen > 0 && other == 0, "{}: {recorded:?}", round.label);
        let trace = Trace::open(&recorded.trace).unwrap();
        assert!(trace.meta().complete);
        let policy = (round.label != "off").then_some("wal-first");
        assert_eq!(trace.meta().policy.as_deref(), policy);
        let table = |name: &str| {
            trace.files().iter().any(|(_, file)| file.relation.as_deref() == Some(name))
        };
        assert!(table("public.pgbench_accounts"));
    }
    let names = std::fs::read_dir(&traces).unwrap().count();
    assert!(names > outcome.planned, "{names} traces");
    assert!(outcome.arms.iter().all(|arm| !arm.blocks.is_empty() && arm.transactions > 0));
    let results = Results::read(&bed.dir()).unwrap();
    assert!(results.header.recorded);
    assert_eq!(results.outcome().unwrap(), outcome);
}

#[test]
fn where_nothing_can_be_recorded_all_rounds_go_without_or_none_begins() {
    const NAME: &str = "where_nothing_can_be_recorded_all_rounds_go_without_or_none_begins";
    // A file system in memory has no device.
    let Some(bed) = Bed::within(NAME, "/dev/shm") else { return };
    let mut options = bed.options();
    let dir = bed.folder.path().join("traces");
    options.record = Some(Recording { dir: dir.clone(), optional: false });
    let told = run(&spec(&tiny(&["off", "wal-first"])), &options, &mut deaf()).unwrap_err();
    assert!(matches!(told, Error::Record(_)), "{told}");
    bed.assert_left(&[]);
    options.record = Some(Recording { dir: dir.clone(), optional: true });
    let outcome = run(&spec(&tiny(&["off", "wal-first"])), &options, &mut deaf()).unwrap();
    assert!(outcome.complete && outcome.arms.iter().all(|arm| arm.blocks.is_empty()));
    assert!(
        outcome.notes.iter().any(|note| note.starts_with("the rounds are not recorded: ")),
        "{:?}",
        outcome.notes
    );
    let results = Results::read(&bed.dir()).unwrap();
    assert!(!results.header.recorded && !dir.exists());
    let warned = |record: &Record| matches!(record, Record::Event(event) if matches!(event.what, What::Warning { .. }));
    assert!(results.records.iter().any(warned));
}
