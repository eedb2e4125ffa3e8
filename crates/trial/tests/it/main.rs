//! Integration tests of the statistics: invariants, whole analyses, and the
//! method tried on a made-up server.

mod invariants;
mod method;
mod sim;
mod trial;
