//! Results on disk, one file for a kernel and a stack: a run that was stopped goes on from there.
//!
//! Invariant: what the drive was seen to be told counts only for the scripts that watched it, and
//! what the program said only for the program; so a changed program costs little to try again.

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
    /// Seconds since 1970.
    pub at: u64,
    /// Seconds that it took.
    pub seconds: u64,
    /// Why the stack could not be built, or the guest ended.
    pub failed: Option<String>,
    /// Why this kernel cannot have it.
    pub skipped: Option<String>,
    /// The guest's scripts and what of it they saw.
    pub seen: Part,
    /// The program under test and what it said.
    pub said: Part,
}

/// Lines of the guest, and a name for what they were made with.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Part {
    /// Made with this.
    pub build: String,
    /// As they came.
    pub lines: Vec<String>,
}

impl Outcome {
    /// Everything that the guest said.
    pub fn lines(&self) -> Vec<String> {
        self.seen.lines.iter().chain(&self.said.lines).cloned().collect()
    }
}

/// The folder of results.
pub struct Store {
    folder: PathBuf,
    /// The guest's scripts.
    pub scripts: String,
    /// The program under test.
    pub program: String,
}

impl Store {
    /// Results below `folder`, of these scripts and this program.
    pub fn open(folder: &Path, scripts: String, program: String) -> Store {
        Store { folder: folder.to_owned(), scripts, program }
    }

    /// The result for `stack` on the kernel `release`, if it is of these scripts and no failure.
    pub fn find(&self, release: &str, stack: &str) -> Option<Outcome> {
        let text = fs::read(self.path(release, stack)).ok()?;
        // a file that can't be read is a result to be made again
        let outcome: Outcome = serde_json::from_slice(&text).ok()?;
        (outcome.failed.is_none() && outcome.seen.build == self.scripts).then_some(outcome)
    }

    /// Whether `outcome` is of this program, too.
    pub fn is_whole(&self, outcome: &Outcome) -> bool {
        outcome.said.build == self.program
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
    fn a_result_counts_for_what_it_was_made_with() {
        let folder = std::env::temp_dir().join(format!("shelflife-lab-{}", std::process::id()));
        let open = |scripts: &str, program: &str| {
            Store::open(&folder, scripts.to_owned(), program.to_owned())
        };
        let part = |build: &str, line: &str| Part { build: build.into(), lines: vec![line.into()] };
        let outcome = Outcome {
            release: "7.3.4".into(),
            stack: "scsi-ext4".into(),
            at: 0,
            seconds: 1,
            failed: None,
            skipped: None,
            seen: part("a", "probe buffered short"),
            said: part("p", "doctor 0 1 {}"),
        };
        open("a", "p").keep(&outcome).unwrap();
        let found = open("a", "p").find("7.3.4", "scsi-ext4").unwrap();
        assert_eq!(found.lines(), ["probe buffered short", "doctor 0 1 {}"]);
        assert!(open("a", "p").is_whole(&found));
        assert!(open("a", "q").find("7.3.4", "scsi-ext4").is_some());
        assert!(!open("a", "q").is_whole(&found));
        assert!(open("b", "p").find("7.3.4", "scsi-ext4").is_none());
        assert!(open("a", "p").find("7.3.4", "scsi-xfs").is_none());
        fs::write(folder.join("7.3.4/scsi-ext4.json"), "{\"release\":").unwrap();
        assert!(open("a", "p").find("7.3.4", "scsi-ext4").is_none());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn fingerprints_tell_parts_apart() {
        let of = |parts: &[&[u8]]| fingerprint(parts.iter().copied());
        assert_ne!(of(&[b"ab", b"c"]), of(&[b"a", b"bc"]));
        assert_eq!(of(&[b"ab"]), of(&[b"ab"]));
    }
}
