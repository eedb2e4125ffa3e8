//! The run: for each kernel one guest that goes through the stacks, another one if it hangs.

use std::collections::BTreeMap;
use std::fs;
use std::io::IsTerminal;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::kernel::{self, Kernel};
use crate::lab::Lab;
use crate::matrix::{self, Cell, Column, Tally};
use crate::qemu::{self, Disks, End};
use crate::stacks::{self, STACKS, Stack};
use crate::store::{Outcome, Part, Store, fingerprint};
use crate::{Common, StacksOptions, guest, now};

/// The kernels of the quick lab: one before ext4's writeback carries hints, and the newest.
const QUICK: [&str; 2] = ["6.12", "newest"];

/// Runs what is asked for; true if every cell agrees.
pub fn run(common: &Common, options: &StacksOptions) -> Result<bool> {
    let stacks = chosen(options)?;
    let lab = Lab::open(common, false)?;
    let run = Run { store: store(&lab)?, lab };

    let mut series = options.kernel.clone();
    if series.is_empty() && options.package.is_empty() {
        let all: &[&str] = if options.quick { &QUICK } else { &kernel::SERIES };
        series = all.iter().map(|s| (*s).to_owned()).collect();
    }
    let mut kernels = Vec::new();
    for series in &series {
        kernels.push(run.lab.kernel(series)?);
    }
    if !options.package.is_empty() {
        kernels.push(run.lab.kernel_of(&options.package)?);
    }

    let mut progress = Progress::new(kernels.len() * stacks.len());
    let mut columns = Vec::new();
    for (kernel, packages) in &kernels {
        run.on(kernel, &stacks, options.again, &mut progress)?;
        columns.push(run.column(kernel, packages));
    }
    let tally = progress.tally;
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
    let run = Run { store: store(&lab)?, lab };
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
        None => bail!("no stack {name}; --list shows them"),
    };
    options.stack.iter().map(find).collect()
}

/// One stack to run on a kernel.
pub struct Work {
    /// Which.
    pub stack: &'static Stack,
    /// What is known of it but for what the program under test says.
    pub known: Option<Outcome>,
}

/// One run.
struct Run {
    lab: Lab,
    store: Store,
}

impl Run {
    /// Runs the stacks that have no result yet.
    fn on(
        &self,
        kernel: &Kernel,
        stacks: &[&'static Stack],
        again: bool,
        progress: &mut Progress,
    ) -> Result<()> {
        let mut left: Vec<Work> = Vec::new();
        for stack in stacks {
            match self.store.find(&kernel.release, stack.name).filter(|_| !again) {
                Some(outcome) if self.store.is_whole(&outcome) => progress.tell(&outcome, true),
                known => left.push(Work { stack, known }),
            }
        }
        while !left.is_empty() {
            let before = left.len();
            self.one_guest(kernel, &mut left, progress)?;
            if left.len() == before {
                let said = self.lab.last_words();
                bail!("Linux {} did not get to its stacks:\n{said}", kernel.release);
            }
        }
        Ok(())
    }

    /// Boots once and takes from `left` what got a result.
    fn one_guest(
        &self,
        kernel: &Kernel,
        left: &mut Vec<Work>,
        progress: &mut Progress,
    ) -> Result<()> {
        let initramfs = self.lab.folder.join("initramfs");
        let mut archive = guest::begin(&initramfs, &self.lab, kernel, guest::STACKS)?;
        archive.file(Path::new("lab/stacks"), 0o644, rows(left).as_bytes())?;
        if self.lab.proves {
            archive.file(Path::new("lab/proves"), 0o644, b"")?;
        }
        archive.finish()?;
        let mut current: Option<(Outcome, Instant)> = None;
        let mut heard = |line: &str| -> Result<bool> {
            if let Some(name) = line.strip_prefix("begin ") {
                let known =
                    left.iter().find(|w| w.stack.name == name).and_then(|w| w.known.clone());
                let seen = known.map(|k| k.seen).unwrap_or_default();
                let outcome = Outcome {
                    release: kernel.release.clone(),
                    stack: name.to_owned(),
                    at: now()?,
                    seconds: 0,
                    failed: None,
                    skipped: None,
                    seen: Part { build: self.store.scripts.clone(), ..seen },
                    said: Part { build: self.store.program.clone(), lines: Vec::new() },
                    proves: self.lab.proves,
                };
                current = Some((outcome, Instant::now()));
                return Ok(true);
            }
            if line.strip_prefix("end ").is_some() {
                if let Some((outcome, begun)) = current.take() {
                    left.retain(|w| w.stack.name != outcome.stack);
                    progress.finish(outcome, begun, &self.store)?;
                }
                return Ok(true);
            }
            if let Some((outcome, _)) = &mut current {
                match line.split_once(' ') {
                    Some(("failed", why)) => outcome.failed = Some(why.to_owned()),
                    Some(("skipped", why)) => outcome.skipped = Some(why.to_owned()),
                    Some(("said", answer)) => outcome.said.lines.push(answer.to_owned()),
                    _ => outcome.seen.lines.push(line.to_owned()),
                }
            }
            Ok(line != "done")
        };
        let end = qemu::boot(&self.lab, kernel, &initramfs, Disks::Fresh, &mut heard)?;
        if let Some((mut outcome, begun)) = current.take() {
            let how = if end == End::Hung { "hung" } else { "ended" };
            outcome.failed = Some(format!("the guest {how} here"));
            left.retain(|w| w.stack.name != outcome.stack);
            progress.finish(outcome, begun, &self.store)?;
        }
        Ok(())
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
            .collect();
        Column { release: kernel.release.clone(), packages: packages.to_vec(), results }
    }
}

/// The guest's list: name, device, layer, file system, options, and whether all is to be done or only
/// the program to be asked.
fn rows(work: &[Work]) -> String {
    work.iter()
        .map(|w| {
            let (s, what) = (w.stack, if w.known.is_some() { "ask" } else { "all" });
            let medium = s.medium.word();
            format!("{} {medium} {} {} {} {what}\n", s.name, s.layer, s.filesystem, s.options)
        })
        .collect()
}

/// Tells each result as it comes, with what is left to do.
struct Progress {
    tally: Tally,
    all: usize,
    done: usize,
    fresh: usize,
    begun: Instant,
}

impl Progress {
    fn new(all: usize) -> Progress {
        Progress { tally: Tally::default(), all, done: 0, fresh: 0, begun: Instant::now() }
    }

    fn finish(&mut self, mut outcome: Outcome, begun: Instant, store: &Store) -> Result<()> {
        outcome.seconds = begun.elapsed().as_secs();
        store.keep(&outcome)?;
        self.fresh += 1;
        self.tell(&outcome, false);
        Ok(())
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
