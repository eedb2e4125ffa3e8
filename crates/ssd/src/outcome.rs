//! What a simulation found. Everything here is *simulated*.
//!
//! Invariant: a result names all that it depends on (rule, isolation, frontier, transport, sizes in
//! both senses), so that no figure travels without its conditions.

use serde::Serialize;

use crate::geometry::{Frontier, Isolation, Sizes};
use crate::steady::Steady;
use crate::transport::Transport;
use crate::victim::Victim;

/// The result of one simulation: its measured part, unless a field says otherwise.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// Always `simulated`.
    pub source: &'static str,
    /// Write amplification factor: flash pages per host page. Below 1 if the write buffer absorbed
    /// more than was copied.
    pub waf: f64,
    /// Pages the host wrote.
    pub host_pages: u64,
    /// Pages programmed, copies among them.
    pub flash_pages: u64,
    /// Pages copied by collections.
    pub copied_pages: u64,
    /// Host pages that were replaced or trimmed in the write buffer.
    pub absorbed_pages: u64,
    /// Pages trimmed or zeroed.
    pub trimmed_pages: u64,
    /// RUs erased.
    pub erases: u64,
    /// Mean valid ratio of victims; 0 without victims.
    pub victim_valid_ratio: f64,
    /// Victims by valid ratio, in twentieths from 0.
    pub victims_by_valid_ratio: [u64; 20],
    /// WAF over time, by host pages; a last, shorter window is left out.
    pub windows: Vec<Window>,
    /// Whether it was steady, and why one may think so.
    pub steady: Steady,
    /// By stream, as the host addressed it.
    pub per_stream: Vec<Share>,
    /// By class; empty unless classes were accounted for.
    pub per_class: Vec<Share>,
    /// Sizes, net and with open and reserved RUs.
    pub sizes: Sizes,
    /// Bytes of a page.
    pub page_bytes: u32,
    /// Victim rule.
    pub victim: Victim,
    /// Where relocated data went.
    pub isolation: Isolation,
    /// Whether in frontiers of their own.
    pub frontier: Frontier,
    /// Lifetime → stream.
    pub transport: Transport,
    /// Streams of the drive.
    pub streams: u32,
    /// Pages of the write buffer.
    pub buffer_pages: u32,
    /// How streams were chosen.
    pub placement: Placement,
    /// What else must be said beside the figures.
    pub notes: Vec<String>,
}

/// Who chose the stream of a page.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// The lifetime that the workload carries.
    Hint,
    /// A clairvoyant that knows when each page will die, at relocation too.
    DeathTime,
    /// A clairvoyant that knows how long each file's pages live.
    File,
}

/// WAF over a stretch of host writes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Window {
    /// Pages the host wrote.
    pub host_pages: u64,
    /// Pages programmed.
    pub flash_pages: u64,
}

impl Window {
    /// Flash pages per host page.
    pub fn waf(&self) -> f64 {
        self.flash_pages as f64 / self.host_pages as f64
    }
}

/// What one stream or class wrote, and how much of its data was copied.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub struct Share {
    /// Stream or class.
    pub id: u32,
    /// Pages the host wrote.
    pub host_pages: u64,
    /// Pages of its data that collections copied. Unless classes are accounted for, an initially
    /// isolated drive cannot say whose they were, and this is `None`.
    pub copied_pages: Option<u64>,
}
