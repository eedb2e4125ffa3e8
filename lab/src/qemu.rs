//! One guest from power on to power off, under plain emulation.
//!
//! Invariant: whatever happens, the process is gone when this returns.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::kernel::Kernel;
use crate::lab::Lab;

/// MiB of `scsi_debug`'s disks at a time, which are memory.
pub const SCSI_MEMORY: u64 = 1850;

/// MiB: that, the initramfs and the page cache.
const MEMORY: u64 = SCSI_MEMORY + 900;

/// Longest silence of a guest that is at work: emulation on a loaded machine is slow.
const PATIENCE: Duration = Duration::from_secs(600);

/// The longest that a guest may take in all.
pub const LONGEST: Duration = Duration::from_secs(5400);

/// The other disks: what they are, how many, bytes of each (sparse). As many as all stacks together use.
pub const DISKS: [(&str, usize, u64); 4] =
    [("fdp", FDP, 2 << 30), ("small", 1, SMALL), ("plain", 4, 512 << 20), ("virtio", 2, 256 << 20)];

/// How many namespaces with FDP the stacks have.
const FDP: usize = 21;

/// Bytes of the last namespace with FDP, small enough to be written over several times under emulation. No
/// stack gets it.
pub const SMALL: u64 = 384 << 20;

/// Where a guest has its disks, its initramfs and its console; one guest at a time.
#[derive(Debug)]
pub struct Seat {
    folder: PathBuf,
}

impl Seat {
    /// In `folder`, which is made.
    pub fn open(folder: PathBuf) -> Result<Seat> {
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        Ok(Seat { folder })
    }

    /// Where the initramfs is written to.
    pub fn initramfs(&self) -> PathBuf {
        self.folder.join("initramfs")
    }

    /// The last words of the guest's console and of QEMU.
    pub fn last_words(&self) -> String {
        let said = |name: &str| fs::read_to_string(self.folder.join(name)).unwrap_or_default();
        let (console, emulator) = (said("console"), said("console.qemu"));
        let lines: Vec<&str> = console.lines().collect();
        let last = lines[lines.len().saturating_sub(5)..].join("\n");
        format!("{emulator}{last}")
    }
}

/// How many guests the machine has processors and memory for.
pub fn at_a_time() -> usize {
    let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let free = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let free: Option<u64> = free.and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok());
    // and a fifth for QEMU's own
    let room = free.map_or(1, |kib| kib / 1024 * 5 / (MEMORY * 6));
    processors.min(usize::try_from(room).unwrap_or(1)).max(1)
}

/// How a guest ended.
#[derive(Debug, PartialEq, Eq)]
pub enum End {
    /// It switched itself off.
    Off,
    /// It said nothing for too long, or took too long, and was killed.
    Hung,
    /// Its power was cut.
    Stopped,
}

/// Kills the guest when dropped.
struct Guest(Child);

impl Drop for Guest {
    fn drop(&mut self) {
        // both fail only when it is gone already
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Whether the disks are empty at the start, or as the guest before left them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disks {
    /// Nothing comes from an earlier guest.
    Fresh,
    /// What was written is there.
    Kept,
}

/// Boots `kernel` with the initramfs of `seat` and hands each line that the guest says to `heard`, which
/// returns false to cut its power. Console and QEMU's own words go to the seat's `console`. It takes
/// `longest` at most.
pub fn boot(
    lab: &Lab,
    seat: &Seat,
    kernel: &Kernel,
    disks: Disks,
    longest: Duration,
    mut heard: impl FnMut(&str) -> Result<bool>,
) -> Result<End> {
    let console = seat.folder.join("console");
    for (kind, number, size) in DISKS {
        for image in images(&seat.folder, kind, number) {
            if disks == Disks::Fresh {
                File::create(image)?.set_len(size)?;
            }
        }
    }
    let end = Instant::now() + longest;
    let tools = &lab.tools;
    let mut command = tools.qemu()?;
    command
        .args(["-machine", "q35,accel=tcg", "-cpu", "max", "-smp", "1", "-m", &MEMORY.to_string()])
        .args(["-nodefaults", "-display", "none", "-audio", "none", "-no-reboot"])
        .arg("-kernel")
        .arg(&kernel.image)
        .arg("-initrd")
        .arg(seat.initramfs())
        .args(["-append", "console=ttyS0 quiet panic=-1 mitigations=off nokaslr"])
        .args(["-serial", &format!("file:{}", console.display()), "-serial", "stdio"])
        .args(devices(&seat.folder));
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command.stderr(File::create(console.with_extension("qemu"))?);
    let mut guest = Guest(command.spawn().context("run qemu-system-x86_64")?);
    let said = guest.0.stdout.take().context("QEMU has no standard output")?;
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(said).split(b'\n') {
            let Ok(line) = line else { break };
            if sender.send(String::from_utf8_lossy(&line).trim_end().to_owned()).is_err() {
                break;
            }
        }
    });
    loop {
        let left = end.saturating_duration_since(Instant::now());
        match receiver.recv_timeout(PATIENCE.min(left)) {
            Ok(line) => {
                if !heard(&line)? {
                    return Ok(End::Stopped);
                }
            }
            Err(RecvTimeoutError::Timeout) => return Ok(End::Hung),
            Err(RecvTimeoutError::Disconnected) => return Ok(End::Off),
        }
    }
}

/// Boots `kernel` on fresh disks and returns all that the guest says, to its "done".
pub fn all_words(lab: &Lab, seat: &Seat, kernel: &Kernel) -> Result<(Vec<String>, End)> {
    let mut lines = Vec::new();
    let end = boot(lab, seat, kernel, Disks::Fresh, LONGEST, |line| {
        lines.push(line.to_owned());
        Ok(line != "done")
    })?;
    Ok((lines, end))
}

/// Files of the disks of one kind.
fn images(folder: &Path, kind: &str, number: usize) -> impl Iterator<Item = PathBuf> {
    (1..=number).map(move |n| folder.join(format!("{kind}{n}.img")))
}

/// One FDP subsystem with all its namespaces, plain NVMe disks, virtio disks.
fn devices(folder: &Path) -> Vec<String> {
    let mut arguments = Vec::new();
    let mut add = |option: &str, value: String| arguments.extend([option.to_owned(), value]);
    let subsystem = "nvme-subsys,id=ss,nqn=labfdp,fdp=on,fdp.runs=16M,fdp.nrg=1,fdp.nruh=8";
    add("-device", subsystem.into());
    add("-device", "nvme,id=fdpc,serial=labfdp,subsys=ss".into());
    for (kind, number, _) in DISKS {
        for (n, image) in (1..).zip(images(folder, kind, number)) {
            let id = format!("{kind}{n}");
            let file = image.display();
            add("-drive", format!("file={file},id={id},if=none,format=raw,cache=unsafe"));
            let device = match kind {
                "fdp" | "small" => {
                    let nsid = if kind == "small" { FDP + n } else { n };
                    format!("nvme-ns,drive={id},bus=fdpc,nsid={nsid},fdp.ruhs=0;1;2;3;4;5;6;7")
                }
                "plain" => format!("nvme,serial=labplain{n},drive={id}"),
                _ => format!("virtio-blk-pci,drive={id}"),
            };
            add("-device", device);
        }
    }
    arguments
}
