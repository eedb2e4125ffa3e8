//! What the walk reads: files of `/sys` and `/proc` below a root, and the kernel's answers to calls.
//!
//! Invariants: nothing is written, to a file or to a device: the commands that can be built here
//! ([`NvmeCommand`], [`ScsiCommand`]) only read. Both parts can be replaced, so that recorded
//! machines test the walk.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use shelflife_lifetime::Lifetime;
use shelflife_mounts::DevNumber;

/// A machine: its files below a root, and its calls.
#[derive(Debug)]
pub struct Host {
    root: PathBuf,
    calls: Box<dyn Calls>,
}

/// Where a path leads.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Located {
    /// Absolute, without links.
    pub path: PathBuf,
    /// Device number of the file system that it lies on (`st_dev`).
    pub device: DevNumber,
    /// For a block device: its own number.
    pub block: Option<DevNumber>,
    /// Whether it is a folder.
    pub folder: bool,
    /// Whether it is neither file nor folder nor block device.
    pub special: bool,
}

/// Why a hint could not be read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HintFailure {
    /// `EINVAL`: the kernel or a sandbox does not know the call.
    Unsupported,
    /// The file cannot be opened, or any other error.
    Unreadable,
}

/// Calls that need a kernel. Every one only reads.
pub trait Calls: fmt::Debug {
    /// Follows links and looks at what is there.
    ///
    /// # Errors
    ///
    /// Those of `realpath` and `stat`.
    fn locate(&self, path: &Path) -> io::Result<Located>;

    /// The hint that the inode carries now (`F_GET_RW_HINT`).
    ///
    /// # Errors
    ///
    /// [`HintFailure`].
    fn hint(&self, path: &Path) -> Result<Lifetime, HintFailure>;

    /// Attributes of the file (`FS_IOC_GETFLAGS`); `None` where there are none.
    fn attributes(&self, path: &Path) -> Option<u32>;

    /// A command to the NVMe device `/dev/NAME`: its data goes to `data`; returns dword 0 of the
    /// completion.
    ///
    /// # Errors
    ///
    /// `PermissionDenied` without the right to ask; other errors with the device's status in words.
    fn nvme(&self, name: &str, command: NvmeCommand, data: &mut [u8]) -> io::Result<u32>;

    /// A command to the SCSI device `/dev/NAME`; returns how many bytes of `data` it filled.
    ///
    /// # Errors
    ///
    /// As for [`Calls::nvme`].
    fn scsi(&self, name: &str, command: &ScsiCommand, data: &mut [u8]) -> io::Result<usize>;

    /// The table of the device-mapper device with this number, as `DM_TABLE_STATUS` gives it.
    ///
    /// # Errors
    ///
    /// As for [`Calls::nvme`].
    fn device_mapper(&self, number: DevNumber) -> io::Result<Vec<u8>>;
}

/// An NVMe command that only reads.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct NvmeCommand {
    /// Whether it goes to an I/O queue (else: the admin queue).
    pub(crate) io: bool,
    pub(crate) opcode: u8,
    pub(crate) nsid: u32,
    pub(crate) cdw10: u32,
    pub(crate) cdw11: u32,
}

impl NvmeCommand {
    /// Identify Controller (CNS 01h).
    pub const fn identify_controller() -> NvmeCommand {
        NvmeCommand { io: false, opcode: 0x06, nsid: 0, cdw10: 1, cdw11: 0 }
    }

    /// Identify Namespace (CNS 00h).
    pub const fn identify_namespace(nsid: u32) -> NvmeCommand {
        NvmeCommand { io: false, opcode: 0x06, nsid, cdw10: 0, cdw11: 0 }
    }

    /// Get Features 1Dh (Flexible Data Placement) of an endurance group.
    pub const fn fdp_feature(endurance_group: u16) -> NvmeCommand {
        NvmeCommand { io: false, opcode: 0x0a, nsid: 0, cdw10: 0x1d, cdw11: endurance_group as u32 }
    }

    /// Get Log Page `page` of an endurance group, `len` bytes (a multiple of 4, at least 4).
    pub const fn log_page(page: u8, endurance_group: u16, len: usize) -> NvmeCommand {
        let dwords = (len / 4) as u32 - 1;
        NvmeCommand {
            io: false,
            opcode: 0x02,
            nsid: 0,
            // Log page 23h: bit 0 of LSP asks for the host's events.
            cdw10: page as u32 | ((page == 0x23) as u32) << 8 | (dwords & 0xffff) << 16,
            cdw11: dwords >> 16 | (endurance_group as u32) << 16,
        }
    }

    /// I/O Management Receive, operation 1: reclaim unit handle status, `len` bytes.
    pub const fn handle_status(nsid: u32, len: usize) -> NvmeCommand {
        let dwords = (len / 4) as u32 - 1;
        NvmeCommand { io: true, opcode: 0x12, nsid, cdw10: 1, cdw11: dwords }
    }
}

/// A SCSI command that only reads.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct ScsiCommand(Vec<u8>);

impl ScsiCommand {
    /// INQUIRY of a vital product data page.
    pub fn vital_product_data(page: u8, len: u16) -> ScsiCommand {
        let [high, low] = len.to_be_bytes();
        ScsiCommand(vec![0x12, 1, page, high, low, 0])
    }

    /// MODE SENSE(10) of page 0Ah/05h, current values, no block descriptors.
    pub fn advice_groups(len: u16) -> ScsiCommand {
        let [high, low] = len.to_be_bytes();
        ScsiCommand(vec![0x5a, 8, 0x0a, 0x05, 0, 0, 0, high, low, 0])
    }

    /// SERVICE ACTION IN(16), GET STREAM STATUS from stream `stream` on: 16 bytes.
    pub fn stream_status(stream: u16) -> ScsiCommand {
        let [high, low] = stream.to_be_bytes();
        ScsiCommand(vec![0x9e, 0x16, 0, 0, high, low, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0])
    }

    /// LOG SENSE(10), cumulative values of page 19h for a group: 128 bytes.
    pub fn group_statistics(group: u8) -> ScsiCommand {
        ScsiCommand(vec![0x4d, 0, 0x59, group, 0, 0, 0, 0, 128, 0])
    }

    /// The command descriptor block.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Host {
    /// The machine that this runs on.
    pub fn live() -> Host {
        Host { root: "/".into(), calls: Box::new(crate::live::Live) }
    }

    /// A machine whose `/sys` and `/proc` lie below `root`, and which answers as `calls` does.
    pub fn at(root: impl Into<PathBuf>, calls: Box<dyn Calls>) -> Host {
        Host { root: root.into(), calls }
    }

    /// The kernel's answers.
    pub fn calls(&self) -> &dyn Calls {
        &*self.calls
    }

    /// The place of an absolute path of that machine.
    pub(crate) fn place(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    pub(crate) fn read(&self, path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
        fs::read(self.place(path))
    }

    /// A file's text without the blanks around it; `None` if it cannot be read.
    pub(crate) fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        let raw = self.read(path).ok()?;
        Some(String::from_utf8_lossy(&raw).trim().to_owned())
    }

    pub(crate) fn number<T: std::str::FromStr>(&self, path: impl AsRef<Path>) -> Option<T> {
        self.text(path)?.parse().ok()
    }

    pub(crate) fn exists(&self, path: impl AsRef<Path>) -> bool {
        self.place(path).exists()
    }

    /// Names in a folder, sorted; empty if it cannot be listed.
    pub(crate) fn names(&self, path: impl AsRef<Path>) -> Vec<String> {
        let entries = fs::read_dir(self.place(path)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort_by_key(|name| natural(name));
        names
    }

    /// Where a folder really is, as a path of that machine.
    pub(crate) fn resolve(&self, path: impl AsRef<Path>) -> Option<PathBuf> {
        let real = self.place(path).canonicalize().ok()?;
        let root = self.root.canonicalize().ok()?;
        Some(Path::new("/").join(real.strip_prefix(root).ok()?))
    }
}

/// `nvme2n1` before `nvme10n1`.
fn natural(name: &str) -> Vec<(String, u64)> {
    let mut parts = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let (word, tail) = rest.split_at(digits);
        let end = tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len());
        let (number, tail) = tail.split_at(end);
        parts.push((word.to_owned(), number.parse().unwrap_or(0)));
        rest = tail;
    }
    parts
}
