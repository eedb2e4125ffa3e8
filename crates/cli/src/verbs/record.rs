//! `record`: what is written, with hint and file.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use serde_json::json;
use shelflife_control::Registry;
use shelflife_postgres::Dsn;
use shelflife_record::pg::{Pg, PgError, PgReport, Servers};
use shelflife_record::{
    Options, Progress, Reason, Recorded, Signals, Target, Until, Warning, record,
};
use shelflife_report::{bytes, count, duration, figure, plain};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::SignalsInfo;

use crate::args::RecordArgs;
use crate::done::{Done, Failure, NO, NOT_HERE, USE, code_of};

pub fn run(args: &RecordArgs) -> Result<Done, Failure> {
    let target = match (&args.path, &args.device) {
        (Some(path), _) => Target::of_path(path),
        (None, Some(device)) => Target::of_device(device),
        (None, None) => return Err(anyhow::anyhow!("--path or --device is missing").into()),
    };
    let target = target.map_err(failure)?;
    let mut options = Options::new(&args.output, target.clone());
    options.max_bytes = args.max_bytes;
    options.policy = args.policy.clone();
    // where there is no place for runs there are none
    options.runs = Registry::from_environment().ok();
    options.command = args.command.iter().map(|arg| arg.to_string_lossy().into_owned()).collect();
    let reported = match &args.pg {
        Some(address) => {
            let pg = Pg::start(servers(address)?).map_err(not_asked)?;
            options.data_folders.extend(pg.data_folders().to_vec());
            let (naming, reported) = pg.into_naming();
            options.naming = Some(naming);
            Some(reported)
        }
        None => None,
    };
    let mut until = Until::default();
    until.time = args.time.map(Duration::from_nanos);
    until.command = args.command.clone();
    let mut watching = Watching::new(&target, until.time)?;
    let recorded =
        record(options, &until, &mut |progress, warnings| watching.look(progress, warnings));
    drop(watching);
    let recorded = recorded.map_err(failure)?;
    // There once the recording has ended.
    let report = reported.and_then(|reported| reported.recv().ok());
    let code = exit_code(&recorded);
    if args.json {
        let status = recorded
            .command
            .map(|status| json!({"code": status.code(), "signal": status.signal()}));
        let summary = &recorded.summary;
        let done = Done::json(&json!({
            "trace": args.output, "reason": recorded.reason, "command": status,
            "lost": summary.tally.lost, "attributed": summary.attributed(), "summary": summary,
            "pg": report,
        }))?;
        return Ok(done.with_code(code));
    }
    let mut done = in_words(args, &target, &recorded).with_code(code);
    if let Some(report) = report {
        asked(&report, &mut done);
    }
    Ok(done)
}

fn servers(address: &str) -> Result<Servers, Failure> {
    Ok(match address {
        "auto" => Servers::Auto,
        address => Servers::At(Dsn::parse(address)?.into()),
    })
}

fn not_asked(error: PgError) -> Failure {
    let denied = error.is_denied();
    let error = anyhow::Error::from(error);
    Failure { code: if denied { NOT_HERE } else { USE }, error }
}

/// What the servers told of the files.
fn asked(report: &PgReport, done: &mut Done) {
    if report.servers.is_empty() {
        done.notes += "shelflife: no PostgreSQL server was found for the files that were written\n";
    }
    for server in &report.servers {
        let others = [
            (server.uncommitted, "never seen committed"),
            (server.temporary, "temporary"),
            (server.unread, "not to be asked for"),
        ];
        let mut text = format!(
            "  {}: {} relation files named",
            plain(&server.data_folder),
            count(server.named)
        );
        for (files, what) in others.into_iter().filter(|(files, _)| *files > 0) {
            text += &format!(", {} {what}", count(files));
        }
        done.text += &format!("{text}\n");
        for failure in &server.failures {
            let folder = plain(&server.data_folder);
            done.notes += &format!("shelflife: {folder}: {}\n", plain(failure));
        }
    }
    if report.homeless > 0 {
        done.text += &format!(
            "  {} more files look like relations of servers that were not found\n",
            count(report.homeless)
        );
    }
}

fn failure(error: shelflife_record::Error) -> Failure {
    let denied = error.is_denied();
    let error = anyhow::Error::from(error);
    Failure { code: if denied { NOT_HERE } else { code_of(&error).max(USE) }, error }
}

fn exit_code(recorded: &Recorded) -> u8 {
    let of_command = recorded.command.map_or(0, of_status);
    match (of_command, recorded.summary.tally.lost) {
        (0, 0) => 0,
        (0, _) => NO,
        (code, _) => code,
    }
}

/// As a shell has it.
fn of_status(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

fn in_words(args: &RecordArgs, target: &Target, recorded: &Recorded) -> Done {
    let summary = &recorded.summary;
    let counts = &summary.meta.counts;
    let attributed = match summary.attributed() {
        // 99.96 is not all
        Some(share) => format!("{} % with their file", (share * 1000.0).floor() / 10.0),
        None => "nothing written".to_owned(),
    };
    let mut text = format!(
        "{}: {} writes, {}, {} lost, {attributed}\n",
        args.output.display(),
        count(counts.writes),
        bytes(counts.written_bytes),
        count(summary.tally.lost),
    );
    let place = match &target.mount {
        Some(mount) => format!(" ({} on {})", mount.file_system, mount.point.display()),
        None => String::new(),
    };
    let each = match counts.events {
        0 => String::new(),
        events => {
            format!(", {} bytes an event", figure(summary.trace_bytes as f64 / events as f64))
        }
    };
    text += &format!(
        "  recorded {}{} for {}{}\n  {} discards, {} write-zeroes, {} flushes, {} files\n  \
         the trace takes {}{each}\n",
        plain(&target.names()),
        plain(&place),
        duration(Duration::from_secs_f64(summary.seconds)),
        match recorded.reason {
            Reason::MaxBytes => ", until the trace had its size",
            _ => "",
        },
        count(counts.discards),
        count(counts.write_zeroes),
        count(counts.flushes),
        count(summary.files),
        bytes(summary.trace_bytes),
    );
    let tally = &summary.tally;
    if tally.zone_appends > 0 {
        text += &format!(
            "  {} of the lost are appends to zones, whose place the drive decides\n",
            count(tally.zone_appends)
        );
    }
    if tally.retries > 0 {
        text += &format!(
            "  {} requests went to the driver more than once, and are recorded once\n",
            count(tally.retries)
        );
    }
    if let Some(status) = recorded.command.filter(|status| !status.success()) {
        text += &format!("  the command failed: {status}\n");
    }
    let notes = summary.warnings.iter().map(|w| format!("shelflife: {}\n", plain(&w.to_string())));
    Done { text, notes: notes.collect(), code: 0 }
}

/// Signals, and the line on the terminal.
struct Watching {
    pending: SignalsInfo,
    signals: Signals,
    bar: Option<ProgressBar>,
    begun: Instant,
    time: Option<Duration>,
    devices: String,
}

impl Watching {
    fn new(target: &Target, time: Option<Duration>) -> std::io::Result<Watching> {
        Ok(Watching {
            pending: SignalsInfo::new([SIGINT, SIGTERM])?,
            signals: Signals::default(),
            bar: None,
            begun: Instant::now(),
            time,
            devices: target.names(),
        })
    }

    fn look(&mut self, progress: &Progress, warnings: &[Warning]) -> Signals {
        // hidden by itself where standard error is no terminal
        let bar = self.bar.get_or_insert_with(|| {
            let bar = ProgressBar::no_length();
            for warning in warnings {
                bar.println(format!("shelflife: {}", plain(&warning.to_string())));
            }
            bar
        });
        let left = match self.time.map(|time| time.saturating_sub(self.begun.elapsed())) {
            Some(left) => format!(", {} s left", left.as_secs()),
            None => String::new(),
        };
        bar.set_message(format!(
            "recording {}: {} events, {} written, {} lost{left}",
            plain(&self.devices),
            count(progress.events),
            bytes(progress.written_bytes),
            count(progress.lost)
        ));
        bar.tick();
        for signal in self.pending.pending() {
            self.signals.count += 1;
            self.signals.pass_on |= signal == SIGTERM;
        }
        self.signals
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
