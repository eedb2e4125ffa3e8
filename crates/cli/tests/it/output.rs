//! What the verbs print: text for people line by line, and JSON with the fields that are documented.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};

use crate::support::{Need, Place, Said, said};

fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[track_caller]
fn assert_keys(value: &Value, expected: &[&str]) {
    assert_eq!(keys(value), expected.iter().copied().collect(), "{value:#}");
}

/// The lines, with their right number of words put back to one space: column widths are not promised.
fn rows(said: &Said) -> Vec<String> {
    let lines = said.out.lines().filter(|line| !line.starts_with('─'));
    lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn hint_prints_what_each_file_carries() {
    let Some(place) = Place::new("hint_prints_what_each_file_carries", Need::Nothing) else {
        return;
    };
    let folder = place.path("files");
    fs::create_dir_all(folder.join("below")).unwrap();
    for name in ["a", "b", "below/c"] {
        fs::write(folder.join(name), "").unwrap();
    }
    let hint = |args: &[&str]| {
        let mut command = place.shelflife(["hint"]);
        said(command.args(args).current_dir(&folder))
    };
    let text = "hint   path\n───────────\nshort  a\nshort  b\n";
    assert_eq!(hint(&["set", "short", "a", "b"]).expect(0).out, text);
    for lifetime in ["none", "medium", "long", "extreme", "not-set", "short"] {
        let told = hint(&["set", lifetime, "below/c"]);
        assert_eq!(rows(told.expect(0)), ["hint path", &format!("{lifetime} below/c")]);
    }
    let all = ["hint path", "short ./a", "short ./b", "short ./below/c"];
    assert_eq!(rows(hint(&["get", "-r", "."]).expect(0)), all);
    let told = hint(&["clear", "--json", "-r", ".", "gone"]);
    let paths = ["./a", "./b", "./below/c"].map(|path| json!({"path": path, "hint": "not-set"}));
    let rows = told.expect(2).json();
    assert_eq!(rows.as_array().unwrap()[..3], paths);
    assert_keys(&rows[3], &["path", "error"]);
    assert_eq!(told.err, "");
}

#[test]
fn policies_are_listed_shown_checked_and_explained() {
    let name = "policies_are_listed_shown_checked_and_explained";
    let Some(place) = Place::new(name, Need::Nothing) else { return };
    let policy = |args: &[&str]| {
        let mut command = place.shelflife(["policy"]);
        said(command.args(args))
    };
    let list = policy(&["list"]);
    let names: Vec<String> =
        rows(list.expect(0)).iter().map(|row| row.split(' ').next().unwrap().to_owned()).collect();
    assert_eq!(names, ["policy", "temp-vs-rest", "temp-vs-rest-broad", "wal-first"]);
    for row in policy(&["list", "--json"]).json().as_array().unwrap() {
        let always = ["origin", "name", "layout", "description", "rules"];
        assert!(always.iter().all(|key| keys(row).contains(key)), "{row:#}");
        for rule in row["rules"].as_array().unwrap() {
            assert!(rule["line"].as_u64() > Some(1) && rule["lifetime"].is_string(), "{rule}");
        }
    }

    let show = policy(&["show", "temp-vs-rest"]);
    let lines = rows(show.expect(0));
    assert!(lines[0].starts_with("temp-vs-rest: pgsql_tmp short"), "{lines:#?}");
    for expected in ["rule line matches lifetime", "class lifetime why"] {
        assert!(lines.iter().any(|line| line == expected), "{lines:#?}");
    }
    assert!(lines.iter().any(|line| line.starts_with("temp short rule 1 (line ")), "{lines:#?}");
    assert!(lines.iter().any(|line| line.starts_with("outside - no rule")), "{lines:#?}");
    assert_keys(&policy(&["show", "wal-first", "--json"]).json(), &["policy", "classes"]);
    // The source is a policy again.
    let source = policy(&["show", "wal-first", "--source"]).out;
    let copy = place.policy("copy.toml", &source);
    assert_eq!(policy(&["check", &copy]).expect(0).out, format!("{copy}: good\n"));

    let paths = ["base/pgsql_tmp/pgsql_tmp1.0", "pg_wal/000000010000000000000001", "/etc/passwd"];
    let mut args = vec!["explain", "--policy", "temp-vs-rest"];
    args.extend(paths);
    let lines = rows(policy(&args).expect(0));
    assert!(lines[1].starts_with(&format!("short temp {} rule 1", paths[0])), "{lines:#?}");
    assert!(lines[2].starts_with(&format!("extreme wal {} default", paths[1])), "{lines:#?}");
    assert!(lines[3].starts_with(&format!("- outside {} no rule", paths[2])), "{lines:#?}");
    args.push("--json");
    let explained = policy(&args).json();
    let first = &explained[0]["explanation"];
    assert_eq!((&first["class"], &first["lifetime"]), (&"temp".into(), &"short".into()));
    assert_eq!(explained[2]["explanation"]["lifetime"], Value::Null);

    let bad =
        place.policy("bad.toml", "name = \"x\"\nlayout = \"postgres\"\ndefault = \"shrot\"\n");
    let checked = policy(&["check", "--json", "wal-first", &bad]);
    let checked = checked.expect(1).json();
    assert_eq!(checked[0], json!({"policy": "wal-first (shipped)", "findings": []}));
    let finding = &checked[1]["findings"][0];
    assert_eq!((&finding["line"], &finding["column"]), (&3.into(), &11.into()), "{finding:#}");
}

#[test]
fn run_status_and_switch_speak_json_with_the_documented_fields() {
    let name = "run_status_and_switch_speak_json_with_the_documented_fields";
    let Some(place) = Place::new(name, Need::Server) else { return };
    let cluster = place.cluster("c", |_| ());
    place.start(&cluster, &["--policy", "temp-vs-rest", "--name", "main"]);
    let status = said(&mut place.as_user(["status", "--json", "--run", "main"])).json();
    let run = &status[0];
    assert_keys(
        run,
        &[
            "name",
            "kind",
            "on",
            "dry_run",
            "generation",
            "policy",
            "command",
            "started",
            "attached",
            "opens",
            "refused",
            "servers",
        ],
    );
    assert_keys(&run["opens"][0], &["class", "lifetime", "opens"]);
    let server = &run["servers"][0];
    assert_keys(server, &["folder", "postmaster", "children_with_hook", "children"]);
    assert_keys(&server["postmaster"], &["pid", "carries"]);
    assert!(run["command"][0].as_str().unwrap().ends_with("/pg_ctl"), "{run:#}");

    let told = said(&mut place.as_user(["switch", "off"]));
    let lines: Vec<&str> = told.expect(0).out.lines().collect();
    assert!(lines[0].starts_with("run main is off (generation 2), in "), "{told:#?}");
    let folder = format!("{}: 0 hints set, ", cluster.data().path().display());
    assert!(lines[1].starts_with(&folder) && lines[1].contains(" cleared on "), "{told:#?}");
    assert_eq!((lines.len(), &*told.err), (2, ""));
    let told = said(&mut place.as_user(["status"]));
    assert!(
        told.out.starts_with("run main: off (policy temp-vs-rest), generation 2, "),
        "{told:#?}"
    );

    let told = said(&mut place.as_user(["switch", "wal-first"]));
    assert!(told.out.starts_with("run main is on with wal-first (generation 3), in "), "{told:#?}");
    let switched = said(&mut place.as_user(["switch", "off", "--json"])).json();
    assert_keys(&switched, &["run", "to", "switched"]);
    let keys = ["dry_run", "generation", "left_to_daemon", "on", "superseded", "swept"];
    assert_keys(&switched["switched"], &keys);
    let swept = &switched["switched"]["swept"][0];
    assert_keys(swept, &["folder", "tally"]);
    let tally =
        ["passes", "files", "open_files", "set", "cleared", "foreign", "refused", "settled"];
    assert_keys(&swept["tally"], &tally);

    drop(cluster);
    let told = said(&mut place.as_user(["status"]));
    assert_eq!(
        told.expect(1).out,
        format!(
            "no runs in {}; start one with `shelflife run -- CMD` or `shelflife watch DIR`\n",
            place.path("state-of-user").display()
        )
    );
}

#[test]
fn every_verb_has_help_with_an_example_and_the_exit_codes() {
    let name = "every_verb_has_help_with_an_example_and_the_exit_codes";
    let Some(place) = Place::new(name, Need::Nothing) else { return };
    let help = said(&mut place.shelflife(["--help"]));
    let out = &help.expect(0).out;
    let (_, codes) = out.split_once("Exit codes:\n").unwrap();
    assert_eq!(codes.lines().filter(|line| line.starts_with("  ")).count(), 4, "{codes}");
    for verb in ["run", "switch", "apply", "hint", "policy"] {
        assert!(out.lines().any(|line| line.trim_start().starts_with(verb)), "{verb}");
        let help = said(&mut place.shelflife([verb, "--help"]));
        assert!(help.expect(0).out.contains(&format!("Examples:\n  shelflife {verb} ")), "{verb}");
    }
    let told = said(&mut place.shelflife(["status", "--help"]));
    assert!(told.expect(0).out.contains("Exit code 1: "), "{told:#?}");
    said(&mut place.shelflife([] as [&str; 0])).expect(2);
    said(&mut place.shelflife(["no-such-verb"])).expect(2);
    let version = format!("shelflife {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(said(&mut place.shelflife(["--version"])).expect(0).out, version);
}

#[test]
fn an_error_does_not_steer_the_terminal() {
    let Some(place) = Place::new("an_error_does_not_steer_the_terminal", Need::Nothing) else {
        return;
    };
    said(&mut place.shelflife(["lifetimes", "\u{1b}[2Jnone"]))
        .fails(2, &["\\u{1b}[2Jnone is not a trace"]);
}

#[test]
fn output_that_is_cut_short_is_no_success_unless_its_reader_wanted_no_more() {
    let name = "output_that_is_cut_short_is_no_success_unless_its_reader_wanted_no_more";
    let Some(place) = Place::new(name, Need::Nothing) else { return };
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let told = place.shelflife(["policy", "list"]).stdout(full).output().unwrap();
    let err = String::from_utf8(told.stderr).unwrap();
    assert_eq!(told.status.code(), Some(2), "{err}");
    assert!(err.starts_with("shelflife: cannot write the output: No space left"), "{err}");
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let told = place.shelflife(["policy", "list"]).stdout(writer).output().unwrap();
    assert_eq!((told.status.code(), told.stderr.as_slice()), (Some(0), b"".as_slice()));
}
