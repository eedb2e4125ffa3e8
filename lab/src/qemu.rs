//! One guest from power on to power off, under plain emulation.
//!
//! Invariant: whatever happens, the process is gone when this returns.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::kernel::Kernel;
use crate::lab::Lab;

/// MiB: the initramfs, scsi_debug's disks (330 MiB) and the page cache.
const MEMORY: &str = "1400";

/// Longest silence of a guest that is at work: emulation on a loaded machine is slow.
const PATIENCE: Duration = Duration::from_secs(600);

/// The disks: file, bytes (sparse).
const IMAGES: [(&str, u64); 6] = [
    ("fdp1.img", 2 << 30),
    ("fdp2.img", 256 << 20),
    ("fdp3.img", 256 << 20),
    ("fdp4.img", 256 << 20),
    ("plain.img", 512 << 20),
    ("virtio.img", 256 << 20),
];

/// How a guest ended.
#[derive(Debug, PartialEq, Eq)]
pub enum End {
    /// It switched itself off.
    Off,
    /// It said nothing for too long and was killed.
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

/// Boots `kernel` with `initramfs` and hands each line that the guest says to `heard`, which
/// returns false to cut its power. Console and QEMU's own words go to the lab's `console`.
pub fn boot(
    lab: &Lab,
    kernel: &Kernel,
    initramfs: &Path,
    disks: Disks,
    mut heard: impl FnMut(&str) -> Result<bool>,
) -> Result<End> {
    let folder = lab.folder.join("images");
    let console = lab.folder.join("console");
    for (name, size) in IMAGES {
        if disks == Disks::Fresh {
            File::create(folder.join(name))?.set_len(size)?;
        }
    }
    let tools = &lab.tools;
    let mut command = tools.qemu()?;
    command
        .args(["-machine", "q35,accel=tcg", "-cpu", "max", "-smp", "1", "-m", MEMORY])
        .args(["-nodefaults", "-display", "none", "-audio", "none", "-no-reboot"])
        .arg("-kernel")
        .arg(&kernel.image)
        .arg("-initrd")
        .arg(initramfs)
        .args(["-append", "console=ttyS0 quiet panic=-1 mitigations=off nokaslr"])
        .args(["-serial", &format!("file:{}", console.display()), "-serial", "stdio"])
        .args(devices(&folder));
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
        match receiver.recv_timeout(PATIENCE) {
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

/// One FDP subsystem with four namespaces, one plain NVMe disk, one virtio disk.
fn devices(folder: &Path) -> Vec<String> {
    let mut arguments = Vec::new();
    let mut add = |option: &str, value: String| arguments.extend([option.to_owned(), value]);
    let drive = |name: &str| {
        let file = folder.join(format!("{name}.img"));
        format!("file={},id={name},if=none,format=raw,cache=unsafe", file.display())
    };
    let subsystem = "nvme-subsys,id=ss,nqn=labfdp,fdp=on,fdp.runs=16M,fdp.nrg=1,fdp.nruh=8";
    add("-device", subsystem.into());
    add("-device", "nvme,id=fdpc,serial=labfdp,subsys=ss".into());
    for namespace in 1..=4 {
        add("-drive", drive(&format!("fdp{namespace}")));
        add(
            "-device",
            format!(
                "nvme-ns,drive=fdp{namespace},bus=fdpc,nsid={namespace},fdp.ruhs=0;1;2;3;4;5;6;7"
            ),
        );
    }
    add("-drive", drive("plain"));
    add("-device", "nvme,serial=labplain,drive=plain".into());
    add("-drive", drive("virtio"));
    add("-device", "virtio-blk-pci,drive=virtio".into());
    arguments
}
