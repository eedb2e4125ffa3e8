//! QEMU and the programs of the guest: packages of one Debian suite, unpacked in a folder and run
//! through their own loader, so that the machine's release does not matter.
//!
//! Invariant: a program found here sees only libraries found here, but for those that the folder
//! lacks (then the machine's).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::apt::{Apt, Candidate};
use crate::command::{output, run};
use crate::lab::CannotRun;

/// QEMU with FDP (≥ 8), and what the guest's stacks are made with.
const PACKAGES: [&str; 13] = [
    "qemu-system-x86",
    "busybox-static",
    "e2fsprogs",
    "xfsprogs",
    "f2fs-tools",
    "btrfs-progs",
    "nvme-cli",
    "lvm2",
    "dmsetup",
    "mdadm",
    "cryptsetup-bin",
    "kmod",
    "fdisk",
];

/// PostgreSQL for the parts of the lab that need a server, and what a trial on a device calls.
const SERVER: [&str; 2] = ["postgresql-17", "util-linux"];

/// Its programs.
pub const PROGRAM_FOLDER: &str = "usr/lib/postgresql/17/bin";
/// What the server loads.
pub const MODULE_FOLDER: &str = "usr/lib/postgresql/17/lib";
/// What `initdb` reads.
pub const SHARE_FOLDER: &str = "usr/share/postgresql/17";

/// Dependencies of packages, not of the programs that the lab takes from them.
const UNUSED: [&str; 29] = [
    "adduser",
    "debconf",
    "dpkg",
    "init-system-",
    "ipxe-",
    "libc-bin",
    "libc-l10n",
    "libdb5",
    "libllvm",
    "libpam-modules",
    "libperl",
    "libpython3",
    "libsqlite3",
    "libsystemd-shared",
    "libz3",
    "locales",
    "login",
    "mount",
    "openssl",
    "passwd",
    "perl",
    "postgresql-common",
    "procps",
    "python3",
    "systemd",
    "tar",
    "tzdata",
    "ucf",
    "udev",
];

/// Taken over the suite's own: mkfs.xfs makes zoned file systems from 6.15. The program needs no
/// more than the suite has.
const NEWER: (&str, &str) = ("xfsprogs", "6.15");

const LIBRARIES: [&str; 6] = [
    "usr/lib/x86_64-linux-gnu",
    "lib/x86_64-linux-gnu",
    "usr/lib/x86_64-linux-gnu/pulseaudio",
    "usr/lib",
    "lib",
    "usr/lib/postgresql/17/lib",
];
const PROGRAMS: [&str; 5] = ["usr/bin", "usr/sbin", "bin", "sbin", "usr/lib/postgresql/17/bin"];

/// The unpacked programs.
pub struct Tools {
    folder: PathBuf,
}

impl Tools {
    /// Fetches and unpacks below `folder`; a second call finds them there. `server` adds PostgreSQL.
    pub fn open(apt: &Apt, folder: &Path, server: bool) -> Result<Tools> {
        let tools = Tools { folder: folder.to_owned() };
        tools.add(apt, &PACKAGES, "complete")?;
        if server {
            tools.add(apt, &SERVER, "complete-server-2")?;
        }
        Ok(tools)
    }

    fn add(&self, apt: &Apt, packages: &[&str], mark: &str) -> Result<()> {
        let mark = self.folder.join(mark);
        if mark.exists() {
            return Ok(());
        }
        fs::create_dir_all(&self.folder)?;
        let mut wanted: Vec<Candidate> =
            apt.closure(packages)?.into_iter().filter(|c| !unused(&c.package)).collect();
        if packages.contains(&NEWER.0) {
            let newest = apt.newest(NEWER.0)?;
            wanted.retain(|c| c.package != NEWER.0);
            wanted.push(newest);
        }
        let files = apt.fetch(&wanted)?;
        let unpack = |files: &[PathBuf]| {
            files.iter().try_for_each(|file| {
                run(Command::new("dpkg-deb").arg("-x").arg(file).arg(&self.folder))
            })
        };
        let (one, other) = files.split_at(files.len() / 2);
        std::thread::scope(|scope| {
            let first = scope.spawn(|| unpack(one));
            unpack(other)?;
            first.join().unwrap_or_else(|_| bail!("unpacking ended in a panic"))
        })?;
        fs::write(mark, "")?;
        Ok(())
    }

    /// Where `program` is.
    pub fn find(&self, program: &str) -> Result<PathBuf> {
        PROGRAMS
            .iter()
            .map(|folder| self.folder.join(folder).join(program))
            .find(|path| path.exists())
            .with_context(|| format!("no {program} among the lab's programs"))
    }

    /// `program`, to be run on this machine.
    pub fn command(&self, program: &str) -> Result<Command> {
        let mut command = self.loader();
        command.arg("--argv0").arg(program).arg(self.find(program)?);
        Ok(command)
    }

    /// The folder below which everything lies.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The libraries that `program` needs, and its loader first.
    pub fn libraries(&self, program: &Path) -> Result<Vec<PathBuf>> {
        let listed = output(self.loader().arg("--list").arg(program));
        // a static program has none
        let Ok(listed) = listed else { return Ok(Vec::new()) };
        let mut libraries = vec![self.folder.join(LOADER)];
        for line in listed.lines() {
            let Some((_, path)) = line.split_once(" => ") else { continue };
            let path = path.split(" (").next().unwrap_or(path).trim();
            ensure!(path.starts_with('/'), "{}: {}", program.display(), line.trim());
            libraries.push(PathBuf::from(path));
        }
        Ok(libraries)
    }

    /// Whether the program under test, which was built on this machine, starts with the libraries of the
    /// guest.
    pub fn runs(&self, program: &Path) -> Result<()> {
        let started = output(self.loader().arg(program).arg("--version"));
        let what = "the program does not start with the guest's libraries";
        started.map(drop).map_err(|error| CannotRun::because(what, &error))
    }

    fn loader(&self) -> Command {
        let paths: Vec<_> = LIBRARIES.map(|l| self.folder.join(l).display().to_string()).into();
        let mut command = Command::new(self.folder.join(LOADER));
        command.arg("--library-path").arg(paths.join(":"));
        command.stdin(Stdio::null());
        command
    }
}

const LOADER: &str = "usr/lib64/ld-linux-x86-64.so.2";

fn unused(package: &str) -> bool {
    UNUSED.iter().any(|prefix| package.starts_with(prefix))
}

impl Tools {
    /// Name and version of the emulator.
    pub fn emulator(&self) -> Result<String> {
        let said = output(self.command("qemu-system-x86_64")?.arg("--version"))?;
        // QEMU emulator version 10.0.13 (Debian …)
        let version = said.split_whitespace().nth(3).unwrap_or_default();
        Ok(format!("QEMU {version} (plain emulation)"))
    }

    /// QEMU's emulator of a PC, with its modules and firmware.
    pub fn qemu(&self) -> Result<Command> {
        // setpriv: it must not outlive this process, whatever ends that
        let emulator = self.command("qemu-system-x86_64")?;
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]).arg(emulator.get_program()).args(emulator.get_args());
        command.env("QEMU_MODULE_DIR", self.folder.join("usr/lib/x86_64-linux-gnu/qemu"));
        for firmware in ["usr/share/qemu", "usr/share/seabios"] {
            command.arg("-L").arg(self.folder.join(firmware));
        }
        Ok(command)
    }
}
