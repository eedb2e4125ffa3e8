//! Pages of trials, from made-up results.

mod made_up;
mod trials;
