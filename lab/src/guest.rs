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
use crate::stacks::Stack;
use crate::tools::Tools;

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

/// The scripts, by name in the guest.
pub const SCRIPTS: [(&str, &str); 3] = [
    ("init", include_str!("../guest/init")),
    ("lab/stacks.sh", include_str!("../guest/stacks.sh")),
    ("lab/judge.sh", include_str!("../guest/judge.sh")),
];

/// Writes the initramfs that runs `stacks` on `kernel`.
pub fn write(
    to: &Path,
    tools: &Tools,
    kernel: &Kernel,
    shelflife: &Path,
    stacks: &[&Stack],
) -> Result<()> {
    let file = fs::File::create(to).with_context(|| to.display().to_string())?;
    let mut archive = Archive::new(BufWriter::new(file));
    for folder in ["proc", "sys", "dev", "run", "tmp", "mnt", "etc", "sbin"] {
        archive.folder(Path::new(folder))?;
    }
    for (name, text) in SCRIPTS {
        archive.file(Path::new(name), 0o755, text.as_bytes())?;
    }
    archive.file(Path::new("lab/modules"), 0o644, MODULES.as_bytes())?;
    let rows: String = stacks
        .iter()
        .map(|s| {
            format!("{} {} {} {} {}\n", s.name, s.medium.word(), s.layer, s.filesystem, s.options)
        })
        .collect();
    archive.file(Path::new("lab/stacks"), 0o644, rows.as_bytes())?;
    archive.copy(Path::new("etc/mke2fs.conf"), &tools.folder().join("etc/mke2fs.conf"))?;
    // the kernel calls this path
    archive.link(Path::new("sbin/modprobe"), "/bin/modprobe")?;

    let mut libraries = BTreeSet::new();
    let mut programs: Vec<(PathBuf, PathBuf)> = PROGRAMS
        .iter()
        .map(|name| Ok((Path::new("bin").join(name), tools.find(name)?)))
        .collect::<Result<_>>()?;
    programs.push((PathBuf::from("bin/shelflife"), shelflife.to_owned()));
    for (path, source) in &programs {
        archive.copy(path, source)?;
        libraries.extend(tools.libraries(source)?);
    }
    for library in libraries {
        let name = library.file_name().context("a library without a name")?;
        let folder = if name.to_string_lossy().starts_with("ld-linux") { "lib64" } else { "lib" };
        archive.copy(&Path::new(folder).join(name), &library)?;
    }
    add_tree(&mut archive, &kernel.modules, &kernel.modules.join("lib"))?;
    archive.finish()?;
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

/// A copy of `shelflife` without debug information: the guest's memory is small.
pub fn stripped(shelflife: &Path, to: &Path) -> Result<()> {
    run(std::process::Command::new("strip").arg("-o").arg(to).arg(shelflife))
        .with_context(|| format!("{} (build it first)", shelflife.display()))
}
