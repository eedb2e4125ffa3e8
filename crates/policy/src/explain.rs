//! What one file gets and why, and the compiled form that the hook reads.
//!
//! Invariant: for every class and path, [`Policy::explain`] and `lookup` in [`Policy::compile`]'s
//! table give the same lifetime.

use serde::Serialize;
use shelflife_layout::{Class, Layout, Table, Text, matches, path, postgres};
use shelflife_lifetime::Lifetime;

use crate::place::Place;
use crate::policy::{Matcher, Policy, Rule};
use crate::ser;

/// Why a file gets its lifetime.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(tag = "by", rename_all = "lowercase")]
pub enum Decision {
    /// A rule decided.
    Rule {
        /// Its number, from 1.
        number: usize,
        /// Where it begins.
        #[serde(flatten)]
        place: Place,
    },
    /// The policy's default.
    Default {
        /// Where it stands.
        #[serde(flatten)]
        place: Place,
    },
    /// No rule and no default: no call is made.
    Nothing,
}

/// What a file gets, and why.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Explanation {
    /// What the file is.
    #[serde(serialize_with = "ser::class")]
    pub class: Class,
    /// What it gets; `None`: no call is made. ([`Lifetime::NotSet`] is a call that writes 0.)
    #[serde(serialize_with = "ser::lifetime_or_null")]
    pub lifetime: Option<Lifetime>,
    /// What decided.
    pub decision: Decision,
    /// The same in words, for one cell of a table.
    pub reason: String,
}

impl Policy {
    /// The flat table that the hook reads.
    ///
    /// `relation` rules are left out, because no path tells a relation's name. `index`, `toast`
    /// and `unlogged` get what their own rule says, else what `relation` gets.
    pub fn compile(&self) -> Table {
        let table = Table::default();
        table.clear(self.layout);
        for (at, rule) in self.rules.iter().enumerate() {
            // neither can fail: the parser has refused texts with more rules or longer globs
            let Ok(number) = u16::try_from(at) else { break };
            match &rule.matcher {
                Matcher::Class(classes) => {
                    classes.iter().for_each(|c| table.class_rule(number, c.value, rule.lifetime));
                }
                Matcher::Path(glob) => {
                    let fits = table.path_rule(number, glob.value.as_bytes(), rule.lifetime);
                    debug_assert_eq!(fits, Ok(()));
                }
                Matcher::Relation(_) => {}
            }
        }
        for &class in Class::ALL.iter().filter(|class| class.needs_catalog()) {
            if let Some(at) = self.class_rule(class)
                && let Ok(number) = u16::try_from(at)
            {
                table.class_rule(number, class, self.rules[at].lifetime);
            }
        }
        if let Some(default) = self.default {
            table.default_rule(default.value);
        }
        table
    }

    /// What a file of `class` gets, and why; `inside` and `absolute` as for
    /// [`Table::lookup`]: the path relative to the data folder (under [`Layout::Paths`]: as the
    /// program gave it), and the absolute path, each where it is known.
    pub fn explain(
        &self,
        class: Class,
        inside: Option<&[u8]>,
        absolute: Option<Text<'_>>,
    ) -> Explanation {
        let by_class = self.class_rule(class);
        let before = &self.rules[..by_class.unwrap_or(self.rules.len())];
        let by_path = before.iter().position(|rule| rule.names(inside, absolute));
        if let Some(at) = by_path.or(by_class) {
            let rule = &self.rules[at];
            let fallback = if by_path.is_none() && self.own_rule(class).is_none() {
                ", for lack of a rule of its own"
            } else {
                ""
            };
            return Explanation {
                class,
                lifetime: Some(rule.lifetime),
                decision: Decision::Rule { number: rule.number, place: rule.place },
                reason: format!(
                    "rule {} (line {}): {}{fallback}",
                    rule.number, rule.place.line, rule.matcher
                ),
            };
        }
        let (lifetime, decision, reason) = match self.default {
            Some(default) if class != Class::Outside => (
                Some(default.value),
                Decision::Default { place: default.place },
                format!("default (line {})", default.place.line),
            ),
            Some(_) => (None, Decision::Nothing, "no rule; the default stays inside".to_owned()),
            None => (None, Decision::Nothing, "no rule".to_owned()),
        };
        Explanation { class, lifetime, decision, reason }
    }

    /// What the file at `path` gets, and why: absolute, or relative to the server's working
    /// directory, which is its data folder `data` (absolute, without a slash at the end).
    ///
    /// Textual, as in the hook: nothing is resolved. A path with a `..` component has no absolute
    /// form, and under [`Layout::Postgres`] it is [`Class::Outside`] and meets no rule.
    pub fn explain_path(&self, path: &[u8], data: Option<&[u8]>) -> Explanation {
        let (climbs, is_absolute) = (path::climbs(path), path.first() == Some(&b'/'));
        let absolute = match data {
            _ if climbs => None,
            _ if is_absolute => Some(Text::whole(path)),
            Some(data) => Some(Text::joined(data, path)),
            None => None,
        };
        let inside = match (self.layout, data) {
            (Layout::Paths, _) => Some(path),
            (Layout::Postgres, _) if climbs => None,
            (Layout::Postgres, _) if !is_absolute => Some(path),
            (Layout::Postgres, Some(data)) => path::below(data, path),
            (Layout::Postgres, None) => None,
        };
        let class = match (self.layout, inside) {
            (Layout::Postgres, Some(inside)) => postgres::classify(inside),
            _ => Class::Outside,
        };
        self.explain(class, inside, absolute)
    }

    /// What each class gets where no path rule comes first: one explanation for every class that
    /// the layout knows.
    pub fn by_class(&self) -> impl Iterator<Item = Explanation> {
        let classes = match self.layout {
            Layout::Postgres => Class::ALL,
            Layout::Paths => &[Class::Outside],
        };
        classes.iter().map(|&class| self.explain(class, None, None))
    }
}

impl Rule {
    /// Whether this is a path rule that matches.
    pub(crate) fn names(&self, inside: Option<&[u8]>, absolute: Option<Text<'_>>) -> bool {
        let Some(glob) = self.glob().map(str::as_bytes) else { return false };
        let pattern = |at: usize| glob.get(at).copied();
        if glob.first() == Some(&b'/') {
            absolute.is_some_and(|text| matches(pattern, text, false))
        } else {
            inside.is_some_and(|path| matches(pattern, Text::whole(path), true))
        }
    }
}
