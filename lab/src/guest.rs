//! The guest's initramfs: programs, modules, the scripts of `guest/`, and this build of shelflife.
//!
//! Invariant: everything that runs in the guest is in this one archive; it has no other disk to
//! start from and no network.

use std::collections::BTreeSet;
use std::fs;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::command::run;
use crate::cpio::Archive;
use crate::kernel::Kernel;
use crate::lab::Lab;
use crate::tools::{MODULE_FOLDER, PROGRAM_FOLDER, SHARE_FOLDER, Tools};

/// What the scripts call; `busybox` brings the rest.
const PROGRAMS: [&str; 13] = [
    "busybox",
    "mkfs.ext4",
    "mkfs.xfs",
    "mkfs.btrfs",
    "mkfs.f2fs",
    "nvme",
    "dmsetup",
    "lvm",
    "mdadm",
    "cryptsetup",
    "modprobe",
    "sfdisk",
    "filefrag",
];

/// Loaded at the start; the kernel asks for the others by itself.
const MODULES: &str = "sd_mod\nnvme\nvirtio_pci\nvirtio_blk\nloop\n";

/// The hook's place, in a build tree and in the guest: beside the folder of the program.
pub const HOOK: &str = "hook/libshelflife_preload.so";

/// The scripts that build a stack and watch its drive: what was seen depends on them.
pub const WATCHERS: [&str; 2] =
    [include_str!("../guest/stacks.sh"), include_str!("../guest/judge.sh")];

/// The guest's task of the matrix.
pub const STACKS: &str = include_str!("../guest/task-stacks.sh");

/// The guest's task with the recorder.
pub const RECORD: &str = include_str!("../guest/task-record.sh");

/// The guest's task with a server.
pub const POSTGRES: &str = include_str!("../guest/task-postgres.sh");

/// The guest's task whose power is cut.
pub const POWER: &str = include_str!("../guest/task-power.sh");

/// The guest's task with a trial on a whole device.
pub const EPOCH: &str = include_str!("../guest/task-epoch.sh");

/// The initramfs under construction.
pub type Initramfs = Archive<BufWriter<fs::File>>;

/// Begins the initramfs of `kernel` whose guest does `task`.
pub fn begin(to: &Path, lab: &Lab, kernel: &Kernel, task: &str) -> Result<Initramfs> {
    let tools = &lab.tools;
    let file = fs::File::create(to).with_context(|| to.display().to_string())?;
    let mut archive = Archive::new(BufWriter::new(file));
    for folder in ["proc", "sys", "dev", "run", "tmp", "mnt", "etc", "sbin"] {
        archive.folder(Path::new(folder))?;
    }
    let [stacks, judge] = WATCHERS;
    let scripts = [
        ("init", include_str!("../guest/init")),
        ("lab/stacks.sh", stacks),
        ("lab/judge.sh", judge),
        ("lab/server.sh", include_str!("../guest/server.sh")),
        ("lab/task.sh", task),
    ];
    for (name, text) in scripts {
        archive.file(Path::new(name), 0o755, text.as_bytes())?;
    }
    archive.file(Path::new("lab/noise"), 0o644, &noise())?;
    archive.file(Path::new("lab/modules"), 0o644, MODULES.as_bytes())?;
    archive.file(Path::new("etc/passwd"), 0o644, PASSWD.as_bytes())?;
    archive.copy(Path::new("etc/mke2fs.conf"), &tools.folder().join("etc/mke2fs.conf"))?;
    let format = tools.folder().join("usr/share/xfsprogs/mkfs/lts_6.1.conf");
    archive.copy(Path::new("etc/xfs-format"), &format)?;
    // the kernel calls this path
    archive.link(Path::new("sbin/modprobe"), "/bin/modprobe")?;
    let mut programs: Vec<(PathBuf, PathBuf)> = PROGRAMS
        .iter()
        .map(|name| Ok((Path::new("bin").join(name), tools.find(name)?)))
        .collect::<Result<_>>()?;
    programs.push((PathBuf::from("bin/shelflife"), lab.program.clone()));
    add_programs(&mut archive, tools, &programs)?;
    add_tree(&mut archive, &kernel.modules, &kernel.modules.join("lib"))?;
    Ok(archive)
}

/// `root` may become `postgres`, who needs no password.
const PASSWD: &str = "root:x:0:0::/:/bin/sh\npostgres:x:70:70::/tmp:/bin/sh\n";

/// Adds PostgreSQL, where Debian has it, and the hook.
pub fn add_server(archive: &mut Initramfs, lab: &Lab) -> Result<()> {
    let root = lab.tools.folder();
    let hook = &lab.hook;
    archive
        .copy(Path::new(HOOK), hook)
        .with_context(|| format!("{} (`make hook` builds it)", hook.display()))?;
    let programs: Vec<(PathBuf, PathBuf)> =
        ["postgres", "initdb", "pg_ctl", "psql", "pgbench", "pg_amcheck", "pg_checksums"]
            .iter()
            .map(|name| {
                let path = Path::new(PROGRAM_FOLDER).join(name);
                (path.clone(), root.join(&path))
            })
            .collect();
    let called = ["wipefs", "blkdiscard"].map(|name| (Path::new("bin").join(name), name));
    let called = called.into_iter().map(|(path, name)| Ok((path, lab.tools.find(name)?)));
    let programs: Vec<_> = programs.into_iter().map(Ok).chain(called).collect::<Result<_>>()?;
    add_programs(archive, &lab.tools, &programs)?;
    add_tree(archive, root, &root.join(SHARE_FOLDER))?;
    for entry in fs::read_dir(root.join(MODULE_FOLDER))? {
        let name = entry?.file_name();
        let text = name.to_string_lossy();
        // the compiler of queries is a package of its own, and large
        if text.ends_with(".so") && !text.starts_with("llvmjit") {
            let path = Path::new(MODULE_FOLDER).join(&name);
            archive.copy(&path, &root.join(&path))?;
        }
    }
    Ok(())
}

/// Adds programs (place in the guest, file here) and the libraries that they need.
fn add_programs(
    archive: &mut Initramfs,
    tools: &Tools,
    programs: &[(PathBuf, PathBuf)],
) -> Result<()> {
    let mut libraries = BTreeSet::new();
    for (path, source) in programs {
        archive.copy(path, source)?;
        libraries.extend(tools.libraries(source)?);
    }
    for library in libraries {
        let name = library.file_name().context("a library without a name")?;
        let folder = if name.to_string_lossy().starts_with("ld-linux") { "lib64" } else { "lib" };
        archive.copy(&Path::new(folder).join(name), &library)?;
    }
    Ok(())
}

fn add_tree(archive: &mut Archive<BufWriter<fs::File>>, root: &Path, folder: &Path) -> Result<()> {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder)?.map(|e| Ok(e?.path())).collect::<std::io::Result<_>>()?;
    entries.sort();
    for entry in entries {
        if entry.is_dir() {
            add_tree(archive, root, &entry)?;
        } else {
            archive.copy(entry.strip_prefix(root)?, &entry)?;
        }
    }
    Ok(())
}

/// 2 MiB for the guest to write: digits without a pattern, so that half of it compresses away and a
/// compressing file system has something to do.
fn noise() -> Vec<u8> {
    let mut state = 0x9e37_79b9_u32;
    std::iter::repeat_with(|| {
        // xorshift (Marsaglia, Xorshift RNGs, 2003)
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        b"0123456789abcdef"[state as usize >> 28]
    })
    .take(2 << 20)
    .collect()
}

/// A copy of `shelflife` without debug information: the guest's memory is small.
pub fn stripped(shelflife: &Path, to: &Path) -> Result<()> {
    run(std::process::Command::new("strip").arg("-o").arg(to).arg(shelflife))
        .with_context(|| format!("{} (build it first)", shelflife.display()))
}
