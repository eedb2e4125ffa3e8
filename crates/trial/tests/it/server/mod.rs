//! Trials on the real server. Without one, or without root where root is needed, a test is skipped and says
//! so: one line `skipped: NAME: reason` on standard error.

mod bad;
mod course;
mod epochs;
mod recording;
mod running;
mod scenarios;

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use shelflife_postgres::programs::Search;
use shelflife_postgres::{Cancel, Programs};
use shelflife_run::Hook;
use shelflife_trial::machine::Mount;
use shelflife_trial::record::{DeviceFacts, Round};
use shelflife_trial::{Estimate, Observer, Options, Phase, Place, Preset, Progress, Spec, Wishes};

/// A folder of one test, reachable by the server's user, and what a trial needs.
struct Bed {
    folder: tempfile::TempDir,
    hook: Hook,
    stop: Arc<AtomicBool>,
}

impl Bed {
    /// A place for the test `name`, or `None`, and a line, if it has to be skipped.
    fn new(name: &str) -> Option<Bed> {
        Bed::within(name, std::env::temp_dir())
    }

    /// The same in a folder that is there already.
    fn within(name: &str, folder: impl AsRef<Path>) -> Option<Bed> {
        if let Err(error) = Programs::find(&Search::new(None)) {
            return skip(name, &error.to_string());
        }
        let hook = hook().expect("the hook is built by `make hook`");
        let folder = tempfile::Builder::new()
            .prefix("shelflife-trial-it-")
            .permissions(std::fs::Permissions::from_mode(0o755))
            .tempdir_in(folder)
            .unwrap();
        Some(Bed { folder, hook, stop: Arc::default() })
    }

    fn dir(&self) -> PathBuf {
        self.folder.path().join("trial")
    }

    fn options(&self) -> Options {
        self.stop.store(false, Ordering::Relaxed);
        Options {
            dir: self.dir(),
            place: Place::Own { hook: self.hook.clone(), user: None },
            bindir: None,
            keep: false,
            record: None,
            cancel: Cancel::new(Arc::clone(&self.stop)),
        }
    }

    /// That nothing but `names` is left in the trial's folder, which itself is gone without any,
    /// and that no process works below it.
    fn assert_left(&self, names: &[&str]) {
        let dir = self.dir();
        let left: Vec<String> = std::fs::read_dir(&dir)
            .map(|entries| entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect())
            .unwrap_or_default();
        assert_eq!(left, names);
        assert_eq!(dir.exists(), !names.is_empty());
        assert_eq!(processes_below(&dir), [] as [u32; 0]);
    }
}

fn hook() -> Result<Hook, shelflife_run::Error> {
    if std::env::var_os("SHELFLIFE_HOOK").is_some() {
        return Hook::find();
    }
    // target/debug/deps/it
    let exe = std::env::current_exe().unwrap();
    let target = exe.ancestors().nth(3).unwrap();
    Hook::at(&target.join("hook/libshelflife_preload.so"))
}

/// Processes whose working folder is below `dir`, also if it is removed.
fn processes_below(dir: &Path) -> Vec<u32> {
    let pids = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let pid = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let cwd = std::fs::read_link(format!("/proc/{pid}/cwd")).ok()?;
        cwd.starts_with(dir).then_some(pid)
    });
    pids.collect()
}

/// Two short rounds of each arm on the smallest database.
fn tiny(policies: &[&str]) -> Wishes {
    Wishes {
        preset: Preset::Quick,
        policies: policies.iter().map(ToString::to_string).collect(),
        scale: Some(1),
        clients: Some(2),
        seconds: Some(1),
        rounds: Some(2),
        seed: Some(42),
        ..Wishes::default()
    }
}

fn spec(wishes: &Wishes) -> Spec {
    Spec::new(wishes).unwrap()
}

/// Hears everything, and does something at each step.
struct Ear<F> {
    agree: bool,
    warnings: Vec<String>,
    rounds: Vec<Round>,
    step: F,
}

fn ear<F: FnMut(&Progress<'_>)>(step: F) -> Ear<F> {
    Ear { agree: true, warnings: Vec::new(), rounds: Vec::new(), step }
}

fn deaf() -> Ear<impl FnMut(&Progress<'_>)> {
    ear(|_| ())
}

/// Raises `stop` as Ctrl-C would, when `phase` begins in the round `round` (from 1) or later.
fn stop_at(
    stop: &Arc<AtomicBool>,
    phase: Phase,
    round: usize,
) -> Ear<impl FnMut(&Progress<'_>) + use<>> {
    let stop = Arc::clone(stop);
    ear(move |progress| {
        let now = progress.round.map_or(0, |(number, _)| number);
        if progress.phase == phase && now >= round {
            stop.store(true, Ordering::Relaxed);
        }
    })
}

impl<F: FnMut(&Progress<'_>)> Observer for Ear<F> {
    fn confirm(&mut self, estimate: &Estimate, storage: &Mount, free: u64) -> bool {
        assert!(estimate.total_bytes() > 0 && free > 0 && !storage.device.is_empty());
        self.agree
    }

    fn confirm_device(&mut self, _: &Estimate, _: &DeviceFacts) -> bool {
        self.agree
    }

    fn progress(&mut self, progress: &Progress<'_>) {
        (self.step)(progress);
    }

    fn warn(&mut self, text: &str) {
        self.warnings.push(text.to_owned());
    }

    fn round(&mut self, round: &Round) {
        self.rounds.push(round.clone());
    }
}

fn skip<T>(name: &str, reason: &str) -> Option<T> {
    let reason = reason.lines().next().unwrap_or_default();
    let line = format!("skipped: {name}: {reason}\n");
    std::io::stderr().write_all(line.as_bytes()).unwrap();
    None
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Waits for something that another process does.
fn eventually(what: &str, mut ready: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(120);
    while !ready() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
