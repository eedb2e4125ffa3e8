//! The run: for each kernel one guest that goes through the stacks, another one if it hangs.

use std::collections::BTreeMap;
use std::fs;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::apt::Apt;
use crate::kernel::{self, Kernel};
use crate::matrix::{self, Cell, Column, Tally};
use crate::qemu::{self, End};
use crate::stacks::{self, STACKS, Stack};
use crate::store::{Outcome, Store, fingerprint};
use crate::tools::Tools;
use crate::{Options, guest, now};

/// The kernels of the quick lab: one before ext4's writeback carries hints, and the newest.
const QUICK: [&str; 2] = ["6.12", "newest"];

/// Runs what is asked for; true if every cell agrees.
pub fn run(options: &Options) -> Result<bool> {
    let stacks = chosen(options)?;
    let folder = std::path::absolute(&options.folder)?;
    fs::create_dir_all(folder.join("images"))?;
    let apt = Apt::open(&folder.join("apt"), options.refresh)?;
    let tools = Tools::open(&apt, &folder.join("tools"), false)?;
    let stripped = folder.join("shelflife");
    guest::stripped(&options.shelflife, &stripped)?;
    let store = Store::open(&folder.join("results"), build(&stripped)?);
    let lab = Lab { folder, apt, tools, stripped, store };

    let mut series = options.kernel.clone();
    if series.is_empty() && options.package.is_empty() {
        let all: &[&str] = if options.quick { &QUICK } else { &kernel::SERIES };
        series = all.iter().map(|s| (*s).to_owned()).collect();
    }
    let mut kernels = Vec::new();
    for series in &series {
        kernels.push(lab.of_series(series, options.refresh)?);
    }
    if !options.package.is_empty() {
        kernels.push(lab.of_packages(&options.package)?);
    }

    let mut progress = Progress::new(kernels.len() * stacks.len());
    let mut columns = Vec::new();
    for (kernel, packages) in &kernels {
        lab.run_on(kernel, &stacks, options.again, &mut progress)?;
        columns.push(lab.column(kernel, packages));
    }
    let tally = progress.tally;
    println!("{} cells agree, {} disagree, {} skipped", tally.agree, tally.disagree, tally.skipped);
    let full = !options.quick && options.stack.is_empty() && options.kernel.is_empty();
    if full {
        let (text, _) = matrix::document(&columns, &today()?, &lab.tools.emulator()?);
        fs::write(&options.matrix, text).with_context(|| options.matrix.display().to_string())?;
        println!("{} written", options.matrix.display());
    }
    Ok(tally.disagree == 0)
}

fn chosen(options: &Options) -> Result<Vec<&'static Stack>> {
    if options.stack.is_empty() {
        return Ok(STACKS.iter().filter(|s| !options.quick || s.quick).collect());
    }
    let find = |name: &String| match stacks::by_name(name) {
        Some(stack) => Ok(stack),
        None => bail!("no stack {name}; --list shows them"),
    };
    options.stack.iter().map(find).collect()
}

/// Names what results are made with: the program and the guest's scripts.
fn build(program: &Path) -> Result<String> {
    let program = fs::read(program).with_context(|| program.display().to_string())?;
    let scripts = guest::SCRIPTS.iter().map(|(_, text)| text.as_bytes());
    Ok(fingerprint(std::iter::once(program.as_slice()).chain(scripts)))
}

struct Lab {
    folder: PathBuf,
    apt: Apt,
    tools: Tools,
    stripped: PathBuf,
    store: Store,
}

impl Lab {
    /// The kernel of a series, which stays the same until a refresh is asked for.
    fn of_series(&self, series: &str, refresh: bool) -> Result<(Kernel, Vec<String>)> {
        let folder = self.folder.join("kernels").join(series);
        let list = folder.join("packages");
        if refresh || !list.exists() {
            let packages = kernel::choose(&self.apt, series)?;
            let names: String =
                packages.iter().map(|c| format!("{} {}\n", c.package, c.version)).collect();
            if fs::read_to_string(&list).is_ok_and(|known| known == names) {
                return self.of_series(series, false);
            }
            let files = self.apt.fetch(&packages)?;
            Kernel::unpack(&files, &folder, &self.tools)?;
            fs::write(&list, names)?;
        }
        let names = fs::read_to_string(&list)?;
        Ok((Kernel::open(&folder)?, names.lines().map(str::to_owned).collect()))
    }

    fn of_packages(&self, files: &[PathBuf]) -> Result<(Kernel, Vec<String>)> {
        let folder = self.folder.join("kernels/given");
        let kernel = Kernel::unpack(files, &folder, &self.tools)?;
        let name = |file: &PathBuf| file.file_name().map(|n| n.to_string_lossy().into_owned());
        Ok((kernel, files.iter().filter_map(name).collect()))
    }

    /// Runs the stacks that have no result yet.
    fn run_on(
        &self,
        kernel: &Kernel,
        stacks: &[&Stack],
        again: bool,
        progress: &mut Progress,
    ) -> Result<()> {
        let mut left = Vec::new();
        for stack in stacks {
            match self.store.find(&kernel.release, stack.name).filter(|_| !again) {
                Some(outcome) => progress.tell(&outcome, true),
                None => left.push(*stack),
            }
        }
        while !left.is_empty() {
            let before = left.len();
            self.one_guest(kernel, &mut left, progress)?;
            if left.len() == before {
                let said =
                    |name: &str| fs::read_to_string(self.folder.join(name)).unwrap_or_default();
                let (console, emulator) = (said("console"), said("console.qemu"));
                let last = console.lines().rev().take(5).collect::<Vec<_>>().join("\n");
                bail!("Linux {} did not get to its stacks:\n{emulator}{last}", kernel.release);
            }
        }
        Ok(())
    }

    /// Boots once and takes from `left` what got a result.
    fn one_guest(
        &self,
        kernel: &Kernel,
        left: &mut Vec<&Stack>,
        progress: &mut Progress,
    ) -> Result<()> {
        let initramfs = self.folder.join("initramfs");
        guest::write(&initramfs, &self.tools, kernel, &self.stripped, left)?;
        let mut current: Option<(Outcome, Instant)> = None;
        let mut heard = |line: &str| -> Result<bool> {
            if let Some(name) = line.strip_prefix("begin ") {
                let outcome = Outcome {
                    release: kernel.release.clone(),
                    stack: name.to_owned(),
                    build: self.store.build().to_owned(),
                    at: now()?,
                    seconds: 0,
                    failed: None,
                    skipped: None,
                    lines: Vec::new(),
                };
                current = Some((outcome, Instant::now()));
                return Ok(true);
            }
            if line.strip_prefix("end ").is_some() {
                if let Some((outcome, begun)) = current.take() {
                    left.retain(|s| s.name != outcome.stack);
                    progress.finish(outcome, begun, &self.store)?;
                }
                return Ok(true);
            }
            if let Some((outcome, _)) = &mut current {
                match line.split_once(' ') {
                    Some(("failed", why)) => outcome.failed = Some(why.to_owned()),
                    Some(("skipped", why)) => outcome.skipped = Some(why.to_owned()),
                    _ => outcome.lines.push(line.to_owned()),
                }
            }
            Ok(line != "done")
        };
        let console = self.folder.join("console");
        let images = self.folder.join("images");
        let end = qemu::boot(&self.tools, kernel, &initramfs, &images, &console, &mut heard)?;
        if let Some((mut outcome, begun)) = current.take() {
            let how = if end == End::Hung { "hung" } else { "ended" };
            outcome.failed = Some(format!("the guest {how} here"));
            left.retain(|s| s.name != outcome.stack);
            progress.finish(outcome, begun, &self.store)?;
        }
        Ok(())
    }

    fn column(&self, kernel: &Kernel, packages: &[String]) -> Column {
        let results: BTreeMap<String, Outcome> = STACKS
            .iter()
            .filter_map(|s| Some((s.name.to_owned(), self.store.find(&kernel.release, s.name)?)))
            .collect();
        Column { release: kernel.release.clone(), packages: packages.to_vec(), results }
    }
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
