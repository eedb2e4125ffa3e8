//! What a file *is*, and the flat table that says what lifetime it gets.
//!
//! ```
//! use shelflife_layout::{Class, postgres};
//!
//! assert_eq!(postgres::classify(b"base/5/16384"), Class::Relation);
//! assert_eq!(postgres::classify(b"base/pgsql_tmp/pgsql_tmp4711.0"), Class::Temp);
//! assert_eq!(postgres::classify(b"../elsewhere/base/5/16384"), Class::Outside);
//! ```
//!
//! Everything here runs inside the preloaded hook, between a server's `open` and its return.
//! Invariant: no allocation, no system call, no panic, and bounded time for any bytes of a path
//! and any bytes of a table. The hook, the sweep and `policy explain` share this one classifier
//! and this one matcher, so that they cannot disagree.

#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod class;
mod glob;
pub mod path;
pub mod postgres;
pub mod relation;
mod table;

pub use class::{Class, Layout, UnknownClass, UnknownLayout};
pub use glob::{GlobError, Text, check_glob, matches};
pub use table::{ARENA_BYTES, MAX_PATTERN, MAX_RULES, Table, TableFull};
