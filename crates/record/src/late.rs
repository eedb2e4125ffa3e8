//! How much of what a policy hints leaves without its hint, told while it is recorded.
//!
//! The recorder adds up what each file was written with which hint. Once a second what came since the
//! last look is held against the page of every run in whose data folders the files lie, and the sums
//! are put where `shelflife status` finds them.
//!
//! Invariant: bytes count only if the page was on, and stood still, from one look to the next. So a
//! switch costs two seconds of figures at most, and nothing is called late that left under another
//! policy.

use std::collections::BTreeMap;
use std::mem::take;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use shelflife_control::{Kind, Liveness, Registry, Run, State, start_time};
use shelflife_layout::relation::relation_file;
use shelflife_layout::{Class, Layout, Table};
use shelflife_lifetime::Lifetime;
use shelflife_run::{RecordedClass, RecordedFolder, Recording, publish, watching};
use shelflife_sweep::{Territory, decide};
use shelflife_trace::FileTable;

/// How often runs are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Bytes by the hint that they carried, at the hint's number.
pub(crate) type ByHint = [u64; Lifetime::ALL.len()];

/// Bytes of a class that the policy hints.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    bytes: u64,
    late: u64,
}

type Counts = BTreeMap<PathBuf, BTreeMap<(Class, Lifetime), Count>>;

/// What leaves without its hint, by run.
pub(crate) struct Late {
    registry: Registry,
    since: u64,
    looked: Option<Instant>,
    /// What was written by row and hint, as of the last look.
    before: Vec<ByHint>,
    runs: Vec<Counted>,
}

struct Counted {
    run: Run,
    /// As of the last look.
    giving: Option<Giving>,
    counts: Counts,
    published: Option<Recording>,
}

/// A run that gives hints.
struct Giving {
    state: State,
    table: Table,
    folders: Vec<Territory>,
    /// Whether relations get what only the daemon knows, since it reads catalogs.
    but_relations: bool,
}

impl Late {
    /// Of the runs of `registry`.
    pub fn new(registry: Registry) -> Late {
        Late {
            registry,
            since: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs()),
            looked: None,
            before: Vec::new(),
            runs: Vec::new(),
        }
    }

    /// Looks, if it is time to. `written` is by row of `files`.
    pub fn tick(&mut self, files: &FileTable, written: &[ByHint]) {
        if self.looked.is_none_or(|at| at.elapsed() >= LOOK_EVERY) {
            self.looked = Some(Instant::now());
            self.look(files, written);
        }
    }

    fn look(&mut self, files: &FileTable, written: &[ByHint]) {
        // a folder of runs that cannot be read has none to count for
        let runs = self.registry.runs().into_iter().flatten().flatten();
        let runs: Vec<Run> = runs.filter(is_alive).collect();
        let mut known = take(&mut self.runs);
        for run in runs {
            let same = |counted: &Counted| {
                counted.run.name() == run.name() && counted.run.page_segment() == run.page_segment()
            };
            let mut counted = match known.iter().position(same) {
                Some(at) => known.swap_remove(at),
                None => Counted { run, giving: None, counts: Counts::new(), published: None },
            };
            let now = Giving::of(&counted.run);
            let stood_still = |now: &&Giving| {
                counted.giving.as_ref().is_some_and(|before| before.state == now.state)
            };
            if let Some(giving) = now.as_ref().filter(stood_still) {
                giving.count(files, &self.before, written, &mut counted.counts);
            }
            counted.giving = now;
            counted.publish(self.since);
            self.runs.push(counted);
        }
        self.before.clear();
        self.before.extend_from_slice(written);
    }
}

impl Drop for Late {
    fn drop(&mut self) {
        for counted in self.runs.iter().filter(|counted| counted.published.is_some()) {
            // if it stays, it is seen to be of a process that has ended
            let _ = counted.run.remove_recorded();
        }
    }
}

fn is_alive(run: &Run) -> bool {
    matches!(run.liveness(), Liveness::Attached(_) | Liveness::Launcher)
}

impl Giving {
    /// `None` if no hints are given, or it is not known which.
    fn of(run: &Run) -> Option<Giving> {
        let table = Table::default();
        let state = {
            // not attached for longer: who has the page attached counts as a process of the run
            let page = run.page().ok()?;
            let state = page.state();
            page.policy_name(state, &mut [0; 64])?;
            table.copy_from(page.table(state));
            (page.state() == state).then_some(state)?
        };
        let but_relations = match run.kind() {
            // the paths that its rules mean are those that the program gave
            Kind::Hook if table.layout() != Some(Layout::Postgres) => return None,
            Kind::Hook => false,
            // it writes them as soon as it works
            Kind::Watch => watching(run).ok()??.reads_catalogs(),
        };
        let folders = run.summary().roots.iter();
        let folders = folders
            .filter_map(|root| {
                Territory::data_folder(root).or_else(|_| Territory::folder(root)).ok()
            })
            .collect();
        let gives = state.is_on() && !state.is_dry_run();
        gives.then_some(Giving { state, table, folders, but_relations })
    }

    /// Adds what was written since `before`.
    fn count(&self, files: &FileTable, before: &[ByHint], written: &[ByHint], counts: &mut Counts) {
        let before = before.iter().chain(std::iter::repeat(&[0; Lifetime::ALL.len()]));
        for (((_, file), now), before) in files.iter().zip(written).zip(before) {
            if now != before
                && let Some(path) = &file.path
                && let Some((folder, class, wanted)) = self.wanted(path.as_bytes())
            {
                let count = counts.entry(folder).or_default().entry((class, wanted)).or_default();
                for ((hint, now), before) in Lifetime::ALL.iter().zip(now).zip(before) {
                    count.bytes += now - before;
                    count.late += if *hint == wanted { 0 } else { now - before };
                }
            }
        }
    }

    /// The data folder of a path, its class there, and the hint that it is to carry.
    fn wanted(&self, path: &[u8]) -> Option<(PathBuf, Class, Lifetime)> {
        let inside = |folder: &Territory| Some((folder.base().to_owned(), folder.inside(path)?));
        let (base, inside) = self.folders.iter().find_map(inside)?;
        if self.but_relations && relation_file(&inside).is_some() {
            return None;
        }
        let (class, wanted) = decide(&self.table, base.as_os_str().as_bytes(), &inside);
        let wanted = wanted.filter(|wanted| *wanted != Lifetime::NotSet)?;
        Some((base, class, wanted))
    }
}

impl Counted {
    fn publish(&mut self, since: u64) {
        if self.counts.is_empty() {
            return;
        }
        let pid = std::process::id();
        let folders = self.counts.iter().map(|(folder, counts)| RecordedFolder {
            folder: folder.clone(),
            classes: counts
                .iter()
                .map(|((class, lifetime), count)| RecordedClass {
                    class: class.name().to_owned(),
                    lifetime: lifetime.name().to_owned(),
                    bytes: count.bytes,
                    late_bytes: count.late,
                })
                .collect(),
        });
        let now = Recording {
            pid,
            pid_start: start_time(pid).unwrap_or(0),
            since,
            folders: folders.collect(),
        };
        // a record that may not be written to is another's, who has no use for the figures
        if self.published.as_ref() != Some(&now) && publish(&self.run, &now).unwrap_or(false) {
            self.published = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use shelflife_control::NewRun;
    use shelflife_run::recording;
    use shelflife_trace::{FileClass, FileEntry};

    use super::*;

    const WAL: &str = "pg_wal/000000010000000000000001";

    /// A data folder, a run for it, and a file table with one row for each of some paths.
    struct Scene {
        folder: tempfile::TempDir,
        registry: Registry,
        files: FileTable,
        written: Vec<ByHint>,
    }

    impl Scene {
        fn new() -> Scene {
            let folder = tempfile::tempdir().unwrap();
            let data = folder.path().join("data");
            fs::create_dir_all(data.join("global")).unwrap();
            fs::write(data.join("PG_VERSION"), "15\n").unwrap();
            let registry = Registry::at(folder.path().join("state")).unwrap();
            let mut files = FileTable::default();
            for path in ["base/5/16384", WAL, "base/pgsql_tmp/pgsql_tmp1.0", "postgresql.conf"] {
                let file = FileEntry::new(Class::Relation.into());
                files.push(file.at(data.join(path).to_str().unwrap())).unwrap();
            }
            files.push(FileEntry::new(Class::Wal.into()).at("/elsewhere/pg_wal/1")).unwrap();
            files.push(FileEntry::new(FileClass::Unknown)).unwrap();
            let written = vec![ByHint::default(); files.len()];
            Scene { folder, registry, files, written }
        }

        fn data(&self) -> PathBuf {
            self.folder.path().join("data").canonicalize().unwrap()
        }

        fn run(&self, name: &str, policy: &str) -> Run {
            let policy = shelflife_run::load_policy(policy).unwrap();
            let new = NewRun {
                name: Some(name),
                command: &[],
                hook: Path::new(""),
                roots: &[self.data()],
                owner: None,
                policy: Some((&policy.compile(), policy.name())),
                dry_run: false,
            };
            self.registry.register(&new).unwrap()
        }

        /// Every file is written 1000 bytes with `hint`.
        fn write(&mut self, hint: Lifetime) {
            for row in &mut self.written {
                row[hint.raw() as usize] += 1000;
            }
        }

        fn look(&self, late: &mut Late) {
            late.look(&self.files, &self.written);
        }
    }

    impl Drop for Scene {
        fn drop(&mut self) {
            // no segment may outlive a test
            for run in self.registry.runs().into_iter().flatten().flatten() {
                let _ = run.remove();
            }
        }
    }

    /// Class, lifetime, bytes, late bytes.
    fn told(run: &Run) -> Vec<(String, String, u64, u64)> {
        let recording = recording(run).unwrap().unwrap_or_else(|| panic!("nothing is told"));
        let [folder] = recording.folders.as_slice() else { panic!("{recording:?}") };
        let class =
            |c: &RecordedClass| (c.class.clone(), c.lifetime.clone(), c.bytes, c.late_bytes);
        folder.classes.iter().map(class).collect()
    }

    fn row(class: &str, lifetime: &str, bytes: u64, late: u64) -> (String, String, u64, u64) {
        (class.to_owned(), lifetime.to_owned(), bytes, late)
    }

    #[test]
    fn what_a_policy_hints_counts_and_is_late_with_any_other_hint() {
        let mut scene = Scene::new();
        let run = scene.run("r", "wal-first");
        let mut late = Late::new(scene.registry.clone());
        // of what came before the first look nobody knows under which policy it left
        scene.write(Lifetime::NotSet);
        scene.look(&mut late);
        assert_eq!(recording(&run).unwrap(), None);
        scene.write(Lifetime::Short);
        scene.write(Lifetime::Short);
        scene.write(Lifetime::NotSet);
        scene.look(&mut late);
        // the relation and postgresql.conf have no rule, one file is elsewhere, one has no name
        let wanted = [row("temp", "short", 3000, 1000), row("wal", "short", 3000, 1000)];
        assert_eq!(told(&run), wanted);
        scene.write(Lifetime::Extreme);
        scene.look(&mut late);
        let wanted = [row("temp", "short", 4000, 2000), row("wal", "short", 4000, 2000)];
        assert_eq!(told(&run), wanted);
        // with the recorder its figures go
        drop(late);
        assert_eq!(recording(&run).unwrap(), None);
        assert_eq!(run.recorded().unwrap(), None);
    }

    #[test]
    fn a_switch_ends_what_counts_and_begins_it_anew() {
        let mut scene = Scene::new();
        let run = scene.run("r", "wal-first");
        let mut late = Late::new(scene.registry.clone());
        scene.look(&mut late);
        scene.write(Lifetime::Short);
        scene.look(&mut late);
        let first = vec![row("temp", "short", 1000, 0), row("wal", "short", 1000, 0)];
        assert_eq!(told(&run), first);
        // somewhere between two looks
        scene.write(Lifetime::Short);
        run.control().unwrap().switch(false);
        scene.write(Lifetime::NotSet);
        scene.look(&mut late);
        scene.write(Lifetime::NotSet);
        scene.look(&mut late);
        assert_eq!(told(&run), first);
        let policy = shelflife_run::load_policy("temp-vs-rest").unwrap();
        run.control().unwrap().publish(&policy.compile(), policy.name(), false);
        scene.write(Lifetime::NotSet);
        scene.look(&mut late);
        assert_eq!(told(&run), first);
        scene.write(Lifetime::Short);
        scene.look(&mut late);
        let told = told(&run);
        assert!(told.contains(&row("temp", "short", 2000, 0)), "{told:?}");
        assert!(told.contains(&row("wal", "extreme", 1000, 1000)), "{told:?}");
        assert!(told.contains(&row("wal", "short", 1000, 0)), "{told:?}");
        assert!(told.contains(&row("relation", "extreme", 1000, 1000)), "{told:?}");
    }

    #[test]
    fn a_dry_run_gives_no_hints_and_a_name_that_is_used_again_is_another_run() {
        let mut scene = Scene::new();
        let run = scene.run("r", "wal-first");
        let policy = shelflife_run::load_policy("wal-first").unwrap();
        run.control().unwrap().publish(&policy.compile(), policy.name(), true);
        let mut late = Late::new(scene.registry.clone());
        scene.look(&mut late);
        scene.write(Lifetime::NotSet);
        scene.look(&mut late);
        assert_eq!(recording(&run).unwrap(), None);
        run.remove().unwrap();
        let run = scene.run("r", "wal-first");
        scene.write(Lifetime::NotSet);
        scene.look(&mut late);
        assert_eq!(recording(&run).unwrap(), None);
        scene.write(Lifetime::NotSet);
        scene.look(&mut late);
        assert_eq!(told(&run)[0], row("temp", "short", 1000, 1000));
    }

    #[test]
    fn the_first_recorder_tells_until_it_ends() {
        let mut scene = Scene::new();
        let run = scene.run("r", "wal-first");
        // the parent of this test lives as long as it does
        let pid = std::os::unix::process::parent_id();
        let start = start_time(pid).unwrap();
        let mut theirs = Recording { pid, pid_start: start, since: 1, folders: Vec::new() };
        let write = |theirs: &Recording| {
            run.write_recorded(&serde_json::to_vec(theirs).unwrap()).unwrap();
        };
        write(&theirs);
        let mut late = Late::new(scene.registry.clone());
        scene.look(&mut late);
        scene.write(Lifetime::Short);
        scene.look(&mut late);
        assert_eq!(recording(&run).unwrap().as_ref(), Some(&theirs));
        // another process has its number by now
        theirs.pid_start += 1;
        write(&theirs);
        assert_eq!(recording(&run).unwrap(), None);
        scene.look(&mut late);
        assert_eq!(told(&run)[0], row("temp", "short", 1000, 0));
        // what is no figures is an error to who reads, and nobody's
        run.write_recorded(b"{}").unwrap();
        assert!(recording(&run).unwrap_err().to_string().contains("recorder"));
        scene.write(Lifetime::Short);
        scene.look(&mut late);
        assert_eq!(told(&run)[0], row("temp", "short", 2000, 0));
    }
}
