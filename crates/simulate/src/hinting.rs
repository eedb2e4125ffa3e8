//! Who gives the writes of a trace their hints.
//!
//! Invariant: a file gets here what the hook would give it at its path, and by `relation` rules
//! what their author meant; a file that nobody knows gets nothing.

use shelflife_layout::{Class, Layout, Table, Text};
use shelflife_lifetime::Lifetime;
use shelflife_policy::Policy;
use shelflife_trace::{FileClass, FileEntry, FileTable};

use crate::Error;

/// Who gives the writes of a trace their hints.
#[derive(Clone, Debug)]
pub enum Hinting {
    /// Nobody: all is NOT_SET.
    Off,
    /// As they were recorded.
    Recorded,
    /// A policy, by each file's class, path and relation.
    Policy(Box<Policy>),
}

impl Hinting {
    /// The name in results.
    pub fn name(&self) -> &str {
        match self {
            Hinting::Off => "off",
            Hinting::Recorded => "recorded",
            Hinting::Policy(policy) => policy.name(),
        }
    }

    /// The lifetime of each file, by its row; `None` if hints are taken as recorded.
    ///
    /// # Errors
    ///
    /// [`Error::MatchesNothing`].
    pub fn by_file(&self, files: &FileTable) -> Result<Option<Vec<Lifetime>>, Error> {
        let policy = match self {
            Hinting::Recorded => return Ok(None),
            Hinting::Off => return Ok(Some(vec![Lifetime::NotSet; files.len()])),
            Hinting::Policy(policy) => policy,
        };
        let table = policy.compile();
        let found: Vec<_> = files.iter().map(|(_, file)| lifetime(policy, &table, file)).collect();
        if found.iter().all(Option::is_none) {
            return Err(nothing(policy, files));
        }
        Ok(Some(found.into_iter().map(Option::unwrap_or_default).collect()))
    }
}

/// What `policy`, compiled to `table`, gives `file`; `None`: no call.
fn lifetime(policy: &Policy, table: &Table, file: &FileEntry) -> Option<Lifetime> {
    let path = file.path.as_deref().map(str::as_bytes);
    let class = match (policy.layout(), file.class) {
        // Without a catalog's word it is a relation, and the hook takes it for one.
        (Layout::Postgres, FileClass::Uncommitted) => Class::Relation,
        (Layout::Postgres, FileClass::File(class)) => class,
        (Layout::Postgres, _) => return None,
        (Layout::Paths, _) => Class::Outside,
    };
    let absolute = path.filter(|path| path.starts_with(b"/"));
    let inside = match policy.layout() {
        Layout::Postgres if class == Class::Outside => None,
        _ => path,
    };
    let called = file.relation.as_deref();
    let rule = called.and_then(|called| policy.relation_rule(file.database.as_deref(), called));
    table.lookup_ruled(class, inside, absolute.map(Text::whole), rule)
}

fn nothing(policy: &Policy, files: &FileTable) -> Error {
    let mut there: Vec<&str> = Vec::new();
    for (_, file) in files.iter() {
        if file.class != FileClass::Unknown && !there.contains(&file.class.name()) {
            there.push(file.class.name());
        }
    }
    let (there, instead) = if there.is_empty() {
        (
            "it names none, as imported traces mostly do".to_owned(),
            "use `recorded` for the hints that it holds, or `off`",
        )
    } else {
        (
            format!("of classes {}", there.join(", ")),
            "give one of these classes a rule, or a default",
        )
    };
    Error::MatchesNothing { policy: policy.name().to_owned(), there, instead: instead.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: &str = r#"
name = "mine"
layout = "postgres"

[[rule]]
relation = "app/public.hot"
lifetime = "medium"

[[rule]]
path = "pg_wal/*"
lifetime = "short"

[[rule]]
class = "relation"
lifetime = "extreme"
"#;

    fn mine() -> Hinting {
        Hinting::Policy(Box::new(Policy::parse(POLICY, "mine.toml").unwrap()))
    }

    #[test]
    fn class_path_and_relation_decide() {
        let mut files = FileTable::new();
        let mut hot = FileEntry::new(Class::Relation.into()).at("base/5/7");
        hot.relation = Some("public.hot".into());
        hot.database = Some("app".into());
        let mut other = hot.clone();
        other.database = Some("other".into());
        let wal = FileEntry::new(Class::Wal.into()).at("pg_wal/000000010000000000000001");
        let journal = FileEntry::new(FileClass::FsJournal);
        for file in [hot, other, wal, journal, FileEntry::new(FileClass::Uncommitted)] {
            files.push(file).unwrap();
        }
        let by_file = mine().by_file(&files).unwrap().unwrap();
        use Lifetime::{Extreme, Medium, NotSet, Short};
        assert_eq!(by_file, [NotSet, Medium, Extreme, Short, NotSet, Extreme]);
        assert!(Hinting::Recorded.by_file(&files).unwrap().is_none());
        assert_eq!(Hinting::Off.by_file(&files).unwrap().unwrap(), [NotSet; 6]);
    }

    #[test]
    fn a_policy_that_matches_nothing_is_an_error() {
        let mut files = FileTable::new();
        let error = mine().by_file(&files).unwrap_err().to_string();
        assert!(error.contains("mine") && error.contains("recorded"), "{error}");
        files.push(FileEntry::new(Class::Temp.into())).unwrap();
        let error = mine().by_file(&files).unwrap_err().to_string();
        assert!(error.contains("of classes temp"), "{error}");
    }
}
