//! Ends that nobody wished for: kill -9, Ctrl-C, processes that do not notice.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::process::Pid;
use rustix::process::Signal;
use shelflife_postgres::Cancel;
use shelflife_postgres::Cluster;
use shelflife_postgres::ClusterOptions;
use shelflife_postgres::Error;
use shelflife_postgres::Session;
use shelflife_postgres::StopMode;
use shelflife_postgres::procfs::Process;
use shelflife_postgres::procfs::Procfs;
use shelflife_postgres::verify;

use crate::Need;
use crate::Place;
use crate::assert_gone;
use crate::eventually;

/// Makes a start that finds `recovery.signal` wait for ten minutes.
pub fn hang(options: &mut ClusterOptions) {
    options.start_limit = Duration::from_secs(60);
    options.set("restore_command", "sleep 600");
}

fn kill(pid: i32) {
    rustix::process::kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
}

/// Everything that descends from the cluster's postmaster.
fn tree(cluster: &Cluster) -> Vec<Process> {
    let proc = Procfs::default();
    proc.family(&[proc.process(cluster.pid().unwrap()).unwrap()]).unwrap()
}

fn pids(tree: &[Process]) -> Vec<i32> {
    tree.iter().map(|process| process.pid).collect()
}

/// A session that computes for hours, without a look at the postmaster.
fn busy(cluster: &Cluster) -> std::thread::JoinHandle<()> {
    let dsn = cluster.dsn("postgres");
    let busy = std::thread::spawn(move || {
        let mut session = Session::connect(&dsn, &Cancel::never()).unwrap();
        let sql = "SELECT count(*) FROM generate_series(1, 1e9) a, generate_series(1, 1e9) b";
        session.batch(sql).unwrap_err();
    });
    let data = cluster.data().clone();
    eventually("the busy session", || {
        let proc = Procfs::default();
        let all = data.all_processes().unwrap();
        all.iter().any(|one| proc.title(one.pid).is_some_and(|title| title.contains("SELECT")))
    });
    busy
}

/// The key of the System V segment that the server in this cluster's folder has noted.
fn segment_key(folder: &Path) -> Option<String> {
    let file = fs::read_to_string(folder.join("data/postmaster.pid")).ok()?;
    Some(file.lines().nth(6)?.split_ascii_whitespace().next()?.to_owned())
}

/// Whether the kernel knows a System V segment of this key.
fn segment_exists(key: &str) -> bool {
    let list = fs::read_to_string("/proc/sysvipc/shm").unwrap();
    list.lines().skip(1).any(|line| line.split_ascii_whitespace().next() == Some(key))
}

/// The POSIX segments that these processes have mapped.
fn posix_segments(tree: &[Process]) -> Vec<String> {
    let maps =
        tree.iter().filter_map(|one| fs::read_to_string(format!("/proc/{}/maps", one.pid)).ok());
    let maps: Vec<String> = maps.collect();
    let paths = maps.iter().flat_map(|map| map.lines()).filter_map(|line| line.split_once('/'));
    let mut found: Vec<String> = paths.map(|(_, path)| format!("/{path}")).collect();
    found.retain(|path| path.starts_with("/dev/shm/PostgreSQL."));
    found
}

#[test]
fn killed_and_recovered_it_is_whole() {
    let Some(place) = Place::new("killed_and_recovered_it_is_whole", Need::Nothing) else { return };
    let mut cluster = place.started("c");
    let mut session = cluster.connect("postgres").unwrap();
    session
        .batch("CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t SELECT generate_series(1, 5000)")
        .unwrap();
    let busy = busy(&cluster);
    let seen = tree(&cluster);
    assert!(seen.len() >= 6, "{seen:?}");
    cluster.kill9().unwrap();
    busy.join().unwrap();
    assert_gone(&pids(&seen));
    assert!(!cluster.is_ready());
    assert!(matches!(cluster.check_alive(), Err(Error::ServerDied { .. })));
    cluster.start().unwrap();
    assert!(cluster.log_tail(100).join("\n").contains("automatic recovery in progress"));
    let count: i64 =
        cluster.connect("postgres").unwrap().one("SELECT count(*) FROM t", &[]).unwrap();
    assert_eq!(count, 5000);
    if crate::verify::has_amcheck(&mut cluster, "killed_and_recovered_it_is_whole") {
        let dsn = cluster.dsn("postgres");
        assert!(verify::amcheck(&place.programs, &dsn, &Cancel::never()).unwrap().is_clean());
    }
    cluster.stop(StopMode::Fast).unwrap();
    if !crate::verify::has_checksums(&place, "killed_and_recovered_it_is_whole") {
        return;
    }
    let data = cluster.data();
    assert!(verify::checksums(&place.programs, data, &Cancel::never()).unwrap().is_clean());
}

#[test]
fn a_postmaster_killed_by_others_leaves_nothing() {
    let Some(place) = Place::new("a_postmaster_killed_by_others_leaves_nothing", Need::Nothing)
    else {
        return;
    };
    let mut cluster = place.started("c");
    let busy = busy(&cluster);
    let seen = tree(&cluster);
    let key = segment_key(cluster.folder()).unwrap();
    let files = posix_segments(&seen);
    assert!(segment_exists(&key));
    assert!(!files.is_empty());
    kill(cluster.pid().unwrap());
    eventually("its death", || cluster.check_alive().is_err());
    match cluster.connect("postgres") {
        Err(Error::ServerDied { status, .. }) => assert!(status.contains('9'), "{status}"),
        other => panic!("{other:?}"),
    }
    drop(cluster);
    busy.join().unwrap();
    assert_gone(&pids(&seen));
    assert!(!segment_exists(&key));
    assert!(files.iter().all(|file| !Path::new(file).exists()), "{files:?}");
    assert!(!place.path("c").exists());
}

#[test]
fn a_postmaster_killed_by_others_starts_again() {
    let Some(place) = Place::new("a_postmaster_killed_by_others_starts_again", Need::Nothing)
    else {
        return;
    };
    let mut cluster = place.started("c");
    let first = cluster.pid().unwrap();
    kill(first);
    eventually("its death", || cluster.check_alive().is_err());
    cluster.start().unwrap();
    assert_ne!(cluster.pid().unwrap(), first);
    cluster.connect("postgres").unwrap();
}

#[test]
fn commands_of_the_server_go_with_it() {
    let Some(place) = Place::new("commands_of_the_server_go_with_it", Need::Nothing) else {
        return;
    };
    let mut options = place.options("c");
    options.set("archive_mode", "on").set("archive_command", "sleep 600 # %p");
    let mut cluster = Cluster::create(options).unwrap();
    cluster.start().unwrap();
    let switch = "SELECT pg_switch_wal()";
    let mut session = cluster.connect("postgres").unwrap();
    session.batch("CREATE TABLE t ()").unwrap();
    session.batch(switch).unwrap();
    drop(session);
    let sleeps = |tree: &[Process]| tree.iter().any(|process| process.name == "sleep");
    eventually("the archiver's command", || sleeps(&tree(&cluster)));
    let seen = tree(&cluster);
    cluster.stop(StopMode::Immediate).unwrap();
    assert_gone(&pids(&seen));
}

#[test]
fn the_terminals_ctrl_c_does_not_reach_the_server() {
    let Some(place) = Place::new("the_terminals_ctrl_c_does_not_reach_the_server", Need::Nothing)
    else {
        return;
    };
    let cluster = place.started("c");
    let ours = rustix::process::getpgrp();
    for process in tree(&cluster) {
        let group = rustix::process::getpgid(Pid::from_raw(process.pid)).unwrap();
        assert_ne!(group, ours, "{process:?}");
    }
}

/// A cluster whose flag another thread raises as soon as `when` holds.
fn interrupted(
    place: &Place,
    change: impl FnOnce(&mut ClusterOptions),
    when: impl Fn(&Path) -> bool + Send + 'static,
    act: impl FnOnce(ClusterOptions, &Arc<AtomicBool>),
) {
    let flag = Arc::new(AtomicBool::new(false));
    let mut options = place.options("c");
    options.cancel = Cancel::new(Arc::clone(&flag));
    change(&mut options);
    let folder = options.folder.clone();
    let raised = Arc::clone(&flag);
    let raise = std::thread::spawn(move || {
        eventually("the moment to interrupt", || when(&folder));
        raised.store(true, Ordering::Relaxed);
    });
    act(options, &flag);
    raise.join().unwrap();
    assert!(!place.path("c").exists(), "nothing is left");
    let servers = Procfs::default().processes().unwrap();
    let here = place.folder.path().to_str().unwrap();
    let left: Vec<_> = servers
        .iter()
        .filter(|one| Procfs::default().title(one.pid).is_some_and(|title| title.contains(here)))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

fn log_says(folder: &Path, words: &str) -> bool {
    fs::read_to_string(folder.join("server.log")).is_ok_and(|log| log.contains(words))
}

#[test]
fn ctrl_c_during_initdb_leaves_nothing() {
    let Some(place) = Place::new("ctrl_c_during_initdb_leaves_nothing", Need::Nothing) else {
        return;
    };
    // While one of initdb's servers has its shared memory.
    let key = Arc::new(Mutex::new(String::new()));
    let noted = Arc::clone(&key);
    let began = move |folder: &Path| {
        let found = segment_key(folder);
        found.is_some_and(|found| {
            let exists = segment_exists(&found);
            *noted.lock().unwrap() = found;
            exists
        })
    };
    interrupted(
        &place,
        |_| (),
        began,
        |options, _| {
            assert!(matches!(Cluster::create(options), Err(Error::Interrupted)));
        },
    );
    let key = key.lock().unwrap();
    assert!(!segment_exists(&key), "{key}");
}

#[test]
fn ctrl_c_before_anything_makes_nothing() {
    let Some(place) = Place::new("ctrl_c_before_anything_makes_nothing", Need::Nothing) else {
        return;
    };
    let mut options = place.options("c");
    options.cancel = Cancel::new(Arc::new(AtomicBool::new(true)));
    assert!(matches!(Cluster::create(options), Err(Error::Interrupted)));
    assert!(!place.path("c").exists());
}

#[test]
fn ctrl_c_during_start_leaves_nothing() {
    let Some(place) = Place::new("ctrl_c_during_start_leaves_nothing", Need::Nothing) else {
        return;
    };
    let began = |folder: &Path| log_says(folder, "database system was shut down at");
    interrupted(&place, hang, began, |options, _| {
        let mut cluster = Cluster::create(options).unwrap();
        fs::write(cluster.data().path().join("recovery.signal"), "").unwrap();
        assert!(matches!(cluster.start(), Err(Error::Interrupted)));
        let seen = tree(&cluster);
        assert!(seen.len() >= 2, "{seen:?}");
        drop(cluster);
        assert_gone(&pids(&seen));
    });
}

#[test]
fn ctrl_c_during_stop_leaves_nothing() {
    let Some(place) = Place::new("ctrl_c_during_stop_leaves_nothing", Need::Nothing) else {
        return;
    };
    let began = |folder: &Path| log_says(folder, "received smart shutdown request");
    interrupted(
        &place,
        |_| (),
        began,
        |options, flag| {
            let mut cluster = Cluster::create(options).unwrap();
            cluster.start().unwrap();
            // A smart stop waits for this one.
            let session = cluster.connect("postgres").unwrap();
            assert!(matches!(cluster.stop(StopMode::Smart), Err(Error::Interrupted)));
            assert!(flag.load(Ordering::Relaxed));
            let seen = tree(&cluster);
            drop(cluster);
            assert_gone(&pids(&seen));
            drop(session);
        },
    );
}

#[test]
fn ctrl_c_at_a_server_that_hangs_ends_the_wait() {
    let Some(place) = Place::new("ctrl_c_at_a_server_that_hangs_ends_the_wait", Need::Nothing)
    else {
        return;
    };
    let cluster = place.started("c");
    let pid = Pid::from_raw(cluster.pid().unwrap()).unwrap();
    rustix::process::kill_process(pid, Signal::STOP).unwrap();
    let flag = Arc::new(AtomicBool::new(false));
    let raised = Arc::clone(&flag);
    let raise = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        raised.store(true, Ordering::Relaxed);
    });
    // The kernel accepts the connection, nobody answers.
    let ended = Session::connect(&cluster.dsn("postgres"), &Cancel::new(flag));
    assert!(matches!(ended, Err(Error::Interrupted)), "{ended:?}");
    raise.join().unwrap();
    rustix::process::kill_process(pid, Signal::CONT).unwrap();
}

#[test]
fn a_stop_that_takes_too_long_is_given_up() {
    let Some(place) = Place::new("a_stop_that_takes_too_long_is_given_up", Need::Nothing) else {
        return;
    };
    let mut options = place.options("c");
    options.stop_limit = Duration::from_millis(200);
    let mut cluster = Cluster::create(options).unwrap();
    cluster.start().unwrap();
    let session = cluster.connect("postgres").unwrap();
    let told = cluster.stop(StopMode::Smart).unwrap_err();
    assert!(matches!(told, Error::Timeout { .. }), "{told}");
    drop(session);
}

#[test]
fn a_server_in_recovery_is_recognised() {
    let Some(place) = Place::new("a_server_in_recovery_is_recognised", Need::Nothing) else {
        return;
    };
    let mut options = place.options("c");
    // A standby may not allow fewer than the server that wrote the WAL, here initdb's.
    options.settings.retain(|(name, _)| name != "max_connections");
    let mut cluster = Cluster::create(options).unwrap();
    assert!(!cluster.data().is_standby());
    fs::write(cluster.data().path().join("standby.signal"), "").unwrap();
    assert!(cluster.data().is_standby());
    cluster.start().unwrap();
    assert!(cluster.is_ready());
    let mut session = cluster.connect("postgres").unwrap();
    assert!(session.is_in_recovery().unwrap());
    session.checkpoint().unwrap();
    assert_eq!(session.counters().unwrap().wal_position, None);
    assert_eq!(session.replicas().unwrap().count, 0);
    session.gauges().unwrap();
}
