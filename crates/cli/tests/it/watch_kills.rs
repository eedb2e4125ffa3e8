//! `kill -9` of the server, the daemon, or both, at random moments under load.
//!
//! `SHELFLIFE_KILLS` says how many (default 2; `make kills` takes 50).

use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use rustix::process::Signal;
use shelflife_postgres::{Cancel, Cluster, StopMode, verify};

use crate::held::files_below;
use crate::support::{Guard, Need, Place, initialise, load, session};
use crate::watch::{temp_vs_rest, wrong};
use crate::watched::{As, Watcher, ways};

/// New tables, indexes and files of sorts that spill.
const STORM: &str = r"
\set n random(1, 1000000)
SET work_mem = '64kB';
CREATE TABLE IF NOT EXISTS k:n (a int PRIMARY KEY, b text);
INSERT INTO k:n SELECT g, 'x' FROM generate_series(1, 200) g ON CONFLICT DO NOTHING;
SELECT count(*) FROM (SELECT * FROM pgbench_accounts ORDER BY filler, random() LIMIT 90000) AS x;
DROP TABLE IF EXISTS k:n;
";

/// A number below `end`; the standard library seeds its hashes with the system's randomness.
fn random(end: u64) -> u64 {
    RandomState::new().build_hasher().finish() % end
}

struct Load([Guard; 2]);

impl Load {
    fn start(place: &Place, cluster: &Cluster, script: &str) -> Load {
        let pgbench = load(place, cluster, &["-c", "4", "-j", "2"]);
        Load([pgbench, load(place, cluster, &["-c", "2", "-f", script])])
    }

    /// Ends it, with what the server still does for it.
    fn end(self, cluster: &Cluster) {
        drop(self.0);
        assert!(session(cluster).await_gone("pgbench", Duration::from_secs(60)).unwrap());
    }
}

/// Files that do not carry what the policy says, though they were there for two seconds. The daemon is stopped
/// meanwhile: each look is an open, at which it would put things right.
fn unhealed(watcher: &Watcher, data: &Path) -> BTreeSet<PathBuf> {
    watcher.signal(Signal::STOP);
    let now = SystemTime::now();
    let is_old = |path: &Path| {
        let born = path.metadata().and_then(|at| at.created()).ok();
        born.and_then(|born| now.duration_since(born).ok()) > Some(Duration::from_secs(2))
    };
    let files = files_below(data).into_iter();
    let wrong = files.filter(|(path, hint)| *hint != temp_vs_rest(path) && is_old(path));
    let wrong = wrong.map(|(path, _)| path).collect();
    watcher.signal(Signal::CONT);
    wrong
}

#[test]
fn after_kill_9_of_server_or_daemon_at_random_moments_every_file_is_healed_and_the_data_is_whole() {
    let name = "after_kill_9_of_server_or_daemon_at_random_moments_every_file_is_healed_and_the_data_is_whole";
    let Some(place) = Place::new(name, Need::Server) else { return };
    let kills: u32 = std::env::var("SHELFLIFE_KILLS").map_or(2, |n| n.parse().unwrap());
    let mut cluster = place.cluster("c", |options| {
        options.set("checkpoint_timeout", "30s").set("max_wal_size", "8MB");
    });
    cluster.start().unwrap();
    initialise(&place, &cluster);
    let data = cluster.data().path().to_owned();
    let script = place.policy("storm.sql", STORM);
    let start = |way: As| {
        Watcher::start(&place, way, &[data.to_str().unwrap(), "--policy", "temp-vs-rest"])
    };
    let some_way = || ways()[random(ways().len() as u64) as usize];
    let mut way = some_way();
    let mut watcher = start(way);
    let mut running = Load::start(&place, &cluster, &script);
    let (mut of_server, mut of_daemon, mut files, begun) = (0, 0, 0, Instant::now());
    for kill in 1..=kills {
        let moment = Duration::from_millis(random(2000));
        std::thread::sleep(moment);
        // The last one is of the server, so that the data are looked at in the end.
        let (server, daemon) = match (kills - kill) % 3 {
            0 => (true, false),
            1 => (false, true),
            _ => (true, true),
        };
        let told = format!(
            "kill {kill} {}{}after {moment:?}, {way:?}",
            if server { "of the server " } else { "" },
            if daemon { "of the daemon " } else { "" }
        );
        if daemon {
            watcher.signal(Signal::KILL);
            of_daemon += 1;
        }
        if server {
            cluster.kill9().unwrap();
            of_server += 1;
        }
        // A daemon may be there before its server is, or come after it.
        let daemon_first = daemon && random(2) == 0;
        if daemon_first {
            drop(watcher.child.0.wait());
            way = some_way();
            watcher = start(way);
        }
        if server {
            cluster.start().unwrap();
            running.end(&cluster);
            running = Load::start(&place, &cluster, &script);
        }
        if daemon && !daemon_first {
            drop(watcher.child.0.wait());
            way = some_way();
            watcher = start(way);
        }
        assert!(watcher.child.0.try_wait().unwrap().is_none(), "{told}: {}", watcher.log());
        assert_eq!(unhealed(&watcher, &data), BTreeSet::new(), "{told}");
        assert_eq!(wrong(&cluster, &[&data], temp_vs_rest), BTreeSet::new(), "{told}");
        files += files_below(&data).len();
        if server {
            // What is dropped while it is checked would count as broken.
            running.end(&cluster);
            let (dsn, never) = (cluster.dsn("postgres"), Cancel::never());
            let verdict = verify::amcheck(place.programs(), &dsn, &never).unwrap();
            assert!(verdict.is_clean(), "{told}: {verdict:#?}");
            if of_server % 5 == 0 || kill == kills {
                cluster.stop(StopMode::Fast).unwrap();
                let verdict = verify::checksums(place.programs(), cluster.data(), &never).unwrap();
                assert!(verdict.is_clean(), "{told}: {verdict:#?}");
                cluster.start().unwrap();
            }
            running = Load::start(&place, &cluster, &script);
        }
    }
    println!(
        "{kills} kills at random moments in {} s: {of_server} of the server, {of_daemon} of the daemon; each \
         time every file (about {}) carried what the policy says, and pg_amcheck and pg_checksums were clean",
        begun.elapsed().as_secs(),
        files / kills as usize
    );
}
