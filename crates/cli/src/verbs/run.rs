//! `run`: start a program under hints.

use std::io::Write;

use shelflife_control::Registry;
use shelflife_run::{Hook, Launch, load_policy};

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
    let error = prepared.exec();
    Err(Failure { code: exec_code(&error), error: error.into() })
}

/// As a shell has it, but within the codes of this program.
fn exec_code(error: &shelflife_run::Error) -> u8 {
    let refused = matches!(error, shelflife_run::Error::Exec { source, .. }
        if source.kind() == std::io::ErrorKind::PermissionDenied);
    if refused { NOT_HERE } else { crate::done::USE }
}
