//! The daemon that hints the files of running servers from outside.
//!
//! It is told by the kernel (fanotify, notification only) what is opened, made and moved in its
//! folders, and sets the hint that the policy gives. `status` and `switch` know it as a run, like
//! one under the hook. How it sees and what it may touch: `docs/design/watch.md`.
//!
//! Invariants: no file outside the pinned roots, behind a link or of another owner is opened or
//! hinted; nothing that a server does waits for the daemon; and whatever is lost, a full queue or a
//! killed daemon, is put right by a sweep.

#![warn(missing_docs)]

mod config;
mod daemon;
mod error;
pub mod fanotify;
mod figures;
mod folder;
mod folders;
mod hint;
mod hub;
mod metrics;
mod notify;
mod privilege;
mod reader;
mod relations;
mod root;
mod walk;

pub use config::DEFAULT_POLICY;
pub use daemon::{Daemon, Mode, Options, Role, Said};
pub use error::Error;
pub use notify::Notify;
