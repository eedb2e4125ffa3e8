//! The daemon with catalogs: a policy's rules for one relation, an index, a TOAST table, an unlogged
//! table, and every new file number that they get.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::process::Signal;
use shelflife_postgres::{Cancel, Cluster, Session};

use crate::held::{EXTREME, MEDIUM, NOT_SET, SHORT, hint, hint_of};
use crate::support::{Need, Place, eventually, said, session};
use crate::watched::{As, Watcher, ways};

const POLICY: &str = r#"
name = "told-apart"
layout = "postgres"

[[rule]]
relation = "shop/public.queue"
lifetime = "short"

[[rule]]
class = "index"
lifetime = "medium"

[[rule]]
class = ["toast", "unlogged"]
lifetime = "long"

[[rule]]
class = "relation"
lifetime = "extreme"
"#;

/// What POLICY gives the main fork of each relation of the connected database, by a question of our own.
fn expected(session: &mut Session, data: &Path) -> BTreeMap<PathBuf, u64> {
    let sql = "SELECT pg_relation_filepath(c.oid), CASE \
               WHEN c.oid::regclass::text = 'queue' THEN 2 WHEN c.relpersistence = 'u' THEN 4 \
               WHEN c.relnamespace = 'pg_toast'::regnamespace THEN 4 WHEN c.relkind = 'i' THEN 3 ELSE 5 END \
               FROM pg_class c WHERE c.relkind IN ('r', 'i', 't', 'S', 'm') AND c.relpersistence <> 't'";
    let rows = session.rows(sql, &[]).unwrap();
    let mut all = BTreeMap::new();
    for row in rows {
        let (path, lifetime): (Option<String>, i32) = (row.get(0), row.get(1));
        all.extend(path.map(|path| (data.join(path), u64::from(lifetime.cast_unsigned()))));
    }
    all
}

/// Waits until every relation carries what is expected of it.
#[track_caller]
fn settles(what: &str, session: &mut Session, data: &Path, wanted: impl Fn(u64) -> u64) {
    let mut wrong = BTreeSet::new();
    let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while std::time::Instant::now() < end {
        let all = expected(session, data);
        assert!(all.len() > 250, "{}", all.len());
        let off = |(path, lifetime): (PathBuf, u64)| {
            // One that was just rewritten is gone.
            let now = hint(&path).ok()?;
            (now != wanted(lifetime)).then_some((path, now, lifetime))
        };
        wrong = all.into_iter().filter_map(off).collect();
        if wrong.is_empty() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("{what}: {wrong:?}");
}

fn shop(cluster: &Cluster) -> Session {
    session(cluster).batch("CREATE DATABASE shop").unwrap();
    let mut shop = Session::connect(&cluster.dsn("shop"), &Cancel::never()).unwrap();
    shop.batch(
        "CREATE TABLE queue (a int PRIMARY KEY, b text); INSERT INTO queue SELECT g, 'x' FROM \
         generate_series(1, 100) g",
    )
    .unwrap();
    shop.batch("VACUUM queue").unwrap();
    shop.batch("CREATE TABLE kept (a int PRIMARY KEY, b text)").unwrap();
    shop.batch("CREATE UNLOGGED TABLE fleeting (a int PRIMARY KEY)").unwrap();
    shop
}

#[test]
fn rules_for_relations_and_catalog_classes_follow_every_new_file_number() {
    let name = "rules_for_relations_and_catalog_classes_follow_every_new_file_number";
    let Some(place) = Place::new(name, Need::Server) else { return };
    let mut cluster = place.cluster("c", |_| ());
    cluster.start().unwrap();
    let data = cluster.data().path().to_owned();
    let mut shop = shop(&cluster);
    // Nothing but LOGIN: what is asked for needs no other right.
    shop.batch("CREATE ROLE few LOGIN").unwrap();
    let policy = place.policy("told-apart.toml", POLICY);
    let args = [data.to_str().unwrap(), "--policy", &policy, "--name", "w", "--relations=few"];
    let mut watcher = Watcher::start(&place, As::Owner, &args);
    settles("what was there", &mut shop, &data, |lifetime| lifetime);
    // The forks of a named relation go with it.
    let queue = data.join(shop.relation_path("queue").unwrap().unwrap());
    let map = PathBuf::from(format!("{}_vm", queue.display()));
    assert_eq!((hint(&queue).unwrap(), hint(&map).unwrap()), (SHORT, SHORT));
    // A table of the same name elsewhere is another one.
    session(&cluster).batch("CREATE TABLE queue (a int)").unwrap();
    let other = session(&cluster).relation_path("queue").unwrap().unwrap();
    for change in [
        "VACUUM FULL queue",
        "REINDEX TABLE queue",
        "TRUNCATE queue, kept, fleeting",
        "CREATE TABLE later (a int PRIMARY KEY, b text)",
        "ALTER TABLE kept SET UNLOGGED",
        "CREATE MATERIALIZED VIEW seen AS SELECT * FROM queue",
    ] {
        shop.batch(change).unwrap();
    }
    settles("new file numbers", &mut shop, &data, |lifetime| lifetime);
    let other = data.join(other);
    eventually("the other database's table", || (hint(&other).ok()? == EXTREME).then_some(()));
    // Visible only long after it was made, and looked at without an open, which the daemon would see.
    shop.batch("BEGIN; CREATE TABLE slow (a int PRIMARY KEY)").unwrap();
    let index = data.join(shop.relation_path("slow_pkey").unwrap().unwrap());
    let index = File::open(index).unwrap();
    eventually("a relation's hint", || (hint_of(&index) == EXTREME).then_some(()));
    shop.batch("COMMIT").unwrap();
    eventually("the index's hint", || (hint_of(&index) == MEDIUM).then_some(()));
    settles("a transaction that took its time", &mut shop, &data, |lifetime| lifetime);

    let switch = |to: &str| {
        let mut command = place.as_user(["switch", to, "--run", "w"]);
        let told = said(&mut command);
        told.expect(0);
        told.out
    };
    switch("off");
    settles("off", &mut shop, &data, |_| NOT_SET);
    assert!(switch("on").contains("the daemon sweeps"));
    settles("on", &mut shop, &data, |lifetime| lifetime);
    // Another policy has none of these rules.
    switch("temp-vs-rest");
    settles("another policy", &mut shop, &data, |_| EXTREME);
    assert!(switch(&policy).contains("rules for one relation count only in"));
    settles("the first policy", &mut shop, &data, |lifetime| lifetime);
    // A name changes, and no file does: a reading of everything sees it.
    shop.batch("ALTER TABLE queue RENAME TO done; ALTER TABLE later RENAME TO queue").unwrap();
    watcher.signal(Signal::HUP);
    settles("renamed", &mut shop, &data, |lifetime| lifetime);
    let json = said(&mut place.as_user(["status", "--json"])).json();
    let relations = &json[0]["watching"]["folders"][0]["relations"];
    assert_eq!(relations["role"], "few", "{json}");
    assert_eq!(relations["failure"], serde_json::Value::Null, "{json}");
    assert!(relations["known"].as_u64().unwrap() > 700, "{json}");
    assert!(watcher.child.0.try_wait().unwrap().is_none(), "{}", watcher.log());
    // Its figures are still there, and nobody would sweep.
    watcher.signal(Signal::KILL);
    watcher.child.0.wait().unwrap();
    assert!(!switch("temp-vs-rest").contains("the daemon sweeps"));
    settles("a dead daemon's run", &mut shop, &data, |_| EXTREME);
}

#[test]
fn a_server_that_starts_later_is_asked_then_and_one_that_refuses_is_named() {
    let name = "a_server_that_starts_later_is_asked_then_and_one_that_refuses_is_named";
    let Some(place) = Place::new(name, Need::Server) else { return };
    let mut cluster = place.cluster("c", |_| ());
    cluster.start().unwrap();
    let data = cluster.data().path().to_owned();
    let mut first = shop(&cluster);
    let (queue, index) = (
        data.join(first.relation_path("queue").unwrap().unwrap()),
        data.join(first.relation_path("queue_pkey").unwrap().unwrap()),
    );
    drop(first);
    cluster.stop(shelflife_postgres::StopMode::Fast).unwrap();
    let policy = place.policy("told-apart.toml", POLICY);
    let args = [data.to_str().unwrap(), "--policy", &policy, "--relations=nobody_of_that_name"];
    let watcher = Watcher::start(&place, ways()[ways().len() - 1], &args);
    // Without a catalog all are relations.
    eventually("its word", || watcher.log().contains("catalogs not read").then_some(()));
    assert_eq!((hint(&queue).unwrap(), hint(&index).unwrap()), (EXTREME, EXTREME));
    cluster.start().unwrap();
    eventually("the refusal", || watcher.log().contains("nobody_of_that_name").then_some(()));
    session(&cluster).batch("CREATE ROLE nobody_of_that_name LOGIN").unwrap();
    eventually("the relation's hint", || (hint(&queue).unwrap() == SHORT).then_some(()));
    eventually("the index's hint", || (hint(&index).unwrap() == MEDIUM).then_some(()));
}

#[test]
fn a_policy_that_needs_catalogs_is_told_that_none_is_read() {
    let name = "a_policy_that_needs_catalogs_is_told_that_none_is_read";
    let Some(place) = Place::new(name, Need::Nothing) else { return };
    let data = crate::watched::data_folder(&place, "data");
    let policy = place.policy("told-apart.toml", POLICY);
    let watcher = Watcher::start(&place, As::Owner, &[data.to_str().unwrap(), "--policy", &policy]);
    assert!(watcher.log().contains("without --relations"), "{}", watcher.log());
}
