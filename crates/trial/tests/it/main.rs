//! Integration tests: the statistics (invariants, whole analyses, the method tried on a
//! made-up server), and trials on a real server.

mod invariants;
mod method;
mod server;
mod sim;
mod trial;
