use std::fs;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;

use shelflife_postgres::Cancel;
use shelflife_postgres::Cluster;
use shelflife_postgres::Error;
use shelflife_postgres::pgbench;
use shelflife_postgres::pgbench::Initialise;
use shelflife_postgres::pgbench::Length;
use shelflife_postgres::pgbench::Load;
use shelflife_postgres::pgbench::LoadProgress;
use shelflife_postgres::pgbench::Script;

use crate::Need;
use crate::Place;

fn load(place: &Place, cluster: &Cluster) -> Vec<LoadProgress> {
    let dsn = cluster.dsn("postgres");
    let mut progress = Vec::new();
    let how = Initialise { scale: 1, args: vec!["--fillfactor=90".into()] };
    pgbench::initialise(&place.programs, &dsn, &how, &Cancel::never(), &mut |at| progress.push(at))
        .unwrap();
    progress
}

#[test]
fn a_load_is_measured_as_pgbench_sees_it() {
    let Some(place) = Place::new("a_load_is_measured_as_pgbench_sees_it", Need::Nothing) else {
        return;
    };
    let mut cluster = place.started("c");
    let progress = load(&place, &cluster);
    let last = *progress.last().unwrap();
    assert_eq!(last, LoadProgress { rows: 100_000, total: 100_000 });

    let mut session = cluster.connect("postgres").unwrap();
    let before = session.counters().unwrap();
    let mut how = Load::new(2, Length::Transactions(200));
    how.jobs = 2;
    how.log_folder = Some(place.folder.path().to_owned());
    let dsn = cluster.dsn("postgres");
    let outcome = pgbench::run(&place.programs, &dsn, &how, &Cancel::never(), &mut |_| ()).unwrap();
    assert!(session.await_gone(pgbench::APPLICATION, Duration::from_secs(30)).unwrap());
    let round = session.counters().unwrap().since(&before);
    assert_eq!(outcome.summary.transactions, 400);
    assert_eq!(outcome.summary.clients, Some(2));
    assert_eq!(outcome.summary.scale, Some(1));
    assert!(outcome.summary.tps > 0.0);
    assert_eq!(round.rows_updated, Some(1200), "three updates in each transaction");
    assert_eq!(round.rows_inserted, Some(400));
    let latencies = outcome.latencies.unwrap();
    let all = latencies.all.unwrap();
    assert_eq!((all.count, latencies.failed, latencies.skipped), (400, 0, 0));
    assert!(all.p50_us <= all.p95_us && all.p95_us <= all.p99_us);
    // pgbench's own mean is over the same transactions, printed to the microsecond.
    let mean_ms = outcome.summary.latency_average_ms.unwrap();
    assert!((all.mean_us / 1000.0 - mean_ms).abs() < 0.002, "{} {mean_ms}", all.mean_us);
    assert_eq!(fs::read_dir(place.folder.path()).unwrap().count(), 1, "only the cluster is left");
}

#[test]
fn scripts_rate_and_seed_count() {
    let Some(place) = Place::new("scripts_rate_and_seed_count", Need::Nothing) else { return };
    let mut cluster = place.started("c");
    load(&place, &cluster);
    let mut session = cluster.connect("postgres").unwrap();
    session.batch("CREATE TABLE drawn (n int)").unwrap();
    let file = place.path("draw@home.sql");
    fs::write(&file, "\\set n random(1, 1000000000)\nINSERT INTO drawn VALUES (:n);\n").unwrap();
    let mut how = Load::new(1, Length::Transactions(60));
    how.log_folder = Some(place.folder.path().to_owned());
    how.rate = Some(1000.0);
    how.scripts = vec![Script::File(file, 3), Script::Builtin("select-only".into(), 1)];
    let dsn = cluster.dsn("postgres");
    let mut drawn = Vec::new();
    for seed in [7, 7, 8] {
        how.seed = seed;
        let outcome =
            pgbench::run(&place.programs, &dsn, &how, &Cancel::never(), &mut |_| ()).unwrap();
        let sql = "WITH d AS (DELETE FROM drawn RETURNING n) SELECT array_agg(n ORDER BY n) FROM d";
        drawn.push(session.one::<Vec<i32>>(sql, &[]).unwrap());
        let scripts = &outcome.summary.scripts;
        assert_eq!(scripts.len(), 2);
        assert_eq!(scripts.iter().map(|s| s.weight).collect::<Vec<_>>(), [Some(3), Some(1)]);
        assert!(scripts[0].name.ends_with("draw@home.sql"), "{}", scripts[0].name);
        let logged = outcome.latencies.unwrap();
        let counts: Vec<_> = logged.scripts.iter().map(|s| s.map(|s| s.count)).collect();
        assert_eq!(counts, scripts.iter().map(|s| s.transactions).collect::<Vec<_>>());
        assert!(outcome.summary.schedule_lag_max_ms.is_some());
        assert!(outcome.summary.latency_stddev_ms.is_some());
    }
    assert_eq!(drawn[0], drawn[1], "the same seed draws the same");
    assert_ne!(drawn[0], drawn[2]);
}

#[test]
fn a_script_that_fails_is_no_result() {
    let Some(place) = Place::new("a_script_that_fails_is_no_result", Need::Nothing) else { return };
    let cluster = place.started("c");
    let file = place.path("bad.sql");
    fs::write(&file, "SELECT 1/0;\n").unwrap();
    let mut how = Load::new(1, Length::Transactions(5));
    how.scripts = vec![Script::File(file, 1)];
    let dsn = cluster.dsn("postgres");
    let told = pgbench::run(&place.programs, &dsn, &how, &Cancel::never(), &mut |_| ())
        .map(drop)
        .unwrap_err()
        .to_string();
    assert!(told.starts_with("pgbench failed (exit status: 2)"), "{told}");
    assert!(told.contains("division by zero"), "{told}");
}

#[test]
fn a_raised_flag_ends_a_load_and_its_loading() {
    let Some(place) = Place::new("a_raised_flag_ends_a_load_and_its_loading", Need::Nothing) else {
        return;
    };
    let mut cluster = place.started("c");
    let dsn = cluster.dsn("postgres");
    let flag = Arc::new(AtomicBool::new(false));
    let cancel = Cancel::new(Arc::clone(&flag));
    let how = Initialise { scale: 50, args: Vec::new() };
    let ended = pgbench::initialise(&place.programs, &dsn, &how, &cancel, &mut |at| {
        assert!(at.rows < at.total, "scale 50 takes longer than to raise a flag");
        flag.store(true, Ordering::Relaxed);
    });
    assert!(matches!(ended, Err(Error::Interrupted)));

    load(&place, &cluster);
    flag.store(false, Ordering::Relaxed);
    let mut how = Load::new(2, Length::Seconds(3600));
    how.log_folder = Some(place.folder.path().to_owned());
    let mut seconds = 0.0;
    let ended = pgbench::run(&place.programs, &dsn, &how, &cancel, &mut |at| {
        seconds = at.seconds;
        flag.store(true, Ordering::Relaxed);
    });
    assert!(matches!(ended, Err(Error::Interrupted)));
    assert!(seconds > 0.0, "progress came while it ran");
    let mut session = cluster.connect("postgres").unwrap();
    assert!(session.await_gone(pgbench::APPLICATION, Duration::from_secs(30)).unwrap());
    assert_eq!(fs::read_dir(place.folder.path()).unwrap().count(), 1, "its log is removed");
}
