//! What is simulated: a drive, its rules, and how lifetimes reach it.
//!
//! Invariant: everything that a result depends on, apart from the workload and the plan, is here,
//! and is named in the result.

use crate::geometry::Geometry;
use crate::transport::Transport;
use crate::victim::Victim;

/// A drive and its rules.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Sizes, streams, isolation, frontiers.
    pub geometry: Geometry,
    /// Which unit is collected next.
    pub victim: Victim,
    /// Lifetime → stream.
    pub transport: Transport,
    /// Whether the workload was recorded on f2fs (otherwise f2fs transports are a model of it).
    pub recorded_on_f2fs: bool,
    /// Pages of a power-protected write buffer; 0 for none.
    pub buffer_pages: u32,
    /// Whether to account for classes: a byte per physical page once there are two. Changes no
    /// write amplification.
    pub by_class: bool,
}

impl Config {
    /// A greedy drive without write buffer that is told nothing.
    pub fn unhinted(geometry: Geometry) -> Config {
        Config {
            geometry,
            victim: Victim::Greedy,
            transport: Transport::Unhinted,
            recorded_on_f2fs: false,
            buffer_pages: 0,
            by_class: false,
        }
    }
}
