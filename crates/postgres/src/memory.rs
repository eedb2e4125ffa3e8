//! Shared memory that a killed server leaves behind.
//!
//! PostgreSQL removes its segments at exit and, after a crash, at its next start in the same data folder
//! (`src/backend/port/sysv_shmem.c`, `src/backend/storage/ipc/dsm.c`). A killed server whose folder is deleted has no next
//! start; then this module removes them.
//!
//! Invariant: only segments under PostgreSQL's own kind of name go that a process of this very server had mapped
//! and nobody has mapped now. Private memory of a preloaded library (System V key 0) is not touched.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::procfs::Procfs;

/// The shared memory of one server.
#[derive(Debug, Default)]
pub(crate) struct SharedMemory {
    /// System V segments: key and id.
    segments: BTreeSet<(i32, i32)>,
    /// POSIX segments: files in `/dev/shm`.
    files: BTreeSet<PathBuf>,
}

impl SharedMemory {
    /// Adds what the process `pid` has mapped.
    pub(crate) fn note(&mut self, proc: &Procfs, pid: i32) {
        for line in proc.maps(pid).unwrap_or_default().lines() {
            self.note_line(line);
        }
    }

    /// `ADDRESS PERMS OFFSET DEVICE INODE PATH` (proc(5)); the inode of a System V segment is its id, its
    /// path `/SYSV` and the key in hexadecimal. PostgreSQL's keys come from inode numbers and are never 0.
    fn note_line(&mut self, line: &str) {
        let mut fields = line.split_ascii_whitespace();
        let (Some(inode), Some(path)) = (fields.nth(4), fields.next()) else { return };
        if let Some(key) = path.strip_prefix("/SYSV") {
            if let (Ok(key @ 1..), Ok(id)) = (u32::from_str_radix(key, 16), inode.parse()) {
                self.segments.insert((key.cast_signed(), id));
            }
        } else if path.starts_with("/dev/shm/PostgreSQL.") {
            self.files.insert(PathBuf::from(path));
        }
    }

    /// Removes what is left of the noted segments. Call it when the server's processes are gone.
    pub(crate) fn remove(&mut self) {
        for (key, id) in std::mem::take(&mut self.segments) {
            remove_segment(key, id);
        }
        for file in std::mem::take(&mut self.files) {
            // Gone already is as good.
            let _ = std::fs::remove_file(&file);
        }
    }
}

fn remove_segment(key: i32, id: i32) {
    let mut at = std::mem::MaybeUninit::<libc::shmid_ds>::uninit();
    // SAFETY: IPC_STAT writes one `shmid_ds` to the pointer, which is valid for that.
    if unsafe { libc::shmctl(id, libc::IPC_STAT, at.as_mut_ptr()) } != 0 {
        return;
    }
    // SAFETY: the call above succeeded and has filled it in.
    let at = unsafe { at.assume_init() };
    if at.shm_perm.__key == key && at.shm_nattch == 0 {
        // SAFETY: IPC_RMID reads nothing through the pointer, which may be null.
        unsafe { libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_postgresqls_own_are_read_from_a_memory_map() {
        let mut memory = SharedMemory::default();
        for line in [
            "55e0c0000000-55e0c0100000 r--p 00000000 fe:00 1234 /usr/lib/postgresql/15/bin/postgres",
            "7f2c1a000000-7f2c22800000 rw-s 00000000 00:01 2051 /dev/zero (deleted)",
            "7f2c23a00000-7f2c23a01000 rw-s 00000000 00:01 32769 /SYSV8052e2c1 (deleted)",
            "7f2c23a00000-7f2c23a01000 rw-s 00000000 00:01 4 /SYSV00000000 (deleted)",
            "7f2c23a01000-7f2c23a02000 rw-s 00000000 00:19 77 /dev/shm/PostgreSQL.2950347138",
            "7ffd00000000-7ffd00001000 rw-p 00000000 00:00 0",
        ] {
            memory.note_line(line);
        }
        assert_eq!(memory.segments, BTreeSet::from([(0x8052_e2c1_u32.cast_signed(), 32769)]));
        assert_eq!(memory.files, BTreeSet::from(["/dev/shm/PostgreSQL.2950347138".into()]));
    }

    #[test]
    fn only_an_unused_segment_with_the_right_key_goes() {
        let key = 0x5348_4c46_i32 ^ std::process::id().cast_signed();
        // SAFETY: plain calls by value; the attached address is only passed back to shmdt.
        unsafe {
            let id = libc::shmget(key, 4096, libc::IPC_CREAT | libc::IPC_EXCL | 0o600);
            assert!(id >= 0, "{}", std::io::Error::last_os_error());
            let exists = || libc::shmget(key, 0, 0) == id;
            let address = libc::shmat(id, std::ptr::null(), 0);
            remove_segment(key, id);
            assert!(exists(), "attached: stays");
            libc::shmdt(address);
            remove_segment(key ^ 1, id);
            assert!(exists(), "another key: stays");
            remove_segment(key, id);
            assert!(!exists());
        }
    }
}
