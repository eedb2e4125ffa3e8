//! Whether a cluster's data is whole: `pg_amcheck` on a running server, `pg_checksums` on a stopped one.
//!
//! Invariant: "clean" means that the program said so; a check that could not be made is an error.

use std::ffi::OsStr;
use std::process::Command;

use serde::Deserialize;
use serde::Serialize;

use crate::cancel::Cancel;
use crate::child;
use crate::datafolder::DataFolder;
use crate::dsn::Dsn;
use crate::error::Error;
use crate::error::Result;
use crate::error::last_lines;
use crate::programs::Programs;
use crate::user::ServerUser;

/// The most complaints kept.
const COMPLAINTS_MAX: usize = 100;

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// The complaints, the first hundred; empty if all is well.
    pub complaints: Vec<String>,
}

impl Verdict {
    /// Whether nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.complaints.is_empty()
    }
}

/// Checks all tables and B-tree indexes of all databases, each heap row against its indexes (`pg_amcheck --all
/// --heapallindexed`). Installs the extension `amcheck` where it is missing, so it needs superuser.
///
/// # Errors
/// [`Error::ProgramMissing`] (also in 13, which has no `pg_amcheck`), [`Error::ProgramFailed`].
pub fn amcheck(programs: &Programs, dsn: &Dsn, cancel: &Cancel) -> Result<Verdict> {
    let mut command = Command::new(programs.pg_amcheck()?);
    command.args(["--all", "--install-missing", "--heapallindexed"]);
    child::clean_environment(&mut command);
    // It takes no address as its last argument beside --all.
    command.arg("--maintenance-db");
    dsn.give_to(&mut command);
    let output = child::run(&mut command, cancel, &mut |_| ())?;
    match output.status.code() {
        Some(0) => Ok(Verdict { complaints: Vec::new() }),
        // 2 means that something is corrupt, 1 that the check failed.
        Some(2) => Ok(Verdict { complaints: complaints(&output.stdout, |_| true) }),
        _ => Err(output.failure("pg_amcheck")),
    }
}

/// Checks the checksum of every page of a stopped cluster, as its owner (`pg_checksums --check`).
///
/// # Errors
/// [`Error::MustBeStopped`], [`Error::ProgramMissing`]; [`Error::ProgramFailed`], also if the cluster has
/// no checksums.
pub fn checksums(programs: &Programs, data: &DataFolder, cancel: &Cancel) -> Result<Verdict> {
    if data.postmaster()?.is_some() {
        return Err(Error::MustBeStopped { path: data.path().to_owned(), what: "pg_checksums" });
    }
    let mut command = Command::new(programs.pg_checksums()?);
    command.args([OsStr::new("--check"), OsStr::new("--pgdata"), data.path().as_os_str()]);
    command.current_dir(data.path());
    ServerUser::of(data.uid())?.apply(&mut command);
    child::clean_environment(&mut command);
    let output = child::run(&mut command, cancel, &mut |_| ())?;
    if output.status.success() {
        return Ok(Verdict { complaints: Vec::new() });
    }
    let bad = complaints(&output.stderr, |line| line.contains("checksum verification failed"));
    if bad.is_empty() {
        Err(output.failure("pg_checksums"))
    } else {
        Ok(Verdict { complaints: bad })
    }
}

fn complaints(text: &str, is_one: impl Fn(&str) -> bool) -> Vec<String> {
    let mut lines = last_lines(text, usize::MAX);
    lines.retain(|line| is_one(line));
    lines.truncate(COMPLAINTS_MAX);
    lines
}
