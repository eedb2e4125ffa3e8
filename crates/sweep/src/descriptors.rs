//! Open descriptors of the processes that work in a data folder.
//!
//! Invariant: a descriptor is opened again only if its link names a file in the territory; what
//! is behind it is judged by `fstat` of the new descriptor, since the link may change meanwhile.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};
use rustix::io::Errno;
use serde::Serialize;
use shelflife_layout::{Class, Table};
use shelflife_lifetime::{Lifetime, get};

use crate::territory::Territory;
use crate::{Place, Tally, refuse, wanted};

/// The processes whose working directory is `folder` (canonical), by number: a server and all its
/// children. Processes that this user may not look into are not among them.
pub fn processes_in(folder: &Path) -> Vec<u32> {
    let mut found: Vec<u32> = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == folder))
        .collect();
    found.sort_unstable();
    found
}

/// A file that a process holds open for writing.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct OpenFile {
    /// The process.
    pub pid: u32,
    /// The descriptor's number there.
    pub fd: u32,
    /// The path from the data folder, last known name if it was unlinked.
    pub inside: PathBuf,
    /// What the file is, by the policy's layout.
    #[serde(serialize_with = "name_of_class")]
    pub class: Class,
    /// The hint that the policy gives it (`not-set` if it gives none).
    #[serde(serialize_with = "name_of_lifetime")]
    pub wanted: Lifetime,
    /// The hint that it carries.
    #[serde(serialize_with = "name_of_lifetime")]
    pub found: Lifetime,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn name_of_class<S: serde::Serializer>(class: &Class, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(class.name())
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn name_of_lifetime<S: serde::Serializer>(lifetime: &Lifetime, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(lifetime.name())
}

/// Every regular file of the territory that a process working in the data folder holds open for
/// writing, with the hint that it carries and the one that `table` would give it.
pub fn open_for_writing(territory: &Territory, table: &Table) -> Vec<OpenFile> {
    let base = territory.base().as_os_str().as_bytes();
    let mut found = Vec::new();
    for pid in processes_in(territory.base()) {
        for fd in descriptors(pid) {
            let Some(inside) = inside_of(territory, pid, fd) else { continue };
            if !opened_for_writing(pid, fd) {
                continue;
            }
            let Ok(Some(file)) = reopen(territory, pid, fd) else { continue };
            let Ok(hint) = get(&file) else { continue };
            let (class, wanted) = wanted(table, base, &inside);
            let inside = PathBuf::from(OsString::from_vec(inside));
            found.push(OpenFile { pid, fd, inside, class, wanted, found: hint });
        }
    }
    found
}

pub(crate) fn pass(
    territory: &Territory,
    tally: &mut Tally,
    visit: &mut impl FnMut(&mut Tally, &OwnedFd, &Place<'_>),
    progress: &mut impl FnMut(&Tally) -> bool,
) -> bool {
    let base = territory.base().as_os_str().as_bytes();
    let mut seen = HashSet::new();
    for pid in processes_in(territory.base()) {
        for fd in descriptors(pid) {
            let Some(inside) = inside_of(territory, pid, fd) else { continue };
            match reopen(territory, pid, fd) {
                Ok(Some(file)) => {
                    let Ok(stat) = fstat(&file) else { continue };
                    if seen.insert((stat.st_dev, stat.st_ino)) {
                        tally.open_files += 1;
                        visit(tally, &file, &Place { base, inside: &inside });
                    }
                }
                Ok(None) => {}
                Err(errno) => refuse(tally, errno),
            }
        }
        if !progress(tally) {
            return false;
        }
    }
    true
}

fn descriptors(pid: u32) -> Vec<u32> {
    fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// What the file behind a descriptor is called from the data folder.
fn inside_of(territory: &Territory, pid: u32, fd: u32) -> Option<Vec<u8>> {
    let link = fs::read_link(format!("/proc/{pid}/fd/{fd}")).ok()?;
    let link = link.as_os_str().as_bytes();
    territory.inside(link.strip_suffix(b" (deleted)").unwrap_or(link))
}

/// `flags:` of `/proc/PID/fdinfo/FD` is octal; its last two bits are the access mode.
fn opened_for_writing(pid: u32, fd: u32) -> bool {
    let Ok(info) = fs::read_to_string(format!("/proc/{pid}/fdinfo/{fd}")) else { return false };
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|f| u32::from_str_radix(f.trim(), 8).ok()).unwrap_or(0);
    OFlags::from_bits_retain(flags).intersects(OFlags::WRONLY | OFlags::RDWR)
}

/// Opens the file behind a descriptor of another process, if it is a regular file of the owner.
fn reopen(territory: &Territory, pid: u32, fd: u32) -> Result<Option<OwnedFd>, Errno> {
    let path = format!("/proc/{pid}/fd/{fd}");
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match openat(CWD, &path, flags | OFlags::NOATIME, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::NOENT | Errno::PERM | Errno::NXIO) => return Ok(None),
        Err(errno) => return Err(errno),
    };
    let stat = fstat(&file)?;
    let ours = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
        && stat.st_uid == territory.owner();
    Ok(ours.then_some(file))
}
