//! One round, from the switch to its own last checkpoint.
//!
//! Invariant: a round ends under its own policy. When [`Rounds::run`] returns, all that the load
//! dirtied has gone to the storage with the hints of this arm, and the counters have been read;
//! only then may the next round switch.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use shelflife_layout::Table;
use shelflife_postgres::pgbench::{self, Length, Load, Outcome, Script};
use shelflife_postgres::{Cancel, Counters, Gauges, Session};

use crate::error::{Error, Result};
use crate::machine::{Snapshot, free_space};
use crate::observer::Phase;
use crate::record::{self, Hints, Measured, Opened, Recorded, Round};
use crate::recording::Traces;
use crate::server::{Server, check_hints};
use crate::spec::{Primary, Spec};
use crate::stats::Slot;

/// A server with less room is about to stop, in bytes.
const LEAST_ROOM: u64 = 100_000_000;

/// So many failed rounds in a row mean that the next ones will fail too.
const MOST_FAILURES: usize = 3;

/// How long pgbench's sessions may take to go, after pgbench has.
const GONE_LIMIT: Duration = Duration::from_secs(30);

/// What all rounds share.
pub(crate) struct Rounds<'a> {
    pub(crate) spec: &'a Spec,
    pub(crate) tables: &'a [Table],
    /// Where pgbench logs its transactions: another file system than the server's, if possible.
    pub(crate) logs: PathBuf,
    pub(crate) scripts: Vec<Script>,
    /// Where the rounds are recorded, if they are.
    pub(crate) traces: Option<&'a Traces>,
    pub(crate) cancel: &'a Cancel,
}

/// Why a round has no figures, though the trial can go on.
pub(crate) enum Ended {
    Measured(Box<Measured>),
    Failed(String),
}

impl Ended {
    /// The record of it.
    pub(crate) fn round(self, slot: Slot, label: &str, took: Duration, transient: bool) -> Round {
        let (measured, failed) = match self {
            Ended::Measured(measured) => (Some(measured), None),
            Ended::Failed(why) => (None, Some(why)),
        };
        Round {
            at: record::now(),
            position: slot.position,
            block: slot.block,
            arm: slot.arm,
            label: label.to_owned(),
            took_s: took.as_secs_f64(),
            transient,
            measured,
            failed,
        }
    }
}

/// Failed rounds in a row.
#[derive(Debug, Default)]
pub(crate) struct Failures(usize);

impl Failures {
    /// Notes how a round ended.
    ///
    /// # Errors
    ///
    /// [`Error::RoundsFail`] if so many failed that the next ones will fail too.
    pub(crate) fn note(&mut self, failed: Option<String>) -> Result<()> {
        self.0 = if failed.is_some() { self.0 + 1 } else { 0 };
        match failed {
            Some(last) if self.0 >= MOST_FAILURES => Err(Error::RoundsFail { count: self.0, last }),
            _ => Ok(()),
        }
    }
}

/// Hears of a step and the share of it that is done.
pub(crate) type Steps<'s> = &'s mut dyn FnMut(Phase, Option<f64>);

impl Rounds<'_> {
    /// Runs a round.
    pub(crate) fn run(&self, server: &mut Server, slot: Slot, steps: Steps<'_>) -> Result<Ended> {
        let (Some(arm), Some(table)) = (self.spec.arms.get(slot.arm), self.tables.get(slot.arm))
        else {
            return Err(Error::Spec(format!("there is no arm {}", slot.arm)));
        };
        check_room(server)?;
        if let Server::Running(running) = server {
            running.check(self.cancel)?;
        }
        steps(Phase::Switching, None);
        let mut hints = server.switch(arm, table, self.cancel)?;
        let mut session = server.session(self.cancel)?;
        let data = server.data().path().to_owned();
        match check_hints(&data, table) {
            Ok(count) => hints.checked_before = count,
            Err(wrong) => return Ok(Ended::Failed(wrong)),
        }
        steps(Phase::Preparing, None);
        prepare(&mut session)?;
        // The next one may only begin after a checkpoint: full-page images are many after one.
        session.checkpoint()?;

        steps(Phase::WarmingUp, None);
        match self.warm_up(server, slot, &data, table, steps)? {
            Ok(count) => hints.checked_under_load = count,
            Err(wrong) => {
                self.end(server, &mut session, steps)?;
                return Ok(Ended::Failed(wrong));
            }
        }
        session.await_gone(pgbench::APPLICATION, GONE_LIMIT)?;

        let recording = match self.traces {
            Some(traces) => Some(traces.start(server, slot, arm)?),
            None => None,
        };
        let before = session.gauges()?;
        let opened = server.opened()?;
        let counters = session.counters()?;
        let machine = Snapshot::read(Path::new("/proc"));
        let begun = Instant::now();
        steps(Phase::Measuring, Some(0.0));
        let load = self.load(slot, self.spec.seconds, true);
        let outcome = self.pgbench(server, &load, Phase::Measuring, steps);
        let machine = Snapshot::read(Path::new("/proc")).since(&machine, begun.elapsed());
        session.await_gone(pgbench::APPLICATION, GONE_LIMIT)?;
        let during = session.counters()?.since(&counters);
        let opened = newly_opened(&opened, server.opened()?);

        let after = self.end(server, &mut session, steps)?;
        let recorded = match recording {
            Some(recording) => Some(recording.stop()?),
            None => None,
        };
        let whole = session.counters()?.since(&counters);
        let outcome = match outcome? {
            Ok(outcome) => outcome,
            Err(failed) => return Ok(Ended::Failed(failed)),
        };
        let figures =
            Figures { outcome, during, whole, before, after, hints, opened, machine, recorded };
        Ok(figures.measured(self.spec))
    }

    /// A load that is not measured, from the database's first state on; the state at its end.
    pub(crate) fn age(&self, server: &mut Server, number: u32, steps: Steps<'_>) -> Result<Gauges> {
        let mut session = server.session(self.cancel)?;
        prepare(&mut session)?;
        let slot = Slot { position: u32::MAX - number, block: 0, arm: 0 };
        let load = Load {
            seed: u64::from(number) + 1,
            ..self.load(slot, self.spec.ageing.seconds, false)
        };
        match self.pgbench(server, &load, Phase::Ageing, steps)? {
            Ok(_) => {}
            // What fails now would fail in every round.
            Err(failed) => return Err(Error::Spec(failed)),
        }
        session.await_gone(pgbench::APPLICATION, GONE_LIMIT)?;
        self.end(server, &mut session, steps)
    }

    /// Everything to the storage, under the policy in force.
    fn end(&self, server: &Server, session: &mut Session, steps: Steps<'_>) -> Result<Gauges> {
        steps(Phase::Ending, None);
        session.checkpoint()?;
        server.sync()?;
        Ok(session.gauges()?)
    }

    /// The warm-up; in its midst the hints are read once more, now under load.
    pub(crate) fn warm_up(
        &self,
        server: &Server,
        slot: Slot,
        data: &Path,
        table: &Table,
        steps: Steps<'_>,
    ) -> Result<Result<u64, String>> {
        if self.spec.warm_up_s == 0 {
            return Ok(Ok(0));
        }
        let load = self.load(slot, self.spec.warm_up_s, false);
        let half = Duration::from_secs(u64::from(self.spec.warm_up_s)) / 2;
        let (ran, checked) = std::thread::scope(|scope| {
            let check =
                scope.spawn(|| self.cancel.sleep(half).ok().map(|()| check_hints(data, table)));
            let ran = self.pgbench(server, &load, Phase::WarmingUp, steps);
            (ran, check.join())
        });
        if let Err(failed) = ran? {
            return Ok(Err(failed));
        }
        Ok(match checked {
            Ok(Some(Ok(0))) => Err("no server process holds a file open under load".to_owned()),
            Ok(Some(checked)) => checked,
            _ => Err("the hints could not be read under load".to_owned()),
        })
    }

    /// Runs pgbench; the inner error is a failure of this load only.
    pub(crate) fn pgbench(
        &self,
        server: &Server,
        load: &Load,
        phase: Phase,
        steps: Steps<'_>,
    ) -> Result<Result<Outcome, String>> {
        let length = match load.length {
            Length::Seconds(seconds) => f64::from(seconds),
            Length::Transactions(_) => f64::INFINITY,
        };
        let mut progress = |at: pgbench::RunProgress| {
            steps(phase, Some((at.seconds / length).clamp(0.0, 1.0)));
        };
        match pgbench::run(server.programs(), &server.dsn(), load, self.cancel, &mut progress) {
            Ok(outcome) => Ok(Ok(outcome)),
            Err(
                error @ (shelflife_postgres::Error::ProgramFailed { .. }
                | shelflife_postgres::Error::Unreadable { .. }),
            ) => Ok(Err(error.to_string())),
            Err(error) => Err(error.into()),
        }
    }

    /// Every arm of a block gets the same random numbers; the warm-up other ones.
    pub(crate) fn load(&self, slot: Slot, seconds: u32, measured: bool) -> Load {
        let seed = self.spec.seed.wrapping_add(slot.block as u64);
        let mut load = Load::new(self.spec.clients, Length::Seconds(seconds));
        load.jobs = self.spec.jobs;
        load.rate = self.spec.rate;
        load.scripts = self.scripts.clone();
        load.seed = if measured { seed } else { !seed };
        load.log_folder = measured.then(|| self.logs.clone());
        if self.spec.scenario.is_some() {
            // pgbench looks it up only for scripts of its own.
            load.args = vec![format!("--define=scale={}", self.spec.scale).into()];
        }
        load
    }
}

struct Figures {
    outcome: Outcome,
    during: Counters,
    whole: Counters,
    before: Gauges,
    after: Gauges,
    hints: Hints,
    opened: Vec<Opened>,
    machine: crate::machine::Strain,
    recorded: Option<Recorded>,
}

impl Figures {
    fn measured(self, spec: &Spec) -> Ended {
        let summary = self.outcome.summary;
        let value = match spec.primary {
            Primary::Tps => Some(summary.tps),
            Primary::LatencyMean => summary.latency_average_ms,
            // An epoch is no round.
            Primary::Waf => None,
        };
        let Some(value) = value.filter(|value| value.is_finite() && *value > 0.0) else {
            return Ended::Failed("no transaction was done".to_owned());
        };
        let latencies = self.outcome.latencies;
        let checkpoints = self.during.checkpoints();
        Ended::Measured(Box::new(Measured {
            value,
            pgbench: summary,
            latency: latencies.as_ref().and_then(|l| l.all).map(Into::into),
            script_latency: latencies
                .map(|l| l.scripts.into_iter().map(|s| s.map(Into::into)).collect())
                .unwrap_or_default(),
            checkpoints,
            // The last one that began may not have ended; none was under way at the beginning.
            whole_checkpoints: checkpoints.unwrap_or(0).saturating_sub(1),
            load: self.during,
            whole: self.whole,
            before: self.before,
            after: self.after,
            hints: self.hints,
            opened: self.opened,
            machine: self.machine,
            recorded: self.recorded,
            epoch: None,
        }))
    }
}

/// Brings the tables to the same state before each round: an empty history, no dead rows, fresh
/// statistics.
fn prepare(session: &mut Session) -> Result<()> {
    let history: bool = session.one("SELECT to_regclass('pgbench_history') IS NOT NULL", &[])?;
    if history {
        session.batch("TRUNCATE pgbench_history")?;
    }
    Ok(session.batch("VACUUM ANALYZE")?)
}

fn check_room(server: &Server) -> Result<()> {
    for path in server.places()? {
        let free = free_space(&path)?;
        if free < LEAST_ROOM {
            return Err(Error::LowSpace { path, free, needed: LEAST_ROOM });
        }
    }
    Ok(())
}

pub(crate) fn newly_opened(before: &[Opened], after: Vec<Opened>) -> Vec<Opened> {
    let count = |now: &Opened| {
        let then = before.iter().find(|o| o.class == now.class && o.lifetime == now.lifetime);
        now.opens.saturating_sub(then.map_or(0, |then| then.opens))
    };
    let with_counts = after.into_iter().map(|now| Opened { opens: count(&now), ..now });
    with_counts.filter(|opened| opened.opens > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_new_opens_are_counted() {
        let opened = |class: &str, lifetime: Option<&str>, opens| Opened {
            class: class.into(),
            lifetime: lifetime.map(str::to_owned),
            opens,
        };
        let before = [opened("wal", Some("short"), 3), opened("relation", None, 5)];
        let after = vec![
            opened("wal", Some("short"), 4),
            opened("wal", Some("extreme"), 2),
            opened("relation", None, 5),
        ];
        assert_eq!(
            newly_opened(&before, after),
            [opened("wal", Some("short"), 1), opened("wal", Some("extreme"), 2)]
        );
    }
}
