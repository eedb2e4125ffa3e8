//! The folder of an atlas: `SCENARIO/recording.json` beside `SCENARIO/trace`, and for each drive
//! `SCENARIO/DRIVE.TRANSPORT.json` and, if one was learned, the policy `SCENARIO/DRIVE.TRANSPORT.toml`.
//!
//! Invariant: a file of ours is whole or not there; one process at a time writes.

use std::fs::{self, File, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Error;

/// The version of the files.
pub(crate) const VERSION: u32 = 1;
/// What they call themselves.
pub(crate) const FORMAT: &str = "shelflife-atlas";

const LOCK: &str = ".lock";
/// Where the server of a recording under way is, so that what a kill leaves there is found again.
const WORK: &str = "work";
const MEMORY: &str = "/dev/shm";
/// The longest file that is read.
const MAX_FILE: u64 = 64 << 20;

/// The folder of a scenario: its name, with what a file name should not have replaced.
pub(crate) fn name(scenario: &str) -> String {
    // a path names a scenario by its last folder
    let last = scenario.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let name = plain(last);
    if name.starts_with('.') || name == WORK { format!("_{name}") } else { name }
}

/// What a file name should not have replaced.
pub(crate) fn plain(text: &str) -> String {
    let replaced = text.chars().map(|c| match c {
        c if c.is_ascii_alphanumeric() || "_-".contains(c) => c,
        _ => '.',
    });
    replaced.collect()
}

/// An atlas's folder, made if it was not there, and ours until this goes.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    _lock: File,
}

impl Folder {
    pub(crate) fn open(path: &Path) -> Result<Folder, Error> {
        make(path)?;
        let path = path.canonicalize().map_err(Error::io("cannot follow", path))?;
        let lock = path.join(LOCK);
        let file = File::create(&lock).map_err(Error::io("cannot make", &lock))?;
        match file.try_lock() {
            Ok(()) => Ok(Folder { path, _lock: file }),
            Err(TryLockError::WouldBlock) => Err(Error::InUse { folder: path }),
            Err(TryLockError::Error(error)) => Err(Error::io("cannot lock", lock)(error)),
        }
    }

    /// The folder of a scenario, there or not.
    pub(crate) fn scenario(&self, scenario: &str) -> PathBuf {
        self.path.join(name(scenario))
    }

    /// A folder for a server with a file system of `size` bytes: in memory if there is plenty, which
    /// is fast and wears nothing. That of an earlier recording that was killed comes first: what is
    /// left there has to be ended.
    pub(crate) fn work(&self, size: u64) -> Result<Work, Error> {
        let link = self.path.join(WORK);
        if let Ok(left) = fs::canonicalize(&link) {
            return Ok(Work { path: left, link });
        }
        // a link to nowhere: the machine was restarted
        let _ = fs::remove_file(&link);
        let path = match in_memory(size) {
            true => {
                use std::os::unix::fs::PermissionsExt;
                let failed = || Error::io("cannot make a folder in", MEMORY);
                tempfile::Builder::new()
                    .prefix("shelflife-atlas-")
                    .permissions(fs::Permissions::from_mode(0o755))
                    .tempdir_in(MEMORY)
                    .map_err(failed())?
                    .keep()
            }
            false => {
                let path = self.path.join(".work");
                make(&path)?;
                path
            }
        };
        let made = std::os::unix::fs::symlink(&path, &link);
        let work = Work { path, link };
        made.map_err(Error::io("cannot make", &work.link))?;
        Ok(work)
    }
}

/// Whether a file system of `size` bytes fits into memory with room to spare, here and now.
pub(crate) fn in_memory(size: u64) -> bool {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let available = line.and_then(|l| l.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
    let enough = |free: u64| free / 2 >= size;
    enough(available.unwrap_or(0).saturating_mul(1024))
        && shelflife_trial::machine::free_space(Path::new(MEMORY)).is_ok_and(enough)
}

/// A place for a server; gone with this value, if it is empty then.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) path: PathBuf,
    link: PathBuf,
}

impl Drop for Work {
    fn drop(&mut self) {
        // what cannot be removed is found again by the link
        if fs::remove_dir(&self.path).is_ok() {
            let _ = fs::remove_file(&self.link);
        }
    }
}

/// Makes a folder, and those above it, if it is not there.
pub(crate) fn make(path: &Path) -> Result<(), Error> {
    fs::create_dir_all(path).map_err(Error::io("cannot make the folder", path))
}

/// Writes a file that is whole or not there.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), Error> {
    let mut aside = path.as_os_str().to_owned();
    aside.push(".part");
    let failed = || Error::io("cannot write", path);
    let mut file = File::create(&aside).map_err(failed())?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed())?;
    fs::rename(&aside, path).map_err(failed())
}

/// Writes a value as JSON, and gives it as it will be read from now on: numbers with a fraction may come
/// back with another last digit.
pub(crate) fn write_json<T: Serialize + DeserializeOwned>(
    path: &Path,
    value: &T,
) -> Result<T, Error> {
    let wrong = |error: serde_json::Error| Error::NotOurs {
        path: path.to_owned(),
        why: format!("cannot be written: {error}"),
    };
    let text = serde_json::to_string_pretty(value).map_err(wrong)?;
    write(path, &(text + "\n"))?;
    let gone = || Error::io("cannot read", path)(std::io::ErrorKind::NotFound.into());
    read_json(path)?.ok_or_else(gone)
}

/// Reads a value; `None` if there is no such file.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, Error> {
    let failed = || Error::io("cannot read", path);
    let wrong = |why: String| Error::NotOurs { path: path.to_owned(), why };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed()(error)),
    };
    let mut text = Vec::new();
    file.take(MAX_FILE).read_to_end(&mut text).map_err(failed())?;
    let damaged = |error: serde_json::Error| wrong(format!("it is damaged ({error})"));
    #[derive(serde::Deserialize)]
    struct Head {
        format: String,
        version: u32,
    }
    let head: Head = serde_json::from_slice(&text).map_err(damaged)?;
    if head.format != FORMAT || head.version != VERSION {
        return Err(wrong(format!(
            "it is of format {} version {}, and this shelflife knows {FORMAT} version {VERSION}",
            head.format, head.version
        )));
    }
    serde_json::from_slice(&text).map(Some).map_err(damaged)
}

/// Removes what is said of a recording in its folder: files of ours, and the policies beside them. What
/// else lies there stays.
pub(crate) fn forget(folder: &Path) -> Result<(), Error> {
    for entry in fs::read_dir(folder).map_err(Error::io("cannot read", folder))? {
        let path = entry.map_err(Error::io("cannot read", folder))?.path();
        let is_json = path.extension().is_some_and(|extension| extension == "json");
        if !is_json || !matches!(read_json::<serde::de::IgnoredAny>(&path), Ok(Some(_))) {
            continue;
        }
        for path in [path.with_extension("toml"), path] {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Error::io("cannot remove", path)(error));
                }
                _ => {}
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain() {
        assert_eq!(name("bulk-load:replica"), "bulk-load.replica");
        assert_eq!(name("../my/scenario/"), "scenario");
        assert_eq!(
            (name(".."), name("work"), name("ä b")),
            ("_..".into(), "_work".into(), "_..b".into())
        );
    }

    #[test]
    fn one_process_at_a_time_writes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b");
        let folder = Folder::open(&path).unwrap();
        assert!(matches!(Folder::open(&path), Err(Error::InUse { .. })));
        drop(folder);
        Folder::open(&path).unwrap();
    }

    #[test]
    fn the_place_of_a_killed_recording_is_found_again() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        let work = folder.work(1).unwrap();
        let path = work.path.clone();
        fs::write(path.join("left"), "").unwrap();
        drop(work);
        let again = folder.work(1).unwrap();
        assert_eq!(again.path, path.canonicalize().unwrap());
        fs::remove_file(path.join("left")).unwrap();
        drop(again);
        assert!(!path.exists() && fs::symlink_metadata(dir.path().join(WORK)).is_err());
        // far too large for memory
        let large = folder.work(u64::MAX).unwrap();
        assert!(large.path.starts_with(dir.path().canonicalize().unwrap()));
    }

    #[test]
    fn only_files_of_ours_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let ours = "{\"format\":\"shelflife-atlas\",\"version\":1,\"drive\":{}}";
        for (name, text) in [
            ("ufs-5-groups.scsi.json", ours),
            ("ufs-5-groups.scsi.toml", ""),
            ("fdp.nvme-raw.json", ours),
            ("scenario.toml", ""),
            ("package.json", "{}"),
            ("notes", ours),
        ] {
            fs::write(path(name), text).unwrap();
        }
        forget(dir.path()).unwrap();
        let left = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let mut left: Vec<_> = left.collect();
        left.sort();
        assert_eq!(left, ["notes", "package.json", "scenario.toml"]);
        assert!(forget(&path("none")).is_err());
    }

    #[test]
    fn what_is_not_ours_is_said() {
        #[derive(Debug, serde::Deserialize)]
        struct Any {
            #[allow(dead_code)]
            n: u32,
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.json");
        assert!(read_json::<Any>(&path).unwrap().is_none());
        fs::write(&path, b"{\"format\":\"\xff").unwrap();
        assert!(matches!(read_json::<Any>(&path), Err(Error::NotOurs { .. })), "no text");
        for (text, told) in [
            ("", "EOF"),
            ("{\"format\":\"x\",\"version\":1}", "of format x version 1"),
            ("{\"format\":\"shelflife-atlas\",\"version\":9}", "version 9"),
            ("{\"format\":\"shelflife-atlas\",\"version\":1}", "missing field `n`"),
        ] {
            write(&path, text).unwrap();
            let error = read_json::<Any>(&path).unwrap_err().to_string();
            assert!(error.contains(told) && error.contains("remove it"), "{error}");
        }
        write(&path, "{\"format\":\"shelflife-atlas\",\"version\":1,\"n\":3}").unwrap();
        assert_eq!(read_json::<Any>(&path).unwrap().unwrap().n, 3);
    }
}
