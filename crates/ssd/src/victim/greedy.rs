//! Greedy: the closed RU with the fewest valid pages, the lowest-numbered among equals.
//!
//! Invariant: no closed RU has fewer valid pages than the one chosen. Optimal for uniform
//! random writes; for anything else it is the rule that takes young data that would soon have died.

use super::{VictimRule, View};

pub(super) struct Greedy;

impl VictimRule for Greedy {
    fn pick(&mut self, view: &View<'_>) -> Option<u32> {
        view.valid.emptiest().map(|(ru, _)| ru)
    }
}
