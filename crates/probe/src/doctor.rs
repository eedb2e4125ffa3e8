//! The questions: one path, a server's folders, every device.
//!
//! Invariant: nothing is written; what may not be asked makes the answer poorer, not an error.

use std::path::{Path, PathBuf};

use serde::Serialize;
use shelflife_postgres::DataFolder;
use shelflife_postgres::procfs::Procfs;

use shelflife_mounts::DevNumber;

use crate::answer::{Answer, Verdict};
use crate::block::{Block, Listed};
use crate::error::Error;
use crate::host::{Host, Located};
use crate::kernel::Kernel;
use crate::leaf;
use crate::walk::Ways;

/// Answers questions about a machine.
#[derive(Debug)]
pub struct Doctor {
    host: Host,
    ask: bool,
}

/// What `shelflife doctor --json` prints; `docs/doctor.md` describes it.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Report {
    /// The version of this form: 1.
    pub format: u32,
    /// The kernel.
    pub kernel: Kernel,
    /// The worst verdict of the answers; `None` for the list of everything.
    pub verdict: Option<Verdict>,
    /// The answer for each path.
    pub answers: Vec<Answer>,
    /// The block devices, if they were asked for.
    pub devices: Vec<Listed>,
    /// What could not be looked at.
    pub notes: Vec<String>,
}

impl Doctor {
    /// One that asks everything that it may, drives too.
    pub fn new(host: Host) -> Doctor {
        Doctor { host, ask: true }
    }

    /// Asks no drive: reads files of `/sys` and `/proc` only, so that no drive can make it wait.
    #[must_use]
    pub fn without_drives(self) -> Doctor {
        Doctor { ask: false, ..self }
    }

    /// The answer for a path, or for a block device by its path or name.
    ///
    /// # Errors
    ///
    /// [`Error::Path`] if it does not exist or may not be reached; [`Error::Special`].
    pub fn path(&self, path: &Path) -> Result<Report, Error> {
        let place = self.locate(path)?;
        let ways = Ways::new(&self.host, &place.path, self.ask);
        let answer = Answer::of(place.path.clone(), ways.walk(&place));
        Ok(Report {
            format: 1,
            kernel: ways.kernel,
            verdict: Some(answer.verdict),
            answers: vec![answer],
            devices: Vec::new(),
            notes: Vec::new(),
        })
    }

    /// Where `path` lies; also a device by its name alone.
    pub(crate) fn locate(&self, path: &Path) -> Result<Located, Error> {
        match self.host.calls().locate(path) {
            Ok(place) if place.special => Err(Error::Special { path: path.to_owned() }),
            Ok(place) => Ok(place),
            Err(error) => {
                let name = path.to_str().unwrap_or("").trim_start_matches("/dev/");
                let block = (!name.is_empty()).then(|| Block::named(&self.host, name)).flatten();
                let number = block.as_ref().and_then(|block| block.number(&self.host));
                let Some((block, number)) = block.zip(number) else {
                    return Err(Error::path(path)(error));
                };
                Ok(Located {
                    path: Path::new("/dev").join(block.name),
                    device: DevNumber { major: 0, minor: 0 },
                    block: Some(number),
                    folder: false,
                    special: false,
                })
            }
        }
    }

    /// The answers for a server's data folder, WAL folder and tablespaces.
    ///
    /// # Errors
    ///
    /// As for [`Doctor::path`]; [`Error::Server`] if it is no data folder.
    pub fn server(&self, pgdata: &Path) -> Result<Report, Error> {
        let ways = Ways::new(&self.host, pgdata, self.ask);
        let mut notes = Vec::new();
        let answers = self.places(&ways, pgdata, &mut notes)?;
        Ok(Report {
            format: 1,
            verdict: worst(answers.iter().map(|answer| answer.verdict)),
            kernel: ways.kernel,
            answers,
            devices: Vec::new(),
            notes,
        })
    }

    fn places(
        &self,
        ways: &Ways<'_>,
        pgdata: &Path,
        notes: &mut Vec<String>,
    ) -> Result<Vec<Answer>, Error> {
        let mut places: Vec<(String, PathBuf)> = vec![("data folder".into(), pgdata.to_owned())];
        match DataFolder::open(pgdata).map_err(Error::from) {
            Ok(folder) => {
                match folder.wal_folder() {
                    Ok(wal) => places.push(("WAL folder".into(), wal)),
                    Err(error) => notes.push(error.to_string()),
                }
                match folder.tablespaces() {
                    Ok(all) => places.extend(
                        all.into_iter().map(|one| (format!("tablespace {}", one.oid), one.path)),
                    ),
                    Err(error) => notes.push(error.to_string()),
                }
            }
            Err(error) if error.is_denied() => notes.push(format!(
                "{}: its WAL folder and tablespaces are shown to its owner and to root only",
                pgdata.display()
            )),
            Err(error) => return Err(error),
        }
        places
            .into_iter()
            .map(|(what, path)| {
                let place = self.locate(&path)?;
                let answer = Answer::of(place.path.clone(), ways.walk(&place));
                Ok(Answer { what: Some(what), ..answer })
            })
            .collect()
    }

    /// Every block device, and the answers for every server that runs here and can be seen.
    pub fn everything(&self) -> Report {
        let ways = Ways::new(&self.host, Path::new("/"), false);
        let mut notes = Vec::new();
        let mut answers = Vec::new();
        for folder in self.running() {
            match self.places(&ways, &folder, &mut notes) {
                Ok(some) => answers.extend(some),
                Err(error) => notes.push(error.to_string()),
            }
        }
        let devices = self.devices(&ways);
        Report { format: 1, verdict: None, kernel: ways.kernel, answers, devices, notes }
    }

    fn devices(&self, ways: &Ways<'_>) -> Vec<Listed> {
        let host = &self.host;
        let whole = host.names("/sys/block").into_iter().filter_map(|n| Block::named(host, &n));
        let drives = whole.filter(|block| !block.is_hidden(host)).map(|block| {
            let drive = block.drive(host);
            let mut holds = Vec::new();
            let parts = host.names(&block.folder);
            let parts =
                parts.iter().filter(|n| host.exists(block.folder.join(n).join("partition")));
            for name in std::iter::once(&block.name).chain(parts) {
                self.held_by(ways, &block, name, &mut holds);
            }
            let hears = leaf::hears(&ways.kernel, &block, &drive);
            Listed { drive, holds, hears }
        });
        // Loop devices without a file and RAM disks without a size are only names.
        drives.filter(|one| one.drive.size != Some(0) || !one.holds.is_empty()).collect()
    }

    fn held_by(&self, ways: &Ways<'_>, disk: &Block, name: &str, holds: &mut Vec<String>) {
        let host = &self.host;
        let folder = match name == disk.name {
            true => disk.folder.clone(),
            false => disk.folder.join(name),
        };
        let number: Option<DevNumber> = host.number(folder.join("dev"));
        let source = Path::new("/dev").join(name);
        let mounts = ways.mounts.iter().filter(|mount| {
            Some(mount.device) == number || (mount.device.major == 0 && mount.source == source)
        });
        let mut seen: Option<&str> = None;
        for mount in mounts {
            // Bind mounts of the same file system are one.
            if seen != Some(mount.file_system.as_str()) {
                holds.push(format!("{} on {}", mount.file_system, mount.point.display()));
            }
            seen = Some(&mount.file_system);
        }
        holds.extend(host.names(folder.join("holders")));
    }

    /// Data folders of the servers that run here, as far as they can be seen.
    fn running(&self) -> Vec<PathBuf> {
        let proc = Procfs::at(self.host.place("/proc"));
        let all = proc.processes().unwrap_or_default();
        let mut found = Vec::new();
        let servers = all.iter().filter(|process| process.is_server());
        let is_child = |parent: i32| all.iter().any(|one| one.pid == parent && one.is_server());
        for server in servers.filter(|process| !is_child(process.parent)) {
            // The working folder of another user's process is shown to root only; its arguments are
            // shown to all.
            let folder = proc.working_path(server.pid);
            let folder = folder.or_else(|| self.argument(server.pid));
            if let Some(folder) = folder.filter(|folder| !found.contains(folder)) {
                found.push(folder);
            }
        }
        found
    }

    /// The value of `-D` in a process' arguments.
    fn argument(&self, pid: i32) -> Option<PathBuf> {
        let raw = self.host.read(format!("/proc/{pid}/cmdline")).ok()?;
        let text = String::from_utf8_lossy(&raw);
        let arguments: Vec<&str> = text.split('\0').collect();
        let at = arguments.iter().position(|one| one.starts_with("-D"))?;
        let value = match arguments[at] {
            "-D" => arguments.get(at + 1)?,
            joined => &joined[2..],
        };
        let path = Path::new(value);
        path.is_absolute().then(|| path.to_owned())
    }
}

/// The worst of several verdicts; unknown is worse than delivered, and better than lost.
fn worst(verdicts: impl Iterator<Item = Verdict>) -> Option<Verdict> {
    verdicts.max_by_key(|verdict| match verdict {
        Verdict::Delivered => 0,
        Verdict::Unknown => 1,
        Verdict::FileSystemOnly => 2,
        Verdict::NotDelivered => 3,
    })
}
