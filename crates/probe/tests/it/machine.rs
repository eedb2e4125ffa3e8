//! Machines built from what `/sys`, `/proc` and drives of their kind show: a folder with the files,
//! and answers to calls.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use shelflife_lifetime::Lifetime;
use shelflife_mounts::DevNumber;
use shelflife_probe::{Calls, Doctor, HintFailure, Host, Located, NvmeCommand, ScsiCommand};

/// A machine.
pub struct Machine {
    root: tempfile::TempDir,
    mounts: String,
    mount_stats: String,
    calls: Recorded,
    new_kernel: bool,
}

/// Answers to calls.
#[derive(Clone, Debug, Default)]
struct Recorded {
    places: HashMap<PathBuf, Located>,
    hints: HashMap<PathBuf, Lifetime>,
    refuses_hints: bool,
    attributes: HashMap<PathBuf, u32>,
    nvme: HashMap<(String, NvmeCommand), (u32, Vec<u8>)>,
    scsi: HashMap<(String, ScsiCommand), Vec<u8>>,
    tables: HashMap<DevNumber, Vec<u8>>,
    root: bool,
}

impl Recorded {
    fn allowed(&self) -> io::Result<()> {
        if self.root { Ok(()) } else { Err(io::ErrorKind::PermissionDenied.into()) }
    }
}

fn copy(from: &[u8], to: &mut [u8]) -> usize {
    let len = from.len().min(to.len());
    to[..len].copy_from_slice(&from[..len]);
    len
}

impl Calls for Recorded {
    fn locate(&self, path: &Path) -> io::Result<Located> {
        self.places.get(path).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn hint(&self, path: &Path) -> Result<Lifetime, HintFailure> {
        if self.refuses_hints {
            return Err(HintFailure::Unsupported);
        }
        Ok(self.hints.get(path).copied().unwrap_or_default())
    }

    fn attributes(&self, path: &Path) -> Option<u32> {
        self.attributes.get(path).copied()
    }

    fn nvme(&self, name: &str, command: NvmeCommand, data: &mut [u8]) -> io::Result<u32> {
        self.allowed()?;
        let (result, reply) = self
            .nvme
            .get(&(name.to_owned(), command))
            .ok_or_else(|| io::Error::other("NVMe status 0x2"))?;
        copy(reply, data);
        Ok(*result)
    }

    fn scsi(&self, name: &str, command: &ScsiCommand, data: &mut [u8]) -> io::Result<usize> {
        self.allowed()?;
        let reply = self.scsi.get(&(name.to_owned(), command.clone()));
        let reply = reply.ok_or_else(|| io::Error::other("SCSI status 0x2, host 0x0"))?;
        Ok(copy(reply, data))
    }

    fn device_mapper(&self, number: DevNumber) -> io::Result<Vec<u8>> {
        self.allowed()?;
        self.tables.get(&number).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

fn number((major, minor): (u32, u32)) -> DevNumber {
    DevNumber { major, minor }
}

impl Machine {
    /// A machine with this kernel, asked by root.
    pub fn new(release: &str) -> Machine {
        let version: Vec<u32> = release.split(['.', '-']).take(2).flat_map(str::parse).collect();
        let mut machine = Machine {
            root: tempfile::tempdir().unwrap(),
            mounts: "20 1 0:21 / /proc rw - proc proc rw\n".to_owned(),
            mount_stats: String::new(),
            calls: Recorded { root: true, ..Recorded::default() },
            new_kernel: version >= vec![6, 16],
        };
        machine.file("/proc/sys/kernel/osrelease", format!("{release}\n"));
        machine
    }

    /// Asked by somebody who is not root.
    pub fn unprivileged(mut self) -> Machine {
        self.calls.root = false;
        self
    }

    /// `fcntl` answers EINVAL.
    pub fn without_hints(mut self) -> Machine {
        self.calls.refuses_hints = true;
        self
    }

    fn place(&self, path: &str) -> PathBuf {
        self.root.path().join(path.trim_start_matches('/'))
    }

    pub fn file(&mut self, path: &str, content: impl AsRef<[u8]>) -> &mut Machine {
        let place = self.place(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, content).unwrap();
        self
    }

    fn link(&mut self, path: &str, target: &str) {
        let place = self.place(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        let up = "../".repeat(path.trim_start_matches('/').matches('/').count());
        symlink(format!("{up}{}", target.trim_start_matches('/')), place).unwrap();
    }

    /// A whole block device below `/sys/devices/ABOVE`; returns its folder.
    pub fn disk(&mut self, name: &str, number: (u32, u32), above: &str) -> String {
        let folder = format!("/sys/devices/{above}/{name}");
        self.device(name, number, &folder);
        // 1.92 TB.
        self.file(&format!("{folder}/size"), "3750748848\n");
        if self.new_kernel {
            self.file(&format!("{folder}/queue/max_write_streams"), "0\n");
        }
        self.link(&format!("/sys/block/{name}"), &folder);
        folder
    }

    pub fn partition(&mut self, folder: &str, name: &str, number: (u32, u32)) {
        let place = format!("{folder}/{name}");
        self.device(name, number, &place);
        self.file(&format!("{place}/partition"), "1\n");
    }

    fn device(&mut self, name: &str, (major, minor): (u32, u32), folder: &str) {
        self.file(&format!("{folder}/dev"), format!("{major}:{minor}\n"));
        self.link(&format!("/sys/class/block/{name}"), folder);
        self.link(&format!("/sys/dev/block/{major}:{minor}"), folder);
        let located = Located {
            path: format!("/dev/{name}").into(),
            device: number((0, 6)),
            block: Some(number((major, minor))),
            folder: false,
            special: false,
        };
        self.calls.places.insert(located.path.clone(), located);
    }

    pub fn slaves(&mut self, folder: &str, names: &[&str]) {
        for name in names {
            self.file(&format!("{folder}/slaves/{name}"), "");
            let held = fs::canonicalize(self.place(&format!("/sys/class/block/{name}"))).unwrap();
            let holder = folder.rsplit('/').next().unwrap();
            fs::create_dir_all(held.join("holders")).unwrap();
            fs::write(held.join("holders").join(holder), "").unwrap();
        }
    }

    /// A mounted file system; its mount point becomes a place that can be asked about.
    pub fn mount(
        &mut self,
        number: (u32, u32),
        point: &str,
        kind: &str,
        source: &str,
        options: &str,
    ) {
        let (major, minor) = number;
        self.mounts += &format!(
            "30 20 {major}:{minor} / {point} rw,relatime shared:1 - {kind} {source} rw,{options}\n"
        );
        self.at(point, number);
    }

    /// A place on a file system.
    pub fn at(&mut self, path: &str, device: (u32, u32)) {
        let device = number(device);
        let place =
            Located { path: path.into(), device, block: None, folder: true, special: false };
        self.calls.places.insert(path.into(), place);
    }

    pub fn mount_stats(&mut self, text: &str) {
        self.mount_stats += text;
    }

    pub fn hint(&mut self, path: &str, lifetime: Lifetime) {
        self.calls.hints.insert(path.into(), lifetime);
    }

    pub fn attributes(&mut self, path: &str, flags: u32) {
        self.calls.attributes.insert(path.into(), flags);
    }

    pub fn nvme_reply(&mut self, name: &str, command: NvmeCommand, result: u32, data: Vec<u8>) {
        self.calls.nvme.insert((name.to_owned(), command), (result, data));
    }

    pub fn scsi_reply(&mut self, name: &str, command: ScsiCommand, data: Vec<u8>) {
        self.calls.scsi.insert((name.to_owned(), command), data);
    }

    /// The table of a device-mapper device, as the ioctl has it: targets with their arguments.
    pub fn table(&mut self, number: (u32, u32), targets: &[(&str, &str)]) {
        let start = 312u32;
        let mut buffer = vec![0u8; start as usize];
        buffer[16..20].copy_from_slice(&start.to_le_bytes());
        buffer[20..24].copy_from_slice(&(targets.len() as u32).to_le_bytes());
        for (target, arguments) in targets {
            let at = buffer.len();
            buffer.resize(at + 40, 0);
            buffer[at + 24..at + 24 + target.len()].copy_from_slice(target.as_bytes());
            buffer.extend(arguments.as_bytes());
            buffer.push(0);
            buffer.resize(buffer.len().next_multiple_of(8), 0);
            let next = buffer.len() as u32 - start;
            buffer[at + 20..at + 24].copy_from_slice(&next.to_le_bytes());
        }
        self.calls.tables.insert(self::number(number), buffer);
    }

    /// One who answers questions about it.
    pub fn doctor(&mut self) -> Doctor {
        let (mounts, stats) = (self.mounts.clone(), self.mount_stats.clone());
        self.file("/proc/self/mountinfo", mounts);
        self.file("/proc/self/mountstats", stats);
        Doctor::new(Host::at(self.root.path(), Box::new(self.calls.clone())))
    }

    /// The answer for a path, as text.
    pub fn says(&mut self, path: &str) -> String {
        self.doctor().path(Path::new(path)).unwrap().text()
    }
}
