//! One epoch, from the empty device to the empty device.
//!
//! Invariant: every epoch begins alike: all of the device trimmed, the same image of the cluster, the same
//! cold data; nothing of it is mounted when [`Epochs::run`] returns.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use shelflife_layout::Table;
use shelflife_postgres::Cancel;
use shelflife_postgres::pgbench::{Script, Summary};

use super::count::{CAPACITIES, Count, Course, stages};
use super::device::Device;
use crate::capture::after_slice;
use crate::error::{Error, Result};
use crate::filesystem::{Mounted, Wanted, tell};
use crate::machine::Snapshot;
use crate::observer::Phase;
use crate::record::{Epoch, Measured};
use crate::round::{Ended, Rounds, Steps, newly_opened};
use crate::server::own::{Build, CLUSTER};
use crate::server::{Own, Server, check_hints};
use crate::spec::Spec;
use crate::stats::Slot;

/// What all epochs share.
pub(super) struct Epochs<'a> {
    pub(super) spec: &'a Spec,
    pub(super) wanted: &'a Wanted,
    pub(super) device: &'a Device,
    /// The trial's folder, with the image of the cluster.
    pub(super) dir: &'a Path,
    pub(super) build: Build<'a>,
    pub(super) tables: Vec<Table>,
    pub(super) scripts: Vec<Script>,
    pub(super) cancel: &'a Cancel,
}

/// The label of a trial's file systems, by which one that was killed knows its own. XFS takes 12 characters.
pub(super) fn label(spec: &Spec) -> String {
    format!("sl-{:08x}", spec.seed as u32 ^ (spec.seed >> 32) as u32)
}

impl Epochs<'_> {
    /// Runs an epoch.
    pub(super) fn run(&self, slot: Slot, steps: Steps<'_>) -> Result<Ended> {
        self.cancel.check()?;
        steps(Phase::Restoring, None);
        let mounted =
            Mounted::on_device(self.wanted, &self.device.path, &label(self.spec), self.dir)?;
        self.device.check_delivered(mounted.folder())?;
        let image = self.dir.join(CLUSTER);
        tell(Command::new("cp").arg("-a").arg(&image).arg(mounted.folder()))?;
        let cold_bytes = match self.wanted.fill {
            Some(fill) => mounted.fill(fill, self.cancel)?,
            None => 0,
        };
        let mut server = Server::Own(Own::copied(&self.build, self.spec, mounted)?.into());
        let ended = self.under_load(&mut server, slot, cold_bytes, steps);
        let ended = ended.map_err(|error| server.explain(error));
        steps(Phase::Closing, None);
        // The device is trimmed: to remove its files first would be in vain.
        server.keep(true);
        let closed = server.close(self.cancel);
        let ended = ended?;
        closed.map(|()| ended)
    }

    fn under_load(
        &self,
        server: &mut Server,
        slot: Slot,
        cold_bytes: u64,
        steps: Steps<'_>,
    ) -> Result<Ended> {
        let (Some(arm), Some(table)) = (self.spec.arms.get(slot.arm), self.tables.get(slot.arm))
        else {
            return Err(Error::Spec(format!("there is no arm {}", slot.arm)));
        };
        server.check_hook()?;
        steps(Phase::Switching, None);
        let mut hints = server.switch(arm, table, self.cancel)?;
        let data = server.data().path().to_owned();
        match check_hints(&data, table) {
            Ok(count) => hints.checked_before = count,
            Err(wrong) => return Ok(Ended::Failed(wrong)),
        }
        server.sync()?;
        let rounds = Rounds {
            spec: self.spec,
            tables: &self.tables,
            logs: self.dir.to_owned(),
            scripts: self.scripts.clone(),
            traces: None,
            cancel: self.cancel,
        };
        match rounds.warm_up(server, slot, &data, table, steps)? {
            Ok(count) => hints.checked_under_load = count,
            Err(wrong) => return Ok(Ended::Failed(wrong)),
        }
        let mut session = server.session(self.cancel)?;
        let (before, counters) = (session.gauges()?, session.counters()?);
        let opened = server.opened()?;
        let (machine, begun) = (Snapshot::read(Path::new("/proc")), Instant::now());
        let capacity = self.device.facts.size;
        let (device, slices) = (self.device, Vec::new());
        let mut load = Load { device, rounds: &rounds, server, slot, capacity, slices, steps };
        let written = stages(&mut load, capacity, device.step())?;
        let [precondition, first_half, last_half] = match written {
            Ok(written) => written,
            Err(fault) => return Ok(Ended::Failed(fault.to_string())),
        };
        let (pgbench, server) = (together(load.slices), load.server);
        let machine = Snapshot::read(Path::new("/proc")).since(&machine, begun.elapsed());
        let during = session.counters()?.since(&counters);
        let checkpoints = during.checkpoints();
        Ok(Ended::Measured(Box::new(Measured {
            value: last_half.waf(),
            pgbench,
            latency: None,
            script_latency: Vec::new(),
            whole: during.clone(),
            load: during,
            checkpoints,
            whole_checkpoints: checkpoints.unwrap_or(0).saturating_sub(1),
            before,
            after: session.gauges()?,
            hints,
            opened: newly_opened(&opened, server.opened()?),
            machine,
            recorded: None,
            epoch: Some(Epoch { cold_bytes, precondition, first_half, last_half }),
        })))
    }
}

/// A server on the device, under load.
struct Load<'l> {
    device: &'l Device,
    rounds: &'l Rounds<'l>,
    server: &'l mut Server,
    slot: Slot,
    capacity: u64,
    /// What pgbench said of each slice so far.
    slices: Vec<Summary>,
    steps: Steps<'l>,
}

impl Course for Load<'_> {
    fn count(&mut self) -> Result<Count> {
        self.device.count()
    }

    fn load(&mut self, share: f64) -> Result<Result<(), String>> {
        let spec = self.rounds.spec;
        let mut load = self.rounds.load(self.slot, spec.seconds, false);
        // All arms of a block get the same numbers, each slice other ones.
        load.seed = load.seed.wrapping_add((self.slices.len() as u64 + 1) << 32);
        let measuring = share * CAPACITIES as f64 >= 1.0;
        let phase = if measuring { Phase::Measuring } else { Phase::Preconditioning };
        let steps = &mut *self.steps;
        let mut tick = |phase, _: Option<f64>| steps(phase, Some(share));
        match self.rounds.pgbench(self.server, &load, phase, &mut tick)? {
            Ok(outcome) => self.slices.push(outcome.summary),
            Err(failed) => return Ok(Err(failed)),
        }
        let mut session = self.server.session(self.rounds.cancel)?;
        after_slice(&mut session, self.capacity).map(Ok)
    }
}

/// One summary of several runs, one after the other: what cannot be put together is that of the last.
fn together(slices: Vec<Summary>) -> Summary {
    let transactions: u64 = slices.iter().map(|slice| slice.transactions).sum();
    let over = |value: &dyn Fn(&Summary) -> Option<f64>| {
        let parts = slices.iter().map(|s| Some(value(s)? * s.transactions as f64));
        let sum: Option<f64> = parts.sum();
        sum.filter(|_| transactions > 0).map(|sum| sum / transactions as f64)
    };
    // Seconds for a transaction, as each slice had them.
    let each = over(&|slice| (slice.tps > 0.0).then(|| 1.0 / slice.tps));
    let latency_average_ms = over(&|slice| slice.latency_average_ms);
    let failed = slices.iter().map(|slice| slice.failed).sum();
    let duration_s = slices.iter().map(|slice| slice.duration_s).sum();
    Summary {
        transactions,
        failed,
        duration_s,
        latency_average_ms,
        latency_stddev_ms: None,
        tps: each.map_or(0.0, |each| 1.0 / each),
        scripts: Vec::new(),
        ..slices.into_iter().next_back().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_put_together_by_their_transactions() {
        let slice = |transactions, tps, latency| Summary {
            transactions,
            tps,
            latency_average_ms: latency,
            duration_s: Some(10),
            failed: Some(1),
            clients: Some(4),
            ..Summary::default()
        };
        // 1000 transactions in 10 s, then 1000 in 40 s
        let both = together(vec![slice(1000, 100.0, Some(4.0)), slice(1000, 25.0, Some(8.0))]);
        assert_eq!((both.transactions, both.duration_s, both.failed), (2000, Some(20), Some(2)));
        assert!((both.tps - 40.0).abs() < 1e-9);
        assert_eq!((both.latency_average_ms, both.clients), (Some(6.0), Some(4)));
        let missing = together(vec![slice(1000, 100.0, None), slice(1000, 25.0, Some(8.0))]);
        assert_eq!(missing.latency_average_ms, None);
        assert!(together(Vec::new()).tps.abs() < 1e-9);
    }

    #[test]
    fn a_label_fits_every_file_system() {
        let mut header = crate::record::fixtures::header(&["off", "off"], 1);
        assert_eq!(label(&header.spec), "sl-00000007");
        header.spec.seed = u64::MAX;
        assert!(label(&header.spec).len() <= 12);
    }
}
