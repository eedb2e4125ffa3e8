//! Block devices as `/sys` shows them.
//!
//! Invariant: everything here is readable without root; a device that vanishes meanwhile is not
//! there.

use std::path::{Path, PathBuf};

use serde::Serialize;

use shelflife_mounts::DevNumber;

use crate::cloud::{self, CloudDisk};
use crate::host::Host;

/// What kind of block device it is, by what stands behind it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    /// A namespace, or the head of a multipath namespace.
    Nvme,
    /// A disk of the SCSI driver, with the name of its host's driver (`ufshcd`, `usb-storage`).
    Scsi {
        driver: Option<String>,
    },
    /// Device mapper, with its uuid (may be empty).
    Mapper {
        uuid: String,
    },
    /// Software RAID, with its level (`raid5`, `linear`; empty while it is stopped).
    Raid {
        level: String,
    },
    /// A file as a disk.
    Loop {
        file: Option<PathBuf>,
        direct: bool,
    },
    /// bcache, with its mode.
    Bcache {
        mode: String,
    },
    Drbd,
    /// Anything else that has no way to carry a hint, by its name for people.
    Other(&'static str),
    /// A driver that is not known here.
    Unknown,
}

/// A block device.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) name: String,
    /// Its folder below `/sys/devices`.
    pub(crate) folder: PathBuf,
    /// For a partition, the disk that it is on.
    pub(crate) disk: Option<String>,
    pub(crate) kind: Kind,
    /// What it stands on.
    pub(crate) slaves: Vec<String>,
}

/// What is told of a drive.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Drive {
    /// `nvme0n1`.
    pub device: String,
    /// `nvme`, `nvme multipath`, `usb`, `sata`, `ufs`, `scsi`, `virtio`, …
    pub transport: String,
    /// Vendor and model.
    pub model: String,
    /// Bytes.
    pub size: Option<u64>,
    /// `Amazon EBS volume` and the like.
    pub cloud: Option<&'static str>,
    /// `queue/max_write_streams`: streams that Linux may write to; `None` before 6.16.
    pub write_streams: Option<u16>,
    /// For SCSI: RSCS of VPD page B7h; `None` if the drive has no such page.
    pub reduced_streams: Option<bool>,
    /// For SCSI: permanent streams, if they could be asked for.
    pub permanent_streams: Option<u16>,
}

impl Block {
    /// The device with this name.
    pub(crate) fn named(host: &Host, name: &str) -> Option<Block> {
        // In /sys names have `!` for `/` (cciss!c0d0).
        let name = name.replace('/', "!");
        let folder = host.resolve(Path::new("/sys/class/block").join(&name));
        let folder = folder.or_else(|| host.resolve(Path::new("/sys/block").join(&name)))?;
        Block::in_folder(host, folder)
    }

    /// The device with this number.
    pub(crate) fn numbered(host: &Host, number: DevNumber) -> Option<Block> {
        let folder = host.resolve(format!("/sys/dev/block/{number}"))?;
        Block::in_folder(host, folder)
    }

    fn in_folder(host: &Host, folder: PathBuf) -> Option<Block> {
        let name = folder.file_name()?.to_str()?.to_owned();
        let disk = host
            .exists(folder.join("partition"))
            .then(|| folder.parent()?.file_name()?.to_str().map(str::to_owned))
            .flatten();
        let kind = if disk.is_some() { Kind::Unknown } else { kind(host, &name, &folder) };
        let slaves = host.names(folder.join("slaves"));
        Some(Block { name, folder, disk, kind, slaves })
    }

    /// Whether it is the hidden path device of a multipath namespace.
    pub(crate) fn is_hidden(&self, host: &Host) -> bool {
        host.text(self.folder.join("hidden")).as_deref() == Some("1")
    }

    /// `queue/max_write_streams` of a whole device; a partition offers none
    /// (`bdev_max_write_streams`, `include/linux/blkdev.h`).
    pub(crate) fn write_streams(&self, host: &Host) -> Option<u16> {
        if self.disk.is_some() {
            return Some(0);
        }
        host.number(self.streams_file())
    }

    /// Where that stands.
    pub(crate) fn streams_file(&self) -> PathBuf {
        self.folder.join("queue/max_write_streams")
    }

    /// One of its attributes, by the short path, for people.
    pub(crate) fn shown(&self, name: &str) -> String {
        let folder = if self.disk.is_some() { "/sys/class/block" } else { "/sys/block" };
        let name = if name.is_empty() { String::new() } else { format!("/{name}") };
        format!("{folder}/{}{name}", self.name)
    }

    /// Device number.
    pub(crate) fn number(&self, host: &Host) -> Option<DevNumber> {
        host.number(self.folder.join("dev"))
    }

    /// Vendor (empty for NVMe) and model.
    fn names(&self, host: &Host) -> (String, String) {
        let attribute = |name: &str| {
            let direct = host.text(self.folder.join("device").join(name));
            // The head of a multipath namespace has them at its subsystem.
            direct.or_else(|| host.text(self.folder.parent()?.join(name))).unwrap_or_default()
        };
        let vendor = match self.kind {
            Kind::Scsi { .. } => attribute("vendor"),
            _ => String::new(),
        };
        let model = match self.kind {
            Kind::Scsi { .. } | Kind::Nvme => attribute("model"),
            _ => String::new(),
        };
        (vendor, model)
    }

    pub(crate) fn cloud(&self, host: &Host) -> Option<CloudDisk> {
        let (vendor, model) = self.names(host);
        cloud::of(&vendor, &model)
    }

    /// Whether it is the head of a multipath namespace.
    pub(crate) fn is_multipath_head(&self) -> bool {
        self.kind == Kind::Nvme && self.folder.to_string_lossy().contains("/nvme-subsystem/")
    }

    /// How the drive is attached.
    pub(crate) fn transport(&self, host: &Host) -> String {
        let folder = self.folder.to_string_lossy();
        let text = match &self.kind {
            Kind::Nvme if self.is_multipath_head() => "nvme multipath",
            Kind::Nvme => match host.text(self.folder.join("device/transport")).as_deref() {
                Some("tcp") => "nvme over tcp",
                Some("rdma") => "nvme over rdma",
                Some("fc") => "nvme over fc",
                _ => "nvme",
            },
            Kind::Scsi { driver } => match driver.as_deref().unwrap_or("") {
                "usb-storage" | "uas" => "usb",
                _ if folder.contains("/usb") => "usb",
                "ufshcd" => "ufs",
                _ if folder.contains("/ata") => "sata",
                "scsi_debug" => "scsi_debug",
                "virtio_scsi" | "Virtio SCSI HBA" => "virtio-scsi",
                "storvsc_host_t" | "storvsc" => "hyper-v",
                "iscsi_tcp" | "iSCSI Initiator over TCP/IP" => "iscsi",
                _ => "scsi",
            },
            Kind::Mapper { .. } => "device mapper",
            Kind::Raid { .. } => "md",
            Kind::Loop { .. } => "loop",
            Kind::Bcache { .. } => "bcache",
            Kind::Drbd => "drbd",
            Kind::Other(name) => name,
            Kind::Unknown => "?",
        };
        text.to_owned()
    }

    /// What is told of it; asks no device.
    pub(crate) fn drive(&self, host: &Host) -> Drive {
        let (vendor, model) = self.names(host);
        // Always in units of 512 bytes, whatever the drive's block.
        let sectors: Option<u64> = host.number(self.folder.join("size"));
        let reduced = match self.kind {
            Kind::Scsi { .. } => crate::leaf::reduced_streams(host, self),
            _ => None,
        };
        Drive {
            device: self.name.clone(),
            transport: self.transport(host),
            model: format!("{vendor} {model}").trim().to_owned(),
            size: sectors.and_then(|n| n.checked_mul(512)),
            cloud: self.cloud(host).map(|disk| disk.name),
            write_streams: self.write_streams(host),
            reduced_streams: reduced,
            permanent_streams: None,
        }
    }
}

/// Kinds by the beginning of the name: drivers that cannot carry a hint.
const OTHERS: [(&str, &str); 9] = [
    ("vd", "virtio-blk"),
    ("xvd", "xen"),
    ("zram", "zram"),
    ("nbd", "nbd"),
    ("rbd", "rbd"),
    ("ublkb", "ublk"),
    ("mmcblk", "mmc"),
    ("pmem", "pmem"),
    ("nullb", "null_blk"),
];

/// Whether a transport is one of the drivers that cannot carry a hint.
pub(crate) fn has_no_field(transport: &str) -> bool {
    OTHERS.iter().any(|(_, driver)| *driver == transport)
}

fn kind(host: &Host, name: &str, folder: &Path) -> Kind {
    if host.exists(folder.join("dm")) {
        return Kind::Mapper { uuid: host.text(folder.join("dm/uuid")).unwrap_or_default() };
    }
    if host.exists(folder.join("md")) {
        return Kind::Raid { level: host.text(folder.join("md/level")).unwrap_or_default() };
    }
    if host.exists(folder.join("bcache")) && name.starts_with("bcache") {
        let modes = host.text(folder.join("bcache/cache_mode")).unwrap_or_default();
        // `writethrough [writeback] writearound none`
        let mode = modes.split(['[', ']']).nth(1).unwrap_or("").to_owned();
        return Kind::Bcache { mode };
    }
    let numbered = |prefix: &str| {
        name.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    if numbered("loop") {
        let file = host.text(folder.join("loop/backing_file"));
        let direct = host.text(folder.join("loop/dio")).as_deref() == Some("1");
        return Kind::Loop { file: file.filter(|f| !f.is_empty()).map(PathBuf::from), direct };
    }
    if numbered("drbd") {
        return Kind::Drbd;
    }
    if numbered("nvme") {
        return Kind::Nvme;
    }
    if name.starts_with("sd") && name.len() > 2 {
        return Kind::Scsi { driver: scsi_driver(host, folder) };
    }
    let by_name = OTHERS.iter().find(|(prefix, _)| name.starts_with(prefix));
    by_name.map_or(Kind::Unknown, |(_, kind)| Kind::Other(kind))
}

/// `proc_name` of the SCSI host above the disk.
fn scsi_driver(host: &Host, folder: &Path) -> Option<String> {
    let of_host = folder.ancestors().find_map(|above| {
        let name = above.file_name()?.to_str()?;
        let number = name.strip_prefix("host")?;
        number.parse::<u32>().ok()?;
        host.text(above.join("scsi_host").join(name).join("proc_name"))
    })?;
    (of_host != "<NULL>" && !of_host.is_empty()).then_some(of_host)
}

/// A device in the list.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Listed {
    /// What it is.
    #[serde(flatten)]
    pub drive: Drive,
    /// What lies on it or stands on it: `ext4 on /srv`, `md0`.
    pub holds: Vec<String>,
    /// Whether a hint can leave the host through it, and why not.
    pub hears: String,
}
