//! The whole program, as its users see it: the built binary and the built hook on the real
//! PostgreSQL that is installed here.
//!
//! A test that needs root or a server and has none prints `skipped: NAME: reason` on standard
//! error, which is counted by `make test`. Hints are read by an `fcntl` of these tests' own.

mod atlas;
mod bad_input;
mod command;
mod debian;
mod files;
mod generated;
mod held;
mod hostile;
mod learn;
mod loading;
mod output;
mod outside;
mod prove;
mod record;
mod record_pg;
mod recovery;
mod release;
mod simulate;
mod support;
mod switch;
mod traces;
mod trial;
mod watch;
mod watch_attacks;
mod watch_kills;
mod watch_recorded;
mod watch_relations;
mod watched;
