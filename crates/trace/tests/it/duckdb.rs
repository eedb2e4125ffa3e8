//! Other people's tools open a trace without help, and the query of `docs/trace-format.md` runs.

use std::path::Path;
use std::process::Command;

use crate::support::{sample, skip};

/// The example query, between its fences.
fn documented() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/trace-format.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (_, after) = text.split_once("```sql\n").unwrap();
    after.split_once("```").unwrap().0.to_owned()
}

fn python(code: &str, arguments: &[&str]) -> Result<String, String> {
    let python = std::env::var("SHELFLIFE_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let ran = Command::new(&python).arg("-c").arg(code).args(arguments).output();
    let ran = ran.map_err(|e| format!("{python}: {e}"))?;
    match ran.status.success() {
        true => Ok(String::from_utf8_lossy(&ran.stdout).into_owned()),
        false => Err(String::from_utf8_lossy(&ran.stderr).into_owned()),
    }
}

/// `None` if the module is not there, which is said.
fn run(name: &str, module: &str, code: &str) -> Option<String> {
    if python(&format!("import {module}"), &[]).is_err() {
        skip(name, &format!("no Python with {module} (set SHELFLIFE_PYTHON)"));
        return None;
    }
    let trace = sample("trace-v1");
    Some(python(code, &[trace.to_str().unwrap(), &documented()]).unwrap())
}

#[test]
fn duckdb_runs_the_documented_query() {
    let code = "import sys, os, duckdb\nos.chdir(sys.argv[1])\n\
                print(duckdb.sql(sys.argv[2]).fetchall())";
    let Some(out) = run("duckdb_runs_the_documented_query", "duckdb", code) else { return };
    assert_eq!(
        out.trim(),
        "[('wal', 2, 1, 16384), ('relation', 5, 1, 8192), ('fs-journal', 0, 1, 4096)]"
    );
}

#[test]
fn pandas_and_pyarrow_read_the_same_values() {
    let code = "import sys, pandas\n\
        t = pandas.concat(pandas.read_parquet(f'{sys.argv[1]}/events-000{n}.parquet') for n in (0, 1))\n\
        print(list(t.offset), list(t.length), list(t.process.fillna('(null)')))";
    let Some(out) = run("pandas_and_pyarrow_read_the_same_values", "pandas, pyarrow", code) else {
        return;
    };
    let expected = "[1048576, 536870912, 4096, 536870912] [16384, 8192, 4096, 16777216] \
                    ['postgres', 'kworker/u4:1', 'jbd2/vdb-8', '(null)']";
    assert_eq!(out.trim(), expected);
}

#[test]
fn polars_reads_the_same_values() {
    let code = "import sys, polars\n\
        t = polars.read_parquet(f'{sys.argv[1]}/events-*.parquet')\n\
        f = polars.read_parquet(f'{sys.argv[1]}/files.parquet')\n\
        print(t['offset'].to_list(), t['time'].to_list(), f['class'].to_list())";
    let Some(out) = run("polars_reads_the_same_values", "polars", code) else { return };
    let expected = "[1048576, 536870912, 4096, 536870912] [0, 1234567, 1300000, 2000000000] \
                    ['unknown', 'wal', 'relation', 'fs-journal']";
    assert_eq!(out.trim(), expected);
}
