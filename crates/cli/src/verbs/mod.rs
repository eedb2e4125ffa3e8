//! One module a verb.

pub mod apply;
pub mod hint;
pub mod policy;
pub mod run;
pub mod status;
pub mod switch;
pub mod trial;
