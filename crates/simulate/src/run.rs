//! From a request to its report.
//!
//! Invariant: drives and hints are checked before the first simulation begins; simulations share
//! nothing but the trace's file table.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use shelflife_ssd::{
    Age, Config, Hints, Op, Outcome, PRECONDITION_CLASS, Plan, Precondition, Sizes, Space,
    Workload, steady, sweep,
};
use shelflife_trace::Trace;

use crate::Error;
use crate::hinting::Hinting;
use crate::replay::{Filled, Lookup, Looped, Replay};
use crate::report::{ClassShare, Report, Row};
use crate::size::{Pages, Size, Sized};
use crate::target::Target;
use crate::touched::Touched;

/// Windows of the measured part.
const WINDOWS: u64 = 16;
/// Batches between two words about progress.
const QUIET_BATCHES: u32 = 64;

/// What is written.
pub enum Source {
    /// A synthetic workload.
    Synthetic(Synthetic),
    /// A trace.
    Recorded(Box<Recorded>),
}

/// A synthetic workload, with each of several hints.
#[derive(Clone, Debug)]
pub struct Synthetic {
    /// As [`shelflife_ssd::Synthetic::parse`] has it.
    pub text: String,
    /// Pages it writes to.
    pub pages: u32,
    /// How often it writes as many pages as there are; the second half is measured.
    pub overwrites: u64,
    /// Seed.
    pub seed: u64,
    /// Its hints; none for the usual ones: exact where there are two classes.
    pub hints: Vec<Hints>,
}

/// A trace, under each of several hints.
pub struct Recorded {
    /// The trace.
    pub trace: Trace,
    /// Who gives the hints; none for `off`, and `recorded` if there are any.
    pub hintings: Vec<Hinting>,
    /// Whether to begin again and again until write amplification is steady.
    pub repeat: bool,
}

impl From<Synthetic> for Source {
    fn from(synthetic: Synthetic) -> Source {
        Source::Synthetic(synthetic)
    }
}

impl From<Recorded> for Source {
    fn from(recorded: Recorded) -> Source {
        Source::Recorded(Box::new(recorded))
    }
}

/// On what it is simulated.
#[derive(Clone, Debug)]
pub struct Request {
    /// The drives.
    pub targets: Vec<Target>,
    /// How they are sized. Synthetic workloads have no size but their pages: to them drives are
    /// scaled, to 100 % if not said; [`Size::Live`] is an error.
    pub size: Size,
    /// Memory that may be used, if there is a limit.
    pub memory_bytes: Option<u64>,
}

/// How far it is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Events of the trace looked through, before simulations begin.
    pub events: u64,
    /// Simulations done.
    pub done: usize,
    /// Simulations in all; 0 before they begin.
    pub of: usize,
    /// Operations simulated so far, of all.
    pub operations: u64,
}

/// A drive that is ready.
struct Ready {
    name: String,
    config: Config,
    sizes: Sizes,
    /// Pages that are filled first.
    fill: u32,
    /// The trace's pages, if they are moved together.
    moved: Option<Arc<Touched>>,
}

/// Simulates all combinations on all processors.
///
/// # Errors
///
/// Whatever is wrong with the request, or the trace cannot be read.
pub fn simulate(
    source: &Source,
    request: &Request,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Report, Error> {
    match source {
        Source::Synthetic(synthetic) => synthetic.simulate(request, progress),
        Source::Recorded(recorded) => recorded.simulate(request, progress),
    }
}

impl Synthetic {
    /// The names of its classes, the first being class 0.
    fn classes(&self) -> &'static [&'static str] {
        match self.text.split(':').next() {
            Some("hotcold") => &["hot", "cold"],
            Some("log+random") => &["log", "random"],
            _ => &["all"],
        }
    }

    fn simulate(
        &self,
        request: &Request,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<Report, Error> {
        let one_class = self.classes().len() == 1;
        if one_class && self.hints.iter().any(|hints| *hints != Hints::Off) {
            return Err(Error::OneClass(self.text.clone()));
        }
        let hints = match self.hints.as_slice() {
            [] if one_class => &[Hints::Off],
            [] => &[Hints::Exact],
            hints => hints,
        };
        let parse =
            |hints| shelflife_ssd::Synthetic::parse(&self.text, self.pages, hints, self.seed);
        let workloads: Result<Vec<_>, _> = hints.iter().map(|hints| parse(*hints)).collect();
        let workloads = workloads?;
        let size = match request.size {
            Size::Fit(share) => Size::Fit(share),
            Size::Live(_) => return Err(Error::LiveWorkload),
            Size::Own | Size::Recorded => Size::Fit(100.0),
        };
        let mut drives = Vec::new();
        for target in &request.targets {
            let Sized { config, sizes, fill, .. } = size.of(
                target,
                Pages { written: self.pages.into(), alive: self.pages.into() },
                None,
            )?;
            drives.push(Ready { name: target.name(), config, sizes, fill, moved: None });
        }
        let half = self.overwrites.saturating_mul(self.pages.into()).div_ceil(2).max(1);
        let plan = Plan {
            precondition: Precondition::None,
            age: Age::Pages(half.saturating_add(self.pages.into())),
            count: Some(half),
            window_pages: (half / WINDOWS).max(1),
        };
        let names: Vec<String> = hints.iter().map(said).collect();
        let one = |hints: usize, drive: &Ready, watch: &Watch<'_>| {
            // The first pass writes each page with the hint of its later writes.
            let workload = workloads[hints].clone().with_first_pass();
            shelflife_ssd::simulate(&drive.config, &plan, &mut watch.over(workload))
        };
        let rows = all(&names, &drives, self.classes(), request.memory_bytes, progress, &one)?;
        Ok(Report { workload: self.text.clone(), notes: Vec::new(), rows })
    }
}

/// Hints as they are given on the command line.
fn said(hints: &Hints) -> String {
    match hints {
        Hints::Exact => "exact".to_owned(),
        Hints::Off => "off".to_owned(),
        Hints::Flip(chance) => format!("flip:{chance}"),
    }
}

impl Recorded {
    fn simulate(
        &self,
        request: &Request,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<Report, Error> {
        let files = self.trace.files();
        let (classes, class_names) = Lookup::classes(files);
        let mut lifetimes = Vec::new();
        for hinting in &self.hintings {
            lifetimes.push(hinting.by_file(files)?);
        }
        let mut touched: BTreeMap<u32, Arc<Touched>> = BTreeMap::new();
        let seen = |events| {
            progress(Progress { events, done: 0, of: 0, operations: 0 });
            true
        };
        let mut drives = Vec::new();
        for target in &request.targets {
            let page_bytes = target.page_bytes();
            let touched = match touched.get(&page_bytes) {
                Some(touched) => Arc::clone(touched),
                None => {
                    let read = Arc::new(Touched::read(&self.trace, page_bytes, &seen)?);
                    touched.insert(page_bytes, Arc::clone(&read));
                    read
                }
            };
            drives.push(self.ready(target, touched, request.size)?);
        }
        let hinted = touched.values().any(|touched| touched.hinted);
        let mut names: Vec<String> =
            self.hintings.iter().map(|hinting| hinting.name().to_owned()).collect();
        if !hinted && self.hintings.iter().any(|hinting| matches!(hinting, Hinting::Recorded)) {
            return Err(Error::NoHints);
        }
        if names.is_empty() {
            names.push("off".to_owned());
            lifetimes.push(Hinting::Off.by_file(files)?);
            if hinted {
                names.push("recorded".to_owned());
                lifetimes.push(None);
            }
        }
        let one = |hints: usize, drive: &Ready, watch: &Watch<'_>| {
            let lookup = Arc::new(Lookup {
                classes: classes.clone(),
                lifetimes: lifetimes[hints].clone(),
                page_bytes: drive.config.geometry.page_bytes,
                logical_pages: drive.sizes.logical_pages,
                moved: drive.moved.clone(),
            });
            let written =
                touched.get(&drive.config.geometry.page_bytes).map_or(1, |touched| touched.written);
            let plan = self.plan(drive, written);
            let replay = || Ok(Replay::new(&self.trace, Arc::clone(&lookup)));
            if self.repeat {
                let filled = Filled::new(drive.fill, Looped::new(replay)?);
                shelflife_ssd::simulate(&drive.config, &plan, &mut watch.over(filled))
            } else {
                let filled = Filled::new(drive.fill, replay()?);
                shelflife_ssd::simulate(&drive.config, &plan, &mut watch.over(filled))
            }
        };
        let rows = all(&names, &drives, &class_names, request.memory_bytes, progress, &one)?;
        let mut notes: Vec<String> = self.trace.notes().iter().map(ToString::to_string).collect();
        if let (Size::Recorded, Some(usage)) = (request.size, self.trace.meta().usage) {
            notes.push(format!(
                "drives are scaled to the recorded file system: {} MiB, of which {:.1} % in use",
                usage.bytes >> 20,
                usage.used_bytes as f64 * 100.0 / usage.bytes.max(1) as f64
            ));
        }
        Ok(Report { workload: self.trace.folder().display().to_string(), notes, rows })
    }

    /// The drive for this trace.
    fn ready(&self, target: &Target, touched: Arc<Touched>, size: Size) -> Result<Ready, Error> {
        let usage = self.trace.meta().usage;
        let Sized { mut config, sizes, fill, moved } =
            size.of(target, Pages { written: touched.pages, alive: touched.alive }, usage)?;
        config.recorded_on_f2fs = self.trace.meta().file_system.as_deref() == Some("f2fs");
        // Both end below 2^32: the one was checked when it was read, the other with the drive.
        let end = if moved { touched.pages } else { touched.end };
        if end > sizes.logical_pages {
            return Err(Error::LargerThanDrive {
                end,
                drive: target.name(),
                logical_pages: sizes.logical_pages,
            });
        }
        let moved = moved.then_some(touched);
        Ok(Ready { name: target.name(), config, sizes, fill, moved })
    }

    /// Once: all of the trace is measured. Repeated: whole passes, so that each window holds every
    /// part of the trace, and windows so long that a full drive cannot seem steady before its
    /// spare is used up.
    fn plan(&self, drive: &Ready, written: u64) -> Plan {
        let fill = u64::from(drive.fill);
        if !self.repeat {
            return Plan {
                precondition: Precondition::None,
                age: Age::Pages(fill),
                count: None,
                window_pages: (written / WINDOWS).max(1),
            };
        }
        let space = match drive.config.geometry.space {
            Space::Physical { pages, .. } => pages,
            _ => drive.sizes.physical_pages,
        };
        let window_pages = (space / 2).div_ceil(written).max(1).saturating_mul(written);
        let side = 2 * steady::SIDE as u64;
        Plan {
            precondition: Precondition::None,
            age: Age::UntilSteady { at_most: fill + window_pages.saturating_mul(8 * side) },
            count: Some(window_pages.saturating_mul(side)),
            window_pages,
        }
    }
}

/// Counts operations on their way.
struct Watch<'a> {
    operations: &'a AtomicU64,
    tell: &'a (dyn Fn() + Sync),
}

struct Watched<'a, W> {
    workload: W,
    watch: &'a Watch<'a>,
    batches: u32,
    operations: u64,
}

impl<'a> Watch<'a> {
    fn over<W>(&'a self, workload: W) -> Watched<'a, W> {
        Watched { workload, watch: self, batches: 0, operations: 0 }
    }
}

impl<W: Workload> Workload for Watched<'_, W> {
    fn read(&mut self, ops: &mut Vec<Op>) -> Result<(), shelflife_ssd::Error> {
        let before = ops.len();
        self.workload.read(ops)?;
        self.operations += (ops.len() - before) as u64;
        self.batches += 1;
        if self.batches == QUIET_BATCHES {
            self.watch.operations.fetch_add(self.operations, Ordering::Relaxed);
            (self.watch.tell)();
            (self.batches, self.operations) = (0, 0);
        }
        Ok(())
    }
}

/// One simulation: number of the hints, the drive.
type One<'a> =
    dyn Fn(usize, &Ready, &Watch<'_>) -> Result<Outcome, shelflife_ssd::Error> + Sync + 'a;

/// All combinations, side by side as far as memory allows.
fn all(
    hints: &[String],
    drives: &[Ready],
    classes: &[&str],
    memory_bytes: Option<u64>,
    progress: &(dyn Fn(Progress) + Sync),
    one: &One<'_>,
) -> Result<Vec<Row>, Error> {
    let largest = drives.iter().map(needs).max().unwrap_or(0).max(1);
    let mut threads = rayon::current_num_threads();
    if let Some(available) = memory_bytes {
        if let Some(drive) = drives.iter().find(|drive| needs(drive) > available) {
            return Err(Error::Memory {
                drive: drive.name.clone(),
                needs_mib: needs(drive) >> 20,
                available_mib: available >> 20,
            });
        }
        threads = threads.min((available / largest) as usize).max(1);
    }
    let of = hints.len() * drives.len();
    let (done, operations) = (AtomicUsize::new(0), AtomicU64::new(0));
    let tell = || {
        progress(Progress {
            events: 0,
            done: done.load(Ordering::Relaxed),
            of,
            operations: operations.load(Ordering::Relaxed),
        });
    };
    let watch = Watch { operations: &operations, tell: &tell };
    let job = |i: usize| one(i / drives.len(), &drives[i % drives.len()], &watch);
    let ended = |_| {
        done.fetch_add(1, Ordering::Relaxed);
        tell();
    };
    let found = match rayon::ThreadPoolBuilder::new().num_threads(threads).build() {
        Ok(pool) => pool.install(|| sweep(of, job, ended)),
        // No more threads to be had: on this one.
        Err(_) => (0..of).map(|i| (job(i), ended(i)).0).collect(),
    };
    let mut rows = Vec::with_capacity(of);
    for (i, outcome) in found.into_iter().enumerate() {
        let drive = &drives[i % drives.len()];
        let one = |source| Error::OneDrive { drive: drive.name.clone(), source };
        let outcome = outcome.map_err(one)?;
        let share = |share: &shelflife_ssd::Share| ClassShare {
            class: match classes.get(share.id as usize) {
                Some(name) => (*name).to_owned(),
                None if share.id == u32::from(PRECONDITION_CLASS) => "before".to_owned(),
                None => share.id.to_string(),
            },
            host_pages: share.host_pages,
            copied_pages: share.copied_pages,
        };
        rows.push(Row {
            policy: hints[i / drives.len()].clone(),
            drive: drive.name.clone(),
            per_class: outcome.per_class.iter().map(share).collect(),
            outcome,
        });
    }
    Ok(rows)
}

/// About how much memory a simulation takes: four bytes per logical page, and four, a bit and a
/// class per physical one. Addresses of a unit begin at a multiple of a power of two.
fn needs(drive: &Ready) -> u64 {
    let ru_pages = drive.sizes.ru_pages;
    let addresses = f64::from(ru_pages.next_power_of_two().max(64)) / f64::from(ru_pages);
    let physical = drive.sizes.physical_pages as f64 * addresses * 5.25;
    drive.sizes.logical_pages.saturating_mul(4).saturating_add(physical as u64)
}

#[cfg(test)]
mod tests;
