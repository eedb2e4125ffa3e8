//! `switch` on a server under load: nothing is left behind, whoever else switches meanwhile.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use shelflife_postgres::Cluster;

use crate::held::{EXTREME, NOT_SET, SHORT, files_below, held_in, hint, lasting};
use crate::support::{Guard, Need, Place, eventually, initialise, load, said, session};

/// Files of the cluster, in the tree and behind descriptors, whose hint is not the expected one.
fn wrong(cluster: &Cluster, expected: impl Fn(&Path) -> u64) -> BTreeSet<PathBuf> {
    let data = cluster.data().path();
    lasting(|| {
        let held = held_in(data).into_iter().map(|file| (file.path, file.hint));
        let held = held.filter(|(path, _)| path.starts_with(data));
        let all = files_below(data).into_iter().chain(held);
        all.filter(|(path, hint)| *hint != expected(path)).map(|(path, _)| path).collect()
    })
}

fn temp_vs_rest(path: &Path) -> u64 {
    if path.iter().any(|part| part == "pgsql_tmp") { SHORT } else { EXTREME }
}

fn not_set(_: &Path) -> u64 {
    NOT_SET
}

/// A load that also spills into temporary files.
fn spilling_load(place: &Place, cluster: &Cluster) -> Guard {
    initialise(place, cluster);
    let script = place.path("spill.sql");
    let sql = "SET work_mem = '64kB'; SELECT count(*) FROM \
               (SELECT random() AS r FROM generate_series(1, 20000) ORDER BY 1) AS sorted;\n";
    fs::write(&script, sql).unwrap();
    let script = format!("{}@1", script.display());
    load(place, cluster, &["-c", "2", "-b", "tpcb-like@20", "-f", &script])
}

#[test]
fn switch_off_under_load_clears_every_file_and_on_sets_every_file() {
    let name = "switch_off_under_load_clears_every_file_and_on_sets_every_file";
    let Some(place) = Place::new(name, Need::Server) else { return };
    let cluster = place.cluster("c", |options| {
        options.set("checkpoint_timeout", "30s");
    });
    place.start(&cluster, &["--policy", "temp-vs-rest"]);
    let tables = "DO $$ BEGIN FOR n IN 1..1000 LOOP \
                  EXECUTE format('CREATE TABLE t%s (a int PRIMARY KEY)', n); END LOOP; END $$";
    session(&cluster).batch(tables).unwrap();
    assert!(files_below(cluster.data().path()).len() > 2500);
    let mut load = spilling_load(&place, &cluster);
    // Files that nobody opens carry what they are given beforehand, whatever that was.
    for to in ["off", "temp-vs-rest", "off", "on", "off"] {
        let told = said(&mut place.as_user(["switch", to, "--json"]));
        let json = told.expect(0).json();
        assert_eq!(json["switched"]["superseded"], false);
        assert_eq!(json["switched"]["swept"][0]["tally"]["settled"], true, "{json}");
        let expected = if to == "off" { not_set } else { temp_vs_rest };
        for _ in 0..3 {
            assert_eq!(wrong(&cluster, expected), BTreeSet::new(), "after switch {to}");
        }
    }
    assert!(load.0.try_wait().unwrap().is_none(), "the load goes on");
}

#[test]
fn two_switches_at_once_end_in_what_the_page_says() {
    let name = "two_switches_at_once_end_in_what_the_page_says";
    let Some(place) = Place::new(name, Need::Server) else { return };
    let cluster = place.cluster("c", |_| ());
    place.start(&cluster, &["--policy", "temp-vs-rest"]);
    for _ in 0..8 {
        let switches: Vec<_> = ["off", "on", "off", "temp-vs-rest"]
            .map(|to| {
                let mut command = place.as_user(["switch", to, "--json"]);
                std::thread::spawn(move || said(&mut command))
            })
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect();
        let mut last = (0, false);
        for told in &switches {
            let json = told.json();
            let superseded = json["switched"]["superseded"].as_bool().unwrap();
            told.expect(i32::from(superseded));
            let generation = json["switched"]["generation"].as_u64().unwrap();
            last = last.max((generation, json["switched"]["on"].as_bool().unwrap()));
        }
        let expected = if last.1 { temp_vs_rest } else { not_set };
        assert_eq!(wrong(&cluster, expected), BTreeSet::new(), "{switches:#?}");
    }
}

#[test]
fn a_switch_while_the_server_restarts_counts_for_the_new_one() {
    let name = "a_switch_while_the_server_restarts_counts_for_the_new_one";
    let Some(place) = Place::new(name, Need::Server) else { return };
    let cluster = place.cluster("c", |_| ());
    place.start(&cluster, &["--policy", "temp-vs-rest", "--name", "main"]);
    let restart = |cluster: &Cluster| {
        // As its user would: from a shell under the run's environment.
        let mut command = place.plain_as_user(place.programs().pg_ctl());
        command.env("LD_PRELOAD", place.hook());
        command.env("SHELFLIFE_RUN", place.path("state-of-user/main"));
        let mut words = place.pg_ctl_start(cluster).split_off(1);
        *words.last_mut().unwrap() = "restart".into();
        command.args(words).args(["-m", "fast"]);
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        Guard::spawn(&mut command)
    };
    for to in ["off", "on", "off"] {
        let mut restarting = restart(&cluster);
        while restarting.0.try_wait().unwrap().is_none() {
            let other = if to == "off" { "on" } else { "off" };
            said(&mut place.as_user(["switch", other, "--run", "main"])).expect(0);
            said(&mut place.as_user(["switch", to, "--run", "main"])).expect(0);
        }
        assert!(restarting.0.wait().unwrap().success());
        session(&cluster).batch("CREATE TABLE IF NOT EXISTS t (a int); CHECKPOINT").unwrap();
        let expected = if to == "off" { not_set } else { temp_vs_rest };
        let data = cluster.data().path();
        let wrong = lasting(|| {
            let held = held_in(data).into_iter().filter(|f| f.path.starts_with(data));
            held.filter(|f| f.hint != expected(&f.path)).collect()
        });
        assert_eq!(wrong, BTreeSet::new(), "after switch {to}");
    }
}

#[test]
fn a_switch_does_not_sweep_where_the_servers_children_happen_to_work() {
    let name = "a_switch_does_not_sweep_where_the_servers_children_happen_to_work";
    let Some(place) = Place::new(name, Need::Server) else { return };
    let cluster = place.cluster("c", |_| ());
    let second = place.cluster("second", |_| ());
    place.start(&cluster, &["--policy", "temp-vs-rest"]);
    let mut session = session(&cluster);
    let folder = second.data().path().to_owned();
    let sql = format!("COPY (SELECT 1) TO PROGRAM 'cd {} && exec sleep 300'", folder.display());
    let copy = std::thread::spawn(move || session.batch(&sql).is_err());
    eventually("the program works in the second cluster's folder", || {
        crate::held::pids().find(|pid| crate::held::cwd(*pid).as_deref() == Some(&*folder))
    });
    let told = said(&mut place.as_user(["switch", "temp-vs-rest", "--json"]));
    let json = told.expect(0).json();
    let swept = json["switched"]["swept"].as_array().unwrap();
    assert_eq!(swept.len(), 1, "{json}");
    assert_eq!(swept[0]["folder"], cluster.data().path().to_str().unwrap());
    assert_eq!(wrong(&second, not_set), BTreeSet::new());
    let sleeper = crate::held::pids().find(|p| crate::held::cwd(*p).as_deref() == Some(&*folder));
    let sleeper = rustix::process::Pid::from_raw(sleeper.unwrap()).unwrap();
    rustix::process::kill_process(sleeper, rustix::process::Signal::TERM).unwrap();
    assert!(copy.join().unwrap(), "the program was killed");
}

#[test]
fn the_hooks_counters_do_not_matter_to_a_switch() {
    let name = "the_hooks_counters_do_not_matter_to_a_switch";
    let Some(place) = Place::new(name, Need::Server) else { return };
    let cluster = place.cluster("c", |_| ());
    place.start(&cluster, &["--policy", "temp-vs-rest"]);
    // The server's user may do this at any time.
    let line = fs::read_to_string(place.path("state-of-user/1/page")).unwrap();
    let counters = line.split(' ').nth(3).unwrap().parse().unwrap();
    crate::held::with_segment(counters, |bytes| bytes.fill(0));
    session(&cluster).batch("CREATE TABLE t AS SELECT 1 AS a; CHECKPOINT").unwrap();
    said(&mut place.as_user(["switch", "off"])).expect(0);
    assert_eq!(wrong(&cluster, not_set), BTreeSet::new());
    said(&mut place.as_user(["switch", "on"])).expect(0);
    assert_eq!(hint(&cluster.data().path().join("global/pg_control")).unwrap(), EXTREME);
}

#[test]
fn a_switch_reaches_tablespaces_and_a_moved_wal_folder() {
    let name = "a_switch_reaches_tablespaces_and_a_moved_wal_folder";
    let Some(place) = Place::new(name, Need::Server) else { return };
    let (wal, space) = (place.path("user/wal"), place.user_folder("space"));
    let cluster = place.cluster("c", |options| {
        options.initdb_args.push(format!("--waldir={}", wal.display()).into());
    });
    place.start(&cluster, &["--policy", "temp-vs-rest"]);
    let mut session = session(&cluster);
    let sql = format!("CREATE TABLESPACE outside LOCATION '{}'", space.display());
    session.batch(&sql).unwrap();
    session.batch("CREATE TABLE a TABLESPACE outside AS SELECT 1 AS a").unwrap();
    let mut folders = vec![cluster.data().path().to_owned(), wal, space];
    if session.version().major >= 15 {
        session.batch("SET allow_in_place_tablespaces = on").unwrap();
        session.batch("CREATE TABLESPACE inplace LOCATION ''").unwrap();
        session.batch("CREATE TABLE b TABLESPACE inplace AS SELECT 1 AS a").unwrap();
        let path = session.relation_path("b").unwrap().unwrap();
        folders.push(cluster.data().path().join(path).parent().unwrap().to_owned());
    }
    // A sort in the tablespace whose temporary file stays open.
    session.batch("SET work_mem = '64kB'; SET temp_tablespaces = outside").unwrap();
    session
        .batch(
            "BEGIN; DECLARE c CURSOR FOR SELECT random() AS r FROM generate_series(1, 20000) \
             ORDER BY r; FETCH c",
        )
        .unwrap();
    session.batch("SAVEPOINT s; INSERT INTO a SELECT 2").unwrap();
    for (to, expected) in [("off", not_set as fn(&Path) -> u64), ("on", temp_vs_rest)] {
        said(&mut place.as_user(["switch", to])).expect(0);
        for folder in &folders {
            let wrong: Vec<_> = files_below(folder)
                .into_iter()
                .filter(|(path, hint)| *hint != expected(path))
                .collect();
            assert!(wrong.is_empty(), "switch {to}: {wrong:#?}");
            let temp = |path: &Path| path.to_str().unwrap().contains("/pgsql_tmp/");
            let count = files_below(folder).iter().filter(|(path, _)| !temp(path)).count();
            assert!(count > 0, "{} has files", folder.display());
        }
    }
}
