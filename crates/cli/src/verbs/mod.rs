//! One module a verb.

pub mod apply;
pub mod atlas;
pub mod doctor;
pub mod export;
pub mod generate;
pub mod hint;
pub mod import;
pub mod learn;
pub mod lifetimes;
pub mod policy;
pub mod prove;
pub mod record;
pub mod run;
pub mod simulate;
pub mod status;
pub mod switch;
pub mod trace;
pub mod trial;
mod trial_simulated;
pub mod watch;
