//! The course of a trial on a server: load, age, rounds, end.
//!
//! Invariant: every round that ends is in the results before the next one begins, in the order of
//! the plan.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use shelflife_layout::Table;

use super::dir::Dir;
use super::{Options, SCRIPTS};
use crate::arm::Arm;
use crate::error::{Error, Result};
use crate::filesystem::home;
use crate::machine::free_space;
use crate::observer::{Observer, Phase, Progress};
use crate::probe::Probe;
use crate::record::{self, ProbeAt, Record, Round, What, Writer};
use crate::recording::Traces;
use crate::round::{Ended, Failures, Rounds};
use crate::server::{Server, same_file_system};
use crate::settling::Settling;
use crate::spec::{Preset, Spec};
use crate::stats::{Plan, Slot};

/// What a round takes beside its load, before one is measured.
const ROUND_EXTRA: Duration = Duration::from_secs(3);

/// A trial under way.
pub(crate) struct Trial<'a> {
    spec: &'a Spec,
    tables: Vec<Table>,
    options: &'a Options,
    dir: PathBuf,
    pub(crate) server: Server,
    pub(crate) observer: &'a mut dyn Observer,
    pub(super) traces: Option<Traces>,
    settling: Settling,
    /// Time of all rounds so far, and how many.
    taken: (Duration, u32),
}

impl<'a> Trial<'a> {
    pub(crate) fn new(
        spec: &'a Spec,
        options: &'a Options,
        dir: &Dir,
        server: Server,
        observer: &'a mut dyn Observer,
    ) -> Result<Trial<'a>> {
        let tables = spec.arms.iter().map(Arm::table).collect::<Result<_>>()?;
        spec.write_scripts(&dir.path.join(SCRIPTS))?;
        Ok(Trial {
            spec,
            tables,
            options,
            dir: dir.path.clone(),
            server,
            observer,
            traces: None,
            settling: Settling::default(),
            taken: (Duration::ZERO, 0),
        })
    }

    /// Makes ready to record, if that is wanted; what should be said of it. A trial that resumes does in this
    /// as it did `before`; a new one goes on without where recording is optional and not possible.
    pub(super) fn prepare_recording(&mut self, before: Option<bool>) -> Result<Vec<String>> {
        let Some(recording) = self.options.record.as_ref().filter(|_| before != Some(false)) else {
            return Ok(Vec::new());
        };
        match Traces::prepare(&recording.dir, &self.server, before.is_some()) {
            Ok(traces) => {
                let warning = traces.warning();
                self.traces = Some(traces);
                Ok(warning.into_iter().collect())
            }
            Err(Error::Record(error))
                if recording.optional && before.is_none() && error.is_denied() =>
            {
                Ok(vec![format!("the rounds are not recorded: {error}")])
            }
            Err(error) => Err(error),
        }
    }

    pub(super) fn warn(&mut self, writer: &mut Writer, text: String) -> Result<()> {
        self.observer.warn(&text);
        writer.event(What::Warning { text })
    }

    /// Load, age, then all rounds from `block` on.
    pub(super) fn begin(&mut self, writer: &mut Writer, block: usize) -> Result<()> {
        self.prepare(writer, block)?;
        self.fill(writer)?;
        self.rounds(writer, block)
    }

    /// Loads, ages and stops the cluster, which stays: the image that all epochs begin with. Gives whether it
    /// had settled.
    pub(crate) fn into_image(mut self, writer: &mut Writer) -> Result<bool> {
        let done = self.prepare(writer, 0).map_err(|error| self.server.explain(error));
        self.server.keep(done.is_ok());
        let settled = self.settling.is_settled();
        let closed = self.server.close(&self.options.cancel);
        done.and(closed).map(|()| settled)
    }

    /// Load, age.
    fn prepare(&mut self, writer: &mut Writer, block: usize) -> Result<()> {
        if block == 0 {
            self.say_beforehand(writer)?;
        }
        let total = self.spec.rounds();
        let left = self.planned(block);
        let observer = &mut *self.observer;
        let mut say = |share: Option<f64>| {
            observer.progress(&Progress {
                phase: Phase::Loading,
                share,
                round: None,
                rounds: total,
                left,
            });
        };
        say(None);
        let setup = self.spec.setup_in(&self.dir.join(SCRIPTS));
        // An epoch is too long for tables that nobody vacuums.
        let autovacuum = self.spec.device().is_some();
        self.server.load(self.spec, setup, autovacuum, &self.options.cancel, &mut |at| {
            say(Some(at.rows as f64 / at.total.max(1) as f64));
        })?;
        self.age(writer, block)
    }

    /// What is known to limit the trial before it begins.
    fn say_beforehand(&mut self, writer: &mut Writer) -> Result<()> {
        for arm in &self.spec.arms {
            let findings = arm.parsed()?.map(|policy| policy.check()).unwrap_or_default();
            for finding in findings.iter().filter(|finding| finding.fails()) {
                let text = format!("policy {}: {}", arm.label, finding.text);
                self.warn(writer, text)?;
            }
        }
        let short = !self.spec.can_span_checkpoints() && self.spec.device().is_none();
        if short && self.spec.preset != Preset::Quick {
            self.warn(
                writer,
                format!(
                    "rounds of {} s do not span two whole checkpoints {} s apart, unless WAL forces \
                     them: no claim is made about checkpoints",
                    self.spec.seconds, self.spec.checkpoint_timeout_s
                ),
            )?;
        }
        if let Server::Running(running) = &self.server
            && !same_file_system(&self.dir, running.data().path())
        {
            let text = "the storage is probed in --dir, which lies on another file system than the \
                        server's data";
            self.warn(writer, text.to_owned())?;
        }
        Ok(())
    }

    fn age(&mut self, writer: &mut Writer, block: usize) -> Result<()> {
        self.settling = Settling::default();
        let Some((arm, table)) = self.spec.arms.first().zip(self.tables.first()) else {
            return Ok(());
        };
        self.server.switch(arm, table, &self.options.cancel)?;
        let rounds = self.shared(&self.tables, None);
        let (total, left) = (self.spec.rounds(), self.planned(block));
        let mut gauges = shelflife_postgres::Gauges::default();
        let mut number = 0;
        while number < self.spec.ageing.most_rounds && !self.settling.is_settled() {
            let observer = &mut *self.observer;
            let done = f64::from(number) / f64::from(self.spec.ageing.most_rounds);
            gauges = rounds.age(&mut self.server, number, &mut |_, share| {
                let part = share.unwrap_or(0.0) / f64::from(self.spec.ageing.most_rounds);
                observer.progress(&Progress {
                    phase: Phase::Ageing,
                    share: Some(done + part),
                    round: None,
                    rounds: total,
                    left,
                });
            })?;
            self.settling.note(&gauges);
            number += 1;
        }
        let settled = self.settling.is_settled();
        writer.event(What::Aged { rounds: number, settled, gauges })
    }

    /// All rounds from `block` on, in a cluster that was there already.
    pub(super) fn go_on(&mut self, writer: &mut Writer, block: usize, filled: bool) -> Result<()> {
        if !filled {
            self.fill(writer)?;
        }
        self.rounds(writer, block)
    }

    /// Cold data beside the database, until the trial's file system is as full as was wished.
    fn fill(&mut self, writer: &mut Writer) -> Result<()> {
        let wanted = self.spec.filesystem.as_ref().and_then(|wanted| wanted.fill);
        let (Some(fill), Some(mounted)) = (wanted, self.server.mounted()) else { return Ok(()) };
        let bytes = mounted.fill(fill, &self.options.cancel)?;
        writer.event(What::Filled { bytes, share: fill })
    }

    fn shared<'t>(&self, tables: &'t [Table], traces: Option<&'t Traces>) -> Rounds<'t>
    where
        'a: 't,
    {
        let scripts = self.spec.scripts_in(&self.dir.join(SCRIPTS));
        Rounds {
            spec: self.spec,
            tables,
            logs: log_folder(&self.dir, self.spec),
            scripts,
            traces,
            cancel: &self.options.cancel,
        }
    }

    /// All rounds from `block` on.
    fn rounds(&mut self, writer: &mut Writer, block: usize) -> Result<()> {
        let plan = Plan::new(self.spec.arms.len(), self.spec.blocks, self.spec.seed)?;
        let (tables, traces) = (std::mem::take(&mut self.tables), self.traces.take());
        let rounds = self.shared(&tables, traces.as_ref());
        let mut failures = Failures::default();
        let mut probed = None;
        for slot in plan.slots().filter(|slot| slot.block >= block) {
            if probed.replace(slot.block) != Some(slot.block) {
                self.probe(writer, slot)?;
            }
            let round = self.round(&rounds, slot)?;
            self.observer.round(&round);
            let failed = round.failed.clone();
            writer.write(&Record::Round(Box::new(round)))?;
            failures.note(failed)?;
        }
        writer.event(What::Finished)
    }

    fn probe(&mut self, writer: &mut Writer, slot: Slot) -> Result<()> {
        self.observer.progress(&Progress {
            phase: Phase::Probing,
            share: None,
            round: Some((slot.position as usize + 1, "")),
            rounds: self.spec.rounds(),
            left: Some(self.left(slot)),
        });
        let probe = Probe::measure(&home(&self.dir), self.spec.probe(), &self.options.cancel)?;
        writer.write(&Record::Probe(ProbeAt { at: record::now(), block: slot.block, probe }))
    }

    fn round(&mut self, rounds: &Rounds<'_>, slot: Slot) -> Result<Round> {
        let label = self.spec.arms.get(slot.arm).map_or("", |arm| &arm.label);
        let transient = !self.settling.is_settled();
        let begun = Instant::now();
        let (left, total) = (self.left(slot), self.spec.rounds());
        let observer = &mut *self.observer;
        let ended = rounds.run(&mut self.server, slot, &mut |phase, share| {
            observer.progress(&Progress {
                phase,
                share,
                round: Some((slot.position as usize + 1, label)),
                rounds: total,
                left: Some(left.saturating_sub(begun.elapsed())),
            });
        })?;
        self.taken = (self.taken.0 + begun.elapsed(), self.taken.1 + 1);
        if let Ended::Measured(measured) = &ended {
            self.settling.note(&measured.after);
        }
        Ok(ended.round(slot, label, begun.elapsed(), transient))
    }

    /// The time that everything from `block` on will take, before a round was measured.
    /// That of epochs is not known.
    fn planned(&self, block: usize) -> Option<Duration> {
        if self.spec.device().is_some() {
            return None;
        }
        let rounds = (self.spec.blocks.saturating_sub(block) * self.spec.arms.len()) as u32;
        let ageing = self.spec.ageing.seconds.saturating_mul(self.spec.ageing.most_rounds);
        Some(self.per_round() * rounds + Duration::from_secs(ageing.into()))
    }

    fn per_round(&self) -> Duration {
        match self.taken {
            (_, 0) => {
                let load = u64::from(self.spec.seconds) + u64::from(self.spec.warm_up_s);
                Duration::from_secs(load) + ROUND_EXTRA
            }
            (time, rounds) => time / rounds,
        }
    }

    fn left(&self, slot: Slot) -> Duration {
        let rounds = (self.spec.rounds() as u32).saturating_sub(slot.position);
        let blocks = (self.spec.blocks - slot.block.min(self.spec.blocks)) as u32;
        self.per_round() * rounds + self.spec.probe() * blocks
    }

    /// Ends the server and writes down how it went.
    pub(super) fn finish(mut self, mut writer: Writer, done: Result<()>) -> Result<()> {
        let done = done.map_err(|error| self.server.explain(error));
        self.observer.progress(&Progress {
            phase: Phase::Closing,
            share: None,
            round: None,
            rounds: self.spec.rounds(),
            left: None,
        });
        if let Err(error) = &done {
            // On a full disk this fails too; the error itself is what matters.
            let _ = writer.event(What::Ended { why: error.to_string() });
        }
        self.server.keep(self.options.keep);
        let closed = self.server.close(&self.options.cancel);
        let _ = fs::remove_dir_all(self.dir.join(SCRIPTS));
        done.and(closed)
    }
}

/// Memory for pgbench's log if there is enough of it, so that the log is not measured too.
fn log_folder(dir: &Path, spec: &Spec) -> PathBuf {
    const LINE: u64 = 40;
    const FASTEST: u64 = 50_000;
    let memory = Path::new("/dev/shm");
    let needed = u64::from(spec.seconds).saturating_mul(FASTEST * LINE);
    let writable = tempfile::tempfile_in(memory).is_ok();
    match free_space(memory) {
        Ok(free) if writable && free > needed => memory.to_owned(),
        _ => dir.to_owned(),
    }
}
