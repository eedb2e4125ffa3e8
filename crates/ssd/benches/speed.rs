//! How fast the simulator is, beside a bare loop that makes the same map accesses.
//!
//! `cargo bench -p shelflife-ssd [-- GIB …]`; without sizes 16 GiB. One core, no threads. For each
//! size and over-provisioning it prints millions of host and flash pages a second, bytes per logical
//! page, and the ratio to the bare loop of the same run: 1 + WAF prefetched read-modify-writes of a
//! map of the same size per host page (the host's own, one per page of a victim), random numbers
//! made as the workload makes them, and nothing else. Rounds of both alternate; medians are printed.
//! Time is the thread's own CPU time where the kernel tells it, so that other programs on the machine
//! matter less (they still take cache and memory bandwidth).

use std::hint::black_box;
use std::time::Instant;

use shelflife_ssd::{
    Config, Frontier, Geometry, Hints, Isolation, Op, Plan, Precondition, Simulator, Space,
    Synthetic, Transport, Victim, Workload, bare_loop, simulate,
};

const ROUNDS: usize = 5;

/// Seconds of CPU time of this thread, or of the clock.
struct Stopwatch {
    start: Instant,
    cpu: Option<f64>,
}

impl Stopwatch {
    fn cpu() -> Option<f64> {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        let nanoseconds: f64 = text.split_whitespace().next()?.parse().ok()?;
        Some(nanoseconds / 1e9)
    }

    fn start() -> Stopwatch {
        Stopwatch { start: Instant::now(), cpu: Stopwatch::cpu() }
    }

    fn seconds(&self) -> f64 {
        match (self.cpu, Stopwatch::cpu()) {
            (Some(then), Some(now)) => now - then,
            _ => self.start.elapsed().as_secs_f64(),
        }
    }
}

fn main() {
    let sizes: Vec<u64> = std::env::args().skip(1).filter_map(|text| text.parse().ok()).collect();
    let sizes = if sizes.is_empty() { vec![16] } else { sizes };
    println!("uniform, greedy, single frontier, 4096-page units");
    println!("  GiB   rho    WAF  host M/s  flash M/s  bare host M/s  ratio  bytes/page");
    for gib in sizes {
        for rho in [0.28, 0.07] {
            uniform(gib, rho);
        }
    }
    if std::env::args().len() > 2 {
        return;
    }
    println!("\n16 GiB, rho 7 %, 4096-page units, other rules and workloads");
    println!("  workload              rule          isolation   WAF  host M/s (whole run)");
    for (workload, victim, streams) in [
        ("uniform", Victim::Fifo, 1),
        ("uniform", Victim::CostBenefit, 1),
        ("hotcold:0.2/0.8", Victim::Greedy, 6),
        ("hotcold:0.2/0.8", Victim::Quota, 6),
        ("log+random:0.5/0.02", Victim::Quota, 6),
        ("zipf:0.99", Victim::Greedy, 1),
        ("sequential", Victim::Greedy, 1),
    ] {
        other(workload, victim, streams);
    }
}

fn drive(pages: u64, rho: f64) -> Geometry {
    let space = Space::OverProvisioning(rho);
    Geometry { frontier: Frontier::Single, ..Geometry::unhinted(pages, 4096, space) }
}

fn uniform(gib: u64, rho: f64) {
    let pages = gib << 18;
    let run = || -> Result<(), shelflife_ssd::Error> {
        let mut simulator = Simulator::new(&Config::unhinted(drive(pages, rho)))?;
        let mut page = 0;
        while page < pages {
            let n = (pages - page).min(1 << 20);
            simulator.feed(&[Op::write(page as u32, n as u32)])?;
            page += n;
        }
        let mut workload = Synthetic::uniform(pages as u32, 1);
        let mut ops = Vec::new();
        let mut feed = |simulator: &mut Simulator, n: u64| {
            let mut left = n as usize;
            while left > 0 {
                ops.clear();
                workload.read(&mut ops)?;
                left = left.saturating_sub(ops.len());
                simulator.feed(&ops)?;
            }
            Ok::<(), shelflife_ssd::Error>(())
        };
        // Both loops make the accesses of the WAF there is, so a large drive need not be steady.
        let (age, n) = if gib <= 64 { (3, 1 << 24) } else { (1, 1 << 23) };
        feed(&mut simulator, age * pages)?;
        simulator.begin(n);
        let mut map = bare_loop::Map::new(pages as usize);
        let mut seconds = Vec::new();
        let mut bare = Vec::new();
        for _ in 0..ROUNDS {
            let start = Stopwatch::start();
            feed(&mut simulator, n)?;
            seconds.push(start.seconds());
            let waf = simulator.outcome()?.waf;
            let start = Stopwatch::start();
            let sum = map.run(n, waf);
            bare.push(start.seconds());
            black_box(sum);
        }
        let waf = simulator.outcome()?.waf;
        let (fast, bare) = (n as f64 / median(&mut seconds), n as f64 / median(&mut bare));
        println!(
            "{gib:5}  {rho:.2}  {waf:5.3}  {:8.1}  {:9.1}  {:13.1}  {:5.2}  {:10.2}",
            fast / 1e6,
            fast * waf / 1e6,
            bare / 1e6,
            fast / bare,
            simulator.memory_bytes() as f64 / pages as f64,
        );
        Ok(())
    };
    if let Err(error) = run() {
        println!("{gib:5}  {rho:.2}  {error}");
    }
}

fn other(workload: &str, victim: Victim, streams: u32) {
    let pages = 1_u64 << 22;
    let isolation = if streams > 1 { Isolation::Persistent } else { Isolation::Initial };
    let transport = if streams > 1 { Transport::F2fsScsi } else { Transport::Unhinted };
    let geometry = Geometry { streams, isolation, ..drive(pages, 0.07) };
    let config = Config { victim, transport, ..Config::unhinted(geometry) };
    let run = || {
        let mut source = Synthetic::parse(workload, pages as u32, Hints::Exact, 1)?;
        let plan = Plan { precondition: Precondition::Sequential, ..Plan::overwrites(4, pages) };
        let start = Stopwatch::start();
        let outcome = simulate(&config, &plan, &mut source)?;
        Ok::<_, shelflife_ssd::Error>((outcome, start.seconds()))
    };
    match run() {
        Ok((outcome, seconds)) => {
            // The whole run is timed: a first pass and four overwrites.
            println!(
                "  {workload:20}  {:12}  {:10}  {:5.3}  {:8.1}",
                victim.name(),
                format!("{isolation:?}"),
                outcome.waf,
                5.0 * pages as f64 / seconds / 1e6,
            );
        }
        Err(error) => println!("  {workload}: {error}"),
    }
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
