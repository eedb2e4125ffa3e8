//! One layer between a file and the flash, and what it does to a hint.
//!
//! Invariant: a step says why and from which evidence.

use serde::Serialize;

/// What a layer does to a hint.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// Passes it on.
    Keeps,
    /// Passes it on for direct I/O only.
    DirectOnly,
    /// Puts another one in its place.
    Replaces,
    /// Loses it.
    Drops,
    /// Takes it, as the flash's side of the way.
    Delivers,
    /// Not known.
    Unknown,
}

impl Effect {
    /// The word shown.
    pub fn name(self) -> &'static str {
        match self {
            Effect::Keeps => "keeps",
            Effect::DirectOnly => "direct only",
            Effect::Replaces => "replaces",
            Effect::Drops => "drops",
            Effect::Delivers => "delivers",
            Effect::Unknown => "unknown",
        }
    }
}

/// A layer.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Step {
    /// `kernel`, `file system`, `dm-crypt`, `md raid5`, `partition`, `drive`, …
    pub layer: String,
    /// Which one: `6.18.44`, `ext4`, `dm-0`.
    pub name: String,
    /// What it does.
    pub effect: Effect,
    /// Why, for people.
    pub why: String,
    /// The file or call from which that is known.
    pub evidence: String,
    /// The kernel's source, commit or version behind it; empty if none is needed.
    pub source: String,
    /// The nearest change that would help, if it stands in the way.
    pub change: Option<String>,
    /// What is missing to know, if it is unknown.
    pub missing: Option<String>,
    /// How far below the path: branches of a RAID have the same depth.
    pub depth: usize,
}

impl Step {
    pub(crate) fn new(
        layer: impl Into<String>,
        name: impl Into<String>,
        effect: Effect,
        why: impl Into<String>,
    ) -> Step {
        Step {
            layer: layer.into(),
            name: name.into(),
            effect,
            why: why.into(),
            evidence: String::new(),
            source: String::new(),
            change: None,
            missing: None,
            depth: 0,
        }
    }

    pub(crate) fn from(mut self, evidence: impl Into<String>) -> Step {
        self.evidence = evidence.into();
        self
    }

    pub(crate) fn source(mut self, source: impl Into<String>) -> Step {
        self.source = source.into();
        self
    }

    pub(crate) fn change(mut self, change: impl Into<String>) -> Step {
        self.change = Some(change.into());
        self
    }

    pub(crate) fn missing(mut self, missing: impl Into<String>) -> Step {
        self.missing = Some(missing.into());
        self
    }
}
