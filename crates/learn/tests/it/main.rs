//! Lifetimes on traces whose answer is known, and on traces that have none.

mod bad_input;
mod duckdb;
mod known;
mod learning;
mod model;
mod sample;
mod support;
