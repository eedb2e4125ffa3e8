//! What recording costs a server: pgbench with the recorder and without, in paired rounds, on a
//! RAM-backed loop device: `make bench-record-pgbench`.
//!
//! In memory every commit is a write of its own and none waits for a drive, so that nothing hides the
//! recorder. The order of the rounds and the interval are those of a trial (docs/design/statistics.md).
//! `SHELFLIFE_BENCH_BLOCKS` and `SHELFLIFE_BENCH_SECONDS` set how many pairs, and how long a round is.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, exit};

use anyhow::{Context, Result, bail};
use rustix::time::{ClockId, clock_gettime};
use shelflife_postgres::pgbench::{self, Initialise, Length, Load};
use shelflife_postgres::programs::Search;
use shelflife_postgres::{Cancel, Cluster, ClusterOptions, Programs};
use shelflife_record::pg::{Pg, Servers};
use shelflife_record::{Options, Recorder, Target};
use shelflife_report::{count, figure};
use shelflife_trial::stats::{Data, Metric, Plan, Round, analyse};

/// Memory that is a file system.
const MEMORY: &str = "/dev/shm";
const DISK_BYTES: u64 = 4 << 30;
const SCALE: u32 = 20;
const CLIENTS: u32 = 2;
const SEED: u64 = 20_261_130;
/// What a recording may cost: this much of the transactions must be left.
const LEAST: f64 = 0.98;

fn main() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: bench-record-pgbench: needs root");
        exit(3);
    }
    if let Err(error) = bench() {
        eprintln!("bench-record-pgbench: {error:#}");
        exit(1);
    }
}

fn number(name: &str, usual: u32) -> Result<u32> {
    match std::env::var(name) {
        Ok(text) => text.parse().with_context(|| format!("{name}={text}")),
        Err(_) => Ok(usual),
    }
}

fn bench() -> Result<()> {
    let blocks = number("SHELFLIFE_BENCH_BLOCKS", 90)? as usize;
    let seconds = number("SHELFLIFE_BENCH_SECONDS", 10)?;
    let disk = Disk::new()?;
    let programs = Programs::find(&Search::new(None))?;
    let mut options = ClusterOptions::new(programs.clone(), disk.place.join("c"));
    for (name, value) in [
        ("shared_buffers", "256MB"),
        ("max_wal_size", "1GB"),
        // Each round begins with one and has one in its midst.
        ("checkpoint_timeout", "1h"),
        ("autovacuum", "off"),
    ] {
        options.set(name, value);
    }
    let mut cluster = Cluster::create(options)?;
    cluster.start()?;
    let (dsn, never) = (cluster.dsn("postgres"), Cancel::never());
    let initialise = Initialise { scale: SCALE, args: Vec::new() };
    pgbench::initialise(&programs, &dsn, &initialise, &never, &mut |_| ())?;
    let load = Load { jobs: CLIENTS, vacuum: true, ..Load::new(CLIENTS, Length::Seconds(seconds)) };
    pgbench::run(&programs, &dsn, &load, &never, &mut |_| ())?;

    let mut session = cluster.connect("postgres")?;
    let plan = Plan::new(2, blocks, SEED)?;
    let mut rounds = vec![vec![None; 2]; blocks];
    let mut recorded = Recorded::default();
    for slot in plan.slots() {
        session.checkpoint()?;
        let recording = match slot.arm {
            0 => None,
            _ => Some(start(&disk, &cluster)?),
        };
        let load = Load { seed: SEED + slot.block as u64, ..load.clone() };
        let before = processor_seconds();
        let tps = pgbench::run(&programs, &dsn, &load, &never, &mut |_| ())?.summary.tps;
        if let Some(recorder) = recording {
            recorded.add(&recorder.stop()?);
            recorded.processor_seconds += processor_seconds() - before;
            fs::remove_dir_all(disk.trace())?;
        }
        let name = if slot.arm == 0 { "without" } else { "recorded" };
        println!("pair {:>3}  {name:<8}  {tps:>8.1} tps", slot.block + 1);
        rounds[slot.block][slot.arm] = Some(Round { position: slot.position, value: tps });
    }
    let analysis = analyse(&Data {
        arms: vec!["without".into(), "recorded".into()],
        blocks: rounds,
        metric: Metric::Throughput,
        reported: None,
        quick: false,
        seed: SEED,
    })?;
    let estimate = analysis.comparisons.first().and_then(|comparison| comparison.estimate);
    let (Some(estimate), events) = (estimate, recorded.events) else { bail!("no pair is whole") };
    let ratio = |percent: f64| 1.0 + percent / 100.0;
    println!(
        "\n{} events in {} rounds of {seconds} s ({} a second), {} bytes of trace each, {} lost",
        count(events),
        blocks,
        count((events as f64 / recorded.seconds.max(1.0)) as u64),
        figure(recorded.bytes as f64 / events.max(1) as f64),
        count(recorded.lost),
    );
    let processors = std::thread::available_parallelism().map_or(1.0, |n| n.get() as f64);
    println!(
        "the recorder itself: {:.2} % of the time of {processors} processors, {} µs an event",
        recorded.processor_seconds * 100.0 / recorded.seconds.max(1.0) / processors,
        figure(recorded.processor_seconds * 1e6 / events.max(1) as f64),
    );
    print!("tps recorded / without: {:.4}", ratio(estimate.percent));
    match estimate.interval {
        Some(interval) => {
            let (low, high) = (ratio(interval.low_percent), ratio(interval.high_percent));
            println!(", 95 % interval {low:.4} … {high:.4} from {blocks} pairs");
            let met = if low >= LEAST { "met" } else { "not met" };
            println!(
                "lower bound at least {LEAST}: {met} (the interval is {:.4} wide)",
                high - low
            );
        }
        None => println!(", too few pairs for an interval"),
    }
    cluster.close()?;
    Ok(())
}

/// Processor time of this process so far: not that of the server, nor of the program in the kernel.
fn processor_seconds() -> f64 {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

fn start(disk: &Disk, cluster: &Cluster) -> Result<Recorder> {
    let data_folder = cluster.data().path().to_owned();
    let dsn = cluster.dsn("postgres").into();
    let pg = Pg::start(Servers::Known { dsn, data_folder: data_folder.clone() })?;
    let mut options = Options::new(disk.trace(), Target::of_path(&disk.place)?);
    options.naming = Some(pg.into_naming().0);
    options.data_folders = vec![data_folder];
    Ok(Recorder::start(options)?)
}

/// What all recordings came to.
#[derive(Default)]
struct Recorded {
    events: u64,
    bytes: u64,
    lost: u64,
    seconds: f64,
    /// Of this process, which does nothing else meanwhile but wait.
    processor_seconds: f64,
}

impl Recorded {
    fn add(&mut self, summary: &shelflife_record::Summary) {
        self.events += summary.meta.counts.events;
        self.bytes += summary.trace_bytes;
        self.lost += summary.tally.lost;
        self.seconds += summary.seconds;
    }
}

/// ext4 on a loop device over a file in memory. Fields are taken away by hand, in order.
struct Disk {
    folder: tempfile::TempDir,
    device: String,
    place: PathBuf,
}

impl Disk {
    fn new() -> Result<Disk> {
        let passable = fs::Permissions::from_mode(0o755);
        let folder = tempfile::Builder::new()
            .prefix("shelflife-bench-")
            .permissions(passable)
            .tempdir_in(MEMORY)
            .with_context(|| format!("no folder in {MEMORY}"))?;
        let image = folder.path().join("image");
        File::create(&image)?.set_len(DISK_BYTES)?;
        let device = run("losetup", &["-f".as_ref(), "--show".as_ref(), &image])?;
        let place = folder.path().join("mount");
        // From here on dropping it takes everything away.
        let disk = Disk { folder, device, place };
        fs::create_dir(&disk.place)?;
        run("mkfs.ext4", &["-q".as_ref(), "-F".as_ref(), disk.device.as_ref()])?;
        run("mount", &[disk.device.as_ref(), &disk.place])?;
        Ok(disk)
    }

    fn trace(&self) -> PathBuf {
        self.folder.path().join("trace")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // What is not there cannot be taken away.
        let _ = Command::new("umount").arg(&self.place).output();
        let _ = Command::new("losetup").args(["-d", &self.device]).output();
    }
}

/// Runs a program that must succeed; its output.
fn run(program: &str, args: &[&Path]) -> Result<String> {
    let out = Command::new(program).args(args).output().with_context(|| program.to_owned())?;
    if !out.status.success() {
        bail!("{program}: {}", String::from_utf8_lossy(&out.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&out.stdout).trim().to_owned())
}
