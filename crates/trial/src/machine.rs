//! What the trial runs on, and what the machine did meanwhile: files of `/proc`.
//!
//! Invariant: everything is read below a root that the caller gives, so that recorded files test
//! it; what a kernel does not have is `None`.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use shelflife_mounts::{DevNumber, Mounts};

use crate::error::{Error, Result};

/// A machine and the place of the data on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Release of the kernel.
    pub kernel: String,
    /// Model of the first processor.
    pub processor: Option<String>,
    /// Processors that this program may use.
    pub cores: usize,
    /// Memory in bytes.
    pub memory: Option<u64>,
    /// Where the data lies.
    pub storage: Mount,
}

/// A mounted file system (`/proc/self/mountinfo`, proc_pid_mountinfo(5)).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// What is mounted: `/dev/nvme0n1p2`.
    pub device: String,
    /// Where.
    pub point: PathBuf,
    /// The file system's type.
    pub file_system: String,
    /// Mount options, those of the superblock last.
    pub options: String,
}

impl Machine {
    /// This machine, with data in `folder`, which exists.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the folder or the mounts cannot be read.
    pub fn read(proc: &Path, folder: &Path) -> Result<Machine> {
        let text = |name: &str| fs::read_to_string(proc.join(name)).unwrap_or_default();
        let cpu = text("cpuinfo");
        let model = cpu.lines().find_map(|line| line.strip_prefix("model name"));
        let memory = text("meminfo");
        let total = memory.lines().find_map(|line| line.strip_prefix("MemTotal:"));
        let kib = total.and_then(|l| l.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
        Ok(Machine {
            kernel: text("sys/kernel/osrelease").trim().to_owned(),
            processor: model.map(|m| m.trim_start_matches([' ', '\t', ':']).to_owned()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory: kib.and_then(|kib| kib.checked_mul(1024)),
            storage: Mount::of(proc, folder)?,
        })
    }
}

impl Mount {
    /// The mount that `folder` lies on: by device number, and where several have it (bind mounts)
    /// or none (btrfs) by the longest mount point above it.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn of(proc: &Path, folder: &Path) -> Result<Mount> {
        let folder = folder.canonicalize().map_err(Error::io("cannot follow", folder))?;
        let device = fs::metadata(&folder).map_err(Error::io("cannot look at", &folder))?.dev();
        let path = proc.join("self/mountinfo");
        let text = fs::read(&path).map_err(Error::io("cannot read", &path))?;
        let device = DevNumber::from_stat(device);
        let mounts = Mounts::parse(&text);
        Ok(match mounts.of_file(&folder, device) {
            Some(mount) => Mount {
                device: mount.source.display().to_string(),
                point: mount.point.clone(),
                file_system: mount.file_system.clone(),
                options: mount.options.join(","),
            },
            None => Mount {
                device: format!("device {device}"),
                point: "/".into(),
                file_system: "unknown".into(),
                options: String::new(),
            },
        })
    }
}

/// Counters of the machine at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Snapshot {
    /// Ticks stolen by the hypervisor, and all ticks of all processors.
    ticks: Option<(u64, u64)>,
    cpu_some: Option<u64>,
    io_some: Option<u64>,
    io_full: Option<u64>,
    memory_full: Option<u64>,
}

/// What the machine did in a while: shares of the time, 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Strain {
    /// Processor time that went to other guests of the same host (`steal` of `/proc/stat`).
    pub steal: Option<f64>,
    /// Time in which some task waited for a processor (`/proc/pressure/cpu`).
    pub cpu_some: Option<f64>,
    /// Time in which some task waited for I/O.
    pub io_some: Option<f64>,
    /// Time in which all tasks that were not idle waited for I/O.
    pub io_full: Option<f64>,
    /// Time in which all tasks that were not idle waited for memory.
    pub memory_full: Option<f64>,
}

impl Snapshot {
    /// The counters now.
    pub fn read(proc: &Path) -> Snapshot {
        let stalled = |name: &str, kind: &str| {
            let text = fs::read_to_string(proc.join("pressure").join(name)).ok()?;
            let line = text.lines().find(|line| line.starts_with(kind))?;
            line.split(' ').find_map(|field| field.strip_prefix("total="))?.parse().ok()
        };
        let stat = fs::read_to_string(proc.join("stat")).unwrap_or_default();
        Snapshot {
            ticks: parse_ticks(&stat),
            cpu_some: stalled("cpu", "some"),
            io_some: stalled("io", "some"),
            io_full: stalled("io", "full"),
            memory_full: stalled("memory", "full"),
        }
    }

    /// What happened since `earlier`, `time` ago.
    pub fn since(&self, earlier: &Snapshot, time: Duration) -> Strain {
        let share = |now: Option<u64>, then: Option<u64>| {
            let stalled = now?.checked_sub(then?)?;
            let all = time.as_micros();
            (all > 0).then(|| (stalled as f64 / all as f64).min(1.0))
        };
        let steal = || {
            let ((stolen, all), (stolen_then, all_then)) = (self.ticks?, earlier.ticks?);
            let (stolen, all) = (stolen.checked_sub(stolen_then)?, all.checked_sub(all_then)?);
            (all > 0).then(|| (stolen as f64 / all as f64).min(1.0))
        };
        Strain {
            steal: steal(),
            cpu_some: share(self.cpu_some, earlier.cpu_some),
            io_some: share(self.io_some, earlier.io_some),
            io_full: share(self.io_full, earlier.io_full),
            memory_full: share(self.memory_full, earlier.memory_full),
        }
    }
}

/// `cpu user nice system idle iowait irq softirq steal guest guest_nice`; guest time is counted in
/// user time already (proc_stat(5)).
fn parse_ticks(stat: &str) -> Option<(u64, u64)> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let fields: Option<Vec<u64>> =
        line.split_whitespace().take(8).map(|field| field.parse().ok()).collect();
    let fields = fields.filter(|fields| fields.len() == 8)?;
    Some((fields[7], fields.iter().fold(0, |sum: u64, ticks| sum.saturating_add(*ticks))))
}

/// Bytes that an unprivileged process can still write on the file system of `folder`.
///
/// # Errors
///
/// [`Error::Io`].
pub fn free_space(folder: &Path) -> Result<u64> {
    let stat = rustix::fs::statvfs(folder)
        .map_err(|errno| Error::io("cannot ask for the free space of", folder)(errno.into()))?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_machine_is_read() {
        let proc = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| {
            let path = proc.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("sys/kernel/osrelease", "6.18.44\n");
        put("cpuinfo", "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\nmodel name\t: Other\n");
        put("meminfo", "MemTotal:       24684092 kB\nMemFree: 1 kB\n");
        put("self/mountinfo", "1 0 9999:9999 / / rw - ext4 /dev/root rw\n");
        let machine = Machine::read(proc.path(), proc.path()).unwrap();
        assert_eq!(machine.kernel, "6.18.44");
        assert_eq!(machine.processor.as_deref(), Some("Some CPU @ 2 GHz"));
        assert_eq!(machine.memory, Some(24_684_092 * 1024));
        assert_eq!(machine.storage.device, "/dev/root");
        assert!(Mount::of(proc.path(), &proc.path().join("nowhere")).is_err());
    }

    #[test]
    fn strain_is_the_share_of_the_time() {
        let proc = tempfile::tempdir().unwrap();
        fs::create_dir(proc.path().join("pressure")).unwrap();
        let put = |steal: u64, io: u64| {
            let stat = format!("cpu  100 0 100 {} 0 0 0 {steal} 0 0\ncpu0 1\n", 800 - steal);
            fs::write(proc.path().join("stat"), stat).unwrap();
            let text = format!(
                "some avg10=0.00 avg60=0.00 avg300=0.00 total={io}\n\
                 full avg10=0.00 avg60=0.00 avg300=0.00 total={}\n",
                io / 2
            );
            fs::write(proc.path().join("pressure/io"), text).unwrap();
            Snapshot::read(proc.path())
        };
        let earlier = put(0, 1000);
        let mut later = put(50, 501_000);
        later.ticks = later.ticks.map(|(steal, all)| (steal, all + 1000));
        let strain = later.since(&earlier, Duration::from_secs(1));
        assert_eq!(strain.io_some, Some(0.5));
        assert_eq!(strain.io_full, Some(0.25));
        assert_eq!(strain.steal, Some(0.05));
        assert_eq!(strain.cpu_some, None, "this kernel has no such file");
        assert_eq!(earlier.since(&later, Duration::ZERO), Strain::default());
    }

    #[test]
    fn the_machine_at_hand_is_read() {
        let machine = Machine::read(Path::new("/proc"), &std::env::temp_dir()).unwrap();
        assert!(!machine.kernel.is_empty() && machine.cores > 0);
        assert!(free_space(&std::env::temp_dir()).unwrap() > 0);
    }
}
