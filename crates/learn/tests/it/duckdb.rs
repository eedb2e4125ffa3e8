//! The query of `docs/lifetimes.md` gives the same numbers in DuckDB.

use std::path::Path;
use std::process::Command;

use rand::{RngExt, SeedableRng};
use shelflife_layout::Class;
use shelflife_learn::LifetimeOptions;
use shelflife_trace::{Event, FileId, Op};

use crate::support::{found, skip, trace};

/// The query, between its fences.
fn documented() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/lifetimes.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (_, after) = text.split_once("```sql\n").unwrap();
    after.split_once("```").unwrap().0.to_owned()
}

/// `$SHELFLIFE_PYTHON`, the one of `make python`, or the system's.
fn python() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let made = root.join("target/python/bin/python");
    let made = || made.exists().then(|| made.display().to_string());
    std::env::var("SHELFLIFE_PYTHON").ok().or_else(made).unwrap_or_else(|| "python3".to_owned())
}

fn run(code: &str, arguments: &[&str]) -> Result<String, String> {
    let ran = Command::new(python()).arg("-c").arg(code).args(arguments).output();
    let ran = ran.map_err(|error| error.to_string())?;
    match ran.status.success() {
        true => Ok(String::from_utf8_lossy(&ran.stdout).into_owned()),
        false => Err(String::from_utf8_lossy(&ran.stderr).into_owned()),
    }
}

fn events() -> Vec<Event> {
    let mut rng = rand_pcg::Pcg64Mcg::seed_from_u64(19);
    let mut one = || {
        let op = [Op::Discard, Op::WriteZeroes].get(rng.random_range(0..40)).copied();
        let file = rng.random_range(0..3);
        Event {
            op: op.unwrap_or_default(),
            offset: 512 * rng.random_range(0..20_000),
            length: 512 * rng.random_range(1..100 + 100 * u64::from(file)),
            device: rng.random_range(0..2),
            file: FileId(file),
            ..Event::default()
        }
    };
    (0..5_000).map(|_| one()).collect()
}

/// Class, died, alive, quantiles.
type Row = (String, u64, u64, [Option<u64>; 3]);

fn rows(said: &str) -> Vec<Row> {
    let rows: Vec<Vec<serde_json::Value>> = serde_json::from_str(said).unwrap();
    let number = |value: &serde_json::Value| value.as_u64();
    let row = |row: Vec<serde_json::Value>| {
        let counts = [1, 2].map(|at| number(&row[at]).unwrap());
        let name = row[0].as_str().unwrap().to_owned();
        (name, counts[0], counts[1], [3, 4, 5].map(|at| number(&row[at])))
    };
    rows.into_iter().map(row).collect()
}

#[test]
fn duckdb_gives_the_same_numbers() {
    if run("import duckdb", &[]).is_err() {
        let reason = "no Python with duckdb (make python, or set SHELFLIFE_PYTHON)";
        return skip("duckdb_gives_the_same_numbers", reason);
    }
    let folder = tempfile::tempdir().unwrap();
    let trace = trace(folder.path(), &[Class::Wal, Class::Relation], &events());
    let code = "import sys, os, json, duckdb\nos.chdir(sys.argv[1])\n\
                print(json.dumps(duckdb.sql(sys.argv[2]).fetchall()))";
    let said = run(code, &[trace.folder().to_str().unwrap(), &documented()]).unwrap();
    let theirs = rows(&said);
    let ours = found(&trace, LifetimeOptions::default());
    let ours: Vec<Row> = ours
        .rows
        .into_iter()
        .map(|row| {
            let spread = row.host_bytes;
            (row.name, row.died, row.alive, [spread.p10, spread.median, spread.p90])
        })
        .collect();
    assert_eq!(theirs, ours);
    assert!(ours.iter().all(|row| row.3[1].is_some() && row.1 > 1000), "{ours:?}");
}
