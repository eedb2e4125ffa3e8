//! What the kernel says, asked by means of our own: hints, open descriptors, shared memory.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// `include/uapi/linux/fcntl.h`
const F_GET_RW_HINT: libc::c_int = 1024 + 11;
const F_SET_RW_HINT: libc::c_int = 1024 + 12;

/// `RWH_WRITE_LIFE_…` of the same header.
pub const NOT_SET: u64 = 0;
pub const NONE: u64 = 1;
pub const SHORT: u64 = 2;
pub const MEDIUM: u64 = 3;
pub const LONG: u64 = 4;
pub const EXTREME: u64 = 5;

/// The hint of a file, by the kernel's number.
pub fn hint(path: &Path) -> io::Result<u64> {
    let mut hint = u64::MAX;
    call(path, F_GET_RW_HINT, &mut hint)?;
    Ok(hint)
}

/// Sets it.
pub fn set_hint(path: &Path, mut hint: u64) {
    call(path, F_SET_RW_HINT, &mut hint).unwrap();
}

/// The hint of an open file: no look that a watcher could see.
pub fn hint_of(file: &File) -> u64 {
    let mut hint = u64::MAX;
    call_on(file, F_GET_RW_HINT, &mut hint).unwrap();
    hint
}

fn call(path: &Path, command: libc::c_int, hint: &mut u64) -> io::Result<()> {
    call_on(&File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path)?, command, hint)
}

fn call_on(file: &File, command: libc::c_int, hint: &mut u64) -> io::Result<()> {
    // SAFETY: both commands read or write one u64 through the pointer.
    let rc = unsafe { libc::fcntl(file.as_raw_fd(), command, &raw mut *hint) };
    if rc == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A regular file that a process holds open for writing.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Held {
    pub pid: i32,
    pub path: PathBuf,
    pub hint: u64,
}

/// All that the processes working in `folder` hold open for writing.
pub fn held_in(folder: &Path) -> BTreeSet<Held> {
    let mut held = BTreeSet::new();
    for pid in pids().filter(|pid| cwd(*pid).as_deref() == Some(folder)) {
        let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        for fd in entries.map(|entry| entry.path()) {
            let info = fs::read_to_string(fd.to_string_lossy().replace("/fd/", "/fdinfo/"));
            let flags = info.unwrap_or_default();
            let flags = flags.lines().find_map(|l| l.strip_prefix("flags:")).unwrap_or("0");
            let flags = i32::from_str_radix(flags.trim(), 8).unwrap();
            let is_file = fs::metadata(&fd).is_ok_and(|at| at.is_file());
            if flags & libc::O_ACCMODE == libc::O_RDONLY || !is_file {
                continue;
            }
            let Ok(path) = fs::read_link(&fd) else { continue };
            let path = path.to_str().unwrap().trim_end_matches(" (deleted)").into();
            let Ok(hint) = hint(&fd) else { continue };
            held.insert(Held { pid, path, hint });
        }
    }
    held
}

/// All regular files below `folder`, no links followed, each with its hint.
pub fn files_below(folder: &Path) -> Vec<(PathBuf, u64)> {
    let mut files = Vec::new();
    let Ok(entries) = fs::read_dir(folder) else { return files };
    for entry in entries.flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => files.extend(files_below(&entry.path())),
            Ok(kind) if kind.is_file() => {
                files.extend(hint(&entry.path()).ok().map(|hint| (entry.path(), hint)));
            }
            _ => {}
        }
    }
    files
}

/// What `look` finds twice, a moment apart: a file is open for a moment before the hook has
/// hinted it, and that moment is nobody's fault.
pub fn lasting<T: Ord + Clone>(mut look: impl FnMut() -> BTreeSet<T>) -> BTreeSet<T> {
    let mut found = look();
    for _ in 0..3 {
        if found.is_empty() {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
        let again = look();
        found.retain(|one| again.contains(one));
    }
    found
}

/// The processes that there are.
pub fn pids() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The working folder of a process.
pub fn cwd(pid: i32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/cwd")).ok()
}

/// The shared memory segments that process `pid` made.
pub fn segments_made_by(pid: u32) -> Vec<i32> {
    let table = fs::read_to_string("/proc/sysvipc/shm").unwrap();
    let rows = table.lines().skip(1).map(|row| row.split_whitespace().collect::<Vec<_>>());
    let pid = pid.to_string();
    rows.filter(|row| row[4] == pid).map(|row| row[1].parse().unwrap()).collect()
}

/// `ipcrm -m`
pub fn remove_segment(id: i32) {
    // SAFETY: IPC_RMID takes no pointer.
    unsafe { libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut()) };
}

/// Changes the bytes of a segment.
pub fn with_segment(id: i32, change: impl FnOnce(&mut [u8])) {
    // SAFETY: shmid_ds is plain numbers, for which all zero is valid.
    let mut status: libc::shmid_ds = unsafe { std::mem::zeroed() };
    // SAFETY: IPC_STAT writes one shmid_ds through the pointer.
    assert_eq!(unsafe { libc::shmctl(id, libc::IPC_STAT, &raw mut status) }, 0);
    // SAFETY: a null address lets the kernel choose unused addresses.
    let at = unsafe { libc::shmat(id, std::ptr::null(), 0) };
    assert_ne!(at as isize, -1, "{}", io::Error::last_os_error());
    // SAFETY: attached for writing and so long; nobody else writes it during the test.
    change(unsafe { std::slice::from_raw_parts_mut(at.cast::<u8>(), status.shm_segsz) });
    // SAFETY: attached above, detached once.
    unsafe { libc::shmdt(at) };
}
