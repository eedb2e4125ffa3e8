//! `watch`: hint a running server from outside.

use std::io::Write;

use anyhow::anyhow;
use shelflife_control::Registry;
use shelflife_layout::Layout;
use shelflife_run::load_policy;
use shelflife_watch::{DEFAULT_POLICY, Daemon, Error, Mode, Notify, Options, Role, Said};

use crate::args::{WatchArgs, WatchLayout, WatchMode};
use crate::done::{Done, Failure, NOT_HERE, USE};

pub fn run(args: &WatchArgs) -> Result<Done, Failure> {
    let options = options(args)?;
    let registry = Registry::from_environment()?;
    let daemon = Daemon::start(options, &registry).map_err(failure)?;
    let run = daemon.run();
    say(&format!(
        "watching as run {}, process {}, by marks on {}",
        run.name(),
        run.summary().pid,
        match daemon.mode() {
            Mode::FileSystem => "file systems",
            _ => "folders",
        }
    ));
    let notify = Notify::from_environment();
    let mut ready = false;
    let watched = daemon.watch(&mut |said| match said {
        Said::Swept(text) | Said::Note(text) => say(text),
        Said::Ready => {
            ready = true;
            notify.ready();
        }
        Said::Alive if ready => notify.alive(),
        Said::Alive => notify.starting(30),
        _ => {}
    });
    notify.stopping();
    watched.map_err(failure)?;
    Ok(Done::default())
}

fn options(args: &WatchArgs) -> Result<Options, Failure> {
    if let Some(file) = &args.config {
        let options = Options::from_file(file).map_err(failure)?;
        return Ok(Options { dry_run: args.dry_run, ..options });
    }
    let policy = args.policy.clone().unwrap_or_else(|| DEFAULT_POLICY.to_owned());
    if let Some(layout) = args.layout {
        let wanted = match layout {
            WatchLayout::Postgres => Layout::Postgres,
            WatchLayout::Paths => Layout::Paths,
        };
        let found = load_policy(&policy)?.layout();
        if found != wanted {
            let (found, wanted) = (found.name(), wanted.name());
            let error = anyhow!("policy {policy} is for layout {found}, not {wanted}");
            return Err(Failure { code: USE, error });
        }
    }
    Ok(Options {
        folders: args.folders.clone(),
        policy,
        name: args.name.clone(),
        mode: match args.mode {
            None | Some(WatchMode::Auto) => Mode::Auto,
            Some(WatchMode::Folders) => Mode::Folders,
            Some(WatchMode::Filesystem) => Mode::FileSystem,
        },
        metrics: None,
        relations: args.relations.clone().map(Role::from),
        dry_run: args.dry_run,
    })
}

fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "shelflife: {text}");
}

fn failure(error: Error) -> Failure {
    if error.is_refusal() {
        return Failure { code: NOT_HERE, error: error.into() };
    }
    error.into()
}
