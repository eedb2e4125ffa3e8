//! A trial from beginning to end, broken off and resumed.

use std::process::{Child, Command, Stdio};

use shelflife_trial::record::{FILE, Record, What};
use shelflife_trial::{Error, Phase, Results, resume, run};

use super::{Bed, deaf, eventually, processes_below, spec, stop_at, tiny};

/// A load that spills: the sort outgrows a work_mem of 64 kB.
const SPILL: &str = "SELECT aid FROM pgbench_accounts ORDER BY filler, aid DESC OFFSET 99999;\n\
                     UPDATE pgbench_tellers SET tbalance = tbalance + 1 WHERE tid = 1;\n";

#[test]
fn a_trial_with_a_policy_from_the_empty_folder_to_the_answer() {
    let Some(bed) = Bed::new("a_trial_with_a_policy_from_the_empty_folder_to_the_answer") else {
        return;
    };
    let script = bed.folder.path().join("spill.sql");
    std::fs::write(&script, SPILL).unwrap();
    let mut wishes = tiny(&["off", "wal-first"]);
    wishes.scripts = vec![script.to_str().unwrap().to_owned()];
    wishes.settings = vec![("work_mem".into(), "64kB".into())];
    let mut ear = deaf();
    let outcome = run(&spec(&wishes), &bed.options(), &mut ear).unwrap();
    bed.assert_left(&[FILE]);
    assert!(outcome.complete && outcome.measured == 4, "{outcome:?}");
    assert!(
        outcome.answer.starts_with("quick look, no verdict: against off, wal-first is between")
    );
    assert_eq!(ear.rounds.len(), 4);
    for round in &ear.rounds {
        let measured = round.measured.as_ref().unwrap();
        assert!(measured.hints.checked_before > 0 && measured.hints.checked_under_load > 0);
        assert!(measured.load.temp_bytes.unwrap() > 0 && measured.load.wal_bytes.unwrap() > 0);
        assert_eq!(measured.latency.unwrap().count, measured.pgbench.transactions);
        assert!(measured.whole.checkpoints() > measured.load.checkpoints());
        let hinted = |o: &shelflife_trial::record::Opened| {
            o.class == "temp" && o.lifetime.as_deref() == Some("short") && o.opens > 0
        };
        assert_eq!(measured.opened.iter().any(hinted), round.label == "wal-first");
    }
    let results = Results::read(&bed.dir()).unwrap();
    let setting = |name: &str| {
        let found = results.header.server.settings.iter().find(|s| s.name == name);
        found.map(|s| s.value.clone()).unwrap()
    };
    assert_eq!(setting("data_checksums"), "on");
    assert_eq!(setting("work_mem"), "64kB");
    assert_eq!(setting("max_wal_size"), "1GB");
    assert_eq!(results.outcome().unwrap(), outcome);
    assert!(matches!(
        run(&spec(&wishes), &bed.options(), &mut ear),
        Err(Error::NotEmpty { resumable: true, .. })
    ));
    assert!(matches!(resume(&bed.options(), &mut ear), Err(Error::Complete { .. })));
}

#[test]
fn an_a_a_trial_at_a_rate_compares_latencies_of_equal_arms() {
    let Some(bed) = Bed::new("an_a_a_trial_at_a_rate_compares_latencies_of_equal_arms") else {
        return;
    };
    let mut wishes = tiny(&["off", "off"]);
    wishes.rate = Some(50.0);
    let outcome = run(&spec(&wishes), &bed.options(), &mut deaf()).unwrap();
    bed.assert_left(&[FILE]);
    let analysis = outcome.analysis.unwrap();
    assert!(analysis.comparisons[0].same_policy);
    let labels: Vec<&str> = outcome.arms.iter().map(|arm| arm.label.as_str()).collect();
    assert_eq!(labels, ["off#1", "off#2"]);
    assert!(outcome.arms[0].tps.unwrap() < 200.0);
    assert!(outcome.notes.iter().any(|note| note.starts_with("no temporary file")));
}

/// That Ctrl-C in `phase` of the round `round` ends the trial and leaves only these files.
fn ctrl_c(bed: &Bed, phase: Phase, round: usize, left: &[&str]) {
    let options = bed.options();
    let mut ear = stop_at(&bed.stop, phase, round);
    let ended = run(&spec(&tiny(&["off", "temp-vs-rest"])), &options, &mut ear);
    assert!(ended.as_ref().is_err_and(Error::is_interrupted), "{phase:?}: {ended:?}");
    bed.assert_left(left);
}

#[test]
fn ctrl_c_before_the_first_round_leaves_nothing() {
    let Some(bed) = Bed::new("ctrl_c_before_the_first_round_leaves_nothing") else { return };
    for phase in [Phase::Starting, Phase::Loading, Phase::Ageing, Phase::Probing] {
        ctrl_c(&bed, phase, 0, &[]);
    }
}

#[test]
fn ctrl_c_in_the_first_round_leaves_nothing() {
    let Some(bed) = Bed::new("ctrl_c_in_the_first_round_leaves_nothing") else { return };
    for phase in
        [Phase::Switching, Phase::Preparing, Phase::WarmingUp, Phase::Measuring, Phase::Ending]
    {
        ctrl_c(&bed, phase, 1, &[]);
    }
}

#[test]
fn ctrl_c_after_a_round_leaves_the_results() {
    let Some(bed) = Bed::new("ctrl_c_after_a_round_leaves_the_results") else { return };
    ctrl_c(&bed, Phase::Measuring, 2, &[FILE]);
    let answer = Results::read(&bed.dir()).unwrap().outcome().unwrap().answer;
    assert!(answer.starts_with("incomplete (1 of 4 rounds), no verdict"), "{answer}");
}

#[test]
fn a_kept_cluster_goes_on_where_it_was_interrupted() {
    let Some(bed) = Bed::new("a_kept_cluster_goes_on_where_it_was_interrupted") else { return };
    let mut options = bed.options();
    options.keep = true;
    let mut ear = stop_at(&bed.stop, Phase::Measuring, 4);
    let spec = spec(&tiny(&["off", "wal-first"]));
    assert!(run(&spec, &options, &mut ear).unwrap_err().is_interrupted());
    assert!(bed.dir().join("cluster/data/PG_VERSION").exists());
    assert_eq!(processes_below(&bed.dir()), [] as [u32; 0]);

    let outcome = resume(&bed.options(), &mut deaf()).unwrap();
    bed.assert_left(&[FILE]);
    assert!(outcome.complete && outcome.measured == 4);
    let resumed = What::Resumed { block: 1, dropped: 1, rebuilt: false };
    let records = Results::read(&bed.dir()).unwrap().records;
    assert!(records.iter().any(|r| matches!(r, Record::Event(e) if e.what == resumed)));
    assert!(outcome.notes[0].starts_with("block 2 was broken off"), "{:?}", outcome.notes);
}

/// A trial in a process of its own, which can be killed: this test program again.
fn in_a_child(bed: &Bed) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "server::course::child", "--ignored", "--nocapture"])
        .env("SHELFLIFE_HOOK", bed.hook.path())
        .env("TRIAL_DIR", bed.dir())
        // What it makes beside the trial goes with the test.
        .env("TMPDIR", bed.folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
#[ignore = "the child of the test that kills it"]
fn child() {
    let Some(dir) = std::env::var_os("TRIAL_DIR") else { return };
    let Some(bed) = Bed::new("child") else { return };
    let mut options = bed.options();
    options.dir = dir.into();
    run(&spec(&tiny(&["off", "wal-first"])), &options, &mut deaf()).unwrap();
}

#[test]
fn a_killed_trial_resumes_and_its_orphans_end() {
    let Some(bed) = Bed::new("a_killed_trial_resumes_and_its_orphans_end") else { return };
    let mut child = in_a_child(&bed);
    let rounds = || {
        Results::read(&bed.dir())
            .map(|r| r.records.iter().filter(|r| matches!(r, Record::Round(_))).count())
            .unwrap_or(0)
    };
    eventually("a round", || rounds() > 0);
    child.kill().unwrap();
    child.wait().unwrap();
    let before = rounds();
    assert!(before < 4 && !processes_below(&bed.dir()).is_empty());
    // kill -9 in the midst of a line
    let path = bed.dir().join(FILE);
    let mut text = std::fs::read(&path).unwrap();
    text.extend_from_slice(b"{\"record\":\"rou");
    std::fs::write(&path, text).unwrap();

    let outcome = resume(&bed.options(), &mut deaf()).unwrap();
    bed.assert_left(&[FILE]);
    assert!(outcome.complete && outcome.measured == 4, "{outcome:?}");
    assert_eq!(outcome.notes.iter().any(|n| n.contains("was broken off")), before % 2 == 1);
}

#[test]
fn who_declines_has_nothing_written() {
    let Some(bed) = Bed::new("who_declines_has_nothing_written") else { return };
    let mut ear = deaf();
    ear.agree = false;
    let error = run(&spec(&tiny(&["off", "off"])), &bed.options(), &mut ear).unwrap_err();
    assert!(matches!(error, Error::Declined { .. }), "{error}");
    bed.assert_left(&[]);
}
