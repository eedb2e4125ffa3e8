//! Recorded machines: one expected answer each.
