//! How policies look in JSON.
//!
//! Invariant: classes, lifetimes and layouts appear by the names that policies use.

use std::fmt::Display;

use serde::{Serialize, Serializer};
use shelflife_layout::{Class, Layout};
use shelflife_lifetime::Lifetime;

use crate::policy::Placed;

impl<T: Display> Serialize for Placed<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&self.value)
    }
}

pub(crate) fn layout<S: Serializer>(layout: &Layout, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(layout.name())
}

pub(crate) fn class<S: Serializer>(class: &Class, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(class.name())
}

pub(crate) fn lifetime<S: Serializer>(lifetime: &Lifetime, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(lifetime.name())
}

pub(crate) fn lifetime_or_null<S: Serializer>(
    lifetime: &Option<Lifetime>,
    to: S,
) -> Result<S::Ok, S::Error> {
    lifetime.map(Lifetime::name).serialize(to)
}
