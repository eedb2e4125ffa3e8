//! What was learned, and how it was judged. All write amplification here is *simulated*.
//!
//! Invariant: a policy is there only if it beat no hints, on data it was not learned from, by more
//! than the noise.

use serde::Serialize;
use shelflife_lifetime::Lifetime;
use shelflife_policy::Applier;
use shelflife_ssd::Transport;

use crate::drives::Firmware;

/// What a policy is meant to be best at.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Aim {
    /// The firmware on which it does worst against no hints.
    Worst,
    /// The mean over all firmwares, without a loss of more than 1 % on any of them.
    Mean,
    /// The drive of this name, under its own rules.
    Drive(String),
}

/// The answer. Everything in it is simulated.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Learned {
    /// Always `simulated`.
    pub source: &'static str,
    /// The trace's folder.
    pub trace: String,
    /// Lifetime → stream.
    pub transport: Transport,
    /// Who sets hints.
    pub applier: Applier,
    /// What the policy is best at.
    pub aim: Aim,
    /// Share (0 to 1) of write amplification that the learned grouping saves against no hints, on
    /// data it was not learned from, by the aim; 0 if nothing was found.
    pub saving: f64,
    /// A saving up to this share is none: what the same hints save when they are dealt at random, and
    /// beyond that half a percent, or half of the 95 % interval over the passes that are judged, whichever is more.
    pub noise: f64,
    /// The policy as TOML; `None` if nothing beats no hints by more than the noise, or if what is best
    /// on average ([`Aim::Mean`]) costs more than 1 % on some firmware.
    pub policy: Option<String>,
    /// Its rules, or those that did not suffice.
    pub rules: Vec<LearnedRule>,
    /// What could be named, shortest life first.
    pub units: Vec<UnitShare>,
    /// The drives and rules it was judged on.
    pub firmwares: Vec<Firmware>,
    /// What it was compared with, itself among them.
    pub arms: Vec<Arm>,
    /// Page writes that it was learned from.
    pub trained_pages: u64,
    /// Page writes that it was judged on.
    pub judged_pages: u64,
    /// Groupings that were simulated.
    pub candidates: usize,
    /// The search followed one page in so many.
    pub one_in: u32,
    /// What must be said beside the figures.
    pub notes: Vec<String>,
}

/// A rule, and why it is there.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct LearnedRule {
    /// Names of its classes and relations.
    pub names: Vec<String>,
    /// What they get.
    #[serde(serialize_with = "by_name")]
    pub lifetime: Lifetime,
    /// Bytes that they wrote in the first part.
    pub bytes: u64,
    /// Of all bytes, 0 to 1.
    pub share: f64,
    /// Half of their data is dead after so many bytes that the host writes.
    pub median_bytes: Option<u64>,
    /// Share (0 to 1) of write amplification that the rule saves beside the others.
    pub gain: f64,
}

fn by_name<S: serde::Serializer>(lifetime: &Lifetime, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_str(lifetime.name())
}

/// Something that a rule could name.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct UnitShare {
    /// Class, or relation.
    pub name: String,
    /// Of all bytes of the first part, 0 to 1.
    pub share: f64,
    /// Half of its data is dead after so many bytes that the host writes.
    pub median_bytes: Option<u64>,
}

/// One thing to compare, on every firmware.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Arm {
    /// Its name: `off` is no hints.
    pub name: String,
    /// Write amplification by firmware; `None` where it cannot be.
    pub wafs: Vec<Option<f64>>,
    /// By firmware: half of the 95 % interval of what it saves, over the passes that are judged; `None` where that
    /// is one.
    pub errors: Vec<Option<f64>>,
    /// By the aim: share (0 to 1) of write amplification that it saves against no hints.
    pub saving: Option<f64>,
    /// Half of the 95 % interval of that saving.
    pub error: Option<f64>,
    /// By firmware, under a drive's own rules: units that were collected from the first end that is judged to the
    /// last, by their share of valid pages, in twentieths from 0.
    pub victims: Vec<Option<[u64; 20]>>,
}

impl Learned {
    /// The arm of this name.
    pub fn arm(&self, name: &str) -> Option<&Arm> {
        self.arms.iter().find(|arm| arm.name == name)
    }

    /// How much of what the clairvoyant by file saves the learned policy saves, by firmware; `None`
    /// where that saves less than a twentieth, or nothing was learned.
    pub fn share_of_clairvoyant(&self) -> Vec<Option<f64>> {
        let waf = |name: &str, at: usize| *self.arm(name)?.wafs.get(at)?;
        let one = |at| {
            let off = waf("off", at)?;
            let (best, own) = (waf("clairvoyant by file", at)?, waf("learned", at)?);
            (best < 0.95 * off).then(|| (off - own) / (off - best))
        };
        (0..self.firmwares.len()).map(one).collect()
    }
}
