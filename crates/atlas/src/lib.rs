//! Scenarios × policies × drives: where hints bring something, where nothing, and where they hurt.
//!
//! Each scenario is recorded once ([`shelflife_trial::capture()`]), without hints; for each drive a
//! policy is learned from the first part of the recording, and judged with the others on the rest
//! ([`shelflife_learn::learn()`]). What comes of that is an [`Atlas`]: for every scenario, drive and
//! policy the write amplification, the saving with its bounds, and one sentence of reason that is made
//! from figures in the same folder.
//!
//! | module | what it is for |
//! | --- | --- |
//! | `request` | what is asked, and how far it is |
//! | `folder` | the folder of an atlas: what lies where, whole or not at all |
//! | `recorded`, `judged` | the two steps, with what they leave on disk |
//! | `table`, `reason` | figures and sentences, pure |
//! | `text`, `page` | both for a terminal, and as HTML |
//! | `run` | all of it, resumable |
//!
//! Invariants: everything about write amplification is simulated, and says so; a file in an atlas's
//! folder is whole, and what is there is not done again; the same folder gives the same atlas.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod error;
mod folder;
mod judged;
mod page;
mod reason;
mod recorded;
mod request;
mod run;
mod table;
mod text;

pub use error::Error;
pub use judged::{ArmWaf, Flow, Judged, Rules, StreamFlow};
pub use page::page;
pub use recorded::{ClassLife, Recorded, Wanted};
pub use request::{DRIVES, Progress, Request, scenarios};
pub use run::{Atlas, Entry, Failed, atlas};
pub use table::{Cell, Kind, Row};
pub use text::in_words;
