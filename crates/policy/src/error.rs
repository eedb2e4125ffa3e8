//! What can be wrong with the text of a policy.
//!
//! Invariant: every error names origin, line and column, and echoes no more of the text than one
//! short line without control characters.

use std::fmt;

use shelflife_layout::{ARENA_BYTES, Class, GlobError, MAX_PATTERN};

use crate::MAX_BYTES;
use crate::place::Place;

/// The text is not a policy: `ORIGIN:LINE:COLUMN: what is wrong and what to do`.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{origin}:{}:{}: {problem}", place.line, place.column)]
pub struct Error {
    /// The name that the caller gave the text, mostly a path.
    pub origin: String,
    /// Where the problem stands.
    pub place: Place,
    /// What is wrong.
    pub problem: Problem,
}

/// What is wrong with the text of a policy.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// More than [`MAX_BYTES`].
    #[error("a policy has at most {MAX_BYTES} bytes")]
    TooLarge,
    /// Not UTF-8, which TOML requires.
    #[error("not UTF-8; TOML is UTF-8 without exception")]
    NotUtf8,
    /// Not TOML; the text is the TOML parser's.
    #[error("not TOML: {0}")]
    Syntax(String),
    /// A key that no policy has.
    #[error("unknown key {key} in {table}; {}", Choice(nearest, expected))]
    UnknownKey {
        /// The key.
        key: Quoted,
        /// `the policy` or `a rule`.
        table: &'static str,
        /// The likeliest meaning.
        nearest: Option<&'static str>,
        /// All keys that could stand there.
        expected: &'static [&'static str],
    },
    /// A key that every policy or rule must have.
    #[error("{table} has no `{key}`; add `{key} = {example}`")]
    MissingKey {
        /// `the policy` or `the rule`.
        table: &'static str,
        /// The key.
        key: &'static str,
        /// A value, as TOML.
        example: &'static str,
    },
    /// A value of the wrong TOML type.
    #[error("`{key}` must be {expected}, not {found}")]
    WrongType {
        /// The key.
        key: &'static str,
        /// The type that it must have.
        expected: &'static str,
        /// The type that it has.
        found: &'static str,
    },
    /// The name is not a name.
    #[error("{0} is not a name for a policy; use 1 to {max} of a-z, 0-9 and `-`", max = crate::MAX_NAME)]
    BadName(Quoted),
    /// `on` and `off`.
    #[error("{0} is the switch, not a policy; choose another name")]
    ReservedName(Quoted),
    /// The description does not fit one line of a table.
    #[error("the description must be one line of at most {max} characters, without control characters", max = crate::MAX_DESCRIPTION)]
    BadDescription,
    /// Not a layout.
    #[error("unknown layout {0}; expected \"postgres\" or \"paths\"")]
    UnknownLayout(Quoted),
    /// Nobody who sets hints.
    #[error("unknown applier {0}; expected \"hook\" or \"watch\"")]
    UnknownApplier(Quoted),
    /// Not a lifetime.
    #[error("unknown lifetime {text}; {}", Choice(nearest, LIFETIMES))]
    UnknownLifetime {
        /// What stood there.
        text: Quoted,
        /// The likeliest meaning.
        nearest: Option<&'static str>,
    },
    /// `off` where a lifetime should stand.
    #[error(
        "off is the switch, not a lifetime (`shelflife switch off`); `not-set` takes a hint away, \
         and files that no rule names are left alone"
    )]
    OffIsTheSwitch,
    /// Not a class.
    #[error("unknown class {text}; {}", ClassChoice(nearest))]
    UnknownClass {
        /// What stood there.
        text: Quoted,
        /// The likeliest meaning.
        nearest: Option<&'static str>,
    },
    /// `class = []`.
    #[error("the list of classes is empty; name one, or delete the rule")]
    NoClasses,
    /// A rule that names no files.
    #[error("the rule names no files; give it one of `class`, `path` or `relation`")]
    NoMatcher,
    /// A rule that names files in two ways.
    #[error("a rule has only one of `class`, `path` and `relation`; make two rules of it")]
    TwoMatchers,
    /// `class = "outside"`.
    #[error(
        "a rule for `{}` would hint any file anywhere that the server or its children write; \
         name the files by an absolute `path`",
        Class::Outside
    )]
    Outside,
    /// `path = "/**"` under layout `postgres`.
    #[error(
        "{0} would hint any file anywhere that the server or its children write; begin it with a \
         folder"
    )]
    Anywhere(Quoted),
    /// `class` or `relation` rules under `layout = "paths"`.
    #[error("layout \"paths\" knows no `{0}`; use `path` rules")]
    NotUnderPaths(&'static str),
    /// `default` under `layout = "paths"`.
    #[error(
        "layout \"paths\" has no `default`, because every file is outside of a data folder; end \
         with a rule `path = \"**\"` if all files are meant"
    )]
    DefaultUnderPaths,
    /// A glob that cannot be read.
    #[error("bad glob: {0}")]
    BadGlob(&'static str),
    /// A glob of more than [`MAX_PATTERN`] bytes.
    #[error("a glob has at most {MAX_PATTERN} bytes")]
    GlobTooLong,
    /// All globs together are too long for the compiled policy.
    #[error(
        "the path rules up to here need more than the {ARENA_BYTES} bytes of a compiled policy \
         (4 and the length of the glob for each); use fewer or shorter ones"
    )]
    TooManyPaths,
    /// Not the name of a relation.
    #[error(
        "{0} is not the name of a relation; write \"schema.table\" or \"database/schema.table\""
    )]
    BadRelation(Quoted),
}

impl From<GlobError> for Problem {
    fn from(error: GlobError) -> Problem {
        Problem::BadGlob(error.what)
    }
}

pub(crate) const LIFETIMES: &[&str] = &["not-set", "none", "short", "medium", "long", "extreme"];

/// A piece of the policy's text, fit for a terminal: escaped, quoted, at most 60 characters.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Quoted(String);

impl Quoted {
    const MOST: usize = 60;

    pub(crate) fn new(text: &str) -> Quoted {
        let mut short: String = text.chars().take(Quoted::MOST).collect();
        if short.len() < text.len() {
            short.push('…');
        }
        Quoted(format!("{short:?}"))
    }
}

impl fmt::Display for Quoted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// "did you mean …?", or all that there is.
struct Choice<'a>(&'a Option<&'static str>, &'a [&'static str]);

impl fmt::Display for Choice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(nearest) = self.0 {
            return write!(f, "did you mean `{nearest}`?");
        }
        f.write_str("expected ")?;
        for (at, name) in self.1.iter().enumerate() {
            let joint = match at {
                0 => "",
                _ if at + 1 == self.1.len() => " or ",
                _ => ", ",
            };
            write!(f, "{joint}`{name}`")?;
        }
        Ok(())
    }
}

struct ClassChoice<'a>(&'a Option<&'static str>);

impl fmt::Display for ClassChoice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(nearest) => write!(f, "did you mean `{nearest}`?"),
            None => f.write_str("`shelflife policy show temp-vs-rest` lists the classes"),
        }
    }
}

/// The one of `names` that `text` was probably meant to be.
pub(crate) fn nearest<'n>(text: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    // the distance takes time with the product of the lengths, and the text is a stranger's
    if text.len() > 64 {
        return None;
    }
    let text = text.to_ascii_lowercase().replace('_', "-");
    let distance = |name: &str| strsim::osa_distance(&text, name);
    let best = names.into_iter().min_by_key(|name| distance(name))?;
    (distance(best) <= (best.len() / 3).max(1)).then_some(best)
}
