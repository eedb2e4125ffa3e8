//! `shelflife`: arguments → a call → output.
//!
//! Invariant: no logic lives here. A verb turns its arguments into calls of the other crates and
//! their answers into text or JSON; the first line of the text is the answer. What a verb prints
//! is written once, at its end; progress goes to standard error, and only to a terminal.

#![warn(missing_docs)]

mod args;
mod done;
mod progress;
mod stop;
mod verbs;

use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use clap::Parser;
use shelflife_report::plain;

use args::{Cli, Verb};
use done::{Done, Failure, USE};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match cli.verb {
        Verb::Hint(args) => verbs::hint::run(&args),
        Verb::Run(args) => verbs::run::run(&args),
        Verb::Apply(args) => verbs::apply::run(&args),
        Verb::Watch(args) => verbs::watch::run(&args),
        Verb::Generate(args) => verbs::generate::run(&args),
        Verb::Status(args) => verbs::status::run(&args),
        Verb::Switch(args) => verbs::switch::run(&args),
        Verb::Policy(args) => verbs::policy::run(&args),
        Verb::Doctor(args) => verbs::doctor::run(&args),
        Verb::Prove(args) => verbs::prove::run(&args),
        Verb::Trial(args) => verbs::trial::run(&args),
        Verb::Atlas(args) => verbs::atlas::run(&args),
        Verb::Record(args) => verbs::record::run(&args),
        Verb::Import(args) => verbs::import::run(&args),
        Verb::Export(args) => verbs::export::run(&args),
        Verb::Learn(args) => verbs::learn::run(&args),
        Verb::Lifetimes(args) => verbs::lifetimes::run(&args),
        Verb::Simulate(args) => verbs::simulate::run(&args),
        Verb::Trace(args) => verbs::trace::run(&args),
    };
    match result {
        Ok(done) => finish(&done),
        Err(failure) => {
            // what it names may come from a file
            for line in format!("shelflife: {:#}", failure.error).lines() {
                let _ = writeln!(std::io::stderr(), "{}", plain(line));
            }
            ExitCode::from(failure.code)
        }
    }
}

fn finish(done: &Done) -> ExitCode {
    let mut out = std::io::stdout();
    let written = out.write_all(done.text.as_bytes()).and_then(|()| out.flush());
    let _ = std::io::stderr().write_all(done.notes.as_bytes());
    match written {
        // A reader that has seen enough (`| head`) is no error; half a file is.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            let _ = writeln!(std::io::stderr(), "shelflife: cannot write the output: {error}");
            ExitCode::from(done.code.max(USE))
        }
        _ => ExitCode::from(done.code),
    }
}

/// A failure with the code for wrong use or input.
impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Failure {
        let error = error.into();
        Failure { code: done::code_of(&error), error }
    }
}
