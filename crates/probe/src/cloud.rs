//! Disks of clouds, by the names that they give themselves.
//!
//! Invariant: a name is matched whole or as the documented prefix; an unknown name is no cloud disk.

/// What a cloud's disk is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct CloudDisk {
    /// For people: `Amazon EBS volume`.
    pub(crate) name: &'static str,
    /// Whether it is a slice of a network store (else: a local drive handed through).
    pub(crate) network: bool,
}

/// Vendor (empty for NVMe), beginning of the model, what it is.
const DISKS: [(&str, &str, CloudDisk); 9] = [
    ("", "Amazon Elastic Block Store", CloudDisk { name: "Amazon EBS volume", network: true }),
    (
        "",
        "Amazon EC2 NVMe Instance Storage",
        CloudDisk { name: "Amazon EC2 instance store", network: false },
    ),
    ("", "nvme_card-pd", CloudDisk { name: "Google Persistent Disk", network: true }),
    ("", "nvme_card", CloudDisk { name: "Google local SSD", network: false }),
    ("Google", "PersistentDisk", CloudDisk { name: "Google Persistent Disk", network: true }),
    ("Google", "EphemeralDisk", CloudDisk { name: "Google local SSD", network: false }),
    ("", "MSFT NVMe Accelerator", CloudDisk { name: "Azure managed disk", network: true }),
    ("", "Microsoft NVMe Direct Disk", CloudDisk { name: "Azure local disk", network: false }),
    ("Msft", "Virtual Disk", CloudDisk { name: "Azure (Hyper-V) disk", network: true }),
];

pub(crate) fn of(vendor: &str, model: &str) -> Option<CloudDisk> {
    let is = |(v, m, _): &&(&str, &str, CloudDisk)| *v == vendor && model.starts_with(m);
    DISKS.iter().find(is).map(|(_, _, disk)| *disk)
}
