//! `run`: start a program under hints.

use std::ffi::OsString;
use std::io::Write;

use shelflife_control::Registry;
use shelflife_report::plain;
use shelflife_run::{Hook, Launch, data_folders, load_policy};

use crate::args::RunArgs;
use crate::done::{Done, Failure, NOT_HERE};

pub fn run(args: &RunArgs) -> Result<Done, Failure> {
    let policy = load_policy(&args.policy)?;
    let hook = Hook::find()?;
    let registry = Registry::from_environment()?;
    shelflife_run::collect(&registry)?;
    let launch = Launch {
        command: &args.command,
        name: args.name.as_deref(),
        policy: (&policy.compile(), policy.name()),
        dry_run: args.dry_run,
    };
    let prepared = launch.prepare(&registry, &hook)?;
    if let Some(place) = &prepared.hidden {
        let _ = writeln!(
            std::io::stderr(),
            "shelflife: {} is closed to other users: a server that runs as another user will not \
             be hinted (`shelflife status` tells)",
            place.display()
        );
    }
    say_verdict(&args.command);
    let error = prepared.exec();
    Err(Failure { code: exec_code(&error), error: error.into() })
}

/// One line about whether hints reach the drive of the command's data folder, if it can be told.
fn say_verdict(command: &[OsString]) {
    let pgdata = std::env::var_os("PGDATA");
    let folders = data_folders(command, pgdata.as_deref());
    if let Some(line) = folders.first().and_then(|dir| shelflife_probe::headline(dir)) {
        let _ = writeln!(std::io::stderr(), "shelflife: {}", plain(&line));
    }
}

/// As a shell has it, but within the codes of this program.
fn exec_code(error: &shelflife_run::Error) -> u8 {
    let refused = matches!(error, shelflife_run::Error::Exec { source, .. }
        if source.kind() == std::io::ErrorKind::PermissionDenied);
    if refused { NOT_HERE } else { crate::done::USE }
}
