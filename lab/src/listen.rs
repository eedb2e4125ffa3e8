//! What a guest says of the stacks, line by line, becomes their results.
//!
//! Invariant: a stack that a guest began is a result afterwards, or is left for the next guest with
//! what was seen of it; so that every guest leaves less to do.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use anyhow::Result;

use crate::batch::Work;
use crate::kernel::Kernel;
use crate::now;
use crate::qemu::End;
use crate::run::Progress;
use crate::stacks;
use crate::store::{Outcome, Part, Store};

/// The ear of one guest.
pub struct Listener<'r> {
    /// Where results are kept.
    pub store: &'r Store,
    /// The guest's kernel.
    pub kernel: &'r Kernel,
    /// Told of each result.
    pub progress: &'r Mutex<Progress>,
    /// What has no result yet.
    pub left: &'r mut Vec<Work>,
    /// The stack at hand, and when it was begun.
    pub current: Option<(Outcome, Instant)>,
    /// Stacks that prove has yet to be asked of.
    pub batch: Vec<Outcome>,
}

impl Listener<'_> {
    /// Takes a line; false if it was the last.
    pub fn hear(&mut self, line: &str) -> Result<bool> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match (word, &mut self.current) {
            ("begin", _) => self.current = Some((self.begin(rest)?, Instant::now())),
            ("end", _) => {
                if let Some((outcome, begun)) = self.current.take() {
                    self.end(outcome, begun)?;
                }
            }
            ("failed", Some((outcome, _))) => outcome.failed = Some(rest.to_owned()),
            ("skipped", Some((outcome, _))) => outcome.skipped = Some(rest.to_owned()),
            ("said", Some((outcome, _))) => outcome.said.lines.push(rest.to_owned()),
            (_, Some((outcome, _))) => outcome.seen.lines.push(line.to_owned()),
            ("said", None) => self.said_of_batch(rest),
            ("batch", None) => {
                for outcome in std::mem::take(&mut self.batch) {
                    self.finish(outcome)?;
                }
            }
            // the kernel's complaints, at the end
            ("dmesg", None) => {
                lock(self.progress).note(&format!("{}: {rest}", self.kernel.release));
            }
            _ => {}
        }
        Ok(line != "done")
    }

    fn begin(&self, stack: &str) -> Result<Outcome> {
        let known = self.left.iter().find(|w| w.stack.name == stack);
        let seen = known.and_then(|w| w.known.clone()).map(|known| known.seen).unwrap_or_default();
        Ok(Outcome {
            release: self.kernel.release.clone(),
            stack: stack.to_owned(),
            at: now()?,
            seconds: 0,
            failed: None,
            skipped: None,
            seen: Part { build: self.store.scripts.clone(), ..seen },
            said: Part { build: self.store.program.clone(), lines: Vec::new() },
        })
    }

    fn end(&mut self, mut outcome: Outcome, begun: Instant) -> Result<()> {
        outcome.seconds = begun.elapsed().as_secs();
        let over = outcome.failed.is_some() || outcome.skipped.is_some();
        if over || stacks::is_raw(&outcome.stack) {
            return self.finish(outcome);
        }
        // what was seen need not be seen again, whatever becomes of the guest
        let seen = Outcome { said: Part::default(), ..outcome.clone() };
        self.store.keep(&seen)?;
        if let Some(work) = self.left.iter_mut().find(|w| w.stack.name == outcome.stack) {
            work.known = Some(seen);
        }
        self.batch.push(outcome);
        Ok(())
    }

    /// What prove said of all stacks that are up, to each its own.
    fn said_of_batch(&mut self, said: &str) {
        let number = self.batch.len();
        for outcome in &mut self.batch {
            let own = own_answer(said, &outcome.stack);
            outcome.said.lines.push(own.unwrap_or_else(|| said.to_owned()));
        }
        if let Some(time) = said.strip_prefix("prove ").and_then(|rest| rest.split(' ').nth(1)) {
            let release = &self.kernel.release;
            lock(self.progress)
                .note(&format!("{release}: prove took {time} ms for {number} stacks"));
        }
    }

    fn finish(&mut self, outcome: Outcome) -> Result<()> {
        self.left.retain(|w| w.stack.name != outcome.stack);
        lock(self.progress).finish(&outcome, self.store)
    }

    /// The guest is gone.
    pub fn over(mut self, end: &End) -> Result<()> {
        let how = if *end == End::Hung { "hung" } else { "ended" };
        if let Some((mut outcome, begun)) = self.current.take() {
            outcome.failed = Some(format!("the guest {how} here"));
            outcome.seconds = begun.elapsed().as_secs();
            return self.finish(outcome);
        }
        for mut outcome in std::mem::take(&mut self.batch) {
            if !outcome.said.lines.iter().any(|line| line.starts_with("prove ")) {
                outcome.failed = Some(format!("the guest {how} while prove looked"));
            }
            self.finish(outcome)?;
        }
        Ok(())
    }
}

/// Of `prove CODE MILLISECONDS JSON` the line with the answer for one stack alone.
fn own_answer(said: &str, stack: &str) -> Option<String> {
    let mut words = said.splitn(4, ' ');
    let (word, code, time, json) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let mut proof: serde_json::Value = serde_json::from_str(json).ok()?;
    let path = format!("/mnt/{stack}");
    let answers = proof.get_mut("answers")?.as_array_mut()?;
    answers.retain(|answer| answer["path"] == path.as_str());
    Some(format!("{word} {code} {time} {proof}"))
}

/// What a panic left is still a list of results.
pub fn lock(progress: &Mutex<Progress>) -> std::sync::MutexGuard<'_, Progress> {
    progress.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stack_gets_its_own_answer() {
        let said = r#"prove 1 900 {"answers":[{"path":"/mnt/a","x":1},{"path":"/mnt/b","x":2}]}"#;
        let own = |stack| own_answer(said, stack).unwrap();
        assert_eq!(own("b"), r#"prove 1 900 {"answers":[{"path":"/mnt/b","x":2}]}"#);
        // of another one there is none
        assert_eq!(own("c"), r#"prove 1 900 {"answers":[]}"#);
        for unreadable in ["prove 2 9 ", "prove 2 9 {", "prove-error no such file", "prove 0 9 []"]
        {
            assert_eq!(own_answer(unreadable, "a"), None, "{unreadable}");
        }
    }

    #[test]
    fn a_guest_that_hangs_leaves_less_to_do() {
        let folder = std::env::temp_dir().join(format!("shelflife-listen-{}", std::process::id()));
        let store = Store::open(&folder, "scripts".into(), "program".into());
        let kernel = Kernel {
            release: "7.3.4".into(),
            image: folder.join("vmlinuz"),
            modules: folder.join("root"),
        };
        let progress = Mutex::new(Progress::new(3));
        let work = |name| Work { stack: stacks::by_name(name).unwrap(), known: None };
        let mut left = vec![work("scsi-ext4"), work("scsi-raw"), work("scsi-xfs")];
        let listen = |left: &mut Vec<Work>, lines: &[&str]| {
            let (current, batch) = (None, Vec::new());
            let (store, kernel, progress) = (&store, &kernel, &progress);
            let mut ear = Listener { store, kernel, progress, left, current, batch };
            for line in lines {
                ear.hear(line).unwrap();
            }
            ear.over(&End::Hung).unwrap();
        };
        let lines =
            ["begin scsi-ext4", "probe buffered short", "said doctor 0 1 {}", "end scsi-ext4"];
        let raw = ["begin scsi-raw", "said doctor 0 1 {}", "end scsi-raw", "begin scsi-xfs"];
        listen(&mut left, &[&lines[..], &raw[..]].concat());
        // the raw device has no more to come, XFS hung; what was seen of ext4 is known
        let names: Vec<&str> = left.iter().map(|w| w.stack.name).collect();
        assert_eq!(names, ["scsi-ext4"]);
        assert!(left[0].known.is_some());
        let found = store.find("7.3.4", "scsi-ext4").unwrap();
        assert!(!store.is_whole(&found) && found.seen.lines == ["probe buffered short"]);
        assert!(store.find("7.3.4", "scsi-xfs").is_none(), "a failure is tried again");

        let again = [
            "begin scsi-ext4",
            "said doctor 0 1 {}",
            "end scsi-ext4",
            "said prove 0 9 {}",
            "batch",
        ];
        listen(&mut left, &again);
        assert!(left.is_empty());
        let whole = store.find("7.3.4", "scsi-ext4").unwrap();
        assert!(store.is_whole(&whole));
        assert_eq!(whole.lines(), ["probe buffered short", "doctor 0 1 {}", "prove 0 9 {}"]);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
