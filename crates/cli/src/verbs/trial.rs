//! `trial`: policies compared on a real server.

use std::cmp::Reverse;
use std::io::{BufRead, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use indicatif::ProgressBar;
use serde_json::json;
use shelflife_control::Registry;
use shelflife_page::{TrialPage, check, trial, write};
use shelflife_postgres::{Cancel, Dsn};
use shelflife_report::{Table, bytes, count, duration, figure, percent, plain};
use shelflife_run::Hook;
use shelflife_trace::Volume;
use shelflife_trial::filesystem::{Kind, Wanted};
use shelflife_trial::machine::Mount;
use shelflife_trial::record::{CounterSource, DeviceFacts, Header, Round};
use shelflife_trial::{
    ArmFigures, Error, Estimate, Observer, Options, Outcome, Phase, Place, Preset, Primary,
    Progress, Recording, Results, Spec, Wishes, idea, resume,
};

use crate::args::{PresetArg, TrialArgs};
use crate::done::{Done, Failure, NO, NOT_HERE};
use crate::progress::share_bar;
use crate::stop::{INTERRUPTED, on_signals};
use crate::verbs::trial_simulated;

pub fn run(args: &TrialArgs) -> Result<Done, Failure> {
    let stop = on_signals()?;
    if let Some(path) = &args.html {
        check(path)?;
    }
    if let Some(path) = &args.read {
        let results = Results::read(path).map_err(failure)?;
        let outcome = results.outcome().map_err(failure)?;
        return shown(args, &results, &outcome, &stop);
    }
    let mut options = Options {
        dir: PathBuf::new(),
        place: place(args)?,
        bindir: args.pg_bindir.clone(),
        keep: args.keep,
        record: recording(args),
        cancel: Cancel::new(Arc::clone(&stop)),
    };
    let mut watcher = Watcher::new(args, Arc::clone(&stop));
    let done = if let Some(dir) = &args.resume {
        options.dir.clone_from(dir);
        resume(&options, &mut watcher)
    } else {
        let spec = Spec::new(&wishes(args)).map_err(failure)?;
        options.dir = folder(args)?;
        shelflife_trial::run(&spec, &options, &mut watcher)
    };
    watcher.bar.finish_and_clear();
    match done {
        Ok(outcome) => {
            let results = Results::read(&options.dir).map_err(failure)?;
            shown(args, &results, &outcome, &stop)
        }
        Err(error) => Err(after(&options, failure(error))),
    }
}

fn recording(args: &TrialArgs) -> Option<Recording> {
    let (dir, optional) = match (&args.record, &args.try_record) {
        (Some(dir), _) => (dir, false),
        (None, Some(dir)) => (dir, true),
        (None, None) => return None,
    };
    Some(Recording { dir: dir.clone(), optional })
}

/// What there is after an early end.
fn after(options: &Options, failure: Failure) -> Failure {
    let Ok(results) = Results::read(&options.dir) else { return failure };
    let code = failure.code;
    let error = failure.error.context(format!(
        "the trial ended early; its rounds are in {}, and `shelflife trial --resume {}` goes on",
        results.path.display(),
        options.dir.display()
    ));
    Failure { code, error }
}

pub fn failure(error: Error) -> Failure {
    use shelflife_postgres::Error as Server;
    let code = match &error {
        error if error.is_interrupted() => INTERRUPTED,
        Error::RoundsFail { .. } => NO,
        Error::Record(error) if error.is_denied() => NOT_HERE,
        Error::HintsRefused { .. }
        | Error::NoMeasure { .. }
        | Error::NotUnderHook { .. }
        | Error::Filesystem { .. }
        | Error::Postgres(
            Server::ProgramsNotFound { .. }
            | Server::ProgramMissing { .. }
            | Server::NotRoot { .. }
            | Server::UnsupportedVersion { .. },
        ) => NOT_HERE,
        _ => return error.into(),
    };
    Failure { code, error: error.into() }
}

fn wishes(args: &TrialArgs) -> Wishes {
    Wishes {
        preset: match args.preset {
            PresetArg::Standard => Preset::Standard,
            PresetArg::Quick => Preset::Quick,
            PresetArg::Classic => Preset::Classic,
        },
        policies: args.policies.clone(),
        scale: args.scale,
        clients: args.clients,
        jobs: args.jobs,
        seconds: args.seconds,
        rounds: args.rounds,
        rate: args.rate,
        seed: args.seed,
        scripts: args.script.clone(),
        settings: args.set.clone(),
        scenario: args.scenario.clone(),
        filesystem: kind(args).map(|kind| Wanted {
            kind,
            device: args.device.clone(),
            size: args.size,
            fill: args.fill,
            dirty: args.dirty,
            mount_options: args.mount_options.clone(),
        }),
    }
}

fn kind(args: &TrialArgs) -> Option<Kind> {
    args.fs.map(Kind::from)
}

fn place(args: &TrialArgs) -> Result<Place, Failure> {
    match (&args.dsn, &args.own_database) {
        (Some(dsn), Some(database)) => Ok(Place::Running {
            dsn: Dsn::parse(dsn)?.into(),
            database: database.clone(),
            registry: Registry::from_environment()?,
        }),
        _ => Ok(Place::Own { hook: Hook::find()?, user: args.user.clone() }),
    }
}

/// The folder that was named, or a new one on a real disk that any user can reach.
fn folder(args: &TrialArgs) -> Result<PathBuf, Failure> {
    use std::os::unix::fs::PermissionsExt;
    if let Some(dir) = &args.dir {
        return Ok(dir.clone());
    }
    let made = tempfile::Builder::new()
        .prefix("shelflife-trial-")
        .permissions(std::fs::Permissions::from_mode(0o755))
        .tempdir_in("/var/tmp")?;
    // The trial itself makes it, and removes it again if nothing comes of it.
    let path = made.path().to_owned();
    made.close()?;
    Ok(path)
}

fn shown(
    args: &TrialArgs,
    results: &Results,
    outcome: &Outcome,
    stop: &AtomicBool,
) -> Result<Done, Failure> {
    let (simulated, note) = trial_simulated::of(results, stop);
    let page = args.html.as_ref().map(|path| {
        let (simulated, note) = (simulated.as_ref(), note.as_deref());
        let page = trial(&TrialPage { results, outcome, simulated, note });
        write(&page, path).with_context(|| {
            format!(
                "no page; `shelflife trial --read {} --html FILE` makes it",
                results.path.display()
            )
        })
    });
    // what took so long is told all the same
    let failed = page.as_ref().and_then(|page| page.as_ref().err());
    let told = |done: Done| match failed {
        Some(error) => done.but(error),
        None => done,
    };
    if args.json {
        let done = Done::json(&json!({
            "outcome": outcome,
            "simulated": simulated,
            "results": results.path,
            "spec": results.header.spec,
            "machine": results.header.machine,
            "server": results.header.server,
        }))?;
        return Ok(told(done));
    }
    let mut text = format!("{}\n\n{}\n", plain(&outcome.answer), table(outcome));
    if let Some(table) = written(outcome) {
        text +=
            &format!("\nwritten to the devices for a transaction, and with which hint\n{table}\n");
    }
    if let Some(simulated) = &simulated {
        text += &format!("\n{}", trial_simulated::in_words(simulated));
    }
    let notes = outcome.notes.iter().chain(&note);
    let notes = notes.chain(simulated.iter().flat_map(|simulated| &simulated.notes));
    let notes: Vec<&String> = notes.collect();
    if !notes.is_empty() {
        text.push('\n');
        for note in notes {
            text += &format!("- {}\n", plain(&note.replace('\n', " ")));
        }
    }
    text += &format!("\n{}\n", setting(&results.header));
    if results.header.spec.preset == Preset::Classic {
        text += &format!("\n{}\n", aims(&results.header));
    }
    text += &format!("results: {}\n", results.path.display());
    if let (Some(path), None) = (&args.html, failed) {
        text += &format!("page: {}\n", path.display());
    }
    Ok(told(Done::text(text)))
}

fn table(outcome: &Outcome) -> Table {
    let quick = outcome.analysis.as_ref().is_none_or(|analysis| analysis.quick);
    let mut heads = vec![
        "arm",
        "rounds",
        "WAF",
        "tps",
        "mean ms",
        "p95 ms",
        "p99 ms",
        "WAL/tx",
        "temp/tx",
        "HOT",
        "change",
        "95 % interval",
    ];
    if !quick {
        heads.push("p");
    }
    let epochs = outcome.primary == Primary::Waf;
    if !epochs {
        heads.retain(|head| *head != "WAF");
    }
    let columns = heads.len();
    let mut table = Table::new(heads).right(1..columns);
    for (at, arm) in outcome.arms.iter().enumerate() {
        let comparison = outcome
            .analysis
            .as_ref()
            .and_then(|analysis| analysis.comparisons.iter().find(|c| c.arm == at));
        let estimate = comparison.and_then(|c| c.estimate);
        let interval = estimate.and_then(|e| e.interval).map(|interval| {
            format!("{} … {}", percent(interval.low_percent), percent(interval.high_percent))
        });
        let mut row = figures(arm, epochs);
        row.extend([
            estimate.map_or_else(String::new, |e| percent(e.percent)),
            interval.unwrap_or_default(),
        ]);
        if !quick {
            row.push(comparison.and_then(|c| c.p).map_or_else(String::new, |p| figure(p.holm)));
        }
        table.row(row);
    }
    table
}

/// A class with a smaller share of the bytes has no line of its own.
const SMALL_CLASS: f64 = 0.001;

/// Bytes by class and arm, and the hint that they had; `None` if they were not recorded. What is not
/// the server's is left out.
fn written(outcome: &Outcome) -> Option<Table> {
    let mut classes: Vec<(&str, u64)> = Vec::new();
    let server = |volume: &&Volume| volume.class != "outside";
    for volume in outcome.arms.iter().flat_map(|arm| &arm.blocks).filter(server) {
        match classes.iter_mut().find(|(class, _)| *class == volume.class) {
            Some((_, bytes)) => *bytes += volume.bytes,
            None => classes.push((&volume.class, volume.bytes)),
        }
    }
    if classes.is_empty() {
        return None;
    }
    classes.sort_by_key(|(_, bytes)| Reverse(*bytes));
    let heads = ["class"].into_iter().chain(outcome.arms.iter().map(|arm| arm.label.as_str()));
    let mut table = Table::new(heads).right(1..=outcome.arms.len());
    let sum: u64 = classes.iter().map(|(_, bytes)| bytes).sum();
    classes.retain(|(_, bytes)| *bytes as f64 >= sum as f64 * SMALL_CLASS);
    let all = |arm| each(arm, |volume| server(&volume), false);
    for (class, _) in classes {
        let of_arm = |arm: &ArmFigures| each(arm, |volume| volume.class == class, true);
        table.row([class.to_owned()].into_iter().chain(outcome.arms.iter().map(of_arm)));
    }
    table.row(["all".to_owned()].into_iter().chain(outcome.arms.iter().map(all)));
    Some(table)
}

/// Bytes for a transaction of an arm, and the hint that most of them had, with its share if it is
/// not that of nearly all.
fn each(arm: &ArmFigures, is_one: impl Fn(&Volume) -> bool, with_hint: bool) -> String {
    let volumes: Vec<&Volume> = arm.blocks.iter().filter(|volume| is_one(volume)).collect();
    let sum: u64 = volumes.iter().map(|volume| volume.bytes).sum();
    let Some(most) = volumes.iter().max_by_key(|volume| volume.bytes).filter(|_| sum > 0) else {
        return "-".to_owned();
    };
    let amount = bytes((sum as f64 / arm.transactions.max(1) as f64).round() as u64);
    let share = most.bytes as f64 / sum as f64;
    match (with_hint, share >= 0.995) {
        (false, _) => amount,
        (true, true) => format!("{amount} {}", most.hint),
        (true, false) => format!("{amount} {} {:.0} %", most.hint, share * 100.0),
    }
}

fn figures(arm: &ArmFigures, epochs: bool) -> Vec<String> {
    let shown = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), figure);
    let amount = |value: Option<f64>| {
        value.map_or_else(|| "-".to_owned(), |value| bytes(value.round() as u64))
    };
    let mut row = vec![arm.label.clone(), count(arm.rounds as u64)];
    if epochs {
        row.push(arm.waf.map_or_else(|| "-".to_owned(), |waf| format!("{waf:.3}")));
    }
    row.extend([
        shown(arm.tps),
        shown(arm.latency_ms),
        shown(arm.p95_ms),
        shown(arm.p99_ms),
        amount(arm.wal_per_transaction),
        amount(arm.temp_per_transaction),
        arm.hot_share.map_or_else(|| "-".to_owned(), |share| format!("{:.0} %", share * 100.0)),
    ]);
    row
}

/// The line that says on what this was measured.
fn setting(header: &Header) -> String {
    let (spec, machine, server) = (&header.spec, &header.machine, &header.server);
    let load = match spec.rate {
        Some(rate) => format!("{} tps wanted", figure(rate)),
        None => "as fast as it can".to_owned(),
    };
    let settings = server.settings.iter().map(|s| format!("{}={}", s.name, s.value));
    let rounds = match &header.device {
        Some(device) => format!("epochs on {}", drive(device)),
        None => format!("{} s rounds", spec.seconds),
    };
    format!(
        "PostgreSQL {} on {} ({}), kernel {}, {} processors; {}pgbench scale {}, {} clients, {}, \
         {} blocks of {rounds}, seed {}\nsettings: {}",
        server.version,
        machine.storage.device,
        machine.storage.file_system,
        machine.kernel,
        machine.cores,
        spec.scenario.as_ref().map_or_else(String::new, |s| format!("scenario {}, ", plain(s))),
        spec.scale,
        spec.clients,
        load,
        spec.blocks,
        spec.seed,
        settings.collect::<Vec<_>>().join(" ")
    )
}

/// The drive of a device, and who counts there.
fn drive(device: &DeviceFacts) -> String {
    let counters = match device.counters {
        CounterSource::FdpStatistics => "FDP statistics",
        CounterSource::EnduranceGroup => "the endurance group log",
    };
    let (model, serial) = (plain(&device.model), plain(&device.serial));
    let size = bytes(device.size);
    format!(
        "/dev/{} ({model}, serial {serial}, {size}; counted by {counters})",
        plain(&device.name)
    )
}

/// What the original idea aims at, in this server version.
fn aims(header: &Header) -> String {
    let mut table = Table::new(["file", "class", "in this version", "note"]).width(100);
    for aim in idea::aims(header.server.major) {
        let exists = if aim.exists { "yes" } else { "no" };
        table.row([aim.path, aim.class, exists, aim.note]);
    }
    format!("what the original idea aims at, in PostgreSQL {}:\n{table}\n", header.server.version)
}

/// Progress on standard error, on a terminal; warnings and the question before the first byte.
struct Watcher {
    bar: ProgressBar,
    stop: Arc<AtomicBool>,
    yes: bool,
    json: bool,
    shown: Instant,
    classic: bool,
    /// What is made for the cluster.
    filesystem: Option<(Kind, u64)>,
}

/// As `doctor` says of every file system on a loop device; this one is not there yet.
const LOOP_VERDICT: &str = "hints do not reach a drive through a loop device, whose file has its own: \
                            expect no device effect";

impl Watcher {
    fn new(args: &TrialArgs, stop: Arc<AtomicBool>) -> Watcher {
        Watcher {
            bar: share_bar(),
            stop,
            yes: args.yes,
            json: args.json,
            shown: Instant::now(),
            classic: args.preset == PresetArg::Classic,
            filesystem: kind(args).map(|kind| (kind, args.size)),
        }
    }

    fn say(&self, text: &str) {
        self.bar.suspend(|| {
            let _ = writeln!(std::io::stderr(), "{text}");
        });
    }

    /// Whether the user at the terminal wants it.
    fn asked(&self) -> bool {
        if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
            return false;
        }
        self.bar.suspend(|| {
            let _ = write!(std::io::stderr(), "go on? [y/N] ");
            matches!(answer(&self.stop).trim(), "y" | "Y" | "yes")
        })
    }
}

impl Observer for Watcher {
    fn confirm(&mut self, estimate: &Estimate, storage: &Mount, free: u64) -> bool {
        let place = match self.filesystem {
            Some((kind, size)) => {
                format!("a new {} of {} in a file on", kind.name(), bytes(size))
            }
            None => String::new(),
        };
        self.say(&format!(
            "about {} will be written to {place}{}{} ({}, {} free): loading {}, then {}",
            bytes(estimate.total_bytes()),
            if place.is_empty() { "" } else { " " },
            plain(&storage.device),
            plain(&storage.file_system),
            bytes(free),
            bytes(estimate.load_bytes),
            plain(&estimate.basis)
        ));
        let verdict = match self.filesystem {
            Some(_) => Some(LOOP_VERDICT.to_owned()),
            None => shelflife_probe::headline(&storage.point),
        };
        if let Some(line) = verdict {
            self.say(&plain(&line));
        }
        self.yes || estimate.is_small() || self.asked()
    }

    fn confirm_device(&mut self, estimate: &Estimate, device: &DeviceFacts) -> bool {
        self.say(&format!(
            "ALL OF {} will be trimmed and written over and over, about {} in all",
            drive(device),
            bytes(estimate.rounds_bytes)
        ));
        self.yes || self.asked()
    }

    fn progress(&mut self, progress: &Progress<'_>) {
        let between = Duration::from_millis(100);
        if progress.share.is_some() && self.shown.elapsed() < between {
            return;
        }
        self.shown = Instant::now();
        let mut message = progress.phase.to_string();
        let mut share = progress.share.unwrap_or(0.0);
        if let Some((number, arm)) = progress.round {
            let step = match progress.phase {
                Phase::WarmingUp | Phase::Preconditioning | Phase::Measuring => share,
                _ => 0.0,
            };
            share = ((number - 1) as f64 + step) / progress.rounds.max(1) as f64;
            message = format!("round {number} of {}, {arm}: {message}", progress.rounds);
        }
        if let Some(left) = progress.left {
            message += &format!(", about {} left", duration(Duration::from_secs(left.as_secs())));
        }
        self.bar.set_position((share.clamp(0.0, 1.0) * 1000.0) as u64);
        self.bar.set_message(message);
    }

    fn warn(&mut self, text: &str) {
        self.say(&format!("shelflife: {}", plain(&text.replace('\n', " "))));
    }

    fn begins(&mut self, header: &Header) {
        if self.classic && !self.json {
            self.say(&aims(header));
        }
    }

    fn round(&mut self, round: &Round) {
        if let Some(failed) = &round.failed {
            self.warn(&format!("round {} ({}) failed: {failed}", round.position + 1, round.label));
        }
    }
}

/// A line from the terminal; empty after Ctrl-C, which alone does not end a read.
fn answer(stop: &AtomicBool) -> String {
    let (tell, told) = channel();
    // It ends with its line, or with the program.
    std::thread::spawn(move || {
        let mut line = String::new();
        let _ = std::io::stdin().lock().read_line(&mut line);
        let _ = tell.send(line);
    });
    loop {
        match told.recv_timeout(Duration::from_millis(50)) {
            Ok(line) => return line,
            Err(RecvTimeoutError::Timeout) if !stop.load(Ordering::Relaxed) => {}
            Err(_) => return String::new(),
        }
    }
}

/// Reads `NAME=VALUE`.
/// `90` or `90%`, as a share.
pub fn parse_fill(text: &str) -> Result<f64, String> {
    let percent = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>().ok();
    let percent = percent.filter(|percent| (0.0..=98.0).contains(percent));
    percent.map(|percent| percent / 100.0).ok_or_else(|| "0 to 98 percent".to_owned())
}

pub fn parse_setting(text: &str) -> Result<(String, String), anyhow::Error> {
    let (name, value) =
        text.split_once('=').ok_or_else(|| anyhow!("a setting is NAME=VALUE, not {text:?}"))?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}
