//! Giving up rights.
//!
//! Invariant: after [`become_owner`] this process has the rights of the files' owner and none above
//! them, cannot gain any, and cannot be looked into by another process of that user: marks on file
//! systems bring descriptors of everybody's files.

use std::io;

use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use rustix::process::{Gid, Uid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set, set_capabilities,
    set_no_new_privs, set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};

/// Becomes `uid` and `gid` for good. Call it before any thread is started: Linux keeps rights by
/// thread.
pub(crate) fn become_owner(uid: u32, gid: u32) -> io::Result<()> {
    let me = rustix::process::geteuid();
    if me.is_root() && uid != 0 {
        let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
        set_thread_groups(&[])?;
        set_thread_res_gid(gid, gid, gid)?;
        set_thread_res_uid(uid, uid, uid)?;
    }
    // A kernel before 4.3 has none, and there is none to clear.
    let _ = clear_ambient_capability_set();
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    set_no_new_privs(true)?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    Ok(())
}
