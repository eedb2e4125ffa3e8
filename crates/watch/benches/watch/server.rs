//! On a real server.

use std::path::Path;
use std::time::Duration;

use shelflife_postgres::pgbench::{self, Initialise, Length, Load};
use shelflife_postgres::programs::Search;
use shelflife_postgres::{Cancel, Cluster, ClusterOptions, Programs};

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

/// A storm beside pgbench with 200 connections, in memory and on a drive.
///
/// The daemon has the niceness of its unit, and then runs in real time. Files are made, and looked at, before anything else that
/// wants the processor: two processors and 200 connections would leave the generator no rate. Where
/// commits wait for a drive, creations wait for its journal as well.
pub fn loaded() {
    for place in ["/dev/shm", "/var/tmp"] {
        for mode in ["folders", "filesystem"] {
            storm_beside_pgbench(Path::new(place), mode, false);
            storm_beside_pgbench(Path::new(place), mode, true);
        }
    }
}

fn storm_beside_pgbench(place: &Path, mode: &str, in_real_time: bool) {
    let dir = tempfile::Builder::new().tempdir_in(place).expect("a folder");
    let Some(cluster) = cluster(dir.path(), 20) else { return };
    let data = cluster.data().path().to_owned();
    let folder = data.join("base/pgsql_tmp");
    let start = if in_real_time { Beside::start_in_real_time } else { Beside::start };
    let beside = start(&data, mode, &dir.path().join("state"));
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
        be_nice(-20);
        user.assume().expect("the user");
        storm(&folder, Duration::from_secs(10))
    });
    let outcome = stormed.join().expect("a storm");
    let outcome_of_bench = bench.join().expect("a run");
    std::thread::sleep(Duration::from_millis(1500));
    let overflows = beside.figures().map_or(0, |f| f.overflows);
    let (place, how) = (place.display(), if in_real_time { ", in real time" } else { "" });
    outcome.say(&format!("marks on {mode}{how}, {place}, beside pgbench -c 200"), overflows);
    println!("  pgbench: {:.0} tps beside it", outcome_of_bench.summary.tps);
}

/// Of this thread, and of those that it starts; only root may go below 0.
pub fn be_nice(niceness: i32) {
    if let Err(error) = rustix::process::setpriority_process(None, niceness) {
        println!("niceness {niceness}: {error}");
    }
}
