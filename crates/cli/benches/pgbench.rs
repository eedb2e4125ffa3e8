//! What hints cost pgbench, in memory, where no drive can pay it back: `make bench-pgbench`.
//!
//! | part | question |
//! | --- | --- |
//! | `hook` | the hook switched on, against off |
//! | `watch` | the daemon (marks on folders) beside the server, against none |
//! | `hook-connect`, `watch-connect` | the same with a new connection for every transaction, which opens its files anew: the worst case |
//!
//! A shared machine's speed drifts by a tenth within seconds, and a drift that is slower than a round
//! stays in the difference of two rounds. So the two are not compared in runs of their own: pgbench
//! runs through, what is compared is changed under it in turns of a second, and its log of all
//! transactions is counted turn by turn. The time that a change takes belongs to no turn. Order and
//! interval are a trial's (docs/design/statistics.md).
//!
//! Arguments name parts; without any all run. `SHELFLIFE_BENCH_PAIRS` sets the pairs of each.

#[path = "../tests/it/held.rs"]
#[allow(dead_code, reason = "the tests need more of it")]
mod held;
#[path = "../tests/it/support.rs"]
#[allow(dead_code, reason = "the tests need more of it")]
mod support;
#[path = "../tests/it/watched.rs"]
#[allow(dead_code, reason = "the tests need more of it")]
mod watched;

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use shelflife_postgres::Cluster;
use shelflife_trial::stats::{Data, Metric, Plan, Round, analyse};
use support::{Need, Place, initialise, load, said, session};
use watched::{As, Watcher};

const POLICY: &str = "temp-vs-rest";
const SEED: u64 = 20_261_130;
/// What is counted, and what goes by after a change until it is.
const TURN: Duration = Duration::from_secs(1);
const SETTLE: Duration = Duration::from_millis(100);
/// Pairs of one run of pgbench, whose log of about 40 bytes a transaction lies in memory.
const PAIRS_OF_A_RUN: usize = 25;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    if args.iter().any(|a| a == "--test") {
        return;
    }
    let pairs = std::env::var("SHELFLIFE_BENCH_PAIRS").map_or(240, |n| n.parse().expect("pairs"));
    let wants = |part: &str| args.is_empty() || args.iter().any(|a| a == part);
    for (part, outside, connect) in [
        ("hook", false, false),
        ("watch", true, false),
        ("hook-connect", false, true),
        ("watch-connect", true, true),
    ] {
        if wants(part) && bench(part, outside, connect, pairs).is_none() {
            std::process::exit(3);
        }
    }
}

fn bench(part: &str, outside: bool, connect: bool, pairs: usize) -> Option<()> {
    let place = Place::new("bench-pgbench", Need::Server)?;
    let mut cluster = place.cluster("c", |options| {
        options.set("fsync", "on").set("shared_buffers", "256MB").set("max_wal_size", "2GB");
        // one before each run of pgbench
        options.set("checkpoint_timeout", "1h").set("autovacuum", "off");
    });
    if outside {
        cluster.start().unwrap();
    } else {
        place.start(&cluster, &["--policy", POLICY]);
    }
    initialise(&place, &cluster);
    let mut hinting = Hinting { place: &place, cluster: &cluster, outside, daemon: None };
    let plan = Plan::new(2, pairs, SEED).unwrap();
    let mut blocks = vec![vec![None; 2]; pairs];
    let (mut transactions, mut changes) = (0, Duration::ZERO);
    for (run, orders) in plan.orders().chunks(PAIRS_OF_A_RUN).enumerate() {
        session(&cluster).checkpoint().unwrap();
        let log = place.user_folder("log");
        let prefix = format!("--log-prefix={}/t", log.display());
        let mut args = vec!["-N", "-c", "2", "-j", "2", "--log", &prefix];
        args.extend(connect.then_some("-C"));
        let running = load(&place, &cluster, &args);
        sleep(2 * TURN);
        let mut turns = Vec::new();
        for (block, order) in orders.iter().enumerate() {
            for (position, &arm) in order.iter().enumerate() {
                let begun = SystemTime::now();
                hinting.change(arm == 1);
                changes += begun.elapsed().unwrap_or_default();
                sleep(SETTLE);
                let begun = now();
                sleep(TURN);
                turns.push(Turn {
                    block: run * PAIRS_OF_A_RUN + block,
                    position,
                    arm,
                    begun,
                    ended: now(),
                });
            }
        }
        // so that what pgbench still holds of its log is of no turn
        sleep(2 * TURN);
        drop(running);
        let ends = ends(&log);
        fs::remove_dir_all(&log).unwrap();
        for turn in turns {
            let position = u32::try_from(2 * turn.block + turn.position).unwrap();
            let done = turn.done(&ends);
            transactions += done;
            let value = done as f64 * 1e6 / (turn.ended - turn.begun) as f64;
            blocks[turn.block][turn.arm] = Some(Round { position, value });
        }
    }
    let analysis = analyse(&Data {
        arms: vec!["off".into(), "on".into()],
        blocks,
        metric: Metric::Throughput,
        reported: None,
        quick: false,
        seed: SEED,
    })
    .unwrap();
    let estimate = analysis.comparisons[0].estimate.expect("pairs");
    let ratio = |percent: f64| 1.0 + percent / 100.0;
    let interval = estimate.interval.map_or(String::new(), |interval| {
        let (low, high) = (ratio(interval.low_percent), ratio(interval.high_percent));
        format!(" (95 % interval {low:.4} to {high:.4})")
    });
    println!(
        "{part:<13}  tps on / off {:.4}{interval}, {pairs} pairs of {} s turns; {transactions} transactions, \
         {:.0} a second; a change took {:.3} s",
        ratio(estimate.percent),
        TURN.as_secs(),
        transactions as f64 / (2 * pairs) as f64 / TURN.as_secs_f64(),
        changes.as_secs_f64() / (2 * pairs) as f64,
    );
    hinting.change(false);
    Some(())
}

/// What is changed under the load.
struct Hinting<'a> {
    place: &'a Place,
    cluster: &'a Cluster,
    outside: bool,
    daemon: Option<Watcher>,
}

impl Hinting<'_> {
    fn change(&mut self, on: bool) {
        if !self.outside {
            said(&mut self.place.as_user(["switch", if on { "on" } else { "off" }])).expect(0);
            return;
        }
        if let Some(mut daemon) = self.daemon.take() {
            daemon.signal(rustix::process::Signal::TERM);
            daemon.child.0.wait().unwrap();
        }
        if on {
            let data = self.cluster.data().path().to_str().unwrap();
            let args = ["--policy", POLICY, data];
            self.daemon = Some(Watcher::start(self.place, As::Owner, &args));
        }
    }
}

struct Turn {
    block: usize,
    position: usize,
    arm: usize,
    /// µs since 1970, as pgbench logs.
    begun: u64,
    ended: u64,
}

impl Turn {
    fn done(&self, ends: &[u64]) -> usize {
        ends.partition_point(|at| *at < self.ended) - ends.partition_point(|at| *at < self.begun)
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    u64::try_from(since.as_micros()).expect("before the year 586512")
}

/// When the transactions in pgbench's logs ended, in order.
fn ends(folder: &Path) -> Vec<u64> {
    let mut ends = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        for line in fs::read_to_string(entry.unwrap().path()).unwrap().lines() {
            // client, transaction, duration, script, seconds, microseconds; the last may be torn
            let fields: Vec<u64> = line.split(' ').filter_map(|field| field.parse().ok()).collect();
            if let [_, _, _, _, seconds, micros] = fields[..] {
                ends.push(seconds * 1_000_000 + micros);
            }
        }
    }
    ends.sort_unstable();
    ends
}
