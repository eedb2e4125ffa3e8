//! pgbench: load its tables, run a load, read what it prints and what it logs.
//!
//! Invariant: what is reported is what pgbench measured: its own summary, and percentiles over *every*
//! transaction of its log. A run that pgbench calls incomplete is an error, never a result.

mod latency;
mod summary;

use std::ffi::OsString;
use std::fmt;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::str::FromStr;
use std::time::Duration;
use std::time::Instant;

use serde::Deserialize;
use serde::Serialize;

pub use crate::pgbench::latency::Latencies;
pub use crate::pgbench::latency::Percentiles;
pub use crate::pgbench::summary::ScriptSummary;
pub use crate::pgbench::summary::Summary;

use crate::cancel::Cancel;
use crate::child;
use crate::dsn::Dsn;
use crate::error::Error;
use crate::error::Result;
use crate::programs::Programs;

/// How pgbench's sessions are called in `pg_stat_activity`; see [`crate::Session::await_gone`].
pub const APPLICATION: &str = "pgbench";

/// How to load pgbench's tables (`pgbench -i`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Initialise {
    /// Scale: 100,000 accounts each, about 15 MB.
    pub scale: u32,
    /// Further arguments, such as `--fillfactor=90` or `--unlogged-tables`.
    pub args: Vec<OsString>,
}

/// How far loading the tables is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadProgress {
    /// Rows of `pgbench_accounts` sent so far.
    pub rows: u64,
    /// All of them.
    pub total: u64,
}

/// A second of a running load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunProgress {
    /// Seconds since the load began.
    pub seconds: f64,
    /// Transactions per second in that second.
    pub tps: f64,
    /// Their mean latency in ms.
    pub latency_ms: f64,
}

/// A script and its weight.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Script {
    /// One of pgbench's own: `tpcb-like`, `simple-update`, `select-only`.
    Builtin(String, u32),
    /// A file.
    File(PathBuf, u32),
}

impl FromStr for Script {
    type Err = std::convert::Infallible;

    /// `FILE` or `FILE@WEIGHT`; the name of one of pgbench's own stands for that (`./simple-update` for
    /// a file of that name). What follows the last `@` is a weight only if it is a number, so that a
    /// file's name may hold an `@`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let weighted = text.rsplit_once('@').and_then(|(file, weight)| {
            weight.parse().ok().filter(|_| !file.is_empty()).map(|weight| (file, weight))
        });
        let (file, weight) = weighted.unwrap_or((text, 1));
        Ok(match file {
            "tpcb-like" | "simple-update" | "select-only" => Script::Builtin(file.into(), weight),
            file => Script::File(file.into(), weight),
        })
    }
}

impl fmt::Display for Script {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Script::Builtin(name, weight) => write!(out, "{name}@{weight}"),
            Script::File(path, weight) => write!(out, "{}@{weight}", path.display()),
        }
    }
}

impl Script {
    fn give_to(&self, command: &mut Command) {
        match self {
            Script::Builtin(name, weight) => {
                command.arg("--builtin").arg(format!("{name}@{weight}"));
            }
            Script::File(path, weight) => {
                // pgbench splits at the last `@`, which is always ours.
                let mut value = path.clone().into_os_string();
                value.push(format!("@{weight}"));
                command.arg("--file").arg(value);
            }
        }
    }
}

/// How long a load runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// So long, in whole seconds.
    Seconds(u32),
    /// So many transactions of each client.
    Transactions(u32),
}

/// A load.
#[derive(Clone, Debug)]
pub struct Load {
    /// Connections.
    pub clients: u32,
    /// Threads of pgbench.
    pub jobs: u32,
    /// How long.
    pub length: Length,
    /// Transactions per second to be started on average, at random times; latencies then count from the
    /// planned start. `None`: as fast as possible.
    pub rate: Option<f64>,
    /// What to run; empty: `tpcb-like`.
    pub scripts: Vec<Script>,
    /// Seed of pgbench's random numbers.
    pub seed: u64,
    /// Whether pgbench vacuums its small tables and empties `pgbench_history` beforehand.
    pub vacuum: bool,
    /// A folder for the log of all transactions, about 35 bytes each, which is removed after the run. It should
    /// lie on another file system than the server's. `None`: no log, and no percentiles.
    pub log_folder: Option<PathBuf>,
    /// Further arguments, such as `--protocol=prepared` or `--max-tries=5`. What changes the log
    /// (`--aggregate-interval`, `--sampling-rate`) goes with no log only.
    pub args: Vec<OsString>,
}

impl Load {
    /// `tpcb-like` with these clients, one thread each two clients, for a length.
    pub fn new(clients: u32, length: Length) -> Self {
        Load {
            clients,
            jobs: clients.div_ceil(2).max(1),
            length,
            rate: None,
            scripts: Vec::new(),
            seed: 1,
            vacuum: false,
            log_folder: None,
            args: Vec::new(),
        }
    }
}

/// What a load came to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// What pgbench printed.
    pub summary: Summary,
    /// Percentiles over all transactions, if they were logged.
    pub latencies: Option<Latencies>,
}

/// Makes and fills pgbench's tables; gives the time that it took.
///
/// # Errors
/// [`Error::ProgramFailed`], [`Error::DiskFull`], [`Error::Interrupted`].
pub fn initialise(
    programs: &Programs,
    dsn: &Dsn,
    initialise: &Initialise,
    cancel: &Cancel,
    progress: &mut dyn FnMut(LoadProgress),
) -> Result<Duration> {
    let mut command = Command::new(programs.pgbench());
    command.args(["--initialize", "--scale", &initialise.scale.to_string()]);
    command.args(&initialise.args);
    prepare(&mut command, dsn);
    let start = Instant::now();
    let output = child::run(&mut command, cancel, &mut |line| {
        if let Some(at) = parse_load_progress(line) {
            progress(at);
        }
    })?;
    output.success("pgbench --initialize")?;
    Ok(start.elapsed())
}

/// Runs a load to its end.
///
/// # Errors
/// [`Error::ProgramFailed`], also if single clients gave up; [`Error::DiskFull`], [`Error::Interrupted`];
/// [`Error::Unreadable`], also if the log lacks transactions; [`Error::BadSetting`] for a rate that is none.
pub fn run(
    programs: &Programs,
    dsn: &Dsn,
    load: &Load,
    cancel: &Cancel,
    progress: &mut dyn FnMut(RunProgress),
) -> Result<Outcome> {
    if let Some(rate) = load.rate
        && !(rate.is_finite() && rate > 0.0)
    {
        return Err(Error::BadSetting { name: "rate".to_owned(), why: "not a positive number" });
    }
    let logs = match &load.log_folder {
        Some(folder) => Some(
            tempfile::Builder::new()
                .prefix("shelflife-pgbench-")
                .permissions(Permissions::from_mode(0o700))
                .tempdir_in(folder)
                .map_err(|source| Error::io("cannot make a folder in", folder, source))?,
        ),
        None => None,
    };
    let mut command = Command::new(programs.pgbench());
    arguments(&mut command, load, logs.as_ref().map(tempfile::TempDir::path));
    prepare(&mut command, dsn);
    let output = child::run(&mut command, cancel, &mut |line| {
        if let Some(at) = parse_run_progress(line) {
            progress(at);
        }
    })?;
    let output = output.success("pgbench")?;
    let summary = Summary::parse(&output.stdout)?;
    let latencies = match &logs {
        Some(folder) => Some(Latencies::read_folder(folder.path(), cancel)?),
        None => None,
    };
    let logged = latencies.as_ref().map(|found| found.all.map_or(0, |all| all.count));
    if let Some(logged) = logged
        && logged != summary.transactions
    {
        // pgbench does not notice that its log could not be written.
        return Err(Error::Unreadable {
            source_name: "pgbench's log".to_owned(),
            why: "it lacks transactions; is there room in its folder?",
            line: format!("{logged} of {}", summary.transactions),
        });
    }
    Ok(Outcome { summary, latencies })
}

fn arguments(command: &mut Command, load: &Load, logs: Option<&Path>) {
    let mut option = |name: &str, value: String| {
        command.arg(name).arg(value);
    };
    option("--client", load.clients.to_string());
    // More threads than clients are not used, but draw a warning in some versions.
    option("--jobs", load.jobs.clamp(1, load.clients.max(1)).to_string());
    match load.length {
        Length::Seconds(seconds) => option("--time", seconds.to_string()),
        Length::Transactions(count) => option("--transactions", count.to_string()),
    }
    option("--random-seed", load.seed.to_string());
    // Also makes pgbench print the standard deviation.
    option("--progress", "1".to_owned());
    if let Some(rate) = load.rate {
        option("--rate", rate.to_string());
    }
    if !load.vacuum {
        command.arg("--no-vacuum");
    }
    for script in &load.scripts {
        script.give_to(command);
    }
    if let Some(logs) = logs {
        command.arg("--log").arg("--log-prefix").arg(logs.join(latency::PREFIX));
    }
    command.args(&load.args);
}

fn prepare(command: &mut Command, dsn: &Dsn) {
    child::clean_environment(command);
    dsn.give_to(command);
}

/// `100000 of 200000 tuples (50%) done (elapsed 0.05 s, remaining 0.05 s)`; newer versions name the table
/// after `(50%)`.
fn parse_load_progress(line: &str) -> Option<LoadProgress> {
    let (counts, _) = line.split_once(" tuples (")?;
    let (rows, total) = counts.split_once(" of ")?;
    Some(LoadProgress { rows: rows.trim().parse().ok()?, total: total.parse().ok()? })
}

/// `progress: 6.0 s, 4315.5 tps, lat 1.850 ms stddev 1.324, 0 failed`; the last part since 15.
fn parse_run_progress(line: &str) -> Option<RunProgress> {
    let mut parts = line.strip_prefix("progress: ")?.split(", ");
    let seconds = parts.next()?.strip_suffix(" s")?.parse().ok()?;
    let tps = parts.next()?.strip_suffix(" tps")?.parse().ok()?;
    let latency = parts.next()?.strip_prefix("lat ")?.split(' ').next()?;
    Some(RunProgress { seconds, tps, latency_ms: latency.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_follow_the_last_at() {
        let read = |text: &str| text.parse::<Script>().unwrap();
        assert_eq!(read("a.sql"), Script::File("a.sql".into(), 1));
        assert_eq!(read("a.sql@3"), Script::File("a.sql".into(), 3));
        assert_eq!(read("me@home/a.sql"), Script::File("me@home/a.sql".into(), 1));
        assert_eq!(read("me@home/a.sql@0"), Script::File("me@home/a.sql".into(), 0));
        assert_eq!(read("@3"), Script::File("@3".into(), 1));
        assert_eq!(read("a.sql@3").to_string(), "a.sql@3");
    }

    #[test]
    fn progress_lines_of_all_versions_are_read() {
        for line in [
            "100000 of 200000 tuples (50%) done (elapsed 0.05 s, remaining 0.05 s)",
            "100000 of 200000 tuples (50%) of pgbench_accounts done (elapsed 0.05 s, remaining 0.05 s)",
        ] {
            assert_eq!(
                parse_load_progress(line),
                Some(LoadProgress { rows: 100_000, total: 200_000 })
            );
        }
        assert_eq!(parse_load_progress("generating data (client-side)..."), None);
        let expected = RunProgress { seconds: 6.0, tps: 4315.5, latency_ms: 1.85 };
        for line in [
            "progress: 6.0 s, 4315.5 tps, lat 1.850 ms stddev 1.324",
            "progress: 6.0 s, 4315.5 tps, lat 1.850 ms stddev 1.324, 0 failed",
            "progress: 6.0 s, 4315.5 tps, lat 1.850 ms stddev 1.324, 0 failed, lag 0.1 ms, 2 skipped",
        ] {
            assert_eq!(parse_run_progress(line), Some(expected));
        }
        assert_eq!(parse_run_progress("pgbench: error: client 0 aborted"), None);
    }

    #[test]
    fn arguments_say_what_the_load_says() {
        let mut load = Load::new(4, Length::Seconds(10));
        load.rate = Some(50.5);
        load.seed = 7;
        load.jobs = 9;
        load.scripts =
            vec![Script::Builtin("simple-update".into(), 2), Script::File("a@b.sql".into(), 1)];
        let mut command = Command::new("pgbench");
        arguments(&mut command, &load, Some(Path::new("/logs")));
        let given: Vec<_> = command.get_args().map(|arg| arg.to_str().unwrap()).collect();
        assert_eq!(
            given.join(" "),
            "--client 4 --jobs 4 --time 10 --random-seed 7 --progress 1 --rate 50.5 --no-vacuum \
             --builtin simple-update@2 --file a@b.sql@1 --log --log-prefix /logs/transactions"
        );
    }
}
