//! Short-lived files at a steady rate: which carry their hint, and how soon.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::{Duration, Instant};

use shelflife_lifetime::{Lifetime, get};

use crate::beside::{Beside, data_folder};

/// Creations a second.
const RATE: u32 = 6_000;
/// How long a file lives: the shortest time that counts is 10 ms.
const LIVES: Duration = Duration::from_millis(12);

struct Born {
    file: File,
    path: PathBuf,
    at: Instant,
}

/// What came of a storm.
#[derive(Debug, Default)]
pub struct Outcome {
    created: u64,
    hinted: u64,
    lived: u64,
    /// Create to hint, seconds.
    delays: Vec<f64>,
    seconds: f64,
}

/// Makes files in `folder` for `time` and watches each through its own descriptor, which makes no
/// event.
pub fn storm(folder: &Path, time: Duration) -> Outcome {
    let (sender, born) = channel::<Born>();
    let observer = std::thread::spawn(move || observe(&born));
    let begun = Instant::now();
    let mut created = 0u32;
    while begun.elapsed() < time {
        // At the rate, or behind it as fast as it goes.
        let due = (begun.elapsed().as_secs_f64() * f64::from(RATE)) as u32;
        while created < due {
            let path = folder.join(format!("pgsql_tmp{}.{created}", std::process::id()));
            let at = Instant::now();
            let file = File::create_new(&path).expect("a file");
            sender.send(Born { file, path, at }).expect("observed");
            created += 1;
        }
        std::thread::sleep(Duration::from_micros(150));
    }
    drop(sender);
    let seconds = begun.elapsed().as_secs_f64();
    Outcome { created: created.into(), seconds, ..observer.join().expect("observed") }
}

fn observe(born: &Receiver<Born>) -> Outcome {
    let mut outcome = Outcome::default();
    let mut waiting: VecDeque<(Born, bool)> = VecDeque::new();
    // Removing may wait for the file system's journal; looking must not.
    let (old, removed) = channel::<Born>();
    let remover = std::thread::spawn(move || {
        for file in removed {
            fs::remove_file(&file.path).expect("removed");
        }
    });
    loop {
        let ended = loop {
            match born.try_recv() {
                Ok(file) => waiting.push_back((file, false)),
                Err(TryRecvError::Empty) => break false,
                Err(TryRecvError::Disconnected) => break true,
            }
        };
        for (file, hinted) in &mut waiting {
            if !*hinted && get(&file.file).is_ok_and(|hint| hint == Lifetime::Short) {
                *hinted = true;
                outcome.delays.push(file.at.elapsed().as_secs_f64());
            }
        }
        while let Some((file, hinted)) = waiting.pop_front_if(|(file, _)| file.at.elapsed() > LIVES)
        {
            old.send(file).expect("removed");
            outcome.lived += 1;
            outcome.hinted += u64::from(hinted);
        }
        if ended && waiting.is_empty() {
            drop(old);
            remover.join().expect("removed");
            return outcome;
        }
        std::thread::sleep(Duration::from_micros(50));
    }
}

impl Outcome {
    /// How many files were made.
    pub fn created(&self) -> u64 {
        self.created
    }

    /// One line.
    pub fn say(mut self, what: &str, overflows: u64) {
        self.delays.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let last = self.delays.len().saturating_sub(1);
            self.delays.get((last as f64 * share) as usize).copied().unwrap_or(f64::NAN) * 1e3
        };
        println!(
            "storm, {what}: {:.0} creations/s, {} of {} files that lived over 10 ms were hinted \
             ({:.3} %), create → hint p50 {:.3} ms, p99 {:.3} ms, max {:.3} ms, {overflows} overflows",
            self.created as f64 / self.seconds,
            self.hinted,
            self.lived,
            self.hinted as f64 / self.lived as f64 * 100.0,
            at(0.5),
            at(0.99),
            at(1.0)
        );
    }
}

/// On a machine that does nothing else.
pub fn idle() {
    for mode in ["folders", "filesystem"] {
        // In memory: what is asked is how soon the daemon answers, not how the journal stalls.
        let dir = tempfile::Builder::new().tempdir_in("/dev/shm").expect("a folder");
        let data = data_folder(dir.path());
        let beside = Beside::start(&data, mode, &dir.path().join("state"));
        let before = beside.ticks();
        let outcome = storm(&data.join("base/pgsql_tmp"), Duration::from_secs(10));
        let ticks = beside.ticks() - before;
        std::thread::sleep(Duration::from_millis(1500));
        let overflows = beside.figures().map_or(0, |f| f.overflows);
        outcome.say(&format!("marks on {mode}"), overflows);
        println!("  the daemon used {:.1} % of a processor", ticks as f64 / 10.0);
    }
}
