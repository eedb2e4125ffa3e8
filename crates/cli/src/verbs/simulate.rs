//! `simulate`: what drives would make of a workload under policies.

use std::fs::{self, File};
use std::io::Read;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::Context;
use indicatif::ProgressBar;
use shelflife_report::{Table, count, plain};
use shelflife_run::load_policy;
use shelflife_simulate::{
    Hinting, Progress, Recorded, Report, Request, Row, Rules, Source, Synthetic, Target, simulate,
};
use shelflife_ssd::{Frontier, Isolation};
use shelflife_trace::Trace;

use crate::args::SimulateArgs;
use crate::done::{Done, Failure};
use crate::verbs::trace::failure;

/// The longest drive profile that is read, in bytes.
const MAX_PROFILE: u64 = 1 << 20;

pub fn run(args: &SimulateArgs) -> Result<Done, Failure> {
    let targets = targets(args)?;
    let source = source(args)?;
    let usage = match &source {
        Source::Recorded(recorded) => recorded.trace.meta().usage,
        Source::Synthetic(_) => None,
    };
    let request = Request { targets, size: args.size.size(usage), memory_bytes: memory() };
    let progress = Shown { begun: Instant::now(), bar: Mutex::new(None) };
    let report = simulate(&source, &request, &|now| progress.show(&now));
    progress.end();
    let report = report?;
    if args.json {
        return Done::json(&report.to_json()?);
    }
    Ok(in_words(&report))
}

fn targets(args: &SimulateArgs) -> Result<Vec<Target>, Failure> {
    let mut targets = Vec::new();
    for name in &args.drive {
        targets.push(target(name)?);
    }
    if let Some(rho) = args.op {
        targets.push(Target::Rules(Rules {
            over_provisioning: rho,
            ru_pages: args.ru_pages,
            streams: args.streams,
            isolation: args.isolation.into(),
            frontier: args.frontier.into(),
            victim: args.victim.into(),
            transport: args.transport.into(),
        }));
    }
    Ok(targets)
}

/// A shipped drive by name, or a file by a path that holds a `/` or ends with `.toml`.
pub fn target(name: &str) -> Result<Target, Failure> {
    if !name.contains('/') && !name.ends_with(".toml") {
        return Ok(Target::named(name)?);
    }
    let mut text = String::new();
    let file = File::open(name).and_then(|file| file.take(MAX_PROFILE).read_to_string(&mut text));
    file.with_context(|| format!("cannot read {name}"))?;
    Ok(Target::parse(name, &text)?)
}

fn source(args: &SimulateArgs) -> Result<Source, Failure> {
    let Some(trace) = &args.trace else {
        return Ok(Source::Synthetic(Synthetic {
            text: args.workload.clone().unwrap_or_default(),
            pages: args.pages,
            overwrites: args.overwrites,
            seed: args.seed,
            hints: args.hints.clone(),
        }));
    };
    let mut hintings = Vec::new();
    for policy in &args.policy {
        hintings.push(match policy.as_str() {
            "off" => Hinting::Off,
            "recorded" => Hinting::Recorded,
            name => Hinting::Policy(Box::new(load_policy(name)?)),
        });
    }
    let trace = Trace::open(trace).map_err(failure)?;
    Ok(Recorded { trace, hintings, repeat: args.repeat }.into())
}

/// Half of the memory that the kernel thinks can be had, in bytes: the rest is for whoever else is
/// at work here, since the kernel's answer to too much of it is to kill.
pub fn memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(512)
}

fn in_words(report: &Report) -> Done {
    let mut text = format!("simulated: {}\n\n", answer(report));
    let heads = [
        "policy",
        "drive",
        "victim",
        "isolation",
        "transport",
        "ρ",
        "S_f",
        "WAF",
        "host pages",
        "copied pages",
        "steady",
    ];
    let mut table = Table::new(heads).right(5..10);
    for row in &report.rows {
        let outcome = &row.outcome;
        let isolation = match (outcome.isolation, outcome.frontier) {
            (Isolation::Initial, Frontier::Separate) => "initial",
            (Isolation::Initial, Frontier::Single) => "initial, single frontier",
            (Isolation::Persistent, Frontier::Separate) => "persistent",
            (Isolation::Persistent, Frontier::Single) => "persistent, single frontier",
        };
        let model = outcome.notes.iter().any(|note| note.starts_with("model"));
        table.row([
            row.policy.clone(),
            row.drive.clone(),
            outcome.victim.name().to_owned(),
            isolation.to_owned(),
            format!("{}{}", outcome.transport.name(), if model { " (model)" } else { "" }),
            format!("{:.1} %", outcome.sizes.over_provisioning * 100.0),
            format!("{:.1} %", outcome.sizes.spare_factor * 100.0),
            format!("{:.3}", outcome.waf),
            count(outcome.host_pages),
            count(outcome.copied_pages),
            if outcome.steady.reached { "yes" } else { "no" }.to_owned(),
        ]);
    }
    text += &format!("{table}\n");
    for remark in report.remarks() {
        text += &format!("{}\n", plain(&remark));
    }
    Done::text(text)
}

/// The one figure, or the least and the largest.
fn answer(report: &Report) -> String {
    let named = |row: &Row| {
        let (policy, drive) = (plain(&row.policy), plain(&row.drive));
        format!("WAF {:.3} ({policy}, {drive})", row.outcome.waf)
    };
    let writes = plain(&report.workload);
    match report.best_and_worst() {
        Some((best, _)) if report.rows.len() == 1 => format!("{} of {writes}", named(best)),
        Some((best, worst)) if best.outcome.waf == worst.outcome.waf => {
            format!("WAF {:.3} in all combinations, of {writes}", best.outcome.waf)
        }
        Some((best, worst)) => {
            format!("best {}, worst {}, of {writes}", named(best), named(worst))
        }
        None => format!("nothing, of {writes}"),
    }
}

/// A line on standard error that says how far it is; hidden where that is no terminal.
struct Shown {
    begun: Instant,
    bar: Mutex<Option<ProgressBar>>,
}

impl Shown {
    fn show(&self, now: &Progress) {
        if self.begun.elapsed() < Duration::from_secs(2) {
            return;
        }
        // Another thread is showing: enough.
        let Ok(mut bar) = self.bar.try_lock() else { return };
        let bar = bar.get_or_insert_with(ProgressBar::no_length);
        bar.set_message(if now.of == 0 {
            format!("{} events looked through", count(now.events))
        } else {
            let operations = count(now.operations);
            format!("{} of {} simulations, {operations} operations", now.done, now.of)
        });
        bar.tick();
    }

    fn end(&self) {
        if let Ok(mut bar) = self.bar.lock()
            && let Some(bar) = bar.take()
        {
            bar.finish_and_clear();
        }
    }
}
