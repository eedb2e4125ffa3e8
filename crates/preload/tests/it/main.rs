//! The built hook (`make hook`), preloaded into real programs.

mod calls;
mod library;
mod races;
mod server;
mod support;
