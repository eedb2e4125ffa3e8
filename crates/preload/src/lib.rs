//! The hook: an LD_PRELOAD library that hints every file a program opens for writing.
//!
//! `open` → what is this file (`place`) → what lifetime does the policy give it (the control
//! page) → `fcntl(F_SET_RW_HINT)` (`hint`). Nothing else: the program's descriptors, flags,
//! errno and return values are what they would have been.
//!
//! Invariants: no allocation, lock, thread-local storage, output or panic; nothing that is not
//! safe in a signal handler, in a thread, or after `fork` and `vfork`; without a valid control
//! page every call goes straight through. The shipped library (profile `hook`) is `no_std`;
//! a build that unwinds exists only so that `cargo check --workspace` and clippy see it.

#![cfg_attr(panic = "abort", no_std)]
#![warn(missing_docs)]

mod attach;
mod hint;
mod interpose;
mod place;

// Before glibc 2.34 `dlsym` is in a library of its own, which the program need not have loaded.
// SAFETY: declares nothing.
#[link(name = "dl")]
unsafe extern "C" {}

/// Never reached: no code here can panic, and a test looks that none is linked in.
#[cfg(panic = "abort")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: takes nothing and does not return.
    unsafe { libc::abort() }
}
