//! A kernel as packages: which versions there are, its image, and the modules that the lab loads.
//!
//! Invariant: a kernel is Debian's, unchanged; nothing is built or configured here.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::apt::{Apt, Candidate};
use crate::command::run;
use crate::tools::Tools;

/// The kernels of the full matrix: the newest of a series, or of all.
pub const SERIES: [&str; 4] = ["6.1", "6.12", "6.18", "newest"];

/// What the stacks load; names that a kernel does not have are built in there, or not needed.
const MODULES: [&str; 48] = [
    "scsi_debug",
    "sd_mod",
    "nvme",
    "virtio_pci",
    "virtio_blk",
    "ext4",
    "xfs",
    "btrfs",
    "f2fs",
    "overlay",
    "loop",
    "dm-mod",
    "dm-crypt",
    "md-mod",
    "raid0",
    "raid1",
    "raid456",
    "crc32c_generic",
    "crc32c-cryptoapi",
    "crc32c-intel",
    "crc32_generic",
    "crc32-cryptoapi",
    "crc32-pclmul",
    "crc32",
    "xxhash_generic",
    "blake2b_generic",
    "sha256_generic",
    "sha256-ssse3",
    "xts",
    "ecb",
    "cbc",
    "aes_generic",
    "aes_ti",
    "aesni-intel",
    "cryptd",
    "algif_skcipher",
    "algif_hash",
    "af_alg",
    "essiv",
    "libcrc32c",
    "crc16",
    "lz4_compress",
    "lz4hc_compress",
    "zstd",
    "lzo-rle",
    "t10-pi",
    "crc64-rocksoft",
    "nvme-keyring",
];

/// Where they and what they need lie below `kernel/`.
const FOLDERS: [&str; 12] = [
    "arch/x86/crypto",
    "arch/x86/lib",
    "block",
    "crypto",
    "drivers/block",
    "drivers/md",
    "drivers/nvme",
    "drivers/scsi",
    "drivers/virtio",
    "fs",
    "lib",
    "security",
];

/// A kernel's upstream version, as a package's version or `uname -r` begin with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Upstream(pub u32, pub u32, pub u32);

impl Upstream {
    /// Reads `6.12.118…`; nothing for release candidates.
    pub fn parse(text: &str) -> Option<Upstream> {
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        if text[end..].starts_with("~rc") {
            return None;
        }
        let mut numbers = text[..end].split('.').map(|n| n.parse().ok());
        let (major, minor) = (numbers.next()??, numbers.next()??);
        Some(Upstream(major, minor, numbers.next().flatten().unwrap_or(0)))
    }
}

/// The packages that hold the newest kernel of `series` ("6.12", or "newest").
pub fn choose(apt: &Apt, series: &str) -> Result<Vec<Candidate>> {
    let all = apt.candidates("linux-image-")?;
    let mut parts = apt.candidates("linux-binary-")?;
    parts.extend(apt.candidates("linux-modules-")?);
    of_series(&all, series)
        .into_iter()
        .find_map(|image| complete(image, &parts))
        .with_context(|| format!("no Linux {series} in the suites that the lab knows"))
}

/// `image` with its other parts; nothing if one is missing, as an archive may have lost it.
fn complete(image: &Candidate, parts: &[Candidate]) -> Option<Vec<Candidate>> {
    let tail = image.package.trim_start_matches("linux-image-");
    let part = |kind: &str| {
        let name = format!("linux-{kind}-{tail}");
        parts.iter().find(|c| c.package == name && c.version == image.version).cloned()
    };
    // newer packages are split, and the image's own package is empty
    match (part("binary"), part("modules")) {
        (None, None) => Some(vec![image.clone()]),
        (Some(binary), Some(modules)) => Some(vec![image.clone(), binary, modules]),
        _ => None,
    }
}

/// The stock kernels of a series, the newest first.
fn of_series<'a>(all: &'a [Candidate], series: &str) -> Vec<&'a Candidate> {
    let stock = |name: &str| {
        name.strip_prefix("linux-image-").and_then(|rest| rest.strip_suffix("-amd64")).is_some_and(
            |v| {
                v.starts_with(|c: char| c.is_ascii_digit())
                    && v.matches('.').count() >= 2
                    && !v.contains("cloud")
                    && !v.ends_with("-rt")
            },
        )
    };
    let mut found: Vec<(Upstream, &Candidate)> = all
        .iter()
        .filter(|c| stock(&c.package))
        .filter_map(|c| Some((Upstream::parse(&c.version)?, c)))
        .filter(|(v, _)| series == "newest" || format!("{}.{}", v.0, v.1) == series)
        .collect();
    // of one upstream version, the package of the suite that came later
    found.sort_by(|(a, x), (b, y)| b.cmp(a).then_with(|| later(&y.version, &x.version)));
    found.into_iter().map(|(_, candidate)| candidate).collect()
}

fn later(a: &str, b: &str) -> Ordering {
    let greater = Command::new("dpkg").args(["--compare-versions", a, "gt", b]).status();
    if greater.is_ok_and(|s| s.success()) { Ordering::Greater } else { Ordering::Less }
}

/// An unpacked kernel.
pub struct Kernel {
    /// `uname -r`.
    pub release: String,
    /// The bootable image.
    pub image: PathBuf,
    /// A folder with `lib/modules/RELEASE`: only what the lab loads, not compressed.
    pub modules: PathBuf,
}

impl Kernel {
    /// Unpacks `packages` below `folder`, over what was there.
    pub fn unpack(packages: &[PathBuf], folder: &Path, tools: &Tools) -> Result<Kernel> {
        let _ = fs::remove_dir_all(folder);
        let all = folder.join("all");
        fs::create_dir_all(&all)?;
        for package in packages {
            extract(package, &all)?;
        }
        let release = settle(&all, &folder.join("vmlinuz"))?;
        reduce(&all, &folder.join("root"), &release, tools)?;
        fs::remove_dir_all(&all)?;
        fs::write(folder.join("release"), release)?;
        Kernel::open(folder)
    }

    /// A kernel that was unpacked below `folder`.
    pub fn open(folder: &Path) -> Result<Kernel> {
        let release = folder.join("release");
        Ok(Kernel {
            release: fs::read_to_string(&release).with_context(|| release.display().to_string())?,
            image: folder.join("vmlinuz"),
            modules: folder.join("root"),
        })
    }
}

/// Unpacks the image and those folders of modules that matter: the rest is a gigabyte of drivers.
fn extract(package: &Path, into: &Path) -> Result<()> {
    let mut unpack = Command::new("dpkg-deb")
        .arg("--fsys-tarfile")
        .arg(package)
        .stdout(Stdio::piped())
        .spawn()
        .context("run dpkg-deb")?;
    let archive = unpack.stdout.take().context("dpkg-deb has no standard output")?;
    let mut tar = Command::new("tar");
    tar.arg("-x").arg("-C").arg(into).args(["--wildcards", "./boot/vmlinuz-*", "*/vmlinuz"]);
    tar.args(["*/modules.builtin*", "*/modules.order"]);
    tar.args(FOLDERS.map(|folder| format!("*/kernel/{folder}/*")));
    // not an error: a pattern that matches nothing, as packages differ in what they hold
    tar.stdin(archive).stdout(Stdio::null()).stderr(Stdio::null()).status().context("run tar")?;
    let status = unpack.wait()?;
    ensure!(status.success(), "dpkg-deb --fsys-tarfile {}: {status}", package.display());
    Ok(())
}

/// Moves the image to where the lab expects it and returns `uname -r`.
fn settle(all: &Path, image: &Path) -> Result<String> {
    let merged = all.join("usr/lib/modules");
    let modules = if merged.exists() { merged } else { all.join("lib/modules") };
    let release = fs::read_dir(&modules)
        .with_context(|| format!("no modules in the kernel's packages ({})", modules.display()))?
        .next()
        .context("no modules in the kernel's packages")??
        .file_name()
        .into_string()
        .map_err(|name| anyhow::anyhow!("odd kernel release {name:?}"))?;
    // older packages have it in /boot, newer ones beside the modules
    let places =
        [all.join(format!("boot/vmlinuz-{release}")), modules.join(&release).join("vmlinuz")];
    let found = places.iter().find(|p| p.exists());
    let found = found.with_context(|| format!("no vmlinuz for {release} in the packages"))?;
    fs::rename(found, image)?;
    // depmod looks in lib/modules only
    if modules.ends_with("usr/lib/modules") {
        fs::create_dir_all(all.join("lib"))?;
        fs::rename(&modules, all.join("lib/modules"))?;
    }
    Ok(release)
}

/// Copies the wanted modules and those they need from `all` to `root`, decompressed.
fn reduce(all: &Path, root: &Path, release: &str, tools: &Tools) -> Result<()> {
    let below = Path::new("lib/modules").join(release);
    run(tools.command("depmod")?.arg("-b").arg(all).arg(release))?;
    let index = fs::read_to_string(all.join(&below).join("modules.dep"))?;
    let soft = fs::read_to_string(all.join(&below).join("modules.softdep")).unwrap_or_default();
    for module in closure(&index, &soft, &MODULES) {
        let from = all.join(&below).join(&module);
        let to = root.join(&below).join(module.trim_end_matches(".xz"));
        fs::create_dir_all(to.parent().context("a module has no folder")?)?;
        if module.ends_with(".xz") {
            let file = fs::File::create(&to)?;
            let status = Command::new("xz").arg("-dc").arg(&from).stdout(file).status()?;
            ensure!(status.success(), "xz -dc {}: {status}", from.display());
        } else {
            fs::copy(&from, &to).with_context(|| from.display().to_string())?;
        }
    }
    for list in ["modules.builtin", "modules.builtin.modinfo", "modules.order"] {
        let from = all.join(&below).join(list);
        if from.exists() {
            fs::copy(from, root.join(&below).join(list))?;
        }
    }
    run(tools.command("depmod")?.arg("-b").arg(root).arg(release))
}

/// The files of the modules named and of all that they need, from `modules.dep` and
/// `modules.softdep`.
fn closure(index: &str, soft: &str, wanted: &[&str]) -> BTreeSet<String> {
    let files: BTreeMap<String, (&str, &str)> = index
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(file, needs)| (module_name(file), (file, needs)))
        .collect();
    let mut queue: Vec<String> = wanted.iter().map(|name| module_name(name)).collect();
    let mut taken = BTreeSet::new();
    while let Some(name) = queue.pop() {
        let Some((file, needs)) = files.get(&name) else { continue };
        if !taken.insert((*file).to_owned()) {
            continue;
        }
        queue.extend(needs.split_whitespace().map(module_name));
        for line in soft.lines() {
            let mut words = line.split_whitespace().skip(1);
            if words.next().is_some_and(|of| module_name(of) == name) {
                queue.extend(words.filter(|w| !w.ends_with(':')).map(module_name));
            }
        }
    }
    taken
}

/// `kernel/fs/dm-mod.ko.xz` → `dm_mod`.
fn module_name(file: &str) -> String {
    let name = file.rsplit('/').next().unwrap_or(file);
    name.split('.').next().unwrap_or(name).replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(package: &str, version: &str) -> Candidate {
        Candidate { package: package.into(), version: version.into() }
    }

    #[test]
    fn the_newest_stock_kernel_of_a_series() {
        let all = [
            candidate("linux-image-6.12.9+deb13-amd64", "6.12.9-1"),
            candidate("linux-image-6.12.117+deb12-amd64", "6.12.117-1~deb12u1"),
            candidate("linux-image-6.12.118+deb13-cloud-amd64", "6.12.118-1"),
            candidate("linux-image-6.12.118+deb13-amd64-unsigned", "6.12.118-1"),
            candidate("linux-image-6.1.0-57-amd64", "6.1.192-3"),
            candidate("linux-image-7.2.12+deb13-amd64", "7.2.12-1~bpo13+1"),
            candidate("linux-image-7.2.12+deb14-amd64", "7.2.12-1"),
            candidate("linux-image-7.3.0-rc7-amd64", "7.3~rc7-1~exp1"),
            candidate("linux-image-amd64", "7.2.12-1"),
        ];
        let name = |series| of_series(&all, series).first().map(|c| c.package.as_str());
        assert_eq!(name("6.12"), Some("linux-image-6.12.117+deb12-amd64"));
        assert_eq!(name("6.1"), Some("linux-image-6.1.0-57-amd64"));
        assert_eq!(name("newest"), Some("linux-image-7.2.12+deb14-amd64"));
        assert_eq!(name("5.10"), None);
        assert_eq!(of_series(&all, "newest").len(), 5);
    }

    #[test]
    fn a_kernel_without_all_its_parts_is_passed_over() {
        let image = candidate("linux-image-7.1.13+deb13-amd64", "7.1.13-1");
        let part = |kind: &str| candidate(&format!("linux-{kind}-7.1.13+deb13-amd64"), "7.1.13-1");
        assert_eq!(complete(&image, &[]).map(|p| p.len()), Some(1));
        assert_eq!(complete(&image, &[part("binary")]), None);
        assert_eq!(complete(&image, &[part("modules"), part("binary")]).map(|p| p.len()), Some(3));
    }

    #[test]
    fn modules_bring_what_they_need() {
        let index = "kernel/fs/f2fs/f2fs.ko.xz: kernel/lib/lz4/lz4_compress.ko.xz\n\
                     kernel/lib/lz4/lz4_compress.ko.xz:\nkernel/crypto/crc32-generic.ko.xz:\n\
                     kernel/drivers/gpu/drm/drm.ko.xz:\n";
        let soft = "# comment\nsoftdep f2fs pre: crc32_generic\n";
        let files: Vec<String> = closure(index, soft, &["f2fs", "absent"]).into_iter().collect();
        assert_eq!(
            files,
            [
                "kernel/crypto/crc32-generic.ko.xz",
                "kernel/fs/f2fs/f2fs.ko.xz",
                "kernel/lib/lz4/lz4_compress.ko.xz"
            ]
        );
    }
}
