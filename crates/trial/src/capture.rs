//! A scenario's load, recorded without hints on a file system of its own, until that has been written
//! over some times: what a drive would make of it can then be computed for any policy.
//!
//! Invariants: a trace is there and whole if the caller gets [`Captured`]; whatever happens, server,
//! mount and image go. Ratios are those of a real drive: a database of a third of it, WAL of a
//! thirteenth between two checkpoints, the rest cold.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use shelflife_postgres::pgbench::{self, Length, Load};
use shelflife_postgres::programs::Search;
use shelflife_postgres::{Cancel, Programs, Session};
use shelflife_run::Hook;
use shelflife_trace::Volume;

use crate::error::{Error, Result};
use crate::filesystem::{Kind, Wanted};
use crate::machine::Machine;
use crate::record::SettingAt;
use crate::recording::{Running, can_record};
use crate::scenario::Scenario;
use crate::server::settings::megabytes;
use crate::server::{Own, Server, own};
use crate::spec::{Preset, Spec, Wishes};
use crate::trial::SCRIPTS;

/// Of the file system: tables and what the load makes of them; WAL between two checkpoints, and at
/// most where a scenario asks for more; WAL that a slot may keep.
const DATABASE: f64 = 0.35;
const WAL: f64 = 0.075;
const MOST_WAL: f64 = 0.25;
const MOST_KEPT: f64 = 0.15;

/// PostgreSQL's least, with segments of 16 MiB, and then one.
const LEAST_WAL_MB: u32 = 48;
const CLIENTS: u32 = 4;
/// By time, in s: what WAL does not bring about.
const CHECKPOINT_TIMEOUT_S: u32 = 60;
/// The load is looked at after so many seconds.
const SLICE_S: u32 = 10;
/// How long pgbench's sessions may take to go, after pgbench has.
const GONE_LIMIT: Duration = Duration::from_secs(30);
/// pgbench's history is emptied at this share of the file system: it would grow without end.
const MOST_HISTORY: f64 = 0.02;

/// What is to be recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Capture {
    /// The scenario, as [`Scenario::find`] takes it.
    pub scenario: String,
    /// The file system.
    pub kind: Kind,
    /// Its size in bytes.
    pub size: u64,
    /// How full it is at the most while the load runs, 0 to 0.98, cold data included.
    pub fill: f64,
    /// Load before the recording, which shows how much room the load takes.
    pub warm_up: Duration,
    /// The recording ends once so many bytes have been written,
    pub bytes: u64,
    /// or after this time.
    pub limit: Duration,
}

/// Where, and with what.
#[derive(Clone, Debug)]
pub struct CapturePlace {
    /// A folder for server and image, which any user can enter; what an earlier capture that was
    /// killed left in it is ended and removed first.
    pub work: PathBuf,
    /// The trace; must not exist.
    pub trace: PathBuf,
    /// The hook, which sets nothing here: the server is started as in a trial.
    pub hook: Hook,
    /// Who runs the server, if this process is root; else `postgres` or `nobody`.
    pub user: Option<String>,
    /// Where PostgreSQL's programs are, if not at a usual place.
    pub bindir: Option<PathBuf>,
    /// Ends it early.
    pub cancel: Cancel,
}

/// What was recorded.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Captured {
    /// The scenario with its variant.
    pub scenario: String,
    /// What it shows.
    pub shows: String,
    /// The classes that it is for, of which no byte reached the device.
    pub not_exercised: Vec<String>,
    /// Bytes of the file system, as `statvfs` has them.
    pub bytes: u64,
    /// Of these in use when the recording began, cold data included.
    pub used_bytes: u64,
    /// Cold data that were added.
    pub cold_bytes: u64,
    /// Bytes written in the recording.
    pub written_bytes: u64,
    /// Its length.
    pub seconds: f64,
    /// Whether as much was written as was wanted.
    pub enough: bool,
    /// Events of the trace.
    pub events: u64,
    /// Of these, discards.
    pub discards: u64,
    /// Events that the recorder lost.
    pub lost: u64,
    /// Share of the bytes with their file, 0 to 1; `None` if nothing was written.
    pub attributed: Option<f64>,
    /// Bytes by class, most first.
    pub blocks: Vec<Volume>,
    /// pgbench's scale.
    pub scale: u32,
    /// Connections.
    pub clients: u32,
    /// The machine, with the file system.
    pub machine: Machine,
    /// The server's version.
    pub server: String,
    /// Settings that decide how much is written.
    pub settings: Vec<SettingAt>,
}

/// Hears of a step and the share of it that is done.
pub type CaptureSteps<'s> = &'s mut dyn FnMut(&'static str, Option<f64>);

impl Capture {
    /// Everything that can be wrong with it but the machine.
    ///
    /// # Errors
    ///
    /// [`Error::Spec`], and those of the scenario.
    pub fn check(&self) -> Result<()> {
        self.spec().map(|_| ())
    }

    fn share(&self, share: f64) -> u64 {
        (self.size as f64 * share) as u64
    }

    fn spec(&self) -> Result<Spec> {
        let scenario = Scenario::find(&self.scenario)?;
        let scale = self.share(DATABASE) / (u64::from(scenario.room_mb) * 1_000_000);
        let wishes = Wishes {
            preset: Preset::Standard,
            // a spec has two arms at least; neither is ever switched to
            policies: vec!["off".to_owned(), "off".to_owned()],
            scale: Some(u32::try_from(scale).unwrap_or(u32::MAX).max(1)),
            clients: Some(CLIENTS),
            seed: Some(1),
            scenario: Some(self.scenario.clone()),
            settings: self.within(&scenario.settings),
            filesystem: Some(Wanted {
                kind: self.kind,
                device: None,
                size: self.size,
                fill: Some(self.fill),
                dirty: scenario.dirty_mib.map(|mib| u64::from(mib) << 20),
                mount_options: "discard".to_owned(),
            }),
            ..Wishes::default()
        };
        let mut spec = Spec::new(&wishes)?;
        let wal_mb = self.share(WAL) >> 20;
        spec.max_wal_mb = u32::try_from(wal_mb).unwrap_or(u32::MAX).max(LEAST_WAL_MB);
        spec.checkpoint_timeout_s = CHECKPOINT_TIMEOUT_S;
        Ok(spec)
    }

    /// Sizes of WAL that a scenario sets for a large drive, as this one can hold them.
    fn within(&self, settings: &[(String, String)]) -> Vec<(String, String)> {
        let most = |name: &str| match name {
            "max_wal_size" | "min_wal_size" => Some(self.share(MOST_WAL) >> 20),
            "max_slot_wal_keep_size" => Some(self.share(MOST_KEPT) >> 20),
            _ => None,
        };
        let smaller = settings.iter().filter_map(|(name, value)| {
            let most = most(name)?.max(LEAST_WAL_MB.into());
            let larger = megabytes(value).is_none_or(|value| value > most);
            larger.then(|| (name.clone(), format!("{most}MB")))
        });
        smaller.collect()
    }
}

/// Records a scenario.
///
/// # Errors
///
/// [`Error`]; no trace is left then.
pub fn capture(
    capture: &Capture,
    place: &CapturePlace,
    steps: CaptureSteps<'_>,
) -> Result<Captured> {
    Wanted::check_permitted()?;
    let spec = capture.spec()?;
    let programs = Programs::find(&Search::new(place.bindir.clone()))?;
    let work = place.work.canonicalize().map_err(Error::io("cannot follow", &place.work))?;
    own::remove_leftover(&work, &place.cancel)?;
    steps("starting the server", None);
    let build = own::Build {
        dir: &work,
        programs,
        user: place.user.as_deref(),
        hook: &place.hook,
        keep: false,
        cancel: &place.cancel,
    };
    let mut server = Server::Own(Own::create(&build, &spec)?.into());
    let done = spec.write_scripts(&work.join(SCRIPTS)).and_then(|()| {
        let mut load = Loading { capture, spec: &spec, place, work: &work, slices: 0, most: 0 };
        load.run(&mut server, &mut *steps)
    });
    let done = done.map_err(|error| server.explain(error));
    if done.is_err() {
        // its own, or it would have been refused
        let _ = std::fs::remove_dir_all(&place.trace);
    }
    steps("cleaning up", None);
    let closed = server.close(&place.cancel);
    let _ = std::fs::remove_dir_all(work.join(SCRIPTS));
    let captured = done?;
    closed?;
    Ok(captured)
}

/// A capture under way.
struct Loading<'a> {
    capture: &'a Capture,
    spec: &'a Spec,
    place: &'a CapturePlace,
    work: &'a Path,
    /// Slices of load so far: each has random numbers of its own.
    slices: u64,
    /// Bytes of the file system in use, at most.
    most: u64,
}

impl Loading<'_> {
    fn run(&mut self, server: &mut Server, steps: CaptureSteps<'_>) -> Result<Captured> {
        let (capture, cancel) = (self.capture, &self.place.cancel);
        let target = can_record(server)?;
        steps("loading", None);
        let setup = self.spec.setup_in(&self.work.join(SCRIPTS));
        server.load(self.spec, setup, true, cancel, &mut |at| {
            steps("loading", Some(at.rows as f64 / at.total.max(1) as f64));
        })?;
        self.warm_up(server, &mut *steps)?;
        steps("adding cold data", None);
        let mut session = server.session(cancel)?;
        session.checkpoint()?;
        server.sync()?;
        let cold_bytes = self.fill(server)?;
        server.sync()?;
        let (bytes, used_bytes) = usage(server)?;
        let facts = server.facts(cancel)?;
        let machine = Machine::read(Path::new("/proc"), server.data().path())?;

        let running = Running::start(server, target, self.place.trace.clone(), None)?;
        let begun = Instant::now();
        let enough = loop {
            let written = running.written_bytes();
            if written >= capture.bytes {
                break true;
            }
            if begun.elapsed() >= capture.limit {
                break false;
            }
            self.slice(server, SLICE_S, &mut |_| {
                let written = running.written_bytes() as f64 / capture.bytes.max(1) as f64;
                let time = begun.elapsed().as_secs_f64() / capture.limit.as_secs_f64();
                steps("recording", Some(written.max(time).min(1.0)));
            })?;
        };
        steps("recording", Some(1.0));
        session.checkpoint()?;
        server.sync()?;
        let seconds = begun.elapsed().as_secs_f64();
        let recorded = running.stop()?;
        let reached = |class: &&String| {
            !recorded.blocks.iter().any(|block| block.class == **class && block.bytes > 0)
        };
        Ok(Captured {
            scenario: self.spec.scenario.clone().unwrap_or_default(),
            shows: Scenario::find(&capture.scenario)?.shows,
            not_exercised: self.spec.exercises.iter().filter(reached).cloned().collect(),
            bytes,
            used_bytes,
            cold_bytes,
            written_bytes: recorded.written_bytes,
            seconds,
            enough,
            events: recorded.events,
            discards: recorded.discards,
            lost: recorded.lost,
            attributed: recorded.attributed,
            blocks: recorded.blocks,
            scale: self.spec.scale,
            clients: self.spec.clients,
            machine,
            server: facts.version,
            settings: facts.settings,
        })
    }

    /// Load that is not recorded: WAL files get as many as they will be, tables as large.
    fn warm_up(&mut self, server: &mut Server, steps: CaptureSteps<'_>) -> Result<()> {
        let (begun, wanted) = (Instant::now(), self.capture.warm_up);
        self.note(server)?;
        while begun.elapsed() < wanted {
            let left = wanted.saturating_sub(begun.elapsed()).as_secs().max(1);
            // at most SLICE_S
            let seconds = left.min(SLICE_S.into()) as u32;
            self.slice(server, seconds, &mut |_| {
                let share = begun.elapsed().as_secs_f64() / wanted.as_secs_f64();
                steps("warming up", Some(share.min(1.0)));
            })?;
        }
        Ok(())
    }

    /// Cold data: with them the file system is as full as was wished when the load takes most room.
    fn fill(&mut self, server: &Server) -> Result<u64> {
        let Some(mounted) = server.mounted() else { return Ok(0) };
        let (bytes, _) = mounted.usage()?;
        let wanted = ((bytes as f64 * self.capture.fill) as u64).saturating_sub(self.most);
        mounted.archive(wanted, &self.place.cancel)
    }

    fn note(&mut self, server: &Server) -> Result<()> {
        self.most = self.most.max(usage(server)?.1);
        Ok(())
    }

    /// Some seconds of load; `tick` is called once a second.
    fn slice(
        &mut self,
        server: &mut Server,
        seconds: u32,
        tick: &mut dyn FnMut(f64),
    ) -> Result<()> {
        self.slices += 1;
        let mut load = Load::new(self.spec.clients, Length::Seconds(seconds));
        load.jobs = self.spec.jobs;
        load.scripts = self.spec.scripts_in(&self.work.join(SCRIPTS));
        load.seed = self.spec.seed.wrapping_add(self.slices);
        load.args = vec![format!("--define=scale={}", self.spec.scale).into()];
        let cancel = &self.place.cancel;
        let mut most = 0;
        let shared = &*server;
        pgbench::run(shared.programs(), &shared.dsn(), &load, cancel, &mut |at| {
            // a look that fails is made again in a second
            most = most.max(usage(shared).map_or(0, |usage| usage.1));
            tick(at.seconds);
        })?;
        self.most = self.most.max(most);
        after_slice(&mut server.session(cancel)?, self.capture.size)
    }
}

/// After a slice of load on a file system of `size` bytes: its sessions go, and a long history is emptied.
pub(crate) fn after_slice(session: &mut Session, size: u64) -> Result<()> {
    session.await_gone(pgbench::APPLICATION, GONE_LIMIT)?;
    let history: Option<i64> =
        session.one("SELECT pg_table_size(to_regclass('pgbench_history'))", &[])?;
    if history.is_some_and(|bytes| bytes as f64 > size as f64 * MOST_HISTORY) {
        session.batch("TRUNCATE pgbench_history")?;
    }
    Ok(())
}

/// Bytes of the server's own file system, and of these in use.
fn usage(server: &Server) -> Result<(u64, u64)> {
    server.mounted().map_or(Ok((0, 0)), |mounted| mounted.usage())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(scenario: &str) -> Capture {
        Capture {
            scenario: scenario.to_owned(),
            kind: Kind::Ext4,
            size: 2 << 30,
            fill: 0.9,
            warm_up: Duration::ZERO,
            bytes: 1 << 30,
            limit: Duration::from_secs(1),
        }
    }

    fn setting(spec: &Spec, name: &str) -> Option<String> {
        let settings = crate::server::settings::pinned(spec, 15);
        settings.iter().rfind(|setting| setting.0 == name).map(|setting| setting.1.clone())
    }

    #[test]
    fn ratios_are_those_of_a_real_drive() {
        let spec = of("tpcb").spec().unwrap();
        assert_eq!(spec.scale, 41);
        assert_eq!(setting(&spec, "max_wal_size").unwrap(), "153MB");
        assert_eq!(setting(&spec, "min_wal_size").unwrap(), "153MB");
        // the same scenario on a drive ten times as large
        let large = Capture { size: 20 << 30, ..of("tpcb") }.spec().unwrap();
        assert_eq!((large.scale, large.max_wal_mb), (417, 1536));
        let small = Capture { size: 512 << 20, ..of("unlogged") }.spec().unwrap();
        assert_eq!((small.scale, small.max_wal_mb), (3, 48));
    }

    #[test]
    fn what_a_scenario_sets_for_a_large_drive_is_made_smaller() {
        let retained = of("wal-retained").spec().unwrap();
        assert_eq!(setting(&retained, "max_slot_wal_keep_size").unwrap(), "307MB");
        let far = of("wal-share:far").spec().unwrap();
        assert_eq!(setting(&far, "max_wal_size").unwrap(), "512MB");
        assert_eq!(setting(&far, "checkpoint_timeout").unwrap(), "1h");
        let near = of("wal-share:near").spec().unwrap();
        assert_eq!(setting(&near, "max_wal_size").unwrap(), "256MB");
        for (text, expected) in
            [("80", Some(80)), ("2GB", Some(2048)), ("100kB", Some(0)), ("x", None), ("1PB", None)]
        {
            assert_eq!(megabytes(text), expected, "{text}");
        }
    }

    #[test]
    fn every_scenario_can_be_captured() {
        for scenario in Scenario::shipped().unwrap() {
            of(&scenario.name).check().unwrap();
            for variant in &scenario.variants {
                of(&format!("{}:{variant}", scenario.name)).check().unwrap();
            }
        }
        assert!(of("spil").check().unwrap_err().to_string().contains("tpcb"));
        let small = Capture { size: 1 << 20, ..of("tpcb") };
        assert!(small.check().unwrap_err().to_string().contains("512 MiB"));
    }
}
