//! Which capabilities a recording needs, and letting go of the others.
//!
//! Invariant: what is dropped is dropped for the calling thread alone (`capset(2)`), so that a
//! program that records in-process keeps its own.

use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

use crate::error::Error;

/// Says which capabilities are missing to load and attach.
pub(crate) fn check() -> Result<(), Error> {
    let have = match capabilities(None) {
        Ok(sets) => sets.effective,
        // a sandbox that hides them: the kernel will say no by itself
        Err(_) => return Ok(()),
    };
    if have.contains(CapabilitySet::SYS_ADMIN) {
        return Ok(());
    }
    let needed = [(CapabilitySet::BPF, "CAP_BPF"), (CapabilitySet::PERFMON, "CAP_PERFMON")];
    let missing: Vec<&str> =
        needed.iter().filter(|(cap, _)| !have.contains(*cap)).map(|(_, name)| *name).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Error::NotPermitted { missing: missing.join(" and ") })
}

/// Gives up, in this thread, all capabilities but those to see files (CAP_DAC_READ_SEARCH) and,
/// with `signal`, to signal a child of another user (CAP_KILL).
///
/// # Errors
///
/// The system refused.
pub fn drop_capabilities(signal: bool) -> std::io::Result<()> {
    let mut keep = CapabilitySet::DAC_READ_SEARCH;
    if signal {
        keep |= CapabilitySet::KILL;
    }
    let now = capabilities(None)?;
    set_capabilities(
        None,
        CapabilitySets {
            effective: now.effective & keep,
            permitted: now.permitted & keep,
            inheritable: now.inheritable,
        },
    )?;
    Ok(())
}
