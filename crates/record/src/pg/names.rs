//! What a catalog says of one file of the trace.
//!
//! Invariant: a name never makes a file less known than it was: what the catalog does not say stays.

use shelflife_layout::Class;
use shelflife_layout::relation::{Fork, RelationFile};
use shelflife_postgres::Catalog;
use shelflife_postgres::catalog::Relation;
use shelflife_trace::{FileClass, FileEntry, FileId};

/// What is known now of a file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Name {
    pub(super) file: FileId,
    pub(super) class: Option<FileClass>,
    pub(super) database: Option<String>,
    pub(super) relation: Option<String>,
    pub(super) kind: Option<&'static str>,
    pub(super) fork: Option<Fork>,
    pub(super) tablespace: Option<String>,
}

impl Name {
    /// Only its class, for a server's file that is no relation's.
    pub(super) fn class(file: FileId, class: Class) -> Name {
        Name {
            file,
            class: Some(class.into()),
            database: None,
            relation: None,
            kind: None,
            fork: None,
            tablespace: None,
        }
    }

    /// What `catalog` says of a relation's file that is of `class` by its path.
    pub(super) fn of(file: FileId, part: &RelationFile, class: Class, catalog: &Catalog) -> Name {
        let relation = catalog.relation(part.key);
        let class = match relation {
            Some(relation) if class == Class::Relation => relation.class(),
            _ => class,
        };
        let database = match relation {
            Some(relation) => relation.database.clone(),
            None => catalog.database(part.key.database).map(str::to_owned),
        };
        Name {
            file,
            class: Some(class.into()),
            database,
            relation: relation.map(|relation| relation.name.clone()),
            kind: relation.map(Relation::kind_name),
            fork: Some(part.fork),
            tablespace: catalog.tablespace(part.key.tablespace).map(str::to_owned),
        }
    }

    /// Writes it into the file's row.
    pub(super) fn put(self, entry: &mut FileEntry) {
        if let Some(class) = self.class {
            entry.class = class;
        }
        let keep = |row: &mut Option<String>, known: Option<String>| {
            if known.is_some() {
                *row = known;
            }
        };
        keep(&mut entry.database, self.database);
        keep(&mut entry.relation, self.relation);
        keep(&mut entry.kind, self.kind.map(str::to_owned));
        keep(&mut entry.fork, self.fork.map(|fork| fork.name().to_owned()));
        keep(&mut entry.tablespace, self.tablespace);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_stays() {
        let mut entry = FileEntry::new(Class::Index.into());
        entry.relation = Some("public.i".into());
        entry.tablespace = Some("fast".into());
        Name::class(FileId(1), Class::Relation).put(&mut entry);
        assert_eq!(entry.class, Class::Relation.into());
        assert_eq!(entry.relation.as_deref(), Some("public.i"));
        assert_eq!(entry.tablespace.as_deref(), Some("fast"));
    }
}
