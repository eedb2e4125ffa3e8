//! `export`: a trace in another format.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;
use shelflife_report::count;
use shelflife_trace::{Error, ExportReport, Trace, export};

use crate::args::ExportArgs;
use crate::done::{Done, Failure};
use crate::progress::EventProgress;
use crate::verbs::trace::failure;

pub fn run(args: &ExportArgs) -> Result<Done, Failure> {
    let trace = Trace::open(&args.trace).map_err(failure)?;
    let mut notes: String =
        trace.notes().iter().map(|note| format!("shelflife: {note}\n")).collect();
    let (report, text) = match &args.output {
        None => match write(args, &trace, std::io::stdout().lock(), "standard output") {
            // a reader that has seen enough (`| head`) is no error
            Err(Error::Stream { source, .. })
                if source.kind() == std::io::ErrorKind::BrokenPipe =>
            {
                return Ok(Done::default());
            }
            report => (report.map_err(failure)?, String::new()),
        },
        Some(path) => {
            if path.exists() {
                return Err(anyhow::anyhow!("{} exists already", path.display()).into());
            }
            let report = write_file(args, &trace, path)?;
            (report, format!("{}: {} lines\n", path.display(), count(report.lines)))
        }
    };
    if report.left_out > 0 {
        notes += &format!(
            "shelflife: {} events left out, which {} has no words for\n",
            count(report.left_out),
            args.to
        );
    }
    Ok(Done { text, notes, code: 0 })
}

fn write(
    args: &ExportArgs,
    trace: &Trace,
    out: impl Write,
    name: &str,
) -> Result<ExportReport, Error> {
    let mut progress = EventProgress::new("events", Some(trace.meta().counts.events))
        .map_err(|source| Error::Stream { action: "write", file: name.to_owned(), source })?;
    export(trace, args.to, out, name, &mut |events| progress.show(events))
}

/// Aside, and renamed when it is whole.
fn write_file(args: &ExportArgs, trace: &Trace, path: &PathBuf) -> Result<ExportReport, Failure> {
    let mut aside = path.as_os_str().to_owned();
    aside.push(".part");
    let aside = PathBuf::from(aside);
    let say = || format!("cannot write {}", aside.display());
    let file = File::create(&aside).with_context(say)?;
    let written = write(args, trace, &file, &path.display().to_string()).map_err(failure);
    let kept = written.and_then(|report| {
        std::fs::rename(&aside, path).with_context(say)?;
        Ok(report)
    });
    if kept.is_err() {
        let _ = std::fs::remove_file(&aside);
    }
    kept
}
