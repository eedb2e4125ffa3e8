//! The calls of the machine at hand; the only module with `unsafe`.
//!
//! Invariant: descriptors are opened read-only and never wait (`O_NONBLOCK`); every command to a
//! device has a time limit.

use std::ffi::c_void;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use shelflife_lifetime::Lifetime;
use shelflife_mounts::DevNumber;

use crate::host::{Calls, HintFailure, Located, NvmeCommand, ScsiCommand};

/// Time limit of a command, in milliseconds.
const TIMEOUT_MS: u32 = 2_000;

/// The machine at hand.
#[derive(Debug)]
pub(crate) struct Live;

fn open(path: &Path) -> io::Result<File> {
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC;
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

impl Calls for Live {
    fn locate(&self, path: &Path) -> io::Result<Located> {
        let path = path.canonicalize()?;
        let meta = fs::metadata(&path)?;
        let block = meta.file_type().is_block_device().then(|| meta.rdev());
        Ok(Located {
            device: DevNumber::from_stat(meta.dev()),
            block: block.map(DevNumber::from_stat),
            folder: meta.is_dir(),
            special: !(meta.is_dir() || meta.is_file() || block.is_some()),
            path,
        })
    }

    fn hint(&self, path: &Path) -> Result<Lifetime, HintFailure> {
        let file = open(path).map_err(|_| HintFailure::Unreadable)?;
        shelflife_lifetime::get(&file).map_err(|error| match error {
            shelflife_lifetime::Error::Unsupported => HintFailure::Unsupported,
            _ => HintFailure::Unreadable,
        })
    }

    fn attributes(&self, path: &Path) -> Option<u32> {
        let flags = rustix::fs::ioctl_getflags(open(path).ok()?).ok()?;
        Some(flags.bits())
    }

    fn nvme(&self, name: &str, command: NvmeCommand, data: &mut [u8]) -> io::Result<u32> {
        let file = open(&Path::new("/dev").join(name))?;
        let mut passthru = NvmePassthru {
            opcode: command.opcode,
            nsid: command.nsid,
            addr: data.as_mut_ptr() as u64,
            data_len: u32::try_from(data.len()).map_err(io::Error::other)?,
            cdw10: command.cdw10,
            cdw11: command.cdw11,
            timeout_ms: TIMEOUT_MS,
            ..NvmePassthru::default()
        };
        let request = if command.io { NVME_IOCTL_IO_CMD } else { NVME_IOCTL_ADMIN_CMD };
        // SAFETY: the descriptor is open; `passthru` has the layout of `struct nvme_passthru_cmd` and
        // lives through the call; `addr` and `data_len` are those of `data`, which is borrowed
        // mutably for it, and the commands that can be built only transfer to the host.
        let status = unsafe { libc::ioctl(file.as_raw_fd(), request as _, &raw mut passthru) };
        match status {
            0 => Ok(passthru.result),
            -1 => Err(io::Error::last_os_error()),
            status => Err(io::Error::other(format!("NVMe status {:#x}", status & 0x7ff))),
        }
    }

    fn scsi(&self, name: &str, command: &ScsiCommand, data: &mut [u8]) -> io::Result<usize> {
        let file = open(&Path::new("/dev").join(name))?;
        let mut cdb = command.bytes().to_vec();
        let mut sense = [0u8; 32];
        let mut header = SgIo {
            interface_id: i32::from(b'S'),
            dxfer_direction: SG_DXFER_FROM_DEV,
            cmd_len: u8::try_from(cdb.len()).map_err(io::Error::other)?,
            mx_sb_len: sense.len() as u8,
            dxfer_len: u32::try_from(data.len()).map_err(io::Error::other)?,
            dxferp: data.as_mut_ptr().cast(),
            cmdp: cdb.as_mut_ptr(),
            sbp: sense.as_mut_ptr(),
            timeout: TIMEOUT_MS,
            ..SgIo::default()
        };
        // SAFETY: the descriptor is open; `header` has the layout of `struct sg_io_hdr`, and its
        // three pointers with their lengths are those of buffers that live through the call.
        let done = unsafe { libc::ioctl(file.as_raw_fd(), SG_IO as _, &raw mut header) };
        if done == -1 {
            return Err(io::Error::last_os_error());
        }
        if header.status != 0 || header.host_status != 0 || header.driver_status & 0xf7 != 0 {
            let (status, host) = (header.status, header.host_status);
            return Err(io::Error::other(format!("SCSI status {status:#x}, host {host:#x}")));
        }
        let left = usize::try_from(header.resid).unwrap_or(0);
        Ok(data.len().saturating_sub(left))
    }

    fn device_mapper(&self, number: DevNumber) -> io::Result<Vec<u8>> {
        let file = open(Path::new("/dev/mapper/control"))?;
        // As 64-bit words: the kernel's structure holds a u64.
        let mut buffer = vec![0u64; 2048];
        let len = buffer.len() * 8;
        // SAFETY: any u64 may be seen as bytes, `len` is what the buffer has of them, and it is not
        // used but through this slice till the end.
        let bytes = unsafe { std::slice::from_raw_parts_mut(buffer.as_mut_ptr().cast(), len) };
        fill_dm(bytes, number, len);
        // SAFETY: the descriptor is open; the buffer begins with `struct dm_ioctl` and has the
        // length that its `data_size` says, so the kernel writes within it.
        let done =
            unsafe { libc::ioctl(file.as_raw_fd(), DM_TABLE_STATUS as _, bytes.as_mut_ptr()) };
        if done == -1 { Err(io::Error::last_os_error()) } else { Ok(bytes.to_vec()) }
    }
}

/// `struct dm_ioctl` for `DM_TABLE_STATUS` of a device by its number.
fn fill_dm(bytes: &mut [u8], number: DevNumber, len: usize) {
    /// `DM_STATUS_TABLE_FLAG`: the table, not the state.
    const TABLE: u32 = 1 << 4;
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    for (at, version) in [(0, 4u32), (4, 0), (8, 0)] {
        put(at, &version.to_ne_bytes());
    }
    put(12, &(len as u32).to_ne_bytes());
    put(16, &DM_IOCTL_SIZE.to_ne_bytes());
    put(28, &TABLE.to_ne_bytes());
    // `huge_encode_dev`: the kernel's 64-bit form, which is `new_encode_dev`.
    let DevNumber { major, minor } = number;
    let number = minor & 0xff | major << 8 | (minor & !0xff) << 12;
    put(40, &u64::from(number).to_ne_bytes());
}

/// Has ext4 write what its journal holds to its place (`EXT4_IOC_CHECKPOINT`, since 5.14; root only).
pub(crate) fn checkpoint(file: BorrowedFd<'_>) {
    let flags = 0u32;
    // SAFETY: the descriptor is open, and the call reads one u32 through the pointer. Other file
    // systems refuse it: the caller asks for ext4 only.
    let _ = unsafe { libc::ioctl(file.as_raw_fd(), EXT4_IOC_CHECKPOINT as _, &raw const flags) };
}

/// The first extents of a file on the device below: first byte and length; `None` where the file
/// system does not tell.
pub(crate) fn extents(file: BorrowedFd<'_>) -> Option<Vec<(u64, u64)>> {
    const HEAD: usize = 4;
    const EXTENT: usize = 7;
    const MOST: usize = 64;
    // `struct fiemap` is 32 bytes, each extent 56; as words, for alignment.
    let mut words = [0u64; HEAD + EXTENT * MOST];
    words[1] = u64::MAX;
    // fm_flags (sync first), fm_mapped_extents; then fm_extent_count.
    words[2] = u64::from_ne_bytes(two(1, 0));
    words[3] = u64::from_ne_bytes(two(MOST as u32, 0));
    // SAFETY: the descriptor is open; the buffer has a `struct fiemap` with room for as many extents
    // as its count says.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP as _, words.as_mut_ptr()) };
    if done == -1 {
        return None;
    }
    let mapped = words[2].to_ne_bytes();
    let mapped = u32::from_ne_bytes([mapped[4], mapped[5], mapped[6], mapped[7]]) as usize;
    let extents = words[HEAD..].chunks_exact(EXTENT).take(mapped);
    Some(extents.map(|extent| (extent[1], extent[2])).collect())
}

/// Two u32 as they lie in memory.
fn two(first: u32, second: u32) -> [u8; 8] {
    let (a, b) = (first.to_ne_bytes(), second.to_ne_bytes());
    [a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3]]
}

/// `_IOW('f', 43, __u32)`, `include/uapi/linux/ext4.h`.
const EXT4_IOC_CHECKPOINT: u32 = 0x4004_662b;
/// `_IOWR('f', 11, struct fiemap)`, `include/uapi/linux/fs.h`.
const FS_IOC_FIEMAP: u32 = 0xc020_660b;
/// Size of `struct dm_ioctl`.
const DM_IOCTL_SIZE: u32 = 312;
/// `_IOWR(0xfd, 12, struct dm_ioctl)`, `include/uapi/linux/dm-ioctl.h`.
const DM_TABLE_STATUS: u32 = 0xc138_fd0c;
/// `_IOWR('N', 0x41, struct nvme_admin_cmd)`, `include/uapi/linux/nvme_ioctl.h`.
const NVME_IOCTL_ADMIN_CMD: u32 = 0xc048_4e41;
/// `_IOWR('N', 0x43, struct nvme_passthru_cmd)`.
const NVME_IOCTL_IO_CMD: u32 = 0xc048_4e43;
/// `include/scsi/sg.h`.
const SG_IO: u32 = 0x2285;
const SG_DXFER_FROM_DEV: i32 = -3;

/// `struct nvme_passthru_cmd`, `include/uapi/linux/nvme_ioctl.h`.
#[repr(C)]
#[derive(Default)]
struct NvmePassthru {
    opcode: u8,
    flags: u8,
    rsvd1: u16,
    nsid: u32,
    cdw2: u32,
    cdw3: u32,
    metadata: u64,
    addr: u64,
    metadata_len: u32,
    data_len: u32,
    cdw10: u32,
    cdw11: u32,
    cdw12: u32,
    cdw13: u32,
    cdw14: u32,
    cdw15: u32,
    timeout_ms: u32,
    result: u32,
}

/// `struct sg_io_hdr`, `include/scsi/sg.h`.
#[repr(C)]
struct SgIo {
    interface_id: i32,
    dxfer_direction: i32,
    cmd_len: u8,
    mx_sb_len: u8,
    iovec_count: u16,
    dxfer_len: u32,
    dxferp: *mut c_void,
    cmdp: *mut u8,
    sbp: *mut u8,
    timeout: u32,
    flags: u32,
    pack_id: i32,
    usr_ptr: *mut c_void,
    status: u8,
    masked_status: u8,
    msg_status: u8,
    sb_len_wr: u8,
    host_status: u16,
    driver_status: u16,
    resid: i32,
    duration: u32,
    info: u32,
}

impl Default for SgIo {
    fn default() -> SgIo {
        SgIo {
            interface_id: 0,
            dxfer_direction: 0,
            cmd_len: 0,
            mx_sb_len: 0,
            iovec_count: 0,
            dxfer_len: 0,
            dxferp: std::ptr::null_mut(),
            cmdp: std::ptr::null_mut(),
            sbp: std::ptr::null_mut(),
            timeout: 0,
            flags: 0,
            pack_id: 0,
            usr_ptr: std::ptr::null_mut(),
            status: 0,
            masked_status: 0,
            msg_status: 0,
            sb_len_wr: 0,
            host_status: 0,
            driver_status: 0,
            resid: 0,
            duration: 0,
            info: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::mem::{offset_of, size_of};

    use super::*;

    #[test]
    fn layouts_are_those_of_the_headers() {
        assert_eq!(size_of::<NvmePassthru>(), 72);
        assert_eq!(offset_of!(NvmePassthru, cdw10), 40);
        assert_eq!(offset_of!(NvmePassthru, result), 68);
        #[cfg(target_pointer_width = "64")]
        assert_eq!((size_of::<SgIo>(), offset_of!(SgIo, resid)), (88, 72));
        let mut bytes = [0u8; 512];
        fill_dm(&mut bytes, DevNumber { major: 254, minor: 0x12345 }, 512);
        assert_eq!(bytes[40..48], (0x45u64 | 254 << 8 | 0x123 << 20).to_ne_bytes());
    }

    #[test]
    fn the_machine_at_hand_is_looked_at() {
        let folder = tempfile::tempdir().expect("a folder");
        let found = Live.locate(folder.path()).expect("it is there");
        assert!(found.folder && found.block.is_none());
        assert!(Live.locate(&folder.path().join("nowhere")).is_err());
        assert_eq!(Live.hint(folder.path()), Ok(Lifetime::NotSet));
        // What is not a device refuses; nothing is written anywhere.
        let mut data = [0u8; 16];
        let refused = Live.nvme("null", NvmeCommand::identify_controller(), &mut data);
        assert!(refused.is_err());
        assert!(Live.scsi("null", &ScsiCommand::stream_status(0), &mut data).is_err());
    }
}
