//! The device of the epochs: whether it may be taken, and its counters.
//!
//! Invariant: nothing is written to a device before it was found to be a whole one, free, without any
//! signature but one of this trial's own, and with counters.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use shelflife_probe::{Doctor, Fdp, Host, Verdict};
use shelflife_report::bytes;

use super::count::Count;
use crate::error::{Error, Result};
use crate::filesystem::tell;
use crate::record::{CounterSource, DeviceFacts};

/// Where the kernel shows block devices.
const BLOCK: &str = "/sys/class/block";

/// Sectors of `/sys` are of 512 bytes, whatever the drive's block.
const SECTOR: u64 = 512;

/// A unit of the endurance group's log, in bytes.
const ENDURANCE_UNIT: u64 = 1_000_000_000;

/// The smallest device whose writes the endurance group's log counts finely enough, in bytes.
const ENDURANCE_LEAST: u64 = 100 * ENDURANCE_UNIT;

/// A device that epochs may be run on.
#[derive(Debug)]
pub(crate) struct Device {
    pub(crate) path: PathBuf,
    pub(crate) facts: DeviceFacts,
}

/// Bytes of a block device.
pub(crate) fn device_size(path: &Path) -> Result<u64> {
    let (_, name) = block(path)?;
    size(&Path::new(BLOCK).join(&name))
        .ok_or_else(|| not_free(path, "its size cannot be read".to_owned()))
}

impl Device {
    /// Looks at the device at `path`: that it is free and empty, but for file systems labelled `own`, and
    /// that its writes can be counted. Nothing is written.
    pub(crate) fn find(path: &Path, own: &str) -> Result<Device> {
        let (path, name) = block(path)?;
        let folder = Path::new(BLOCK).join(&name);
        if let Some(why) = taken(&folder) {
            return Err(not_free(&path, why));
        }
        exclusive(&path)?;
        let listed = tell(
            Command::new("wipefs")
                .args(["--parsable", "--noheadings", "--output", "TYPE,LABEL"])
                .arg(&path),
        )?;
        let foreign = foreign(&listed, own);
        if !foreign.is_empty() {
            return Err(not_free(
                &path,
                format!(
                    "it holds something ({}), and an epoch trims all of it; if nothing of it is needed: \
                     wipefs --all {}",
                    foreign.join(", "),
                    path.display()
                ),
            ));
        }
        let no_measure = |why| Error::NoMeasure { path: path.clone(), why };
        let fdp = ask(&path)?;
        let size = size(&folder).ok_or_else(|| no_measure("its size cannot be read".to_owned()))?;
        let counters = source(fdp.as_ref(), size).map_err(no_measure)?;
        let text = |file: &str| {
            let text = fs::read_to_string(folder.join("device").join(file)).unwrap_or_default();
            text.trim().to_owned()
        };
        let facts = DeviceFacts {
            name,
            model: text("model"),
            serial: text("serial"),
            size,
            counters,
            reclaim_unit: fdp.and_then(|fdp| fdp.reclaim_unit),
        };
        Ok(Device { path, facts })
    }

    /// That hints reach this drive from its file system, mounted at `folder`.
    pub(crate) fn check_delivered(&self, folder: &Path) -> Result<()> {
        let report = Doctor::new(Host::live()).path(folder)?;
        let why = match report.answers.first() {
            Some(answer) if answer.verdict == Verdict::Delivered => return Ok(()),
            Some(answer) => {
                let changes =
                    answer.changes.iter().map(|change| format!(" What would help: {change}."));
                format!("{}{}", answer.sentence, changes.collect::<String>())
            }
            None => "whether hints reach it is not known".to_owned(),
        };
        Err(Error::NoMeasure { path: self.path.clone(), why })
    }

    /// The steps in which the drive counts, in bytes.
    pub(crate) fn step(&self) -> u64 {
        match self.facts.counters {
            CounterSource::FdpStatistics => 0,
            CounterSource::EnduranceGroup => ENDURANCE_UNIT,
        }
    }

    /// Reads the counters.
    pub(crate) fn count(&self) -> Result<Count> {
        let stat = Path::new(BLOCK).join(&self.facts.name).join("stat");
        let text = fs::read_to_string(&stat).map_err(Error::io("cannot read", &stat))?;
        let issued = issued(&text).ok_or_else(|| self.lost("its block layer statistics"))?;
        let fdp = ask(&self.path)?.ok_or_else(|| self.lost("its counters"))?;
        let (host, media) = match self.facts.counters {
            CounterSource::FdpStatistics => {
                let now = fdp.statistics.ok_or_else(|| self.lost("its FDP statistics"))?;
                (now.host_written, now.media_written)
            }
            CounterSource::EnduranceGroup => {
                let now = fdp.endurance.ok_or_else(|| self.lost("its endurance group log"))?;
                let unit = u128::from(ENDURANCE_UNIT);
                (now.host_units.saturating_mul(unit), now.media_units.saturating_mul(unit))
            }
        };
        Ok(Count { host, media, issued: issued.into() })
    }

    fn lost(&self, what: &str) -> Error {
        let why = format!("{what} cannot be read any more");
        Error::NoMeasure { path: self.path.clone(), why }
    }
}

fn not_free(path: &Path, why: String) -> Error {
    Error::NotFree { path: path.to_owned(), why }
}

/// The block device at `path`, links followed, and its name.
fn block(path: &Path) -> Result<(PathBuf, String)> {
    let real = path.canonicalize().map_err(Error::io("cannot follow", path))?;
    let meta = fs::metadata(&real).map_err(Error::io("cannot look at", &real))?;
    match real.file_name().and_then(|name| name.to_str()) {
        Some(name) if meta.file_type().is_block_device() => Ok((real.clone(), name.to_owned())),
        _ => Err(not_free(
            path,
            "not a block device: name a whole namespace (/dev/nvme0n1)".to_owned(),
        )),
    }
}

fn size(folder: &Path) -> Option<u64> {
    let sectors = fs::read_to_string(folder.join("size")).ok()?;
    sectors.trim().parse::<u64>().ok()?.checked_mul(SECTOR)
}

/// Who has the device, by its folder in `/sys`.
fn taken(folder: &Path) -> Option<String> {
    if folder.join("partition").exists() {
        return Some("a partition: hints reach a drive from a whole namespace only".to_owned());
    }
    let names = |folder: &Path| -> Vec<String> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    };
    let held = names(&folder.join("holders"));
    if !held.is_empty() {
        return Some(format!("in use by {}", held.join(", ")));
    }
    let mut parts = names(folder);
    parts.retain(|name| folder.join(name).join("partition").exists());
    (!parts.is_empty()).then(|| format!("it has partitions: {}", parts.join(", ")))
}

/// That nobody has opened the device for himself: no file system, no swap, no other device on it.
fn exclusive(path: &Path) -> Result<()> {
    let flags = rustix::fs::OFlags::EXCL | rustix::fs::OFlags::CLOEXEC;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::ResourceBusy => Err(not_free(
            path,
            "in use (`lsblk` shows where it is mounted, or what is on it)".to_owned(),
        )),
        Err(error) => Err(Error::io("cannot open", path)(error)),
    }
}

/// Signatures that `wipefs` listed, without those of file systems labelled `own`.
fn foreign(listed: &str, own: &str) -> Vec<String> {
    let lines = listed.lines().filter(|line| !line.trim().is_empty());
    let signatures = lines.map(|line| line.split_once(',').unwrap_or((line, "")));
    let foreign = signatures.filter(|(_, label)| *label != own);
    foreign
        .map(|(kind, label)| match label {
            "" => kind.to_owned(),
            label => format!("{kind} {label:?}"),
        })
        .collect()
}

/// What the drive says of its data placement and counters; `None` if it is no NVMe drive or does not say.
fn ask(path: &Path) -> Result<Option<Fdp>> {
    let report = Doctor::new(Host::live()).path(path)?;
    let drives = report.answers.into_iter().flat_map(|answer| answer.drives);
    Ok(drives.into_iter().find_map(|leaf| leaf.fdp))
}

/// Whose counters are read.
fn source(fdp: Option<&Fdp>, size: u64) -> Result<CounterSource, String> {
    const OTHER: &str = "take an NVMe drive with Flexible Data Placement";
    let Some(fdp) = fdp else {
        return Err(format!("it is no NVMe drive, or did not answer; {OTHER}"));
    };
    if fdp.on == Some(true) && fdp.statistics.is_some() {
        return Ok(CounterSource::FdpStatistics);
    }
    match fdp.endurance {
        Some(_) if size >= ENDURANCE_LEAST => Ok(CounterSource::EnduranceGroup),
        Some(_) => Err(format!(
            "it has no FDP statistics (log page 22h), and its endurance group log counts in {}: that is \
             fine enough from {} on; {OTHER}",
            bytes(ENDURANCE_UNIT),
            bytes(ENDURANCE_LEAST)
        )),
        None => Err(format!(
            "it counts no media writes (neither log page 22h, FDP statistics, nor 09h, endurance group); \
             {OTHER}"
        )),
    }
}

/// Bytes written, of a device's `stat` (Documentation/block/stat.rst: the seventh field, in sectors).
fn issued(stat: &str) -> Option<u64> {
    stat.split_whitespace().nth(6)?.parse::<u64>().ok()?.checked_mul(SECTOR)
}

#[cfg(test)]
mod tests {
    use shelflife_probe::nvme::{Endurance, Statistics};

    use super::*;

    #[test]
    fn who_has_the_device_is_named() {
        let sys = tempfile::tempdir().unwrap();
        let make = |path: &str| fs::create_dir_all(sys.path().join(path)).unwrap();
        make("free/holders");
        make("free/queue");
        make("held/holders/dm-0");
        make("held/holders/md3");
        make("parted/parted2");
        make("parted/parted1");
        make("parted/queue");
        for file in ["parted/parted1/partition", "parted/parted2/partition"] {
            fs::write(sys.path().join(file), "1\n").unwrap();
        }
        let said = |name: &str| taken(&sys.path().join(name));
        assert_eq!(said("free"), None);
        assert_eq!(said("held").unwrap(), "in use by dm-0, md3");
        assert_eq!(said("parted").unwrap(), "it has partitions: parted1, parted2");
        assert!(said("parted/parted1").unwrap().starts_with("a partition"));
    }

    #[test]
    fn only_the_trials_own_signature_is_no_obstacle() {
        assert!(foreign("", "sl-1").is_empty());
        assert!(foreign("f2fs,sl-1\n", "sl-1").is_empty());
        assert_eq!(
            foreign("ext4,data\nf2fs,sl-1\ngpt,\nPMBR", "sl-1"),
            ["ext4 \"data\"", "gpt", "PMBR"]
        );
        assert_eq!(foreign("f2fs,sl-2", "sl-1"), ["f2fs \"sl-2\""]);
    }

    /// As the real program lists them, of a file.
    #[test]
    fn wipefs_is_understood() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(64 << 20).unwrap();
        let list = || {
            tell(Command::new("wipefs").args(["-pn", "-O", "TYPE,LABEL"]).arg(file.path())).unwrap()
        };
        assert_eq!(foreign(&list(), "sl-1"), [] as [String; 0]);
        tell(Command::new("mkfs.ext4").args(["-q", "-F", "-L", "a b"]).arg(file.path())).unwrap();
        assert_eq!(foreign(&list(), "sl-1").len(), 1, "{}", list());
        tell(Command::new("mkfs.ext4").args(["-q", "-F", "-L", "sl-1"]).arg(file.path())).unwrap();
        assert_eq!(foreign(&list(), "sl-1"), [] as [String; 0], "{}", list());
    }

    #[test]
    fn counters_that_are_too_coarse_are_refused() {
        const TB: u64 = 1_000_000_000_000;
        let endurance = Some(Endurance { host_units: 1, media_units: 2 });
        let statistics = Some(Statistics { host_written: 1, media_written: 2, media_erased: 0 });
        let fdp = Fdp { on: Some(true), statistics, endurance, ..Fdp::default() };
        assert_eq!(source(Some(&fdp), 1 << 28), Ok(CounterSource::FdpStatistics));
        let plain = Fdp { endurance, ..Fdp::default() };
        assert_eq!(source(Some(&plain), TB), Ok(CounterSource::EnduranceGroup));
        let told = |fdp: Option<&Fdp>, size| source(fdp, size).unwrap_err();
        assert!(
            told(Some(&plain), TB / 20).contains("from 100"),
            "{}",
            told(Some(&plain), TB / 20)
        );
        assert!(told(Some(&Fdp::default()), TB).contains("counts no media writes"));
        assert!(told(None, TB).contains("no NVMe drive"));
    }

    #[test]
    fn the_block_layers_sectors_are_bytes() {
        // Linux 7.3: seventeen fields
        let stat = "     119        0     5200       30      877       12    30720      100        0\
                    \x20     60      130        3        0   524288        1        2        4\n";
        assert_eq!(issued(stat), Some(30720 * 512));
        assert_eq!(issued("1 2 3"), None);
        assert_eq!(issued(&"99999999999999999999 ".repeat(9)), None);
    }

    #[test]
    fn what_is_no_device_is_refused() {
        let said = device_size(Path::new("/dev/null")).unwrap_err().to_string();
        assert_eq!(said, "/dev/null: not a block device: name a whole namespace (/dev/nvme0n1)");
        assert!(matches!(Device::find(Path::new("/dev/nowhere"), "x"), Err(Error::Io { .. })));
    }
}
