use std::fs;
use std::os::unix::fs::FileExt;

use shelflife_postgres::Cancel;
use shelflife_postgres::Cluster;
use shelflife_postgres::Error;
use shelflife_postgres::StopMode;
use shelflife_postgres::verify;

use crate::Need;
use crate::Place;
use crate::skip;

/// Whether this installation has `pg_amcheck` and its extension; some packages leave them out.
pub fn has_amcheck(cluster: &mut Cluster, test: &str) -> bool {
    if let Err(error) = cluster.programs().pg_amcheck() {
        return skip::<()>(test, &error.to_string()).is_some();
    }
    let sql = "SELECT count(*) FROM pg_available_extensions WHERE name = 'amcheck'";
    let count: i64 = cluster.connect("postgres").unwrap().one(sql, &[]).unwrap();
    count == 1 || skip::<()>(test, "this server has no extension amcheck").is_some()
}

/// Whether this installation has `pg_checksums`.
pub fn has_checksums(place: &Place, test: &str) -> bool {
    let missing = place.programs.pg_checksums().err();
    missing.is_none_or(|error| skip::<()>(test, &error.to_string()).is_some())
}

#[test]
fn an_index_that_lacks_rows_is_found() {
    let Some(place) = Place::new("an_index_that_lacks_rows_is_found", Need::Nothing) else {
        return;
    };
    let mut cluster = place.started("c");
    if !has_amcheck(&mut cluster, "an_index_that_lacks_rows_is_found") {
        return;
    }
    let dsn = cluster.dsn("postgres");
    let check = || verify::amcheck(&place.programs, &dsn, &Cancel::never());
    let mut session = cluster.connect("postgres").unwrap();
    session
        .batch("CREATE TABLE t (a int); CREATE INDEX i ON t (a); INSERT INTO t VALUES (1)")
        .unwrap();
    let index = session.relation_path("i").unwrap().unwrap();
    let index = cluster.data().path().join(index);
    drop(session);
    cluster.stop(StopMode::Fast).unwrap();
    let old = fs::read(&index).unwrap();
    cluster.start().unwrap();
    cluster.connect("postgres").unwrap().batch("INSERT INTO t VALUES (2)").unwrap();
    assert!(check().unwrap().is_clean());
    cluster.stop(StopMode::Fast).unwrap();
    fs::write(&index, old).unwrap();
    cluster.start().unwrap();
    let verdict = check().unwrap();
    assert!(!verdict.is_clean());
    assert!(verdict.complaints.join("\n").contains("lacks matching index tuple"), "{verdict:?}");
    cluster.stop(StopMode::Fast).unwrap();
    assert!(matches!(check(), Err(Error::ProgramFailed { .. })), "no server is no clean server");
}

#[test]
fn a_broken_page_is_found() {
    let Some(place) = Place::new("a_broken_page_is_found", Need::Nothing) else { return };
    if !has_checksums(&place, "a_broken_page_is_found") {
        return;
    }
    let mut cluster = place.started("c");
    let data = cluster.data().clone();
    let check = || verify::checksums(&place.programs, &data, &Cancel::never());
    let mut session = cluster.connect("postgres").unwrap();
    session.batch("CREATE TABLE t AS SELECT 1 AS a").unwrap();
    let path = session.relation_path("t").unwrap().unwrap();
    drop(session);
    assert!(matches!(check(), Err(Error::MustBeStopped { .. })));
    cluster.stop(StopMode::Fast).unwrap();
    assert!(check().unwrap().is_clean());
    let file = fs::OpenOptions::new().write(true).open(data.path().join(path)).unwrap();
    file.write_all_at(b"broken", 4000).unwrap();
    let verdict = check().unwrap();
    assert_eq!(verdict.complaints.len(), 1);
    assert!(verdict.complaints[0].contains("checksum verification failed"), "{verdict:?}");
}

#[test]
fn no_checksums_is_no_clean_verdict() {
    let Some(place) = Place::new("no_checksums_is_no_clean_verdict", Need::Nothing) else { return };
    if !has_checksums(&place, "no_checksums_is_no_clean_verdict") {
        return;
    }
    let mut options = place.options("c");
    options.checksums = false;
    let cluster = Cluster::create(options).unwrap();
    let told = verify::checksums(&place.programs, cluster.data(), &Cancel::never()).unwrap_err();
    assert!(told.to_string().contains("data checksums are not enabled"), "{told}");
}
