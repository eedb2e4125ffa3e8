//! The kernel: its version, and what can be seen of it without trusting that.
//!
//! Invariant: what a kernel shows goes before what its version says, for vendors carry changes
//! back.

use serde::Serialize;

use crate::host::{HintFailure, Host};
use crate::rules::{self, Rule, Version};

/// What the walk knows of the kernel.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Kernel {
    /// `/proc/sys/kernel/osrelease`.
    pub release: String,
    #[serde(skip)]
    version: Option<Version>,
    /// Whether `F_GET_RW_HINT` works here; `None` if it could not be tried.
    pub call: Option<bool>,
    /// Whether block devices have the attribute `max_write_streams`, as since 6.16; `None` without
    /// any block device.
    pub write_streams: Option<bool>,
    /// `nvme_core.streams`, the parameter of kernels before 5.18.
    pub streams_parameter: Option<bool>,
}

impl Kernel {
    /// Reads what there is.
    pub fn read(host: &Host, path: &std::path::Path) -> Kernel {
        let release = host.text("/proc/sys/kernel/osrelease").unwrap_or_default();
        let mut call = host.calls().hint(path);
        if call == Err(HintFailure::Unreadable) {
            // Any file that may be opened will do: the question is whether the kernel knows the call.
            call = host.calls().hint("/proc/self/exe".as_ref());
        }
        let call = match call {
            Ok(_) => Some(true),
            Err(HintFailure::Unsupported) => Some(false),
            Err(HintFailure::Unreadable) => None,
        };
        // One device is enough: the attribute is there for all or for none.
        let first = host.names("/sys/block").into_iter().next();
        let attribute = |name| host.exists(format!("/sys/block/{name}/queue/max_write_streams"));
        let parameter = host.text("/sys/module/nvme_core/parameters/streams");
        Kernel {
            version: release.parse().ok(),
            call,
            write_streams: first.map(attribute),
            streams_parameter: parameter.map(|text| text.starts_with('Y')),
            release,
        }
    }

    /// Whether the kernel does what the rule says; `None` if its version is not known.
    pub fn does(&self, rule: &Rule) -> Option<bool> {
        if *rule == rules::NVME_STREAMS && self.write_streams.is_some() {
            return self.write_streams;
        }
        if *rule == rules::STREAMS_REMOVED && self.streams_parameter.is_some() {
            return Some(false);
        }
        Some(self.version? >= rule.since)
    }

    /// Whether the release is of a distribution that carries later changes back.
    pub fn has_backports(&self) -> bool {
        [".el7", ".el8", ".el9", ".el10", "-default"].iter().any(|mark| self.release.contains(mark))
    }
}
