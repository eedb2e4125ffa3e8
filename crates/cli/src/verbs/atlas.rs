//! `atlas`: scenarios × policies × drives.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use anyhow::anyhow;
use indicatif::ProgressBar;
use shelflife_atlas::{DRIVES, Error, Progress, Request, atlas, in_words, page, scenarios};
use shelflife_postgres::Cancel;
use shelflife_report::{bytes, duration, plain};
use shelflife_run::Hook;
use shelflife_simulate::Target;
use shelflife_ssd::Drive;

use crate::args::AtlasArgs;
use crate::done::{Done, Failure, NO, USE};
use crate::progress::share_bar;
use crate::stop::{INTERRUPTED, on_signals};
use crate::verbs::lifetimes::learn_failure;
use crate::verbs::simulate::{memory, target};
use crate::verbs::trial;

pub fn run(args: &AtlasArgs) -> Result<Done, Failure> {
    let stop = on_signals()?;
    let request = Request {
        folder: args.dir.clone(),
        scenarios: match args.scenarios.is_empty() {
            true => scenarios().map_err(failure)?,
            false => args.scenarios.clone(),
        },
        drives: drives(args)?,
        transport: args.transport.map(Into::into),
        kind: args.fs.into(),
        size: args.size,
        fill: args.fill,
        writes: args.writes,
        limit: Duration::from_secs(args.seconds.into()),
        memory_bytes: memory(),
        hook: Hook::find()?,
        user: args.user.clone(),
        bindir: args.pg_bindir.clone(),
        cancel: Cancel::new(stop),
    };
    request.check().map_err(failure)?;
    if let Some(path) = &args.html {
        shelflife_page::check(path)?;
    }
    ask(args, &request)?;
    let bar = share_bar();
    let made = atlas(&request, &mut |now| show(&bar, now));
    bar.finish_and_clear();
    let made = made.map_err(failure)?;
    let code = if made.failed.is_empty() { 0 } else { NO };
    let done = match args.json {
        true => Done::json(&made)?,
        false => Done::text(in_words(&made)),
    };
    let done = done.with_code(code);
    let Some(path) = &args.html else { return Ok(done) };
    match shelflife_page::write(&page(&made), path) {
        Ok(()) if args.json => Ok(done),
        Ok(()) => Ok(Done { text: format!("{}page: {}\n", done.text, path.display()), ..done }),
        // what took so long is told all the same
        Err(error) => {
            let again = "no page; the same command makes it, and nothing else anew";
            Ok(done.but(&anyhow::Error::from(error).context(again)))
        }
    }
}

fn drives(args: &AtlasArgs) -> Result<Vec<Drive>, Failure> {
    let given = args.drives.iter().map(String::as_str);
    let names: Vec<&str> = if args.drives.is_empty() { DRIVES.to_vec() } else { given.collect() };
    let drive = |name: &&str| match target(name)? {
        Target::Drive(drive) => Ok(*drive),
        Target::Rules(_) => Err(anyhow!("{name} is no drive").into()),
    };
    names.iter().map(drive).collect()
}

/// What is written to a real disk is said before.
fn ask(args: &AtlasArgs, request: &Request) -> Result<(), Failure> {
    let writes = request.to_be_written();
    if writes == 0 {
        return Ok(());
    }
    let text = format!(
        "up to {} will be written to the disk of {} (its file systems do not fit into memory)",
        bytes(writes),
        args.dir.display()
    );
    if args.yes {
        let _ = writeln!(std::io::stderr(), "{text}");
        return Ok(());
    }
    if std::io::stdin().is_terminal() && std::io::stderr().is_terminal() {
        let _ = write!(std::io::stderr(), "{text}; go on? [y/N] ");
        let mut line = String::new();
        std::io::stdin().read_line(&mut line)?;
        if matches!(line.trim(), "y" | "Y" | "yes") {
            return Ok(());
        }
    }
    let error = anyhow!("not begun: {text}; --yes goes on without asking, --size makes it less");
    Err(Failure { code: USE, error })
}

fn failure(error: Error) -> Failure {
    match error {
        error if error.is_interrupted() => Failure { code: INTERRUPTED, error: error.into() },
        Error::Trial(error) => trial::failure(error),
        Error::Learn(error) => learn_failure(error),
        error => error.into(),
    }
}

fn show(bar: &ProgressBar, now: &Progress) {
    let mut message = format!("{}: {}", plain(&now.scenario), plain(&now.step));
    if let Some(left) = now.left {
        let left = Duration::from_secs(left.as_secs());
        message += &format!(", about {} left", duration(left));
    }
    bar.set_position((now.share.clamp(0.0, 1.0) * 1000.0) as u64);
    bar.set_message(message);
}
