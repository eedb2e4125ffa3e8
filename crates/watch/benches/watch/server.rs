//! On a real server.

use std::path::Path;
use std::time::Duration;

use shelflife_postgres::pgbench::{self, Initialise, Length, Load};
use shelflife_postgres::programs::Search;
use shelflife_postgres::{Cancel, Cluster, ClusterOptions, Programs};
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::beside::Beside;
use crate::storm::storm;

/// A started cluster with pgbench's tables, below `dir`; `None`, said, where there is no server.
pub fn cluster(dir: &Path, scale: u32) -> Option<Cluster> {
    let programs = match Programs::find(&Search::new(None)) {
        Ok(programs) => programs,
        Err(error) => {
            println!("no server here: {error}");
            return None;
        }
    };
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o755)).expect("open");
    let mut options = ClusterOptions::new(programs.clone(), dir.join("c"));
    options.set("max_connections", "250").set("shared_buffers", "256MB");
    options.set("max_wal_size", "2GB").set("checkpoint_timeout", "60s");
    let mut cluster = Cluster::create(options).expect("a cluster");
    cluster.start().expect("started");
    let load = Initialise { scale, args: vec!["-q".into()] };
    let dsn = cluster.dsn("postgres");
    pgbench::initialise(&programs, &dsn, &load, &Cancel::never(), &mut |_| ()).expect("loaded");
    Some(cluster)
}

/// A storm beside pgbench with 200 connections.
pub fn loaded() {
    for mode in ["folders", "filesystem"] {
        let dir = tempfile::Builder::new().tempdir_in("/var/tmp").expect("a folder");
        let Some(cluster) = cluster(dir.path(), 20) else { return };
        let data = cluster.data().path().to_owned();
        let folder = data.join("base/pgsql_tmp");
        let beside = Beside::start(&data, mode, &dir.path().join("state"));
        std::fs::create_dir_all(&folder).expect("a folder");
        let user = cluster.user();
        std::os::unix::fs::chown(&folder, Some(user.uid()), Some(user.gid())).expect("given");
        let (programs, dsn) = (cluster.programs().clone(), cluster.dsn("postgres"));
        let bench = std::thread::spawn(move || {
            let load = Load::new(200, Length::Seconds(16));
            pgbench::run(&programs, &dsn, &load, &Cancel::never(), &mut |_| ()).expect("a run")
        });
        std::thread::sleep(Duration::from_secs(4));
        // The files must be the server's user's; a thread can become that user.
        let user = user.clone();
        let stormed = std::thread::spawn(move || {
            user.assume().expect("the user");
            storm(&folder, Duration::from_secs(10))
        });
        let outcome = stormed.join().expect("a storm");
        let outcome_of_bench = bench.join().expect("a run");
        std::thread::sleep(Duration::from_millis(1500));
        let overflows = beside.figures().map_or(0, |f| f.overflows);
        outcome.say(&format!("marks on {mode}, beside pgbench -c 200"), overflows);
        println!("  pgbench: {:.0} tps beside it", outcome_of_bench.summary.tps);
        drop(beside);
        drop(cluster);
    }
}

/// Pairs of short runs, with and without the daemon, in alternating order.
pub fn pairs() {
    let rounds: u32 = std::env::var("ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(6);
    let dir = tempfile::Builder::new().tempdir_in("/var/tmp").expect("a folder");
    let Some(cluster) = cluster(dir.path(), 20) else { return };
    let data = cluster.data().path().to_owned();
    let once = || {
        let load = Load { jobs: 2, ..Load::new(8, Length::Seconds(8)) };
        let dsn = cluster.dsn("postgres");
        let outcome = pgbench::run(cluster.programs(), &dsn, &load, &Cancel::never(), &mut |_| ());
        outcome.expect("a run").summary.tps
    };
    once();
    let mut ratios = Vec::new();
    let (mut with_all, mut without_all) = (0.0, 0.0);
    for round in 0..rounds {
        let with = || {
            let _beside = Beside::start(&data, "folders", &dir.path().join("state"));
            once()
        };
        let (with, without) = if round % 2 == 0 {
            let with = with();
            (with, once())
        } else {
            let without = once();
            (with(), without)
        };
        with_all += with;
        without_all += without;
        ratios.push((with / without).ln());
    }
    let n = f64::from(rounds);
    let mean = ratios.iter().sum::<f64>() / n;
    let variance = ratios.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
    let t = StudentsT::new(0.0, 1.0, (n - 1.0).max(1.0)).expect("a distribution");
    let half = t.inverse_cdf(0.975) * (variance / n).sqrt();
    println!(
        "pgbench, with / without the daemon: {:.3} [95 %: {:.3} to {:.3}], {rounds} pairs of 8 s; \
         {:.0} and {:.0} tps",
        mean.exp(),
        (mean - half).exp(),
        (mean + half).exp(),
        with_all / n,
        without_all / n
    );
}
