//! `learn`: the policy that suits a trace and drives, judged on what it has not seen.

use std::fmt::Write;
use std::fs::Permissions;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use indicatif::{ProgressBar, ProgressStyle};
use shelflife_learn::{
    Arm, Firmware, LearnProgress, LearnRequest, Learned, Stage, learn, policy_name,
};
use shelflife_report::{Table, bytes, figure, plain};
use shelflife_ssd::Isolation;
use shelflife_trace::Trace;

use crate::args::LearnArgs;
use crate::done::{Done, Failure, NO, USE};
use crate::verbs::lifetimes::learn_failure;
use crate::verbs::simulate::{memory, target};
use crate::verbs::trace::failure;

pub fn run(args: &LearnArgs) -> Result<Done, Failure> {
    if args.output.exists() {
        let error =
            anyhow!("{} exists already: choose another name or remove it", args.output.display());
        return Err(Failure { code: USE, error });
    }
    let cannot_write = || format!("cannot write {}", args.output.display());
    // before the search, not after it
    tempfile::tempfile_in(folder(&args.output)).with_context(cannot_write)?;
    let stem = args.output.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let trace = Trace::open(&args.trace).map_err(failure)?;
    let request = LearnRequest {
        targets: args.drive.iter().map(|name| target(name)).collect::<Result<_, _>>()?,
        transport: args.transport.into(),
        applier: args.applier.into(),
        relations: args.relations,
        size: args.size.size(trace.meta().usage),
        aim: args.aim(),
        name: policy_name(&stem.unwrap_or_default()),
        seed: args.seed,
        memory_bytes: memory(),
    };
    let shown = Shown { begun: Instant::now(), bar: Mutex::new(None) };
    let learned = learn(&trace, &request, &|now| shown.show(&now));
    shown.end();
    let learned = learned.map_err(learn_failure)?;
    if let Some(policy) = &learned.policy {
        write_new(&args.output, policy).with_context(cannot_write)?;
    }
    let code = if learned.policy.is_some() { 0 } else { NO };
    if args.json {
        let mut value = serde_json::to_value(&learned)?;
        value["share_of_clairvoyant"] = serde_json::to_value(learned.share_of_clairvoyant())?;
        return Ok(Done::json(&value)?.with_code(code));
    }
    Ok(in_words(&learned, &args.output).with_code(code))
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Writes a file that is whole or not there, and replaces none.
fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let mut aside = tempfile::Builder::new()
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder(path))?;
    aside.write_all(text.as_bytes())?;
    aside.persist_noclobber(path)?;
    Ok(())
}

fn in_words(learned: &Learned, output: &Path) -> Done {
    let mut text = format!("simulated: {}\n\n", answer(learned, output));
    if !learned.rules.is_empty() {
        let heads = ["lifetime", "what", "written", "median", "the rule saves"];
        let mut table = Table::new(heads).right(2..5);
        for rule in &learned.rules {
            table.row([
                rule.lifetime.name().to_owned(),
                rule.names.join(", "),
                format!("{} ({} %)", bytes(rule.bytes), figure(rule.share * 100.0)),
                rule.median_bytes.map_or("alive".to_owned(), bytes),
                format!("{} %", figure(rule.gain * 100.0)),
            ]);
        }
        let _ = writeln!(text, "{table}\n");
    }
    let mut heads = vec!["WAF".to_owned()];
    heads.extend(learned.arms.iter().map(|arm| arm.name.clone()));
    let mut table = Table::new(heads).right(1..=learned.arms.len());
    for (at, firmware) in learned.firmwares.iter().enumerate() {
        let mut cells = vec![named(firmware)];
        let waf = |waf: Option<f64>| waf.map_or("-".to_owned(), |waf| format!("{waf:.3}"));
        cells.extend(learned.arms.iter().map(|arm| waf(arm.wafs.get(at).copied().flatten())));
        table.row(cells);
    }
    let percent = |share: f64| format!("{:.1}", share * 100.0);
    let saving = |arm: &Arm| match (arm.saving.map(percent), arm.error.map(percent)) {
        (Some(saving), Some(error)) => format!("{saving} ± {error} %"),
        (Some(saving), None) => format!("{saving} %"),
        (None, _) => "-".to_owned(),
    };
    let mut cells = vec!["saves".to_owned()];
    // no hints against themselves are no measurement
    cells.extend(
        learned.arms.iter().map(|arm| if arm.name == "off" { String::new() } else { saving(arm) }),
    );
    table.row(cells);
    let _ = writeln!(text, "{table}");
    text.push_str("± half of the 95 % interval over the passes that are judged\n");
    if learned.firmwares.iter().any(|firmware| firmware.own) {
        text.push_str("* by the drive's own rules\n");
    }
    for note in &learned.notes {
        let _ = writeln!(text, "{}", plain(note));
    }
    Done::text(text)
}

fn named(firmware: &Firmware) -> String {
    let isolation = match firmware.isolation {
        Isolation::Initial => "initial",
        Isolation::Persistent => "persistent",
    };
    let own = if firmware.own { " *" } else { "" };
    format!("{} {} {isolation}{own}", firmware.drive, firmware.victim.name())
}

fn answer(learned: &Learned, output: &Path) -> String {
    let (saving, noise) = (learned.saving * 100.0, learned.noise * 100.0);
    match learned.policy {
        Some(_) => format!(
            "{} saves {saving:.1} % of write amplification against no hints, on data it was not \
             learned from (noise {noise:.1} %)",
            output.display()
        ),
        None if saving > noise => format!(
            "no policy written: the best grouping saves {saving:.1} % on average (noise {noise:.1} %), \
             but costs more than 1 % under some rules"
        ),
        None => format!(
            "nothing beats no hints by more than the noise ({noise:.1} %): the best grouping saves \
             {saving:.1} %; no policy written"
        ),
    }
}

/// A line on standard error that says how far it is; hidden where that is no terminal.
struct Shown {
    begun: Instant,
    bar: Mutex<Option<(Stage, ProgressBar)>>,
}

impl Shown {
    fn show(&self, now: &LearnProgress) {
        if self.begun.elapsed() < Duration::from_secs(2) {
            return;
        }
        // Another thread is showing: enough.
        let Ok(mut bar) = self.bar.try_lock() else { return };
        let (stage, bar) = bar.get_or_insert_with(|| (now.stage, new_bar(now)));
        if *stage != now.stage {
            bar.finish_and_clear();
            (*stage, *bar) = (now.stage, new_bar(now));
        }
        bar.set_length(now.of);
        bar.set_position(now.done);
    }

    fn end(&self) {
        if let Ok(mut bar) = self.bar.lock()
            && let Some((_, bar)) = bar.take()
        {
            bar.finish_and_clear();
        }
    }
}

fn new_bar(now: &LearnProgress) -> ProgressBar {
    let what = match now.stage {
        Stage::Reading => "events read",
        Stage::Searching => "simulations of the search",
        Stage::Comparing => "simulations of the best",
        Stage::Judging => "simulations of the comparison",
    };
    // the template is a constant that is right
    let style = ProgressStyle::with_template("{bar:30} {pos} of {len} {msg}, {eta} left")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(now.of).with_style(style).with_message(what)
}
