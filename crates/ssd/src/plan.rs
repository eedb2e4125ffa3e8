//! How a simulation runs: precondition, age, count.
//!
//! Invariant: counting begins at an exact page, whatever the batches are.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};

use crate::Error;
use crate::clairvoyant::Placing;
use crate::config::Config;
use crate::outcome::Outcome;
use crate::simulator::{Cursor, PRECONDITION_CLASS, STEADY_TOLERANCE, Simulator};
use crate::steady;
use crate::workload::{BATCH, Op, Workload};

/// What is on the drive before the workload begins.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Precondition {
    /// Nothing: the drive is erased.
    None,
    /// Every page, in order.
    Sequential,
    /// Every page in order, then as many uniform random writes (SNIA PTS, workload independent).
    Random {
        /// Seed of the random writes.
        seed: u64,
    },
}

impl Precondition {
    /// Host pages it writes on a drive of `logical_pages`.
    pub fn pages(self, logical_pages: u64) -> u64 {
        match self {
            Precondition::None => 0,
            Precondition::Sequential => logical_pages,
            Precondition::Random { .. } => 2 * logical_pages,
        }
    }
}

/// What of the workload is not counted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Age {
    /// So many host pages; 0 counts from the first.
    Pages(u64),
    /// Until write amplification is steady (see [`steady`]), or for so many host pages.
    UntilSteady {
        /// Host pages after which counting begins anyway.
        at_most: u64,
    },
}

/// The course of a simulation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// Before the workload.
    pub precondition: Precondition,
    /// The uncounted part of the workload.
    pub age: Age,
    /// Host pages to count; `None` to the workload's end, which a synthetic or repeated one has not.
    pub count: Option<u64>,
    /// Host pages of a window.
    pub window_pages: u64,
}

impl Plan {
    /// Sequential fill, `overwrites` times the logical size by the workload, the second half counted
    /// in sixteen windows.
    pub fn overwrites(overwrites: u64, logical_pages: u64) -> Plan {
        let half = (overwrites * logical_pages).div_ceil(2).max(1);
        Plan {
            precondition: Precondition::Sequential,
            age: Age::Pages(half),
            count: Some(half),
            window_pages: (half / 16).max(1),
        }
    }
}

/// Runs a workload on a drive, its streams chosen by hints.
///
/// # Errors
///
/// Any [`Error`] of configuration, operations or reader.
pub fn simulate(
    config: &Config,
    plan: &Plan,
    workload: &mut dyn Workload,
) -> Result<Outcome, Error> {
    simulate_placed(config, plan, workload, Placing::Hints)
}

/// As [`simulate`], with a choice of who places.
///
/// # Errors
///
/// As [`simulate`].
pub fn simulate_placed(
    config: &Config,
    plan: &Plan,
    workload: &mut dyn Workload,
    mut placing: Placing,
) -> Result<Outcome, Error> {
    let logical = config.geometry.logical_pages;
    if let Placing::Deaths(deaths) = &mut placing {
        deaths.begin_at(plan.precondition.pages(logical));
    }
    let mut simulator = Simulator::placed(config, placing)?;
    precondition(&mut simulator, plan.precondition)?;
    let mut source = Source { workload, ops: Vec::new(), cursor: Cursor::default(), ended: false };
    simulator.begin(plan.window_pages);
    match plan.age {
        Age::Pages(pages) => source.run(&mut simulator, pages)?,
        Age::UntilSteady { at_most } => {
            let mut left = at_most;
            while left > 0 && !source.ended {
                let pages = left.min(plan.window_pages.max(1));
                source.run(&mut simulator, pages)?;
                left -= pages;
                if steady::judge(simulator.windows(), STEADY_TOLERANCE).reached {
                    break;
                }
            }
        }
    }
    if !(plan.age == Age::Pages(0)) {
        simulator.begin(plan.window_pages);
    }
    source.run(&mut simulator, plan.count.unwrap_or(u64::MAX))?;
    simulator.outcome()
}

/// The workload and how far it was read.
struct Source<'a> {
    workload: &'a mut dyn Workload,
    ops: Vec<Op>,
    cursor: Cursor,
    ended: bool,
}

impl Source<'_> {
    /// Runs the next `pages` host pages, or to the end.
    fn run(&mut self, simulator: &mut Simulator, pages: u64) -> Result<(), Error> {
        let stop = simulator.host_pages().saturating_add(pages);
        while simulator.host_pages() < stop && !self.ended {
            if self.cursor.op == self.ops.len() {
                self.ops.clear();
                self.cursor = Cursor::default();
                self.workload.read(&mut self.ops)?;
                self.ended = self.ops.is_empty();
            }
            simulator.feed_until(&self.ops, &mut self.cursor, stop)?;
        }
        Ok(())
    }
}

fn precondition(simulator: &mut Simulator, kind: Precondition) -> Result<(), Error> {
    let logical = simulator.config().geometry.logical_pages;
    if kind == Precondition::None {
        return Ok(());
    }
    // No file of the workload: ordinals are dense from 0.
    let fill =
        |page, pages| Op { class: PRECONDITION_CLASS, file: u32::MAX, ..Op::write(page, pages) };
    let mut page = 0;
    while page < logical {
        let pages = (logical - page).min(1 << 20);
        // Logical pages fit 32 bits: the layout was checked.
        simulator.feed(&[fill(page as u32, pages as u32)])?;
        page += pages;
    }
    if let Precondition::Random { seed } = kind {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let mut left = logical;
        let mut ops = Vec::new();
        while left > 0 {
            let n = left.min(BATCH as u64);
            ops.clear();
            ops.extend((0..n).map(|_| {
                let page = (u128::from(rng.next_u64()) * u128::from(logical)) >> 64;
                fill(page as u32, 1)
            }));
            simulator.feed(&ops)?;
            left -= n;
        }
    }
    Ok(())
}
