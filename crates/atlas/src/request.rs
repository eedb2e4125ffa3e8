//! What is asked of an atlas, and how far it is.
//!
//! Invariant: a request that passes [`Request::check`] fails only for reasons of the machine.

use std::path::PathBuf;
use std::time::Duration;

use shelflife_postgres::Cancel;
use shelflife_run::Hook;
use shelflife_ssd::{Drive, Transport};
use shelflife_trial::filesystem::Kind;
use shelflife_trial::{Capture, Scenario};

use crate::Error;
use crate::folder;
use crate::recorded;

/// The drives that are judged if none is named: little spare and small units, little spare and large
/// units, much spare; each can be told hints.
pub const DRIVES: [&str; 3] = ["ufs-5-groups", "fdp-8-initial", "warp-samsung"];

/// The longest load before a recording.
const WARM_UP: Duration = Duration::from_secs(60);

/// What is asked.
#[derive(Clone, Debug)]
pub struct Request {
    /// The atlas's folder; made if it is not there.
    pub folder: PathBuf,
    /// Scenarios, as [`Scenario::find`] takes them.
    pub scenarios: Vec<String>,
    /// The drives.
    pub drives: Vec<Drive>,
    /// How hints reach them, whatever their profiles say.
    pub transport: Option<Transport>,
    /// The file system.
    pub kind: Kind,
    /// Its size in bytes.
    pub size: u64,
    /// How full it is, 0 to 0.98.
    pub fill: f64,
    /// A recording ends once the file system's size has been written so many times,
    pub writes: f64,
    /// or after this time.
    pub limit: Duration,
    /// Memory that simulations may use, in bytes, if there is a limit.
    pub memory_bytes: Option<u64>,
    /// The hook, under which servers are started.
    pub hook: Hook,
    /// Who runs servers, if this process is root; else `postgres` or `nobody`.
    pub user: Option<String>,
    /// Where PostgreSQL's programs are, if not at a usual place.
    pub bindir: Option<PathBuf>,
    /// Ends it early.
    pub cancel: Cancel,
}

/// The names of all scenarios that come along, without variants.
///
/// # Errors
///
/// None that a test of them has not excluded.
pub fn scenarios() -> Result<Vec<String>, Error> {
    Ok(Scenario::shipped()?.into_iter().map(|scenario| scenario.name).collect())
}

impl Request {
    /// What to record for a scenario.
    pub fn capture(&self, scenario: &str) -> Capture {
        Capture {
            scenario: scenario.to_owned(),
            kind: self.kind,
            size: self.size,
            fill: self.fill,
            warm_up: WARM_UP.min(self.limit / 5),
            bytes: (self.size as f64 * self.writes) as u64,
            limit: self.limit,
        }
    }

    /// About how many bytes the recordings that are missing will write to a disk: 0 if there is memory
    /// for their file systems. Loading, warming up and cold data are about three times the size.
    pub fn to_be_written(&self) -> u64 {
        if folder::in_memory(self.size) {
            return 0;
        }
        let missing = self.scenarios.iter().filter(|scenario| {
            !recorded::facts(&self.folder.join(folder::name(scenario))).exists()
        });
        (missing.count() as f64 * self.size as f64 * (self.writes + 3.0)) as u64
    }

    /// How hints reach a drive.
    pub fn transport(&self, drive: &Drive) -> Transport {
        self.transport.unwrap_or(drive.transport)
    }

    /// Everything that can be wrong with it but the machine.
    ///
    /// # Errors
    ///
    /// [`Error::Request`], and those of scenarios.
    pub fn check(&self) -> Result<(), Error> {
        let wrong = |text: String| Err(Error::Request(text));
        if self.scenarios.is_empty() || self.drives.is_empty() {
            return wrong("an atlas needs a scenario and a drive at least".to_owned());
        }
        if !(0.1..=1000.0).contains(&self.writes) {
            return wrong(format!(
                "--writes {}: 0.1 to 1000 times the size make sense",
                self.writes
            ));
        }
        if self.limit < Duration::from_secs(1) {
            return wrong("--seconds: at least 1".to_owned());
        }
        for (at, scenario) in self.scenarios.iter().enumerate() {
            self.capture(scenario).check()?;
            let name = folder::name(scenario);
            let twice = self.scenarios.iter().take(at).find(|other| folder::name(other) == name);
            if let Some(other) = twice {
                return wrong(format!("{scenario} and {other} would lie in one folder, {name}"));
            }
        }
        for (at, drive) in self.drives.iter().enumerate() {
            if self.drives.iter().take(at).any(|other| other.name == drive.name) {
                return wrong(format!("two drives are called {}", drive.name));
            }
            let (transport, streams) = (self.transport(drive), drive.streams);
            let arrives = shelflife_lifetime::Lifetime::ALL.into_iter().any(|lifetime| {
                transport.stream(lifetime, streams)
                    != transport.stream(shelflife_lifetime::Lifetime::NotSet, streams)
            });
            if !arrives {
                return wrong(format!(
                    "no hint arrives at drive {} (transport {}, streams: {streams}): choose another, \
                     or --transport",
                    drive.name,
                    transport.name(),
                ));
            }
        }
        Ok(())
    }
}

/// How far it is.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// The scenario.
    pub scenario: String,
    /// What is done with it: `recording`, `judging on ufs-5-groups`.
    pub step: String,
    /// Share of the whole atlas that is done, 0 to 1.
    pub share: f64,
    /// The time left, once it can be told.
    pub left: Option<Duration>,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A request that passes, in `folder`, with a hook that is none.
    pub(crate) fn request(folder: &std::path::Path) -> Request {
        let hook = folder.join("hook.so");
        std::fs::write(&hook, "").unwrap();
        Request {
            folder: folder.join("atlas"),
            scenarios: vec!["tpcb".to_owned(), "wal-share:near".to_owned()],
            drives: vec![Drive::named("ufs-5-groups").unwrap()],
            transport: None,
            kind: Kind::Ext4,
            size: 1 << 30,
            fill: 0.9,
            writes: 5.0,
            limit: Duration::from_secs(10),
            memory_bytes: None,
            hook: Hook::at(&hook).unwrap(),
            user: None,
            bindir: None,
            cancel: Cancel::never(),
        }
    }

    #[test]
    fn what_makes_no_sense_is_said_before_anything_is_done() {
        let folder = tempfile::tempdir().unwrap();
        let good = request(folder.path());
        good.check().unwrap();
        assert_eq!(good.capture("tpcb").warm_up, Duration::from_secs(2));
        let told = |request: Request| request.check().unwrap_err().to_string();
        let twice = vec!["tpcb".to_owned(), "tpcb".to_owned()];
        assert!(told(Request { scenarios: twice, ..good.clone() }).contains("one folder"));
        let unknown = vec!["tpc".to_owned()];
        assert!(told(Request { scenarios: unknown, ..good.clone() }).contains("there is tpcb"));
        let deaf = vec![Drive::named("consumer-7").unwrap()];
        assert!(told(Request { drives: deaf, ..good.clone() }).contains("no hint arrives"));
        assert!(told(Request { writes: f64::NAN, ..good.clone() }).contains("--writes"));
        assert!(told(Request { size: 1, ..good.clone() }).contains("--size"));
        // a size that fits into no memory
        let large = Request { size: 1 << 50, ..good };
        assert_eq!(large.to_be_written(), 16 << 50);
        for name in DRIVES {
            let drives = vec![Drive::named(name).unwrap()];
            Request { drives, ..request(folder.path()) }.check().unwrap();
        }
        assert!(scenarios().unwrap().contains(&"wal-retained".to_owned()));
    }
}
