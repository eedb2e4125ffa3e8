use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::symlink;

use shelflife_postgres::Cluster;
use shelflife_postgres::DataFolder;
use shelflife_postgres::StopMode;

use crate::Need;
use crate::Place;
use crate::assert_gone;
use crate::is_root;

fn pids(data: &DataFolder) -> Vec<i32> {
    data.server_processes().unwrap().iter().map(|process| process.pid).collect()
}

#[test]
fn a_cluster_lives_and_leaves_nothing() {
    let Some(place) = Place::new("a_cluster_lives_and_leaves_nothing", Need::Nothing) else {
        return;
    };
    let mut cluster = Cluster::create(place.options("c")).unwrap();
    assert!(!cluster.is_ready());
    cluster.start().unwrap();
    cluster.start().unwrap();
    assert!(cluster.is_ready());
    cluster.check_alive().unwrap();
    let data = cluster.data().clone();
    assert_ne!(data.uid(), 0);
    assert_eq!(data.major(), place.programs.version().major);
    assert_eq!(data.wal_folder().unwrap(), data.path().join("pg_wal"));
    assert_eq!(data.tablespaces().unwrap(), []);
    assert_eq!(data.pid_file().unwrap().unwrap().socket_folder.unwrap(), cluster.socket_folder());
    let mode = fs::metadata(cluster.socket_folder()).unwrap().mode();
    assert_eq!(mode & 0o777, 0o700, "whoever gets in is trusted");

    let first = pids(&data);
    assert!(first.len() >= 4, "{first:?}");
    assert_eq!(first[0], cluster.pid().unwrap());
    cluster.restart(StopMode::Fast).unwrap();
    assert_gone(&first);
    let second = pids(&data);
    cluster.stop(StopMode::Smart).unwrap();
    assert_gone(&second);
    cluster.stop(StopMode::Smart).unwrap();
    assert!(!cluster.is_ready());
    cluster.start().unwrap();
    let third = pids(&data);
    cluster.close().unwrap();
    assert_gone(&third);
    assert!(!place.path("c").exists());
}

#[test]
fn settings_reach_the_server_unchanged() {
    let Some(place) = Place::new("settings_reach_the_server_unchanged", Need::Nothing) else {
        return;
    };
    let odd = r"a'b\c # d=%m";
    let mut options = place.options("c");
    options.checksums = false;
    options.set("work_mem", "64kB").set("log_line_prefix", odd).set("work_mem", "128kB");
    options.server_env = vec![("SHELFLIFE_TEST".into(), "seen".into())];
    let mut cluster = Cluster::create(options).unwrap();
    cluster.start().unwrap();
    let mut session = cluster.connect("postgres").unwrap();
    assert_eq!(session.show("log_line_prefix").unwrap(), odd);
    assert_eq!(session.show("work_mem").unwrap(), "128kB");
    assert_eq!(session.show("data_checksums").unwrap(), "off");
    assert_eq!(session.show("listen_addresses").unwrap(), "");
    let environment = fs::read(format!("/proc/{}/environ", cluster.pid().unwrap())).unwrap();
    let environment = String::from_utf8_lossy(&environment);
    assert!(environment.contains("SHELFLIFE_TEST=seen"), "{environment}");

    cluster.set_settings(vec![("work_mem".into(), "256kB".into())]).unwrap();
    crate::eventually("the reload", || session.show("work_mem").unwrap() == "256kB");
}

#[test]
fn a_dropped_cluster_takes_its_server_along() {
    let Some(place) = Place::new("a_dropped_cluster_takes_its_server_along", Need::Nothing) else {
        return;
    };
    let mut seen = Vec::new();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let cluster = place.started("c");
        seen = pids(cluster.data());
        // A panic with a running server and an empty folder that was there before.
        std::panic::resume_unwind(Box::new("on purpose"));
    }));
    assert_eq!(*panicked.unwrap_err().downcast::<&str>().unwrap(), "on purpose");
    assert!(seen.len() >= 4);
    assert_gone(&seen);
    assert!(!place.path("c").exists());
}

#[test]
fn only_what_was_made_is_removed() {
    let Some(place) = Place::new("only_what_was_made_is_removed", Need::Nothing) else { return };
    fs::create_dir(place.path("c")).unwrap();
    drop(place.started("c"));
    assert!(place.path("c").is_dir(), "it was there before");
    assert_eq!(fs::read_dir(place.path("c")).unwrap().count(), 0);

    let cluster = Cluster::create(place.options("d")).unwrap();
    fs::write(place.path("d/results.json"), "{}").unwrap();
    drop(cluster);
    assert_eq!(fs::read_dir(place.path("d")).unwrap().count(), 1, "somebody's file stays");
}

#[test]
fn a_kept_cluster_is_taken_over() {
    let Some(place) = Place::new("a_kept_cluster_is_taken_over", Need::Nothing) else { return };
    let mut options = place.options("c");
    options.keep = true;
    let mut cluster = Cluster::create(options.clone()).unwrap();
    cluster.start().unwrap();
    cluster.connect("postgres").unwrap().batch("CREATE TABLE t AS SELECT 42 AS a").unwrap();
    let seen = pids(cluster.data());
    drop(cluster);
    assert_gone(&seen);
    let log = fs::read_to_string(place.path("c/server.log")).unwrap();
    assert!(log.contains("database system is shut down"), "{log}");

    options.keep = false;
    let mut cluster = Cluster::open(options).unwrap();
    cluster.start().unwrap();
    let answer: i32 = cluster.connect("postgres").unwrap().one("SELECT a FROM t", &[]).unwrap();
    assert_eq!(answer, 42);
    cluster.close().unwrap();
    assert!(!place.path("c").exists());
}

#[test]
fn a_long_path_gets_its_socket_elsewhere() {
    let Some(place) = Place::new("a_long_path_gets_its_socket_elsewhere", Need::Nothing) else {
        return;
    };
    let mut cluster = place.started(&"long".repeat(30));
    let socket = cluster.socket_folder().to_owned();
    assert!(!socket.starts_with(cluster.folder()), "{socket:?}");
    assert_eq!(fs::metadata(&socket).unwrap().mode() & 0o777, 0o700);
    cluster.connect("postgres").unwrap();
    cluster.close().unwrap();
    assert!(!socket.exists());
}

#[test]
fn wal_links_and_tablespaces_are_found() {
    let Some(place) = Place::new("wal_links_and_tablespaces_are_found", Need::Nothing) else {
        return;
    };
    let mut cluster = Cluster::create(place.options("c")).unwrap();
    for name in ["wal", "space"] {
        fs::create_dir(place.path(name)).unwrap();
        let user = cluster.user();
        if is_root() {
            let (uid, gid) = (Some(user.uid()), Some(user.gid()));
            std::os::unix::fs::chown(place.path(name), uid, gid).unwrap();
        }
    }
    // As `initdb --waldir` would have made it.
    let (inside, outside) = (cluster.data().path().join("pg_wal"), place.path("wal/pg_wal"));
    fs::rename(&inside, &outside).unwrap();
    symlink(&outside, &inside).unwrap();
    cluster.start().unwrap();
    let mut session = cluster.connect("postgres").unwrap();
    let space = place.path("space").canonicalize().unwrap();
    session.batch(&format!("CREATE TABLESPACE s LOCATION '{}'", space.display())).unwrap();
    let oid: u32 = session.one("SELECT oid FROM pg_tablespace WHERE spcname = 's'", &[]).unwrap();
    assert_eq!(cluster.data().wal_folder().unwrap(), outside.canonicalize().unwrap());
    let found = cluster.data().tablespaces().unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].oid, found[0].in_place), (oid, false));
    assert_eq!(found[0].path, space);
}
