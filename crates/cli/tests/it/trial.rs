//! `shelflife trial`: what it prints, and how it ends.

use std::fs;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Need, Place, eventually, said};

/// The smallest trial that there is.
const TINY: [&str; 13] = [
    "trial",
    "--preset",
    "quick",
    "--policies",
    "off,wal-first",
    "--scale",
    "1",
    "--seconds",
    "1",
    "--rounds",
    "2",
    "--seed",
    "1",
];

#[test]
fn wrong_use_is_told_before_anything_is_made() {
    let name = "wrong_use_is_told_before_anything_is_made";
    let Some(place) = Place::new(name, Need::Nothing) else { return };
    let dir = place.path("trial");
    let told = |args: &[&str]| said(place.shelflife(["trial", "--dir"]).arg(&dir).args(args));
    told(&["--policies", "off"]).fails(2, &["2 to 16 arms"]);
    told(&["--policies", "off,wal-frist"]).fails(2, &["did you mean wal-first?"]);
    told(&["--policies", "off,off", "--scale", "0"]).fails(2, &["--scale 0"]);
    told(&["--policies", "off,off", "--script", "/nowhere.sql"]).fails(2, &["/nowhere.sql"]);
    told(&["--preset", "quick", "--seconds", "60"]).fails(2, &["at most 60 s of load"]);
    let policy = place.policy("bad.toml", "name = \"bad\"\nlayout = \"postgres\"\nspeed = 1\n");
    told(&["--policies", &format!("off,{policy}")]).fails(2, &["bad.toml:3:1"]);
    assert!(told(&["--set", "work_mem"]).expect(2).err.contains("NAME=VALUE"));
    assert!(told(&["--dsn", "host=/nowhere"]).expect(2).err.contains("--own-database"));
    let nothing = told(&["--pg-bindir", "/nonexistent"]);
    assert!(nothing.expect(3).err.contains("apt-get install postgresql"), "{nothing:#?}");
    let read = |path: &str| said(&mut place.shelflife(["trial", "--read", path]));
    read("/nowhere").fails(2, &["/nowhere", "No such file"]);
    read(&policy).fails(2, &["bad.toml:1: this is no file of a trial's results"]);
    said(&mut place.shelflife(["trial", "--resume", "/nowhere"])).fails(2, &["/nowhere"]);
    assert!(!dir.exists());
}

#[test]
fn a_trial_answers_in_its_first_line() {
    let name = "a_trial_answers_in_its_first_line";
    let Some(place) = Place::new(name, Need::Server) else { return };
    let dir = place.path("trial");
    let trial = said(place.shelflife(TINY).arg("--dir").arg(&dir));
    trial.expect(0);
    let first = trial.out.lines().next().unwrap();
    assert!(first.starts_with("quick look, no verdict: against off, wal-first is"), "{first}");
    for part in ["WAL/tx", "no claim is made about them", "data_checksums=on", "results.jsonl"] {
        assert!(trial.out.contains(part), "{part}: {trial:#?}");
    }
    assert!(trial.err.starts_with("about "), "what will be written: {trial:#?}");
    let read = said(place.shelflife(["trial", "--read"]).arg(&dir));
    assert_eq!(read.expect(0).out, trial.out);
    let page = place.path("page.html");
    let read = said(place.shelflife(["trial", "--read"]).arg(&dir).arg("--html").arg(&page));
    assert_eq!(read.expect(0).out, format!("{}page: {}\n", trial.out, page.display()));
    let html = fs::read_to_string(&page).unwrap();
    assert!(html.starts_with("<!DOCTYPE html>") && html.contains(first), "{html:.500}");
    let nowhere =
        said(place.shelflife(["trial", "--html", "/nowhere/page.html", "--read"]).arg(&dir));
    nowhere.fails(2, &["/nowhere/page.html", "No such file"]);
    // the answer is told all the same
    let full = said(place.shelflife(["trial", "--html", "/dev/full", "--read"]).arg(&dir));
    full.fails(2, &["no page; `shelflife trial --read", "No space left"]);
    assert!(full.out.starts_with(first) && !full.out.contains("\npage: "), "{full:#?}");
    let json = said(place.shelflife(["trial", "--json", "--read"]).arg(&dir)).json();
    assert_eq!(json["outcome"]["measured"], 4);
    assert_eq!(json["outcome"]["analysis"]["comparisons"][0]["verdict"], "quick");
    said(place.shelflife(["trial", "--resume"]).arg(&dir)).fails(2, &["is complete"]);
    said(place.shelflife(TINY).arg("--dir").arg(&dir)).fails(2, &["not empty", "--resume"]);
}

#[test]
fn ctrl_c_ends_in_order_and_resume_goes_on() {
    let name = "ctrl_c_ends_in_order_and_resume_goes_on";
    let Some(place) = Place::new(name, Need::Server) else { return };
    let dir = place.path("trial");
    let results = dir.join("results.jsonl");
    let mut command = place.shelflife(TINY);
    command.arg("--dir").arg(&dir).stdin(Stdio::null()).stdout(Stdio::piped());
    let child = command.stderr(Stdio::piped()).spawn().unwrap();
    eventually("a round", || {
        let text = fs::read_to_string(&results).ok()?;
        text.contains("\"record\":\"round\"").then_some(())
    });
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{err}");
    assert!(err.contains("--resume") && err.contains("interrupted"), "{err}");
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 1, "only the results");
    let read = said(place.shelflife(["trial", "--read"]).arg(&dir));
    assert!(read.expect(0).out.starts_with("incomplete ("), "{read:#?}");
    let resumed = said(place.shelflife(["trial", "--resume"]).arg(&dir));
    assert!(resumed.expect(0).out.starts_with("quick look, no verdict: "), "{resumed:#?}");
}
