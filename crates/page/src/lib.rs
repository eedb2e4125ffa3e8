//! Results as a page: which pictures a trial and its recordings come to, and the file that they are
//! written to.
//!
//! How a picture is drawn is [`shelflife_report::html`]'s business; what is said in words is the
//! outcome's. [`trial()`] puts them together, [`write()`] writes the file.
//!
//! Invariants: a page says what the terminal says, and no more; a trace that is gone or
//! broken is a sentence on the page and not its end; a file is whole or not there.

#![forbid(unsafe_code)]

mod lives;
mod places;
mod trial;
mod write;

pub use trial::{TrialPage, trial};
pub use write::{Error, check, write};
