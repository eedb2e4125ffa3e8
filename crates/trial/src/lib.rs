//! Paired trials of hint policies on a real server.
//!
//! A trial compares *arms* (policies, the first of them usually `off`) in
//! *blocks*: within a block every arm runs once, in seeded random order, and
//! arms are compared only with the rounds of their own block. [`stats`] is the
//! arithmetic of it (plan, estimate, interval, p-value, power, verdict): pure,
//! without input or output, the same result for the same seed on every machine.
//!
//! Invariant: nothing measured is ever dropped silently. A round that is
//! missing, far out or late is named in the result, beside the figures that
//! still contain it.

pub mod stats;
