//! How many small bios a second are recorded without a loss, and what one costs.
//!
//! 4 KiB writes in batches by io_uring, direct, to a loop device over a file in memory: as many as
//! this machine makes. Writes of a batch lie side by side, so that the block layer makes one request
//! of many bios, each of which is an event. `SHELFLIFE_BENCH_SECONDS=30 cargo bench -p shelflife-record --features
//! bpf` is the long version; without root it says so and ends.

use std::error::Error;
use std::fs::{self, File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use io_uring::{IoUring, opcode, types};
use shelflife_record::{Options, Recorder, Summary, Target};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const BATCH: u32 = 128;
const BLOCK: usize = 4096;
const DEVICE: u64 = 512 << 20;
const STATS: &str = "/proc/sys/kernel/bpf_stats_enabled";

fn main() -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: bench-record: needs root");
        return Ok(());
    }
    let seconds =
        std::env::var("SHELFLIFE_BENCH_SECONDS").ok().and_then(|s| s.parse().ok()).unwrap_or(5);
    let time = Duration::from_secs(seconds);
    let folder = tempfile::Builder::new().prefix("shelflife-bench-").tempdir_in("/dev/shm")?;
    let device = Loop::new(folder.path())?;
    write(&device.0, time.min(Duration::from_secs(2)))?;

    let mut pairs = Vec::new();
    for _ in 0..3 {
        let bare = write(&device.0, time.min(Duration::from_secs(3)))?;
        let (with, _, _) = recorded(&device.0, folder.path(), time.min(Duration::from_secs(3)))?;
        pairs.push((bare, with));
    }
    println!("bios a second, alone and recorded:");
    for (bare, with) in &pairs {
        println!("  {bare:>9.0} {with:>9.0}  {:.3}", with / bare);
    }
    let (rate, summary, cpu) = recorded(&device.0, folder.path(), time)?;
    println!(
        "{seconds} s at {rate:.0} bios a second: {} recorded, {} lost, {:.2} bytes an event on \
         disk, recorder's processor time {:.2} us an event ({:.0} % of one processor)",
        summary.meta.counts.events,
        summary.tally.lost,
        summary.trace_bytes as f64 / summary.meta.counts.events.max(1) as f64,
        cpu * 1e6 / summary.meta.counts.events.max(1) as f64,
        cpu * 100.0 / seconds as f64,
    );

    let before = fs::read_to_string(STATS)?;
    fs::write(STATS, "1")?;
    let measured = program_time(&device.0, folder.path());
    fs::write(STATS, before.trim())?;
    measured
}

/// Nanoseconds of the BPF program by the kernel's own clock around it.
fn program_time(device: &str, folder: &Path) -> Result<()> {
    let trace = folder.join("trace");
    for (what, batch) in [("requests of one bio", 1), ("requests of many bios", BATCH)] {
        let target = Target::of_device(device.as_ref())?;
        let recorder = Recorder::start(Options::new(&trace, target))?;
        let (runs_before, time_before) = run_statistics()?;
        let begun = Instant::now();
        let mut ring = Ring::new(device)?;
        let mut events = 0;
        while begun.elapsed() < Duration::from_secs(2) {
            events += u64::from(ring.batch(batch)?);
        }
        let (runs, time) = run_statistics()?;
        recorder.stop()?;
        fs::remove_dir_all(&trace)?;
        println!(
            "{what}: {:.0} ns of the program an event, {:.0} ns a call",
            (time - time_before) as f64 / events as f64,
            (time - time_before) as f64 / (runs - runs_before) as f64,
        );
    }
    Ok(())
}

/// Runs and nanoseconds of this process's BPF programs.
fn run_statistics() -> Result<(u64, u64)> {
    let (mut runs, mut time) = (0, 0);
    for entry in fs::read_dir("/proc/self/fdinfo")? {
        let Ok(text) = fs::read_to_string(entry?.path()) else { continue };
        let number = |name: &str| -> u64 {
            let value = text.lines().find_map(|line| line.strip_prefix(name));
            value.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
        };
        if text.contains("prog_type:") {
            runs += number("run_cnt:");
            time += number("run_time_ns:");
        }
    }
    Ok((runs, time))
}

/// Bios a second, the recording, and seconds of processor time of all threads but this one.
fn recorded(device: &str, folder: &Path, time: Duration) -> Result<(f64, Summary, f64)> {
    let trace = folder.join("trace");
    let recorder = Recorder::start(Options::new(&trace, Target::of_device(device.as_ref())?))?;
    let before = other_threads()?;
    let rate = write(device, time)?;
    let cpu = other_threads()? - before;
    let summary = recorder.stop()?;
    fs::remove_dir_all(&trace)?;
    Ok((rate, summary, cpu))
}

/// Processor time of the thread `recorder`, in seconds.
fn other_threads() -> Result<f64> {
    for entry in fs::read_dir("/proc/self/task")? {
        let path = entry?.path();
        if fs::read_to_string(path.join("comm"))?.trim() == "recorder" {
            let text = fs::read_to_string(path.join("schedstat"))?;
            let nanoseconds: u64 = text.split_whitespace().next().unwrap_or("0").parse()?;
            return Ok(nanoseconds as f64 / 1e9);
        }
    }
    Ok(0.0)
}

/// Writes for some time; bios a second.
fn write(device: &str, time: Duration) -> Result<f64> {
    let mut ring = Ring::new(device)?;
    let (begun, mut done) = (Instant::now(), 0_u64);
    while begun.elapsed() < time {
        done += u64::from(ring.batch(BATCH)?);
    }
    Ok(done as f64 / begun.elapsed().as_secs_f64())
}

struct Ring {
    ring: IoUring,
    file: File,
    memory: Vec<u8>,
    at: u64,
}

impl Ring {
    fn new(device: &str) -> Result<Ring> {
        let file = OpenOptions::new().write(true).custom_flags(libc::O_DIRECT).open(device)?;
        Ok(Ring { ring: IoUring::new(BATCH)?, file, memory: vec![0xa5; 2 * BLOCK], at: 0 })
    }

    /// Writes `count` blocks and waits for them.
    fn batch(&mut self, count: u32) -> Result<u32> {
        let from = self.memory.as_ptr().align_offset(BLOCK);
        let block = self.memory[from..].as_ptr();
        for _ in 0..count {
            let entry = opcode::Write::new(types::Fd(self.file.as_raw_fd()), block, BLOCK as u32)
                .offset(self.at)
                .build();
            self.at = (self.at + BLOCK as u64) % DEVICE;
            // SAFETY: file and memory live in `self`, and all writes are waited for below.
            unsafe { self.ring.submission().push(&entry)? };
        }
        self.ring.submit_and_wait(count as usize)?;
        for done in self.ring.completion() {
            if done.result() != BLOCK as i32 {
                return Err(format!("a write gave {}", done.result()).into());
            }
        }
        Ok(count)
    }
}

/// A loop device over a file in memory.
struct Loop(String);

impl Loop {
    fn new(folder: &Path) -> Result<Loop> {
        let image = folder.join("image");
        File::create(&image)?.set_len(DEVICE)?;
        let out = Command::new("losetup").args(["-f", "--show"]).arg(&image).output()?;
        if !out.status.success() {
            return Err(String::from_utf8_lossy(&out.stderr).into());
        }
        Ok(Loop(String::from_utf8(out.stdout)?.trim().to_owned()))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["-d", &self.0]).output();
    }
}
