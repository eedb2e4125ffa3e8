//! How figures are shown to people: units, tables for terminals, and pages ([`html`]).
//!
//! ```
//! use shelflife_report::{Table, bytes, count, percent};
//!
//! let mut table = Table::new(["policy", "written", "tps", "against off"]).right([1, 2, 3]);
//! table.row(["off".into(), bytes(14_200_000_000), count(2_317), String::new()]);
//! table.row(["wal-first".into(), bytes(13_900_000_000), count(2_340), percent(1.0)]);
//! assert_eq!(
//!     table.to_string(),
//!     "\
//! policy     written    tps  against off
//! ──────────────────────────────────────
//! off        14.2 GB  2,317
//! wal-first  13.9 GB  2,340         +1 %"
//! );
//! ```
//!
//! Invariants: pure (what is printed where is the caller's business), and nothing that came from a
//! file or a server reaches a terminal as a control character, or a page as markup.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod errors;
pub mod html;
mod table;
mod units;

pub use errors::in_full;
pub use table::{Table, plain};
pub use units::{bytes, count, duration, figure, percent};
