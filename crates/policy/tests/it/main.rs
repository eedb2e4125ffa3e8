//! Policies as their users meet them: texts in, answers and messages out.

mod agree;
mod check;
mod docs;
mod errors;
mod json;
mod shipped;

use shelflife_policy::Policy;

/// The policy `text`, which must be one.
pub fn policy(text: &str) -> Policy {
    Policy::parse(text, "p.toml").expect("a policy")
}
