//! Whole traces: what is written is read, what is damaged is named, and every format that is
//! imported, by the frozen samples.
//!
//! A test that lacks what it needs (the large real trace, DuckDB) prints `skipped: NAME: reason` on
//! standard error, which is counted by `make test`.

mod damage;
mod duckdb;
mod formats;
mod frozen;
mod lines;
mod parts;
mod real;
mod roundtrip;
mod size;
mod stream;
mod support;
