//! What is legal in a policy and yet hardly meant.
//!
//! Invariant: an error is never a matter of taste: a rule that check calls unreachable decides
//! about no file at all.

use std::collections::HashMap;
use std::fmt;

use serde::Serialize;
use shelflife_layout::{Class, Layout, postgres};
use shelflife_lifetime::Lifetime;

use crate::cover::{covers, covers_all};
use crate::explain::{Decision, Explanation};
use crate::parse::parse_all;
use crate::place::Place;
use crate::policy::{Applier, Matcher, Placed, Policy, RelationName, Rule};

/// How bad a finding is.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; nothing needs to change.
    Note,
    /// The policy does what it says, and that is hardly what was meant.
    Warning,
    /// The text is not a policy, or a part of it can have no effect.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        })
    }
}

/// What [`Policy::check`] looks for. The names are those of `docs/policy.md`.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lint {
    /// The text is not a policy (only from [`check_text`]).
    Syntax,
    /// Earlier rules take every file that the rule (or the default) is about.
    UnreachableRule,
    /// Earlier rules take some of the classes that the rule names.
    RepeatedClass,
    /// The glob ends in `/`, and no file's path does.
    MatchesNoFile,
    /// Every file known to the layout that the path rule matches is of a class that an earlier
    /// rule takes.
    TakenByClass,
    /// No rule and no default.
    HintsNothing,
    /// A rule for `index`, `toast` or `unlogged` that differs from what `relation` gets.
    HookCannotTell,
    /// A rule by `relation`.
    NeedsCatalog,
    /// A WAL segment would keep what it got while it was made.
    WalNewDiffers,
    /// `extreme` for relations.
    ColdOnF2fs,
}

impl Lint {
    /// All of them.
    pub const ALL: &'static [Lint] = &[
        Lint::Syntax,
        Lint::UnreachableRule,
        Lint::MatchesNoFile,
        Lint::HintsNothing,
        Lint::RepeatedClass,
        Lint::TakenByClass,
        Lint::HookCannotTell,
        Lint::NeedsCatalog,
        Lint::WalNewDiffers,
        Lint::ColdOnF2fs,
    ];

    /// How bad it is, unless the policy says that it is meant.
    pub const fn severity(self) -> Severity {
        match self {
            Lint::Syntax | Lint::UnreachableRule | Lint::MatchesNoFile | Lint::HintsNothing => {
                Severity::Error
            }
            Lint::RepeatedClass
            | Lint::TakenByClass
            | Lint::HookCannotTell
            | Lint::NeedsCatalog
            | Lint::WalNewDiffers => Severity::Warning,
            Lint::ColdOnF2fs => Severity::Note,
        }
    }

    /// Its name: `unreachable-rule`.
    pub const fn name(self) -> &'static str {
        match self {
            Lint::Syntax => "syntax",
            Lint::UnreachableRule => "unreachable-rule",
            Lint::RepeatedClass => "repeated-class",
            Lint::MatchesNoFile => "matches-no-file",
            Lint::TakenByClass => "taken-by-class",
            Lint::HintsNothing => "hints-nothing",
            Lint::HookCannotTell => "hook-cannot-tell",
            Lint::NeedsCatalog => "needs-catalog",
            Lint::WalNewDiffers => "wal-new-differs",
            Lint::ColdOnF2fs => "cold-on-f2fs",
        }
    }
}

/// Something that [`Policy::check`] or [`check_text`] found.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// What was looked for.
    pub lint: Lint,
    /// Where it stands.
    #[serde(flatten)]
    pub place: Place,
    /// What it is, and what to do.
    pub text: String,
}

impl Finding {
    fn new(lint: Lint, place: Place, text: impl Into<String>) -> Finding {
        Finding { severity: lint.severity(), lint, place, text: text.into() }
    }

    /// Whether a check with this finding fails: errors and warnings do, notes do not.
    pub fn fails(&self) -> bool {
        self.severity > Severity::Note
    }
}

/// All that is wrong with a text, if it is a policy or not, in the order of the text.
pub fn check_text(text: impl AsRef<[u8]>, origin: &str) -> Vec<Finding> {
    match parse_all(text.as_ref(), origin) {
        Ok(policy) => policy.check(),
        Err(errors) => errors
            .into_iter()
            .map(|e| Finding::new(Lint::Syntax, e.place, e.problem.to_string()))
            .collect(),
    }
}

/// A segment and the same while it is made.
const WAL: &[u8] = b"pg_wal/000000010000000000000001";
const WAL_NEW: &[u8] = b"pg_wal/xlogtemp.4711";
const RELATION: &[u8] = b"base/5/16384";

impl Policy {
    /// What is legal and yet hardly meant, in the order of the text.
    pub fn check(&self) -> Vec<Finding> {
        let by_class = self.class_rules();
        let mut findings = self.unreachable(&by_class);
        self.taken_by_class(&by_class, &mut findings);
        if self.rules.is_empty() && self.default.is_none() {
            let text = "no rule and no default: the policy hints nothing; add a `[[rule]]`";
            findings.push(Finding::new(Lint::HintsNothing, self.name.place, text));
        }
        if self.layout == Layout::Postgres {
            self.hook_cannot_tell(&mut findings);
            findings.extend(self.wal_new_differs());
            findings.extend(self.cold_on_f2fs());
        }
        findings.sort_by_key(|finding| finding.place);
        findings
    }

    /// By class number: the index of the rule that decides where no path rule comes first.
    fn class_rules(&self) -> Vec<Option<usize>> {
        Class::ALL.iter().map(|&class| self.class_rule(class)).collect()
    }

    /// Rules that earlier ones leave nothing to.
    fn unreachable(&self, by_class: &[Option<usize>]) -> Vec<Finding> {
        let mut findings = Vec::new();
        let mut taken = Taken { all_classes: self.all_classes(by_class), ..Taken::default() };
        for rule in &self.rules {
            match &rule.matcher {
                Matcher::Class(classes) => taken.classes(rule, classes, &mut findings),
                Matcher::Path(glob) => taken.path(rule, glob, &mut findings),
                Matcher::Relation(name) => taken.relation(rule, name, &mut findings),
            }
        }
        if let (Some(default), Some(all)) = (self.default, taken.all) {
            let text = format!("the default is never used: {} takes every file", by(all));
            findings.push(Finding::new(Lint::UnreachableRule, default.place, text));
        }
        findings
    }

    /// The last of the class rules that together take every file inside, if they do.
    fn all_classes(&self, by_class: &[Option<usize>]) -> Option<&Rule> {
        let inside = Class::ALL.iter().zip(by_class).filter(|(class, _)| **class != Class::Outside);
        let rules = inside.map(|(_, rule)| *rule).collect::<Option<Vec<_>>>()?;
        rules.into_iter().max().map(|at| &self.rules[at])
    }

    /// Path rules about files whose classes earlier rules take. The example paths are no proof,
    /// hence a lint of its own: `pg_wal/*` may meet files that no version has yet.
    fn taken_by_class(&self, by_class: &[Option<usize>], findings: &mut Vec<Finding>) {
        if self.layout != Layout::Postgres {
            return;
        }
        for (at, rule) in self.rules.iter().enumerate() {
            let relative = rule.glob().is_some_and(|glob| !glob.starts_with('/'));
            if !relative || findings.iter().any(|finding| finding.place == rule.place) {
                continue;
            }
            let matched = postgres::examples()
                .filter(|(_, path)| rule.names(Some(path.as_bytes()), None))
                .map(|(class, _)| by_class[usize::from(class.number())].filter(|by| *by < at));
            let Some(takers) = matched.collect::<Option<Vec<_>>>() else { continue };
            if let Some(last) = takers.into_iter().max() {
                let text = format!(
                    "every file of PostgreSQL 13 to 19 that this rule matches is of a class that \
                     {} takes, or one before it; move this rule up",
                    by(&self.rules[last])
                );
                findings.push(Finding::new(Lint::TakenByClass, rule.place, text));
            }
        }
    }

    /// What the hook makes of rules that need a catalog: worth knowing only, if it is not to set the hints.
    fn hook_cannot_tell(&self, findings: &mut Vec<Finding>) {
        let finding = |lint: Lint, place, text: &str| Finding {
            severity: match self.applier {
                Some(Applier::Watch) => Severity::Note,
                Some(Applier::Hook) | None => lint.severity(),
            },
            ..Finding::new(lint, place, text)
        };
        let relation = self.explain(Class::Relation, None, None);
        let instead = match relation.lifetime {
            Some(lifetime) => format!("`{lifetime}`, by {}", relation.reason),
            None => "no hint".to_owned(),
        };
        for &class in Class::ALL.iter().filter(|class| class.needs_catalog()) {
            let Some(rule) = self.own_rule(class).map(|at| &self.rules[at]) else { continue };
            let Some(named) = rule.classes().find(|named| named.value == class) else { continue };
            if relation.lifetime != Some(rule.lifetime) {
                let text = format!(
                    "without a catalog a file of class `{class}` is a `relation`: the hook gives \
                     it {instead}"
                );
                findings.push(finding(Lint::HookCannotTell, named.place, &text));
            }
        }
        for rule in &self.rules {
            if let Matcher::Relation(name) = &rule.matcher {
                let text = "a path does not tell a relation's name: the hook ignores this rule";
                findings.push(finding(Lint::NeedsCatalog, name.place, text));
            }
        }
    }

    fn wal_new_differs(&self) -> Option<Finding> {
        let (wal, new) = (
            self.explain(Class::Wal, Some(WAL), None),
            self.explain(Class::WalNew, Some(WAL_NEW), None),
        );
        // a new file has no hint: no call and `not-set` come to the same
        let effect = |e: &Explanation| e.lifetime.unwrap_or_default();
        if effect(&wal) == effect(&new) {
            return None;
        }
        let place = place_of(&new).or(place_of(&wal))?;
        let name = |e: &Explanation| e.lifetime.map_or("no hint", Lifetime::name);
        let text = format!(
            "`wal-new` gets {} and `wal` {}; a segment is made as the one, renamed to the other \
             and keeps its hint: give both the same lifetime",
            name(&new),
            name(&wal)
        );
        Some(Finding::new(Lint::WalNewDiffers, place, text))
    }

    /// `fs/f2fs/segment.c`: `extreme` goes to the cold log, where garbage collection writes too.
    fn cold_on_f2fs(&self) -> Option<Finding> {
        let relation = self.explain(Class::Relation, Some(RELATION), None);
        if relation.lifetime != Some(Lifetime::Extreme) {
            return None;
        }
        let text = "on f2fs `extreme` shares a log with what garbage collection has moved, and \
                    relations are rewritten in place; there `long` keeps the two apart";
        Some(Finding::new(Lint::ColdOnF2fs, place_of(&relation)?, text))
    }
}

fn place_of(explanation: &Explanation) -> Option<Place> {
    match explanation.decision {
        Decision::Rule { place, .. } | Decision::Default { place } => Some(place),
        Decision::Nothing => None,
    }
}

fn by(rule: &Rule) -> String {
    format!("rule {} (line {})", rule.number, rule.place.line)
}

/// What the rules so far have taken.
#[derive(Default)]
struct Taken<'p> {
    classes: HashMap<Class, &'p Rule>,
    paths: Vec<(&'p str, &'p Rule)>,
    relations: HashMap<&'p RelationName, &'p Rule>,
    /// The path rule that takes every file inside.
    all: Option<&'p Rule>,
    /// The last of the class rules that together take every file inside, wherever it stands.
    all_classes: Option<&'p Rule>,
}

impl<'p> Taken<'p> {
    fn unreachable(&self, rule: &Rule, by_rule: &Rule) -> Finding {
        let text = format!("no file gets here: {} takes them all; move or delete it", by(by_rule));
        Finding::new(Lint::UnreachableRule, rule.place, text)
    }

    fn classes(&mut self, rule: &'p Rule, classes: &[Placed<Class>], findings: &mut Vec<Finding>) {
        if let Some(all) = self.all {
            findings.push(self.unreachable(rule, all));
            return;
        }
        let mut repeated = Vec::new();
        for class in classes {
            if let Some(earlier) = self.classes.get(&class.value) {
                let text = if earlier.number == rule.number {
                    format!("class `{}` is named twice", class.value)
                } else {
                    format!("class `{}` is taken by {}", class.value, by(earlier))
                };
                repeated.push(Finding::new(Lint::RepeatedClass, class.place, text));
            } else {
                self.classes.insert(class.value, rule);
            }
        }
        if repeated.len() < classes.len() {
            findings.append(&mut repeated);
            return;
        }
        let takers: Vec<&Rule> =
            classes.iter().filter_map(|c| self.classes.get(&c.value).copied()).collect();
        if let Some(last) = takers.into_iter().max_by_key(|taker| taker.number) {
            findings.push(self.unreachable(rule, last));
        }
    }

    fn path(&mut self, rule: &'p Rule, glob: &'p Placed<String>, findings: &mut Vec<Finding>) {
        let text = glob.value.as_str();
        if text.ends_with('/') {
            let text = "no file's path ends in `/`; end the glob with `/**` to mean a folder";
            findings.push(Finding::new(Lint::MatchesNoFile, glob.place, text));
            return;
        }
        let earlier = self.paths.iter().find(|(earlier, _)| covers(earlier, text));
        let by_classes = self.all_classes.filter(|last| last.number < rule.number);
        let taker = match earlier {
            Some((_, taker)) => Some(*taker),
            None if text.starts_with('/') => None,
            None => self.all.or(by_classes),
        };
        if let Some(taker) = taker {
            findings.push(self.unreachable(rule, taker));
            return;
        }
        self.paths.push((text, rule));
        if covers_all(text) {
            self.all = Some(rule);
        }
    }

    fn relation(
        &mut self,
        rule: &'p Rule,
        name: &'p Placed<RelationName>,
        findings: &mut Vec<Finding>,
    ) {
        let in_any_database = RelationName { database: None, ..name.value.clone() };
        let earlier = self.relations.get(&name.value).or(self.relations.get(&in_any_database));
        if let Some(taker) = self.all.or(earlier.copied()) {
            findings.push(self.unreachable(rule, taker));
            return;
        }
        self.relations.insert(&name.value, rule);
    }
}
