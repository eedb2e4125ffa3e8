//! `import`, `export` and `trace`, as their users see them.

use std::path::Path;
use std::process::{Command, Output};

fn shelflife(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_shelflife"))
        .current_dir(folder)
        .args(arguments)
        .output()
        .unwrap()
}

fn said(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

const CSV: &str = "0,W,0,8192,1577808000000000\n0,R,0,4096,1577808000000001\n\
                   0,W,8192,4096,1577808000000010\n";

#[test]
fn a_recording_becomes_a_trace_and_returns() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| said(&shelflife(folder.path(), arguments));
    std::fs::write(folder.path().join("in.csv"), CSV).unwrap();
    let (code, out, _) = run(&["import", "in.csv", "-o", "t"]);
    assert_eq!(code, 0);
    assert!(out.starts_with("t: 2 events, 12.3 kB written, from alibaba\n"), "{out}");
    assert!(out.contains("1 reads"), "{out}");
    let (code, out, _) = run(&["trace", "check", "t"]);
    assert_eq!((code, out.as_str()), (0, "t: right, 2 events\n"));
    let (_, out, _) = run(&["trace", "info", "t"]);
    assert!(out.starts_with("t: 2 events, 12.3 kB written, 0 files ("), "{out}");
    let (_, out, _) = run(&["trace", "summary", "t", "--json"]);
    let summary: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(summary["total"]["distinct_pages"], 3);
    assert_eq!(summary["total"]["sequential"], 0.5);
    let (code, out, _) = run(&["export", "t", "--to", "alibaba"]);
    let writes: String =
        CSV.lines().filter(|l| !l.contains('R')).map(|l| format!("{l}\n")).collect();
    assert_eq!((code, out), (0, writes));
    let (code, out, _) =
        run(&["trace", "cut", "t", "-o", "part", "--time", "1us..", "--anonymize"]);
    assert_eq!((code, out.as_str()), (0, "part: 1 events of 2, 4.1 kB written\n"));
    let (code, out, _) = run(&["trace", "merge", "t", "part", "-o", "both"]);
    assert_eq!((code, out.as_str()), (0, "both: 3 events of 2 traces, 16.4 kB written\n"));
    let (code, out, _) = run(&["trace", "head", "both", "-n", "1"]);
    assert!(code == 0 && out.lines().count() == 3, "{out}");
}

#[test]
fn bad_input_is_named_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| said(&shelflife(folder.path(), arguments));
    std::fs::write(folder.path().join("in.csv"), format!("{CSV}0,W,100,512,1577808000000011\n"))
        .unwrap();
    let (code, out, err) = run(&["import", "in.csv", "-o", "t"]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.contains("in.csv:4: offset 100 is no multiple of 512"), "{err}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    let (code, out, err) = run(&["import", "in.csv", "-o", "t", "--skip-bad"]);
    assert_eq!(code, 0);
    assert!(out.contains("1 bad lines skipped: 1 not 512-aligned"), "{out}");
    assert!(err.contains("in.csv:4: "), "{err}");
    let (code, _, err) = run(&["import", "in.csv", "-o", "t"]);
    assert!(code == 2 && err.contains("t exists already"), "{err}");
    let (code, _, err) = run(&["trace", "info", "in.csv"]);
    assert!(code == 2 && err.contains("in.csv is not a trace"), "{err}");
    // a check that fails is an answer
    let meta = folder.path().join("t/meta.json");
    let text = std::fs::read_to_string(&meta).unwrap();
    std::fs::write(&meta, text.replace("\"writes\": 2", "\"writes\": 3")).unwrap();
    let (code, out, _) = run(&["trace", "check", "t"]);
    assert!(code == 1 && out.contains("meta.json counts 3 writes, there are 2"), "{out}");
}

#[test]
fn lifetimes_are_told_in_words_json_and_csv() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| said(&shelflife(folder.path(), arguments));
    let line = |n: u64| format!("0,W,{},4096,{}\n", n % 10 * 4096, 1_577_808_000_000_000 + n);
    std::fs::write(folder.path().join("in.csv"), (0..100).map(line).collect::<String>()).unwrap();
    assert_eq!(run(&["import", "in.csv", "-o", "t"]).0, 0);
    let (code, out, _) = run(&["lifetimes", "t"]);
    assert_eq!(code, 0);
    let first = "half of what is written to a page dies within 41.1 kB of host writes\n";
    assert!(out.starts_with(first), "{out}");
    assert!(
        out.contains("unknown   410 kB   10 %  41.1 kB  41.1 kB  41.1 kB        10 µs"),
        "{out}"
    );
    let (_, out, _) = run(&["lifetimes", "t", "--json"]);
    let found: serde_json::Value = serde_json::from_str(&out).unwrap();
    let row = &found["rows"][0];
    assert_eq!((&row["died"], &row["alive"]), (&90.into(), &10.into()));
    assert_eq!(row["host_bytes"]["median"], 40_960 + 128);
    // of 91 pages that were old enough, the last one is still alive
    let left = row["host_bytes"]["curve"][0]["alive"].as_f64().unwrap();
    assert!((left - 1.0 / 91.0).abs() < 1e-9, "{row}");
    let (_, out, _) = run(&["lifetimes", "t", "--csv"]);
    assert!(
        out.starts_with("name,clock,lifetime,alive\n\"all\",host-bytes,41088,0.010989\n"),
        "{out}"
    );
    let (code, _, err) = run(&["lifetimes", "t", "--sample", "1/0"]);
    assert!(code == 2 && err.contains("choose 1/N"), "{err}");
    std::fs::write(folder.path().join("no.csv"), "0,R,0,4096,1577808000000001\n").unwrap();
    assert_eq!(run(&["import", "no.csv", "-o", "none"]).0, 0);
    let (code, _, err) = run(&["lifetimes", "none"]);
    assert!(code == 2 && err.contains("none holds no write"), "{err}");
}
