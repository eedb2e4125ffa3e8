//! A policy as it was written: rules in order, each with its place in the text.
//!
//! Invariant: only the parser makes one, so every policy here has legal names, globs that can be
//! read, and path rules that fit the flat table; under layout `paths` it has path rules only.

use std::fmt;

use serde::Serialize;
use shelflife_layout::{Class, Layout};
use shelflife_lifetime::Lifetime;

use crate::place::Place;
use crate::ser;

/// Rules that give files a lifetime.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Policy {
    pub(crate) origin: String,
    pub(crate) name: Placed<String>,
    #[serde(serialize_with = "ser::layout")]
    pub(crate) layout: Layout,
    pub(crate) description: Option<String>,
    pub(crate) applier: Option<Applier>,
    pub(crate) default: Option<Placed<Lifetime>>,
    pub(crate) rules: Vec<Rule>,
}

impl Policy {
    /// The name that the caller gave the text.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The policy's name: 1 to [`crate::MAX_NAME`] bytes of `a-z`, `0-9` and `-`.
    pub fn name(&self) -> &str {
        &self.name.value
    }

    /// How paths become classes.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// One line about what the policy is for.
    pub fn description(&self) -> Option<&str> {
        self.description.as_deref()
    }

    /// Who is to set the hints; `None`: whoever is told to.
    pub fn applier(&self) -> Option<Applier> {
        self.applier
    }

    /// What files of the server's own folders get that no rule names. `None`: no call is made
    /// for them.
    pub fn default_lifetime(&self) -> Option<Placed<Lifetime>> {
        self.default
    }

    /// The rules, in order; the number of the first one is 1.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The first rule for the relation that a catalog calls `schema.name` (`called`) and that lies in
    /// `database` (`None`: all databases share it), which no compiled table holds: its number and
    /// what it gives, as [`shelflife_layout::Table::lookup_ruled`] takes them.
    pub fn relation_rule(&self, database: Option<&str>, called: &str) -> Option<(u16, Lifetime)> {
        // The parser has refused texts with more rules than there are numbers.
        self.rules.iter().zip(0u16..).find_map(|(rule, number)| match &rule.matcher {
            Matcher::Relation(name) if name.value.means(database, called) => {
                Some((number, rule.lifetime))
            }
            _ => None,
        })
    }

    /// The first rule that names `class` itself.
    pub(crate) fn own_rule(&self, class: Class) -> Option<usize> {
        self.rules.iter().position(|rule| rule.classes().any(|c| c.value == class))
    }

    /// The rule by which `class` is decided where no path rule comes before it: its own, else
    /// for the classes that need a catalog that of `relation`.
    pub(crate) fn class_rule(&self, class: Class) -> Option<usize> {
        let relation = || class.needs_catalog().then(|| self.own_rule(Class::Relation)).flatten();
        self.own_rule(class).or_else(relation)
    }
}

/// Who sets hints.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Applier {
    /// The preloaded hook: it has paths, so that an index is a relation to it.
    Hook,
    /// The daemon: it reads the catalog.
    Watch,
}

impl Applier {
    /// Both of them.
    pub const ALL: [Applier; 2] = [Applier::Hook, Applier::Watch];

    /// Its name in a policy: `hook`, `watch`.
    pub const fn name(self) -> &'static str {
        match self {
            Applier::Hook => "hook",
            Applier::Watch => "watch",
        }
    }
}

/// One `[[rule]]`.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Rule {
    /// Its number in the file, from 1.
    pub number: usize,
    /// Where it begins.
    #[serde(flatten)]
    pub place: Place,
    /// Which files it is about.
    #[serde(flatten)]
    pub matcher: Matcher,
    /// What they get.
    #[serde(serialize_with = "ser::lifetime")]
    pub lifetime: Lifetime,
}

impl Rule {
    /// The classes that the rule names; none for `path` and `relation` rules.
    pub fn classes(&self) -> impl Iterator<Item = Placed<Class>> {
        match &self.matcher {
            Matcher::Class(classes) => classes.as_slice(),
            Matcher::Path(_) | Matcher::Relation(_) => &[],
        }
        .iter()
        .copied()
    }

    pub(crate) fn glob(&self) -> Option<&str> {
        match &self.matcher {
            Matcher::Path(glob) => Some(&glob.value),
            Matcher::Class(_) | Matcher::Relation(_) => None,
        }
    }
}

/// Which files a rule is about.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Matcher {
    /// All files of these classes; at least one, never `outside`.
    Class(Vec<Placed<Class>>),
    /// A glob. With a leading `/` it is about absolute paths, else about the tail of the path
    /// inside the data folder (under [`Layout::Paths`]: of the path as the program gave it).
    Path(Placed<String>),
    /// One relation, all its forks, without its indexes and TOAST. Only a catalog can tell.
    Relation(Placed<RelationName>),
}

impl fmt::Display for Matcher {
    /// As it stands in the policy: `class = "wal"`, `path = "pg_wal/*"`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Matcher::Class(classes) => match classes.as_slice() {
                [class] => write!(f, "class = \"{}\"", class.value),
                classes => {
                    f.write_str("class = [")?;
                    for (at, class) in classes.iter().enumerate() {
                        write!(f, "{}\"{}\"", if at == 0 { "" } else { ", " }, class.value)?;
                    }
                    f.write_str("]")
                }
            },
            Matcher::Path(glob) => write!(f, "path = {:?}", glob.value),
            Matcher::Relation(name) => write!(f, "relation = \"{}\"", name.value),
        }
    }
}

/// `schema.table` or `database/schema.table`.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct RelationName {
    /// The database; any, if there is none.
    pub database: Option<String>,
    /// The schema.
    pub schema: String,
    /// The table, index or materialised view.
    pub name: String,
}

impl RelationName {
    /// `NAMEDATALEN` - 1 (`pg_config_manual.h`): the longest name of anything in PostgreSQL.
    const MOST: usize = 63;

    /// Reads `schema.table` or `database/schema.table`; `None` if `text` is neither.
    ///
    /// Names that hold a dot or a slash cannot be written.
    pub fn parse(text: &str) -> Option<RelationName> {
        let good = |part: &str| {
            !part.is_empty()
                && part.len() <= RelationName::MOST
                && !part.contains(|c: char| c == '.' || c == '/' || c.is_control())
        };
        let (database, rest) = match text.split_once('/') {
            Some((database, rest)) => (Some(database), rest),
            None => (None, text),
        };
        let (schema, name) = rest.split_once('.')?;
        let all = database.is_none_or(good) && good(schema) && good(name);
        all.then(|| RelationName {
            database: database.map(str::to_owned),
            schema: schema.to_owned(),
            name: name.to_owned(),
        })
    }

    fn means(&self, database: Option<&str>, called: &str) -> bool {
        // Neither of its parts holds a dot, so that there is one way to split what is equal.
        let names = called.strip_prefix(self.schema.as_str());
        names.and_then(|rest| rest.strip_prefix('.')) == Some(self.name.as_str())
            && (self.database.is_none() || self.database.as_deref() == database)
    }
}

impl fmt::Display for RelationName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(database) = &self.database {
            write!(f, "{database}/")?;
        }
        write!(f, "{}.{}", self.schema, self.name)
    }
}

/// A value, and where it stands in the text.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Placed<T> {
    /// The value.
    pub value: T,
    /// Its first character.
    pub place: Place,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relation_is_meant_by_all_parts_that_are_named() {
        let any = RelationName::parse("public.t").expect("a name");
        let one = RelationName::parse("shop/public.t").expect("a name");
        assert!(any.means(Some("shop"), "public.t") && any.means(None, "public.t"));
        assert!(one.means(Some("shop"), "public.t"));
        for (database, called) in
            [(Some("other"), "public.t"), (None, "public.t"), (Some("shop"), "public.tt")]
        {
            assert!(!one.means(database, called), "{database:?} {called}");
        }
        for called in ["public.t.x", "public", "public.", "publict", "other.t", "x.public.t"] {
            assert!(!any.means(Some("shop"), called), "{called}");
        }
    }

    #[test]
    fn a_relation_rule_has_the_number_that_the_table_counts_by() {
        let text = "name = \"p\"\nlayout = \"postgres\"\n\
            [[rule]]\nclass = \"wal\"\nlifetime = \"short\"\n\
            [[rule]]\nrelation = \"public.t\"\nlifetime = \"short\"\n\
            [[rule]]\nclass = \"relation\"\nlifetime = \"long\"\n";
        let policy = Policy::parse(text, "p").expect("a policy");
        let rule = policy.relation_rule(None, "public.t");
        assert_eq!(rule, Some((1, Lifetime::Short)));
        assert_eq!(policy.relation_rule(None, "public.other"), None);
        let found = policy.compile().lookup_ruled(Class::Relation, None, None, rule);
        assert_eq!(found, Some(Lifetime::Short));
    }
}
