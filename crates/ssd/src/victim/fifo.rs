//! FIFO: the RU that was closed first (least recently written, "LRU cleaning").
//!
//! Invariant: every closed RU is in the queue once, in the order of closing.

use std::collections::VecDeque;

use super::{VictimRule, View};

#[derive(Default)]
pub(super) struct Fifo {
    queue: VecDeque<u32>,
}

impl VictimRule for Fifo {
    fn pick(&mut self, _: &View<'_>) -> Option<u32> {
        self.queue.pop_front()
    }

    fn closed(&mut self, ru: u32, _: u8) {
        self.queue.push_back(ru);
    }
}
