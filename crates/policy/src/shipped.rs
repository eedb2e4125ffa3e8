//! The policies that come along, in the program itself.
//!
//! Invariant: each has the name of its file, and checks without error or warning.

use crate::error::nearest;

const SHIPPED: &[(&str, &str)] = &[
    ("temp-vs-rest", include_str!("../../../policies/temp-vs-rest.toml")),
    ("temp-vs-rest-broad", include_str!("../../../policies/temp-vs-rest-broad.toml")),
    ("wal-first", include_str!("../../../policies/wal-first.toml")),
];

/// Name and text of every policy that comes along, the oldest idea first.
pub fn shipped() -> &'static [(&'static str, &'static str)] {
    SHIPPED
}

/// The text of the policy `name`, if it comes along.
pub fn find(name: &str) -> Option<&'static str> {
    SHIPPED.iter().find(|(shipped, _)| *shipped == name).map(|(_, text)| *text)
}

/// The name that was probably meant by `name`, which [`find`] did not find.
pub fn suggest(name: &str) -> Option<&'static str> {
    nearest(name, SHIPPED.iter().map(|(shipped, _)| *shipped))
}
