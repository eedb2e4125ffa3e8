//! What the daemon reaches and what it costs: `make bench-watch`.
//!
//! | part | question |
//! | --- | --- |
//! | `opens` | what does being watched add to an open, by inotify and by both kinds of fanotify |
//! | `storm` | what share of short-lived files is hinted, and how soon, at 5,000 creations a second |
//! | `loaded` | the same beside pgbench with 200 connections, in memory and on a drive |
//! | `million` | a sweep over a million files: time, memory, and the processor afterwards |
//! | `late` | what share of the bytes of hinted classes is written back before its hint (root) |
//!
//! Arguments name parts; without any all run. What it costs pgbench is asked by `make bench-pgbench`.

mod beside;
mod late;
mod million;
mod opens;
mod server;
mod storm;

fn main() {
    // `cargo test --benches` only wants to know that it runs.
    let args: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    if args.iter().any(|a| a == "--test") {
        return;
    }
    if std::env::var_os(beside::ROLE).is_some() {
        return beside::be_the_daemon();
    }
    let wants = |part: &str| args.is_empty() || args.iter().any(|a| a == part);
    if wants("opens") {
        opens::run();
    }
    if wants("storm") {
        storm::idle();
    }
    if wants("million") {
        million::run();
    }
    if wants("loaded") {
        server::loaded();
    }
    if wants("late") {
        late::run();
    }
}
