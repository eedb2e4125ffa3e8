//! `run` becomes the command: exit status, signals, environment and output are the command's own.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};

use crate::held::{NOT_SET, files_below, held_in};
use crate::support::{Guard, Need, Place, eventually, said, session};

#[test]
fn the_exit_status_is_the_commands() {
    let Some(place) = Place::new("the_exit_status_is_the_commands", Need::Nothing) else { return };
    for code in [0, 1, 2, 3, 7, 255] {
        let told = said(&mut place.shelflife(["run", "--", "sh", "-c", &format!("exit {code}")]));
        told.expect(code);
        assert_eq!((&*told.out, &*told.err), ("", ""));
    }
    let told = said(&mut place.shelflife(["run", "--", "printf", "%s|", "--", "-x", "a b", ""]));
    assert_eq!(told.expect(0).out, "--|-x|a b||", "arguments are passed as they are");
}

#[test]
fn the_process_and_its_signals_are_the_commands() {
    let name = "the_process_and_its_signals_are_the_commands";
    let Some(place) = Place::new(name, Need::Nothing) else { return };
    let trap = "trap 'echo caught; exit 9' TERM; echo $$; while :; do sleep 0.05; done";
    let mut command = place.shelflife(["run", "--", "sh", "-c", trap]);
    let mut child = Guard(command.stdout(Stdio::piped()).spawn().unwrap());
    let mut out = std::io::BufReader::new(child.0.stdout.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut out, &mut line).unwrap();
    assert_eq!(line.trim(), child.0.id().to_string(), "the same process");
    let pid = Pid::from_raw(child.0.id() as i32).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut out, &mut rest).unwrap();
    assert_eq!((&*rest, child.0.wait().unwrap().code()), ("caught\n", Some(9)));

    let mut child = Guard::spawn(&mut place.shelflife(["run", "--", "sleep", "600"]));
    let pid = Pid::from_raw(child.0.id() as i32).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(child.0.wait().unwrap().signal(), Some(libc::SIGTERM));
}

#[test]
fn what_was_preloaded_and_set_before_is_kept() {
    let name = "what_was_preloaded_and_set_before_is_kept";
    let Some(place) = Place::new(name, Need::Nothing) else { return };
    let other = place.path("other.so");
    fs::copy(place.hook(), &other).unwrap();
    let mut command = place.shelflife(["run", "--name", "x", "--", "env"]);
    let told = said(command.env("LD_PRELOAD", &other).env("MINE", "a b"));
    let lines: Vec<&str> = told.expect(0).out.lines().collect();
    let preload = format!("LD_PRELOAD={}:{}", place.hook().display(), other.display());
    let run = format!("SHELFLIFE_RUN={}", place.state().join("x").display());
    for expected in [&*preload, &run, "MINE=a b"] {
        assert!(lines.contains(&expected), "{expected} {lines:#?}");
    }
}

#[test]
fn a_dry_run_counts_and_hints_nothing() {
    let name = "a_dry_run_counts_and_hints_nothing";
    let Some(place) = Place::new(name, Need::Server) else { return };
    let cluster = place.cluster("c", |_| ());
    place.start(&cluster, &["--dry-run", "--policy", "temp-vs-rest"]);
    let mut session = session(&cluster);
    session.batch("CREATE TABLE t AS SELECT 1 AS a").unwrap();
    session
        .batch(
            "SET work_mem = '64kB'; BEGIN; DECLARE c CURSOR FOR \
             SELECT random() AS r FROM generate_series(1, 20000) ORDER BY r; FETCH c; CHECKPOINT",
        )
        .unwrap();
    let check = |generation: u64| {
        let told = said(&mut place.as_user(["status", "--json"]));
        let status = &told.expect(0).json()[0];
        assert_eq!(status["dry_run"], true);
        assert_eq!(status["generation"], generation);
        let opens = status["opens"].as_array().unwrap();
        for (class, lifetime) in [("temp", "short"), ("wal", "extreme"), ("relation", "extreme")] {
            let row = opens.iter().find(|row| row["class"] == class).unwrap();
            assert_eq!(row["lifetime"], lifetime, "{row}");
            assert!(row["opens"].as_u64().unwrap() > 0);
        }
        assert!(held_in(cluster.data().path()).iter().all(|file| file.hint == NOT_SET));
        assert!(files_below(cluster.data().path()).iter().all(|(_, hint)| *hint == NOT_SET));
    };
    check(1);
    let text = said(&mut place.as_user(["status"])).out;
    assert!(text.starts_with("run 1: counting only (dry run), policy temp-vs-rest"), "{text}");
    // Another policy, off, on: it stays a dry run.
    for to in ["wal-first", "temp-vs-rest", "off", "on"] {
        let told = said(&mut place.as_user(["switch", to]));
        assert_eq!(told.expect(0).out.contains("files are left as they are"), to != "off");
    }
    session.batch("COMMIT").unwrap();
    session.batch("INSERT INTO t VALUES (1); CHECKPOINT").unwrap();
    check(5);
}

#[test]
fn the_lowest_free_number_names_a_run() {
    let name = "the_lowest_free_number_names_a_run";
    let Some(place) = Place::new(name, Need::Nothing) else { return };
    let start = |expected: &str| {
        let child = Guard::spawn(&mut place.shelflife(["run", "--", "sleep", "600"]));
        let page = place.state().join(expected).join("page");
        eventually("the run", || page.exists().then_some(()));
        child
    };
    let (first, _second) = (start("1"), start("2"));
    drop(first);
    let _third = start("1");
}
