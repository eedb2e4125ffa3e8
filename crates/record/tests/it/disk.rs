//! A file system of its own on a loop device, taken away at the end.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// Why the tests that need root cannot run here, if they cannot.
pub fn reason_to_skip() -> Option<&'static str> {
    if !rustix::process::geteuid().is_root() {
        return Some("needs root");
    }
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        return Some("the kernel has no BTF");
    }
    None
}

/// Says why a test does not run, and leaves it.
macro_rules! skip_unless_root {
    ($name:literal) => {
        if let Some(reason) = crate::disk::reason_to_skip() {
            println!("skipped: {}: {reason}", $name);
            return;
        }
    };
}
pub(crate) use skip_unless_root;

/// Runs a program that must succeed; its output.
pub fn run(program: &str, args: &[&str]) -> String {
    let out = Command::new(program).args(args).stdin(Stdio::null()).output();
    let out = out.unwrap_or_else(|e| panic!("{program}: {e}"));
    let text = String::from_utf8_lossy(&out.stdout).trim().to_owned();
    let error = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{program} {args:?}: {text} {error}");
    text
}

/// A loop device over a sparse file.
pub struct Loop {
    pub device: String,
    pub folder: TempDir,
}

impl Loop {
    /// Of `bytes`.
    pub fn new(bytes: u64) -> Loop {
        // in memory, where many syncs take no time
        let memory = Path::new("/dev/shm");
        let place = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let mut builder = tempfile::Builder::new();
        let folder = builder.prefix("shelflife-record-").tempdir_in(place).unwrap();
        let image = folder.path().join("image");
        File::create(&image).unwrap().set_len(bytes).unwrap();
        let device = run("losetup", &["-f", "--show", image.to_str().unwrap()]);
        Loop { device, folder }
    }

    /// Bytes whose discard is done (`Documentation/block/stat.rst`).
    pub fn discarded(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/sys/block/{}/stat", self.name())).unwrap();
        stat.split_whitespace().nth(13).unwrap().parse::<u64>().unwrap() * 512
    }

    pub fn name(&self) -> &str {
        self.device.trim_start_matches("/dev/")
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["-d", &self.device]).output();
    }
}

/// Mounted; fields are dropped in order.
pub struct Disk {
    mounted: Mounted,
    pub device: Loop,
}

struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).output();
        let _ = Command::new("umount").arg("-l").arg(&self.0).stderr(Stdio::null()).output();
    }
}

pub const MIB: u64 = 1 << 20;

impl Disk {
    pub fn new(kind: &str) -> Disk {
        Disk::with(kind, 320 * MIB, &[], "")
    }

    pub fn with(kind: &str, bytes: u64, mkfs: &[&str], options: &str) -> Disk {
        let device = Loop::new(bytes);
        let program = format!("mkfs.{kind}");
        // ext4 would zero its tables later, by pages that belong to nobody
        let eager = "lazy_itable_init=0,lazy_journal_init=0";
        let quiet: &[&str] =
            if kind == "ext4" { &["-q", "-F", "-E", eager] } else { &["-q", "-f"] };
        let args: Vec<&str> =
            quiet.iter().chain(mkfs).copied().chain([device.device.as_str()]).collect();
        run(&program, &args);
        let place = device.folder.path().join("mount");
        std::fs::create_dir(&place).unwrap();
        let place = place.canonicalize().unwrap();
        let mut args = vec!["-t", kind, device.device.as_str(), place.to_str().unwrap()];
        if !options.is_empty() {
            args.extend(["-o", options]);
        }
        run("mount", &args);
        // what mkfs and mount left behind is not of the test
        run("sync", &["-f", place.to_str().unwrap()]);
        Disk { mounted: Mounted(place), device }
    }

    pub fn place(&self) -> &Path {
        &self.mounted.0
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.place().join(name)
    }

    /// A place for a trace, not on the disk.
    pub fn trace(&self, name: &str) -> PathBuf {
        self.device.folder.path().join(name)
    }
}
