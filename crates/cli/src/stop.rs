//! Ctrl-C, `kill`, and a terminal that goes: verbs that have something to put back look at a flag.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// The exit code then, as a shell has it for a program that SIGINT ended.
pub const INTERRUPTED: u8 = 130;

/// A flag that these signals raise from now on, in place of ending the program.
pub fn on_signals() -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}
