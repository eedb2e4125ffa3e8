//! What a caller hears while a trial goes on.

use std::fmt;
use std::time::Duration;

use crate::estimate::Estimate;
use crate::machine::Mount;
use crate::record::{DeviceFacts, Header, Round};

/// What a trial is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Looking at the machine, making and starting the server.
    Starting,
    /// Filling the tables.
    Loading,
    /// Bringing the database to a steady state.
    Ageing,
    /// Measuring `fdatasync`.
    Probing,
    /// Switching the policy, sweeping, reading the hints back.
    Switching,
    /// `VACUUM ANALYZE` and a checkpoint, outside the clock.
    Preparing,
    /// Trimming the device, making its file system, copying the cluster and cold data to it.
    Restoring,
    /// Load that brings the drive to a steady state.
    Preconditioning,
    /// Load that is not measured.
    WarmingUp,
    /// Load that is.
    Measuring,
    /// Checkpoint and synchronisation under the round's own policy.
    Ending,
    /// Stopping the server, cleaning up.
    Closing,
}

impl fmt::Display for Phase {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Phase::Starting => "starting the server",
            Phase::Loading => "loading",
            Phase::Ageing => "ageing",
            Phase::Probing => "probing the storage",
            Phase::Switching => "switching",
            Phase::Preparing => "vacuum",
            Phase::Restoring => "restoring",
            Phase::Preconditioning => "preconditioning",
            Phase::WarmingUp => "warming up",
            Phase::Measuring => "measuring",
            Phase::Ending => "checkpoint",
            Phase::Closing => "cleaning up",
        })
    }
}

/// How far a trial is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress<'a> {
    /// What it is doing.
    pub phase: Phase,
    /// How much of that is done, 0 to 1, where it can be told.
    pub share: Option<f64>,
    /// The round, from 1, and its arm's label.
    pub round: Option<(usize, &'a str)>,
    /// All rounds.
    pub rounds: usize,
    /// The time left for everything, once it can be told.
    pub left: Option<Duration>,
}

/// Hears what a trial does. Nothing here may wait for long: the clock runs.
pub trait Observer {
    /// Whether so much may be written to this storage; asked once, before anything is. `free` is
    /// the room left there, in bytes.
    fn confirm(&mut self, estimate: &Estimate, storage: &Mount, free: u64) -> bool;

    /// The same for a trial whose rounds are epochs: whether so much may be written to this device, and all
    /// that is on it be lost.
    fn confirm_device(&mut self, estimate: &Estimate, device: &DeviceFacts) -> bool;

    /// Where it is; several times a second at most.
    fn progress(&mut self, progress: &Progress<'_>) {
        let _ = progress;
    }

    /// Something that the user should know; it is in the results too.
    fn warn(&mut self, text: &str) {
        let _ = text;
    }

    /// What is fixed now, before the first round.
    fn begins(&mut self, header: &Header) {
        let _ = header;
    }

    /// A round has ended.
    fn round(&mut self, round: &Round) {
        let _ = round;
    }
}
