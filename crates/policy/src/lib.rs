//! What lifetime a file gets: policies.
//!
//! ```
//! use shelflife_layout::Class;
//! use shelflife_lifetime::Lifetime;
//! use shelflife_policy::Policy;
//!
//! let text = r#"
//! name = "young-wal"
//! layout = "postgres"
//! default = "long"
//!
//! [[rule]]
//! class = ["wal", "wal-new"]
//! lifetime = "short"
//! "#;
//! let policy = Policy::parse(text, "young-wal.toml")?;
//! assert!(policy.check().iter().all(|finding| !finding.fails()));
//! let wal = policy.explain(Class::Wal, None, None);
//! assert_eq!(wal.lifetime, Some(Lifetime::Short));
//! assert_eq!(wal.reason, "rule 1 (line 6): class = [\"wal\", \"wal-new\"]");
//! assert_eq!(policy.compile().lookup(Class::Relation, None, None), Some(Lifetime::Long));
//! # Ok::<(), shelflife_policy::Error>(())
//! ```
//!
//! A text becomes a [`Policy`] ([`Policy::parse`]), which can be checked for what is legal and yet
//! hardly meant ([`Policy::check`]), asked about one file ([`Policy::explain`]), or compiled to
//! the flat table that the hook reads ([`Policy::compile`]). The format is described in
//! `docs/policy.md`; the policies that come along are in [`shipped`].
//!
//! Invariants: no I/O; no bytes make anything here panic; and `explain` says of every file what
//! `lookup` in the compiled table does.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod check;
mod cover;
mod error;
mod explain;
mod parse;
mod place;
mod policy;
mod ser;
mod shipped;

pub use check::{Finding, Lint, Severity, check_text};
pub use error::{Error, Problem, Quoted};
pub use explain::{Decision, Explanation};
pub use place::Place;
pub use policy::{Applier, Matcher, Placed, Policy, RelationName, Rule};
pub use shipped::{find, shipped, suggest};

/// The longest text of a policy, in bytes.
pub const MAX_BYTES: usize = 1024 * 1024;
/// The longest name of a policy, in bytes.
pub const MAX_NAME: usize = 63;
/// The longest description, in characters.
pub const MAX_DESCRIPTION: usize = 200;
