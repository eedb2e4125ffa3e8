//! Reading small files of another user.
//!
//! Invariant: whoever owns the folder may have put anything there; a pipe does not block, a device
//! is not read, and no more than [`LIMIT`] bytes are taken.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// The first line of `PG_VERSION` or `postmaster.pid` is a number.
const LIMIT: u64 = 4096;

/// The first 4 KiB of the regular file at `path`, what is no UTF-8 replaced.
///
/// # Errors
///
/// Those of `open(2)` and `read(2)`; `InvalidInput` if it is no regular file.
pub fn read_small(path: &Path) -> io::Result<String> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::options().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(LIMIT).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
