//! `record --pg`: relations have their names, whoever must be asked.

use crate::support::{Need, Place, said};

/// Writes a table, to the drive too.
const SCRIPT: &str = "CREATE TABLE named AS SELECT g, repeat('x', 100) FROM generate_series(1, 20000) g;\n\
                      CREATE INDEX named_g ON named (g);\nCHECKPOINT;\n";

#[test]
fn root_bpf_record_names_the_relations_of_whoever_writes() {
    const NAME: &str = "root_bpf_record_names_the_relations_of_whoever_writes";
    let Some(place) = Place::new(NAME, Need::RootAndServer) else { return };
    // Without it a checkpoint leaves everything in the page cache.
    let mut cluster = place.cluster("c", |options| {
        options.set("fsync", "on");
    });
    cluster.start().unwrap();
    let script = place.path("script.sql");
    std::fs::write(&script, SCRIPT).unwrap();
    let mut record = place.shelflife(["record", "-o", "t", "--pg", "--path"]);
    record.arg(cluster.data().path()).arg("--").arg(place.programs().pgbench());
    record.args(["-n", "-t", "1", "-U", "postgres", "-f"]).arg(script);
    record.arg("-h").arg(cluster.socket_folder()).arg("postgres");
    let told = said(&mut record);
    if told.code == Some(3) {
        crate::support::skip::<()>(NAME, &told.err);
        return;
    }
    told.expect(0);
    let folder = cluster.data().path().display().to_string();
    let line = told.out.lines().find(|line| line.contains(&folder) && line.contains("named"));
    assert!(line.is_some_and(|line| !line.contains(" 0 relation files")), "{told:?}");
    let summary = said(&mut place.shelflife(["trace", "summary", "t", "--json"]));
    let relations = summary.expect(0).json()["relations"].clone();
    let bytes = |name: &str| {
        let rows = relations.as_array().unwrap();
        let row = rows.iter().find(|row| row["name"] == name);
        row.map_or(0, |row| row["bytes"].as_u64().unwrap())
    };
    assert!(bytes("postgres.public.named") >= 20_000 * 100, "{relations}");
    assert!(bytes("postgres.public.named_g") >= 20_000 * 16, "{relations}");
}

#[test]
fn a_server_that_cannot_be_asked_is_told_before_anything_is_recorded() {
    const NAME: &str = "a_server_that_cannot_be_asked_is_told_before_anything_is_recorded";
    let Some(place) = Place::new(NAME, Need::Nothing) else { return };
    let record = |address: &str| {
        said(&mut place.shelflife(["record", "-o", "t", "--path", ".", "--pg", address]))
    };
    record("host=/nowhere user=x").fails(2, &["cannot be asked for names", "/nowhere"]);
    record("nonsense=1").fails(2, &["connection string", "nonsense"]);
    assert!(!place.path("t").exists());
}
