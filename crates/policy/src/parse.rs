//! From TOML to a policy.
//!
//! Invariant: all that is wrong is found, not only the first; and the work and the memory that a
//! stranger's text can cost are bounded by its (limited) length.
//!
//! The tree is walked by hand and not through `Deserialize`, because a derived error names
//! neither the nearest key nor the column inside a glob.

use std::ops::Range;

use shelflife_layout::{Class, Layout, MAX_PATTERN, MAX_RULES, Table, check_glob};
use shelflife_lifetime::Lifetime;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::{Error, LIFETIMES, Problem, Quoted, nearest};
use crate::place::{Place, Places, inside_string};
use crate::policy::{Applier, Matcher, Placed, Policy, RelationName, Rule};
use crate::{MAX_BYTES, MAX_DESCRIPTION, MAX_NAME};

/// Errors beyond these are hardly of interest.
const MOST_ERRORS: usize = 100;

// A rule takes more than 20 bytes of text, so that a text of legal length never has more rules than
// the table can number.
const _: () = assert!(MAX_BYTES / 20 < MAX_RULES);

const POLICY_KEYS: &[&str] = &["name", "layout", "default", "description", "applier", "rule"];
const RULE_KEYS: &[&str] = &["class", "path", "relation", "lifetime"];

impl Policy {
    /// Reads a policy. `origin` names the text in messages and in [`Policy::origin`].
    ///
    /// # Errors
    ///
    /// The first thing that is wrong; [`crate::check_text`] gives all.
    pub fn parse(text: impl AsRef<[u8]>, origin: &str) -> Result<Policy, Error> {
        parse_all(text.as_ref(), origin).map_err(|errors| *errors.first)
    }
}

/// All that is wrong with a text, in its order: at least one thing.
pub(crate) struct Errors {
    first: Box<Error>,
    others: Vec<Error>,
}

impl Errors {
    fn one(error: Error) -> Errors {
        Errors { first: Box::new(error), others: Vec::new() }
    }

    pub(crate) fn into_iter(self) -> impl Iterator<Item = Error> {
        std::iter::once(*self.first).chain(self.others)
    }
}

/// The policy, or all that is wrong with the text.
pub(crate) fn parse_all(text: &[u8], origin: &str) -> Result<Policy, Errors> {
    let places = Places::new(text.get(..MAX_BYTES).unwrap_or(text));
    let error =
        |at: usize, problem| Error { origin: origin.to_owned(), place: places.at(at), problem };
    if text.len() > MAX_BYTES {
        return Err(Errors::one(error(MAX_BYTES, Problem::TooLarge)));
    }
    let text = std::str::from_utf8(text)
        .map_err(|e| Errors::one(error(e.valid_up_to(), Problem::NotUtf8)))?;
    let tree = DeTable::parse(text).map_err(|e| {
        // the parser's message may take several lines
        let message = e.message().split_whitespace().collect::<Vec<_>>().join(" ");
        let message = message.chars().filter(|c| !c.is_control()).collect();
        Errors::one(error(e.span().map_or(0, |span| span.start), Problem::Syntax(message)))
    })?;
    let mut walk = Walk { text, places: &places, problems: Vec::new(), table: Table::default() };
    let policy = walk.policy(tree.get_ref(), origin);
    walk.problems.sort_by_key(|(at, _)| *at);
    let mut errors = walk.problems.into_iter().map(|(at, problem)| error(at, problem));
    match (errors.next(), policy) {
        (None, Some(policy)) => Ok(policy),
        (Some(first), _) => Err(Errors { first: Box::new(first), others: errors.collect() }),
        // no policy without a problem; said so that a slip in here is an error and not a panic
        (None, None) => Err(Errors::one(error(0, Problem::Syntax("not a policy".to_owned())))),
    }
}

struct Walk<'t> {
    text: &'t str,
    places: &'t Places<'t>,
    /// Byte offsets, and what is wrong there.
    problems: Vec<(usize, Problem)>,
    /// Takes the path rules, to see whether they fit.
    table: Table,
}

impl<'t> Walk<'t> {
    fn say(&mut self, at: usize, problem: Problem) {
        if self.problems.len() < MOST_ERRORS {
            self.problems.push((at, problem));
        }
    }

    fn place(&self, at: usize) -> Place {
        self.places.at(at)
    }

    fn placed<T>(&self, value: T, span: Range<usize>) -> Placed<T> {
        Placed { value, place: self.place(span.start) }
    }

    fn policy(&mut self, root: &DeTable<'t>, origin: &str) -> Option<Policy> {
        self.unknown_keys(root, "the policy", POLICY_KEYS);
        let name = match root.get("name") {
            Some(value) => self.name(value),
            None => self.missing("the policy", "name", "\"my-policy\"", 0),
        };
        let layout = match root.get("layout") {
            Some(value) => self.layout(value),
            None => self.missing("the policy", "layout", "\"postgres\"", 0),
        };
        let description = root.get("description").and_then(|value| self.description(value));
        let applier = root.get("applier").and_then(|value| self.applier(value));
        let default = root.get("default").and_then(|value| {
            if layout == Some(Layout::Paths) {
                self.say(value.span().start, Problem::DefaultUnderPaths);
            }
            let lifetime = self.lifetime("default", value)?;
            Some(self.placed(lifetime, value.span()))
        });
        let rules = match root.get("rule") {
            Some(value) => self.rules(value, layout)?,
            None => Vec::new(),
        };
        Some(Policy {
            origin: origin.to_owned(),
            name: name?,
            layout: layout?,
            description,
            applier,
            default,
            rules,
        })
    }

    fn unknown_keys(
        &mut self,
        table: &DeTable<'t>,
        what: &'static str,
        expected: &'static [&'static str],
    ) {
        for key in table.keys() {
            let text = key.get_ref().as_ref();
            if !expected.contains(&text) && self.problems.len() < MOST_ERRORS {
                let nearest = nearest(text, expected.iter().copied());
                let key_text = Quoted::new(text);
                let problem = Problem::UnknownKey { key: key_text, table: what, nearest, expected };
                self.say(key.span().start, problem);
            }
        }
    }

    fn missing<T>(
        &mut self,
        table: &'static str,
        key: &'static str,
        example: &'static str,
        at: usize,
    ) -> Option<T> {
        self.say(at, Problem::MissingKey { table, key, example });
        None
    }

    fn string<'v>(
        &mut self,
        key: &'static str,
        value: &'v Spanned<DeValue<'t>>,
    ) -> Option<&'v str> {
        let text = value.get_ref().as_str();
        if text.is_none() {
            self.wrong_type(key, "a string", value);
        }
        text
    }

    fn wrong_type(
        &mut self,
        key: &'static str,
        expected: &'static str,
        value: &Spanned<DeValue<'t>>,
    ) {
        let found = match value.get_ref().type_str() {
            "array" => "a list",
            "boolean" => "true or false",
            "datetime" => "a date",
            "table" => "a table",
            _ => "a number",
        };
        self.say(value.span().start, Problem::WrongType { key, expected, found });
    }

    fn name(&mut self, value: &Spanned<DeValue<'t>>) -> Option<Placed<String>> {
        let text = self.string("name", value)?;
        let legal = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        let at = value.span().start;
        if text.is_empty() || text.len() > MAX_NAME || !text.bytes().all(legal) {
            self.say(at, Problem::BadName(Quoted::new(text)));
        } else if matches!(text, "off" | "on") {
            self.say(at, Problem::ReservedName(Quoted::new(text)));
        }
        Some(self.placed(text.to_owned(), value.span()))
    }

    fn layout(&mut self, value: &Spanned<DeValue<'t>>) -> Option<Layout> {
        let text = self.string("layout", value)?;
        let layout = text.parse().ok();
        if layout.is_none() {
            self.say(value.span().start, Problem::UnknownLayout(Quoted::new(text)));
        }
        layout
    }

    fn description(&mut self, value: &Spanned<DeValue<'t>>) -> Option<String> {
        let text = self.string("description", value)?;
        if text.chars().count() > MAX_DESCRIPTION || text.chars().any(char::is_control) {
            self.say(value.span().start, Problem::BadDescription);
        }
        Some(text.to_owned())
    }

    fn applier(&mut self, value: &Spanned<DeValue<'t>>) -> Option<Applier> {
        let text = self.string("applier", value)?;
        let applier = Applier::ALL.into_iter().find(|applier| applier.name() == text);
        if applier.is_none() {
            self.say(value.span().start, Problem::UnknownApplier(Quoted::new(text)));
        }
        applier
    }

    fn lifetime(&mut self, key: &'static str, value: &Spanned<DeValue<'t>>) -> Option<Lifetime> {
        let text = self.string(key, value)?;
        let lifetime = text.parse().ok();
        if lifetime.is_none() {
            let problem = if text.eq_ignore_ascii_case("off") {
                Problem::OffIsTheSwitch
            } else {
                let nearest = nearest(text, LIFETIMES.iter().copied());
                Problem::UnknownLifetime { text: Quoted::new(text), nearest }
            };
            self.say(value.span().start, problem);
        }
        lifetime
    }

    fn rules(&mut self, value: &Spanned<DeValue<'t>>, layout: Option<Layout>) -> Option<Vec<Rule>> {
        const EXPECTED: &str = "a list of tables, each begun by a line `[[rule]]`";
        let Some(list) = value.get_ref().as_array() else {
            self.wrong_type("rule", EXPECTED, value);
            return None;
        };
        let mut rules = Vec::new();
        for (at, value) in list.iter().enumerate() {
            if self.problems.len() >= MOST_ERRORS {
                return None;
            }
            match value.get_ref().as_table() {
                Some(table) => {
                    let rule = self.rule(at + 1, table, value.span().start, layout);
                    rules.extend(rule);
                }
                None => self.wrong_type("rule", EXPECTED, value),
            }
        }
        Some(rules)
    }

    fn rule(
        &mut self,
        number: usize,
        rule: &DeTable<'t>,
        at: usize,
        layout: Option<Layout>,
    ) -> Option<Rule> {
        self.unknown_keys(rule, "a rule", RULE_KEYS);
        let lifetime = match rule.get("lifetime") {
            Some(value) => self.lifetime("lifetime", value),
            None => self.missing("the rule", "lifetime", "\"short\"", at),
        };
        let mut matchers: Vec<_> = rule
            .iter()
            .filter(|(key, _)| RULE_KEYS[..3].contains(&key.get_ref().as_ref()))
            .collect();
        matchers.sort_by_key(|(key, _)| key.span().start);
        let Some(&(key, value)) = matchers.first() else {
            self.say(at, Problem::NoMatcher);
            return None;
        };
        if let Some((second, _)) = matchers.get(1) {
            self.say(second.span().start, Problem::TwoMatchers);
        }
        let key_at = key.span().start;
        let matcher = match key.get_ref().as_ref() {
            "path" => Matcher::Path(self.path(value, layout)?),
            "class" => {
                self.not_under_paths("class", key_at, layout);
                Matcher::Class(self.classes(value)?)
            }
            _ => {
                self.not_under_paths("relation", key_at, layout);
                Matcher::Relation(self.relation(value)?)
            }
        };
        Some(Rule { number, place: self.place(at), matcher, lifetime: lifetime? })
    }

    fn not_under_paths(&mut self, key: &'static str, at: usize, layout: Option<Layout>) {
        if layout == Some(Layout::Paths) {
            self.say(at, Problem::NotUnderPaths(key));
        }
    }

    fn classes(&mut self, value: &Spanned<DeValue<'t>>) -> Option<Vec<Placed<Class>>> {
        const EXPECTED: &str = "a string or a list of strings";
        let one = std::slice::from_ref(value);
        let listed: Vec<&Spanned<DeValue<'t>>> = match value.get_ref() {
            DeValue::Array(list) => list.iter().collect(),
            _ => one.iter().collect(),
        };
        if listed.is_empty() {
            self.say(value.span().start, Problem::NoClasses);
        }
        let mut classes = Vec::new();
        for value in listed {
            let Some(text) = value.get_ref().as_str() else {
                self.wrong_type("class", EXPECTED, value);
                continue;
            };
            match text.parse() {
                Ok(Class::Outside) => self.say(value.span().start, Problem::Outside),
                Ok(class) => classes.push(self.placed(class, value.span())),
                Err(_) if self.problems.len() >= MOST_ERRORS => break,
                Err(_) => {
                    let nearest = nearest(text, Class::ALL.iter().map(|class| class.name()));
                    let text = Quoted::new(text);
                    self.say(value.span().start, Problem::UnknownClass { text, nearest });
                }
            }
        }
        Some(classes)
    }

    fn path(
        &mut self,
        value: &Spanned<DeValue<'t>>,
        layout: Option<Layout>,
    ) -> Option<Placed<String>> {
        let glob = self.string("path", value)?;
        let span = value.span();
        if let Err(error) = check_glob(glob.as_bytes()) {
            let at = inside_string(self.text, span.clone(), glob, error.at);
            self.say(at, error.into());
        } else if glob.len() > MAX_PATTERN {
            self.say(span.start, Problem::GlobTooLong);
        } else if layout == Some(Layout::Postgres) && is_anywhere(glob) {
            self.say(span.start, Problem::Anywhere(Quoted::new(glob)));
        } else {
            // only whether it fits matters here
            let full = self.table.path_rule(0, glob.as_bytes(), Lifetime::NotSet).is_err();
            let said = self.problems.iter().any(|(_, p)| *p == Problem::TooManyPaths);
            if full && !said {
                self.say(span.start, Problem::TooManyPaths);
            }
        }
        Some(self.placed(glob.to_owned(), span))
    }

    fn relation(&mut self, value: &Spanned<DeValue<'t>>) -> Option<Placed<RelationName>> {
        let text = self.string("relation", value)?;
        let name = RelationName::parse(text);
        if name.is_none() {
            self.say(value.span().start, Problem::BadRelation(Quoted::new(text)));
        }
        Some(self.placed(name?, value.span()))
    }
}

/// Whether the glob is absolute and names no folder nor file at all.
fn is_anywhere(glob: &str) -> bool {
    glob.strip_prefix('/').is_some_and(|rest| {
        let mut parts = rest.split('/');
        parts.clone().any(|part| part == "**") && parts.all(|part| matches!(part, "*" | "**"))
    })
}
