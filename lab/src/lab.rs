//! What every part of the lab starts from: the program under test, QEMU and the tools, kernels.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::apt::Apt;
use crate::kernel::{self, Kernel};
use crate::qemu::Seat;
use crate::tools::Tools;
use crate::{Common, guest};

/// This machine cannot run the lab, or cannot fetch what it needs; in one line.
#[derive(Debug)]
pub struct CannotRun(pub String);

impl std::fmt::Display for CannotRun {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for CannotRun {}

impl CannotRun {
    /// `what`, and the last line of why.
    pub fn because(what: &str, why: &anyhow::Error) -> anyhow::Error {
        let why = why.to_string();
        CannotRun(format!("{what}: {}", why.lines().last().unwrap_or_default().trim())).into()
    }
}

/// Programs, packages and folders.
pub struct Lab {
    /// Everything lies below it.
    pub folder: PathBuf,
    /// The package manager's private state.
    pub apt: Apt,
    /// QEMU and the guest's programs.
    pub tools: Tools,
    /// The program under test, without debug information.
    pub program: PathBuf,
    /// Its hook, if it is built.
    pub hook: PathBuf,
    refresh: bool,
    /// Nobody else runs guests on the disks of this folder.
    _lock: File,
}

impl Lab {
    /// Fetches what is not there yet. `server` asks for PostgreSQL, too.
    pub fn open(options: &Common, server: bool) -> Result<Lab> {
        if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
            return Err(CannotRun("wants Linux on amd64".to_owned()).into());
        }
        let folder = std::path::absolute(&options.folder)?;
        fs::create_dir_all(&folder)?;
        let lock = lock(&folder)?;
        let apt = Apt::open(&folder.join("apt"), options.refresh)?;
        let tools = Tools::open(&apt, &folder.join("tools"), server)?;
        let program = folder.join("shelflife");
        guest::stripped(&options.shelflife, &program)?;
        tools.runs(&program)?;
        let above = options.shelflife.parent().and_then(|p| p.parent());
        let hook = above.context("the program lies in no folder")?.join(guest::HOOK);
        Ok(Lab { folder, apt, tools, program, hook, refresh: options.refresh, _lock: lock })
    }

    /// The kernel of a series, with its packages; it stays the same until a refresh is asked for.
    pub fn kernel(&self, series: &str) -> Result<(Kernel, Vec<String>)> {
        let folder = self.folder.join("kernels").join(series);
        let list = folder.join("packages");
        let mut known = fs::read_to_string(&list).ok();
        if known.is_none() || self.refresh {
            let packages = kernel::choose(&self.apt, series)?;
            let names: String =
                packages.iter().map(|c| format!("{} {}\n", c.package, c.version)).collect();
            if known.as_ref() != Some(&names) {
                Kernel::unpack(&self.apt.fetch(&packages)?, &folder, &self.tools)?;
                fs::write(&list, &names)?;
                known = Some(names);
            }
        }
        let names = known.unwrap_or_default();
        Ok((Kernel::open(&folder)?, names.lines().map(str::to_owned).collect()))
    }

    /// A kernel from package files.
    pub fn kernel_of(&self, files: &[PathBuf]) -> Result<(Kernel, Vec<String>)> {
        let folder = self.folder.join("kernels/given");
        let kernel = Kernel::unpack(files, &folder, &self.tools)?;
        let name = |file: &PathBuf| file.file_name().map(|n| n.to_string_lossy().into_owned());
        Ok((kernel, files.iter().filter_map(name).collect()))
    }

    /// Where guest number `n` of those that run at a time has its things.
    pub fn seat(&self, n: usize) -> Result<Seat> {
        Seat::open(self.folder.join(format!("seats/{n}")))
    }
}

/// A lock that goes with this process: two runs on the same disks would write over each other's.
fn lock(folder: &Path) -> Result<File> {
    let path = folder.join("lock");
    let file = File::create(&path).with_context(|| path.display().to_string())?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            bail!(
                "{}: another run of the lab uses it; wait, or take another --folder",
                folder.display()
            )
        }
        Err(TryLockError::Error(error)) => Err(error).context(path.display().to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_runs_do_not_share_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let first = lock(folder.path()).unwrap();
        let said = lock(folder.path()).unwrap_err().to_string();
        assert!(said.contains("another run of the lab"), "{said}");
        drop(first);
        lock(folder.path()).unwrap();
    }
}
