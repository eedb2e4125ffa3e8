//! Results on disk, one file for a kernel and a stack: a run that was stopped goes on from there.
//!
//! Invariant: a result counts only for the build that it was made with.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// What a guest said about one stack.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    /// `uname -r`.
    pub release: String,
    /// The stack's name.
    pub stack: String,
    /// The program and the guest's scripts that it was made with.
    pub build: String,
    /// Seconds since 1970.
    pub at: u64,
    /// Seconds that it took.
    pub seconds: u64,
    /// Why the stack could not be built, or the guest ended.
    pub failed: Option<String>,
    /// Why this kernel cannot have it.
    pub skipped: Option<String>,
    /// Everything that the guest said.
    pub lines: Vec<String>,
}

/// The folder of results.
pub struct Store {
    folder: PathBuf,
    build: String,
}

impl Store {
    /// Results of `build` below `folder`.
    pub fn open(folder: &Path, build: String) -> Store {
        Store { folder: folder.to_owned(), build }
    }

    /// The name of this build.
    pub fn build(&self) -> &str {
        &self.build
    }

    /// The result for `stack` on the kernel `release`, unless it is of another build.
    pub fn find(&self, release: &str, stack: &str) -> Option<Outcome> {
        let text = fs::read(self.path(release, stack)).ok()?;
        // a file that can't be read is a result to be made again
        let outcome: Outcome = serde_json::from_slice(&text).ok()?;
        (outcome.build == self.build).then_some(outcome)
    }

    /// Keeps a result; it is there whole or not at all.
    pub fn keep(&self, outcome: &Outcome) -> Result<()> {
        let path = self.path(&outcome.release, &outcome.stack);
        let folder = path.parent().context("results lie in a folder")?;
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        let part = path.with_extension("part");
        fs::write(&part, serde_json::to_vec_pretty(outcome)?)?;
        fs::rename(&part, &path).with_context(|| path.display().to_string())
    }

    fn path(&self, release: &str, stack: &str) -> PathBuf {
        self.folder.join(release).join(format!("{stack}.json"))
    }
}

/// A name for what `parts` hold: 64-bit FNV-1a, enough to tell builds apart.
pub fn fingerprint<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for part in parts {
        for byte in part.iter().chain(&(part.len() as u64).to_le_bytes()) {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_counts_for_its_build_only() {
        let folder = std::env::temp_dir().join(format!("shelflife-lab-{}", std::process::id()));
        let outcome = Outcome {
            release: "7.3.4".into(),
            stack: "scsi-ext4".into(),
            build: "a".into(),
            at: 0,
            seconds: 1,
            failed: None,
            skipped: None,
            lines: vec!["probe buffered short".into()],
        };
        Store::open(&folder, "a".into()).keep(&outcome).unwrap();
        let found = Store::open(&folder, "a".into()).find("7.3.4", "scsi-ext4").unwrap();
        assert_eq!(found.lines, outcome.lines);
        assert!(Store::open(&folder, "b".into()).find("7.3.4", "scsi-ext4").is_none());
        assert!(Store::open(&folder, "a".into()).find("7.3.4", "scsi-xfs").is_none());
        fs::write(folder.join("7.3.4/scsi-ext4.json"), "{\"release\":").unwrap();
        assert!(Store::open(&folder, "a".into()).find("7.3.4", "scsi-ext4").is_none());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn fingerprints_tell_parts_apart() {
        let of = |parts: &[&[u8]]| fingerprint(parts.iter().copied());
        assert_ne!(of(&[b"ab", b"c"]), of(&[b"a", b"bc"]));
        assert_eq!(of(&[b"ab"]), of(&[b"ab"]));
    }
}
