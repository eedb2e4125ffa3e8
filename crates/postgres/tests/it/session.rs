use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;

use shelflife_postgres::Cancel;
use shelflife_postgres::Dsn;
use shelflife_postgres::Error;
use shelflife_postgres::Session;

use crate::Need;
use crate::Place;

#[test]
fn counters_tell_what_happened_between() {
    let Some(place) = Place::new("counters_tell_what_happened_between", Need::Nothing) else {
        return;
    };
    let mut cluster = place.started("c");
    let mut session = cluster.connect("postgres").unwrap();
    assert_eq!(session.version(), place.programs.version());
    assert!(session.is_superuser().unwrap());
    assert!(!session.is_in_recovery().unwrap());
    assert_eq!(session.data_folder().unwrap(), cluster.data().path());
    session
        .batch(
            "CREATE TABLE t (a int PRIMARY KEY, b int) WITH (fillfactor = 40, autovacuum_enabled = off); \
             INSERT INTO t SELECT g, 0 FROM generate_series(1, 1000) g",
        )
        .unwrap();
    let before = session.counters().unwrap();
    session.checkpoint().unwrap();
    session.batch("UPDATE t SET b = 1").unwrap();
    session
        .batch(
            "SET work_mem = '64kB'; \
             SELECT count(*) FROM (SELECT g FROM generate_series(1, 100000) g ORDER BY -g OFFSET 0) s",
        )
        .unwrap();
    let round = session.counters().unwrap().since(&before);
    assert_eq!(round.checkpoints_requested, Some(1));
    assert_eq!(round.checkpoints_timed, Some(0));
    assert!(round.checkpoint_buffers.unwrap() > 0);
    assert_eq!(round.rows_updated, Some(1000));
    assert_eq!((round.rows_inserted, round.rows_deleted), (Some(0), Some(0)));
    let hot = round.hot_share().unwrap();
    assert!(hot > 0.0 && hot <= 1.0, "{hot}");
    assert!(round.temp_files.unwrap() >= 1);
    assert!(round.temp_bytes.unwrap() > 100_000);
    assert!(round.commits.unwrap() >= 2);
    assert!(round.wal_position.unwrap() > 50_000);
    if session.version().major >= 14 {
        assert!(round.wal_records.unwrap() >= 1000);
        assert!(round.wal_full_page_images.unwrap() >= 1, "first change after a checkpoint");
        // The position also counts page headers and alignment.
        assert!(round.wal_bytes.unwrap() <= round.wal_position.unwrap());
    }
    let gauges = session.gauges().unwrap();
    assert!(gauges.database_bytes > 5_000_000);
    assert_eq!((gauges.dead_rows, gauges.live_rows), (1000, 1000));
    assert!(gauges.wal_files >= 1);
    assert!(gauges.wal_folder_bytes >= gauges.wal_files << 20);
}

#[test]
fn settings_paths_and_replicas() {
    let Some(place) = Place::new("settings_paths_and_replicas", Need::Nothing) else { return };
    let mut cluster = place.started("c");
    let mut session = cluster.connect("postgres").unwrap();
    let found = session.settings(&["work_mem", "no_such_setting", "fsync"]).unwrap();
    let shown: Vec<_> = found.iter().map(|s| (s.name.as_str(), s.value.as_str())).collect();
    assert_eq!(shown, [("work_mem", "4MB"), ("fsync", "off")]);
    assert_eq!(found[0].source, "default");
    assert_eq!(found[1].source, "configuration file");
    assert!(matches!(session.show("no_such_setting"), Err(Error::Query { .. })));

    session.batch("CREATE TABLE t (a int); CREATE VIEW v AS SELECT 1").unwrap();
    let path = session.relation_path("t").unwrap().unwrap();
    assert!(path.starts_with("base") && cluster.data().path().join(&path).is_file(), "{path:?}");
    assert_eq!(session.relation_path("v").unwrap(), None);
    assert_eq!(session.relation_path("none").unwrap(), None);
    let replicas = session.replicas().unwrap();
    assert_eq!((replicas.count, replicas.lag_bytes), (0, None));
}

#[test]
fn a_running_statement_ends_with_the_flag_or_its_limit() {
    let Some(place) =
        Place::new("a_running_statement_ends_with_the_flag_or_its_limit", Need::Nothing)
    else {
        return;
    };
    let mut cluster = place.started("c");
    let flag = Arc::new(AtomicBool::new(false));
    let cancel = Cancel::new(Arc::clone(&flag));
    let mut session = Session::connect(&cluster.dsn("postgres"), &cancel).unwrap();
    session.set_statement_timeout(Some(Duration::from_millis(50))).unwrap();
    match session.batch("SELECT pg_sleep(3600)") {
        Err(error @ Error::Query { .. }) => {
            let cause = std::error::Error::source(&error).unwrap();
            let cause = format!("{cause} {:?}", cause.source());
            assert!(cause.contains("statement timeout"), "{cause}");
        }
        other => panic!("{other:?}"),
    }
    session.set_statement_timeout(None).unwrap();
    let watcher = cluster.connect("postgres").unwrap();
    let raise = std::thread::spawn(move || {
        let mut watcher = watcher;
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
        crate::eventually("the sleep", || watcher.one::<i64>(sql, &[]).unwrap() == 1);
        flag.store(true, Ordering::Relaxed);
    });
    assert!(matches!(session.batch("SELECT pg_sleep(3600)"), Err(Error::Interrupted)));
    raise.join().unwrap();
    assert!(matches!(session.batch("SELECT 1"), Err(Error::Interrupted)));
}

#[test]
fn a_dsn_of_the_users_reaches_the_same_server() {
    let Some(place) = Place::new("a_dsn_of_the_users_reaches_the_same_server", Need::Nothing)
    else {
        return;
    };
    let mut cluster = place.started("c");
    let socket = cluster.socket_folder().display().to_string();
    let url = format!("postgresql://postgres@{}/template1", socket.replace('/', "%2F"));
    for text in [format!("host={socket} user=postgres dbname=template1"), url] {
        let dsn = Dsn::parse(&text).unwrap();
        let mut session = Session::connect(&dsn, &Cancel::never()).unwrap();
        let name: String = session.one("SELECT current_database()::text", &[]).unwrap();
        assert_eq!(name, "template1");
    }
    let mut session = cluster.connect("postgres").unwrap();
    assert!(session.await_gone("shelflife", Duration::from_secs(30)).unwrap());
    drop(session);
    cluster.stop(shelflife_postgres::StopMode::Fast).unwrap();
    let told = Session::connect(&cluster.dsn("postgres"), &Cancel::never()).unwrap_err();
    assert!(told.to_string().contains(&socket), "{told}");
    assert!(matches!(cluster.connect("postgres"), Err(Error::NotRunning { .. })));
}
