//! The run: for each kernel one guest that goes through the stacks, another one if it hangs.

use std::collections::BTreeMap;
use std::fs;
use std::io::IsTerminal;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::batch::{self, Work};
use crate::kernel::{self, Kernel};
use crate::lab::Lab;
use crate::listen::{Listener, lock};
use crate::matrix::{self, Cell, Column, Tally};
use crate::qemu::{self, Disks, Seat};
use crate::stacks::{self, STACKS, Stack};
use crate::store::{Outcome, Store, fingerprint};
use crate::{Common, StacksOptions, guest};

/// The kernels of the quick lab: one before ext4's writeback carries hints, and the newest.
const QUICK: [&str; 2] = ["6.12", "newest"];

/// The longest that the quick lab's guests may take: it must not hold up those who wait for it.
const QUICK_TIME: Duration = Duration::from_secs(15 * 60);

/// Runs what is asked for; true if every cell agrees.
pub fn run(common: &Common, options: &StacksOptions) -> Result<bool> {
    let stacks = chosen(options)?;
    let lab = Lab::open(common, false)?;
    let store = store(&lab)?;

    let mut series = options.kernel.clone();
    if series.is_empty() && options.package.is_empty() {
        let all: &[&str] = if options.quick { &QUICK } else { &kernel::SERIES };
        series = all.iter().map(|s| (*s).to_owned()).collect();
    }
    let mut kernels = Vec::new();
    for series in &series {
        kernels.push(lab.kernel(series)?);
    }
    if !options.package.is_empty() {
        kernels.push(lab.kernel_of(&options.package)?);
    }

    let end = options.quick.then(|| Instant::now() + QUICK_TIME);
    let run = Run { lab, store, end };
    let progress = Mutex::new(Progress::new(kernels.len() * stacks.len()));
    run.all(&kernels, &stacks, options.again, &progress)?;
    let columns: Vec<Column> =
        kernels.iter().map(|(kernel, packages)| run.column(kernel, packages)).collect();
    let tally = lock(&progress).tally;
    println!("{} cells agree, {} disagree, {} skipped", tally.agree, tally.disagree, tally.skipped);
    if !options.quick && options.stack.is_empty() && options.kernel.is_empty() {
        run.write(&columns, &options.matrix)?;
    }
    Ok(tally.disagree == 0)
}

/// Writes the matrix of all results of these scripts, whatever program was asked.
pub fn matrix(common: &Common, to: &Path) -> Result<bool> {
    let lab = Lab::open(common, false)?;
    let kernels: Vec<_> =
        kernel::SERIES.iter().map(|series| lab.kernel(series)).collect::<Result<_>>()?;
    let run = Run { store: store(&lab)?, lab, end: None };
    let columns: Vec<Column> =
        kernels.iter().map(|(kernel, packages)| run.column(kernel, packages)).collect();
    run.write(&columns, to)
}

/// The results of these scripts and this program.
fn store(lab: &Lab) -> Result<Store> {
    let program = fs::read(&lab.program).with_context(|| lab.program.display().to_string())?;
    let scripts = fingerprint(guest::WATCHERS.map(str::as_bytes));
    Ok(Store::open(&lab.folder.join("results"), scripts, fingerprint([program.as_slice()])))
}

fn chosen(options: &StacksOptions) -> Result<Vec<&'static Stack>> {
    if options.stack.is_empty() {
        return Ok(STACKS.iter().filter(|s| !options.quick || s.quick).collect());
    }
    let find = |name: &String| match stacks::by_name(name) {
        Some(stack) => Ok(stack),
        None => bail!("no stack {name}; `lab list` shows them"),
    };
    options.stack.iter().map(find).collect()
}

/// One run.
struct Run {
    lab: Lab,
    store: Store,
    /// When it has to be over.
    end: Option<Instant>,
}

impl Run {
    /// Runs the stacks on all kernels, as many guests at a time as the machine has room for.
    fn all(
        &self,
        kernels: &[(Kernel, Vec<String>)],
        stacks: &[&'static Stack],
        again: bool,
        progress: &Mutex<Progress>,
    ) -> Result<()> {
        let next = AtomicUsize::new(0);
        let next = &next;
        std::thread::scope(|scope| {
            let worker = |n| {
                scope.spawn(move || -> Result<()> {
                    let seat = self.lab.seat(n)?;
                    while let Some((kernel, _)) = kernels.get(next.fetch_add(1, Relaxed)) {
                        self.on(kernel, &seat, stacks, again, progress)?;
                    }
                    Ok(())
                })
            };
            let workers: Vec<_> = (1..=qemu::at_a_time().min(kernels.len())).map(worker).collect();
            let ends = workers.into_iter().map(|worker| match worker.join() {
                Ok(end) => end,
                Err(_) => bail!("a guest's runner ended in a panic"),
            });
            // each is waited for, whatever the others did
            ends.collect::<Vec<Result<()>>>().into_iter().collect()
        })
    }

    /// Runs the stacks that have no result yet.
    fn on(
        &self,
        kernel: &Kernel,
        seat: &Seat,
        stacks: &[&'static Stack],
        again: bool,
        progress: &Mutex<Progress>,
    ) -> Result<()> {
        let mut left: Vec<Work> = Vec::new();
        for stack in stacks {
            match self.store.find(&kernel.release, stack.name).filter(|_| !again) {
                Some(outcome) if self.store.is_whole(&outcome) => {
                    lock(progress).tell(&outcome, true);
                }
                known => left.push(Work { stack, known }),
            }
        }
        while !left.is_empty() {
            let before = todo(&left);
            self.one_guest(kernel, seat, &mut left, progress)?;
            if todo(&left) == before {
                let said = seat.last_words();
                bail!("Linux {} did not get to its stacks:\n{said}", kernel.release);
            }
        }
        Ok(())
    }

    /// Boots once and takes from `left` what got a result.
    fn one_guest(
        &self,
        kernel: &Kernel,
        seat: &Seat,
        left: &mut Vec<Work>,
        progress: &Mutex<Progress>,
    ) -> Result<()> {
        let longest = match self.end {
            None => qemu::LONGEST,
            Some(end) => match end.saturating_duration_since(Instant::now()) {
                Duration::ZERO => bail!(
                    "Linux {}: time is up with {} stacks to go; `lab stacks` goes on from there",
                    kernel.release,
                    left.len()
                ),
                time => time,
            },
        };
        let mut archive = guest::begin(&seat.initramfs(), &self.lab, kernel, guest::STACKS)?;
        archive.file(Path::new("lab/stacks"), 0o644, batch::list(left).as_bytes())?;
        archive.finish()?;
        let mut listener = Listener {
            store: &self.store,
            kernel,
            progress,
            left,
            current: None,
            batch: Vec::new(),
        };
        let heard = |line: &str| listener.hear(line);
        let end = qemu::boot(&self.lab, seat, kernel, Disks::Fresh, longest, heard)?;
        listener.over(&end)
    }

    /// Writes the matrix; true if no cell disagrees.
    fn write(&self, columns: &[Column], to: &Path) -> Result<bool> {
        let (text, tally) = matrix::document(columns, &today()?, &self.lab.tools.emulator()?);
        fs::write(to, text).with_context(|| to.display().to_string())?;
        println!("{} written", to.display());
        Ok(tally.disagree == 0)
    }

    fn column(&self, kernel: &Kernel, packages: &[String]) -> Column {
        let results: BTreeMap<String, Outcome> = STACKS
            .iter()
            .filter_map(|s| Some((s.name.to_owned(), self.store.find(&kernel.release, s.name)?)))
            // of a run that was stopped: the program was not asked yet
            .filter(|(_, outcome)| outcome.skipped.is_some() || !outcome.said.lines.is_empty())
            .collect();
        Column { release: kernel.release.clone(), packages: packages.to_vec(), results }
    }
}

/// How many stacks have no result, and of how many nothing is known.
fn todo(left: &[Work]) -> (usize, usize) {
    (left.len(), left.iter().filter(|w| w.known.is_none()).count())
}

/// Tells each result as it comes, with what is left to do.
pub struct Progress {
    tally: Tally,
    all: usize,
    done: usize,
    fresh: usize,
    begun: Instant,
}

impl Progress {
    /// Of so many cells.
    pub fn new(all: usize) -> Progress {
        Progress { tally: Tally::default(), all, done: 0, fresh: 0, begun: Instant::now() }
    }

    /// Keeps a result and tells it.
    pub fn finish(&mut self, outcome: &Outcome, store: &Store) -> Result<()> {
        store.keep(outcome)?;
        self.fresh += 1;
        self.tell(outcome, false);
        Ok(())
    }

    /// Tells something else.
    pub fn note(&self, text: &str) {
        println!("{text}");
    }

    fn tell(&mut self, outcome: &Outcome, known: bool) {
        self.done += 1;
        let cell: Cell = matrix::cell(Some(outcome));
        cell.count(&mut self.tally);
        let time = if known { "known".to_owned() } else { format!("{} s", outcome.seconds) };
        println!(
            "[{}/{}] {} {}: {} ({time})",
            self.done,
            self.all,
            matrix::short(&outcome.release),
            outcome.stack,
            cell.line()
        );
        if self.fresh > 0 && std::io::stderr().is_terminal() {
            let each = self.begun.elapsed().as_secs_f64() / self.fresh as f64;
            let minutes = each * (self.all - self.done) as f64 / 60.0;
            eprint!("about {minutes:.0} min to go\r");
        }
    }
}

/// Today as `30 Nov 2026`.
fn today() -> Result<String> {
    let mut date = std::process::Command::new("date");
    Ok(crate::command::output(date.args(["-u", "+%-d %b %Y"]).env("LC_ALL", "C"))?
        .trim()
        .to_owned())
}
