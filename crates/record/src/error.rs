//! Everything that can go wrong with a recording.
//!
//! Invariant: every variant names the path, device or program that it is about and says what to
//! do; [`Error::is_denied`] tells "not permitted, or not supported here" from wrong use.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why nothing, or not more, was recorded.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The system refused.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was to be done: `read`, `find`, …
        action: &'static str,
        /// The file or device.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// `--device` was no device.
    #[error("{} is no block device: name one, or a folder with --path", path.display())]
    NotADevice {
        /// What was named.
        path: PathBuf,
    },
    /// The file system keeps its data elsewhere.
    #[error("{} lies on {file_system}, which has no block device here{advice}", path.display())]
    NoDevice {
        /// The path.
        path: PathBuf,
        /// Type of the file system.
        file_system: String,
        /// What to name instead.
        advice: &'static str,
    },
    /// A driver without requests, like zram, brd or pmem.
    #[error(
        "{device} takes bios and issues no requests, so there is nothing to record: make a loop \
         device over a file on it"
    )]
    NoRequests {
        /// Its name.
        device: String,
    },
    /// More devices than the program has places for.
    #[error("{found} devices are under {}, at most {limit} can be recorded at once", path.display())]
    TooManyDevices {
        /// What was asked for.
        path: PathBuf,
        /// How many.
        found: usize,
        /// The most.
        limit: usize,
    },
    /// Rights are missing.
    #[error(
        "recording needs {missing}: run it as root, or grant the program \
         `setcap cap_bpf,cap_perfmon,cap_syslog,cap_dac_read_search+ep`"
    )]
    NotPermitted {
        /// The capabilities that are missing.
        missing: String,
    },
    /// No description of the kernel's types.
    #[error(
        "this kernel has no BTF (/sys/kernel/btf/vmlinux), so the recorder cannot find the fields \
         of its requests: use one built with CONFIG_DEBUG_INFO_BTF"
    )]
    NoBtf,
    /// Linux 5.18 to 6.8.
    #[error(
        "this kernel ({release}) has no hint in the block layer: 5.18 to 6.8 carry none, use 6.9 \
         or later"
    )]
    NoHintField {
        /// Release of the kernel.
        release: String,
    },
    /// The kernel refused the program.
    #[error("the kernel refused {what}: {reason}")]
    Refused {
        /// Which program, of which type; or which map.
        what: &'static str,
        /// What it says.
        reason: String,
    },
    /// Compiled without it.
    #[error("this program was built without the recorder: build it with the feature `bpf`")]
    NotBuilt,
    /// The trace could not be written. What was closed before can be read.
    #[error(transparent)]
    Trace(#[from] shelflife_trace::Error),
    /// The recorder's thread ended in a panic: a bug.
    #[error("the recorder ended unexpectedly; please report this")]
    Panicked,
}

impl Error {
    /// For `map_err` of calls of the system.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
        let path = path.to_owned();
        move |source| Error::Io { action, path, source }
    }

    /// Whether other rights, another kernel or another device would help: exit code 3.
    pub fn is_denied(&self) -> bool {
        match self {
            Error::Io { source, .. } => source.kind() == io::ErrorKind::PermissionDenied,
            Error::NoRequests { .. }
            | Error::NoDevice { .. }
            | Error::NotPermitted { .. }
            | Error::NoBtf
            | Error::NoHintField { .. }
            | Error::Refused { .. }
            | Error::NotBuilt => true,
            _ => false,
        }
    }
}
