//! How fast the storage synchronises right now: small writes, each followed by `fdatasync`.
//!
//! Invariant: leaves nothing behind: the file has no name.

use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use shelflife_postgres::Cancel;

use crate::error::{Error, Result};

/// One WAL page, the least that a commit writes.
const WRITE: usize = 8192;

/// The file is as long as a WAL segment, and like one it is overwritten, not grown.
const LENGTH: u64 = 16 << 20;

/// Latencies of `fdatasync` in µs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// Writes made.
    pub writes: u64,
    /// Half are faster.
    pub p50_us: u64,
    /// 95 of 100 are faster.
    pub p95_us: u64,
    /// 99 of 100 are faster.
    pub p99_us: u64,
    /// The slowest.
    pub max_us: u64,
}

impl Probe {
    /// Writes and synchronises in `folder` for `time`, at least once.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], [`shelflife_postgres::Error::Interrupted`].
    pub fn measure(folder: &Path, time: Duration, cancel: &Cancel) -> Result<Probe> {
        let failed = |source| Error::Io { what: "cannot probe", path: folder.to_owned(), source };
        let mut file = tempfile::tempfile_in(folder).map_err(failed)?;
        let page = [0x5a; WRITE];
        for _ in 0..LENGTH / WRITE as u64 {
            file.write_all(&page).map_err(failed)?;
        }
        file.sync_all().map_err(failed)?;
        let mut taken = Vec::new();
        let begun = Instant::now();
        while taken.is_empty() || begun.elapsed() < time {
            cancel.check()?;
            let at = (taken.len() as u64 * WRITE as u64) % LENGTH;
            file.seek(SeekFrom::Start(at)).map_err(failed)?;
            let start = Instant::now();
            file.write_all(&page).and_then(|()| file.sync_data()).map_err(failed)?;
            taken.push(start.elapsed().as_micros() as u64);
        }
        Ok(Probe::of(&mut taken))
    }

    fn of(taken: &mut [u64]) -> Probe {
        taken.sort_unstable();
        let at = |share: f64| {
            let rank = (share * taken.len() as f64).ceil() as usize;
            taken.get(rank.saturating_sub(1)).copied().unwrap_or(0)
        };
        Probe {
            writes: taken.len() as u64,
            p50_us: at(0.50),
            p95_us: at(0.95),
            p99_us: at(0.99),
            max_us: at(1.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_ranks() {
        let mut taken: Vec<u64> = (1..=200).rev().collect();
        let probe = Probe::of(&mut taken);
        assert_eq!((probe.writes, probe.p50_us, probe.p95_us), (200, 100, 190));
        assert_eq!((probe.p99_us, probe.max_us), (198, 200));
        assert_eq!(Probe::of(&mut [7]).p50_us, 7);
    }

    #[test]
    fn nothing_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let probe = Probe::measure(folder.path(), Duration::ZERO, &Cancel::never()).unwrap();
        assert_eq!(probe.writes, 1);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let nowhere = folder.path().join("nowhere");
        assert!(Probe::measure(&nowhere, Duration::ZERO, &Cancel::never()).is_err());
    }
}
