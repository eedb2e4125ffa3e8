//! Files of relations: which number, fork and segment a name says.
//!
//! Invariant: as everywhere in this crate, any bytes have an answer in bounded time without
//! allocation, and a path is a relation's file here only if [`crate::postgres::classify`] says so too.
//! Names are those of `relpath.c` and `md.c` of the server's sources, versions 13 to 19.

use core::fmt;

use crate::path::components;

/// Object id of the tablespace `pg_default`, the files below `base`.
pub const PG_DEFAULT: u32 = 1663;
/// Object id of the tablespace `pg_global`, the files in `global`.
pub const PG_GLOBAL: u32 = 1664;

/// What identifies a relation on disk: the server's `RelFileLocator`, and the owner of a temporary
/// one.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct RelationKey {
    /// Object id of the tablespace.
    pub tablespace: u32,
    /// Object id of the database; 0 for relations that all databases share.
    pub database: u32,
    /// Number of the backend that a temporary relation belongs to.
    pub backend: Option<u32>,
    /// The file's number (`relfilenode`), another one after each rewrite.
    pub number: u32,
}

/// One file of a relation.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct RelationFile {
    /// Which relation.
    pub key: RelationKey,
    /// Which of its forks.
    pub fork: Fork,
    /// Which segment of the fork, from 0; of 1 GiB unless the server was built otherwise.
    pub segment: u32,
}

/// A fork of a relation.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Fork {
    /// The data.
    Main,
    /// The free space map.
    Fsm,
    /// The visibility map.
    Vm,
    /// What an unlogged relation begins with after a crash.
    Init,
}

impl Fork {
    /// The name in traces: `main`, `fsm`, `vm`, `init`.
    pub const fn name(self) -> &'static str {
        match self {
            Fork::Main => "main",
            Fork::Fsm => "fsm",
            Fork::Vm => "vm",
            Fork::Init => "init",
        }
    }
}

impl fmt::Display for Fork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The relation's file that `path`, relative to the data folder, is; `None` if it is none.
pub fn relation_file(path: &[u8]) -> Option<RelationFile> {
    if path.first() == Some(&b'/') {
        return None;
    }
    let mut parts = components(path);
    let (tablespace, database) = match parts.next()? {
        b"global" => (PG_GLOBAL, 0),
        b"base" => (PG_DEFAULT, number(parts.next()?)?),
        b"pg_tblspc" => {
            let tablespace = number(parts.next()?)?;
            if !parts.next()?.starts_with(b"PG_") {
                return None;
            }
            (tablespace, number(parts.next()?)?)
        }
        _ => return None,
    };
    let name = Name::parse(parts.next()?)?;
    // No component may follow, not even one that climbs.
    if parts.next().is_some() || parts.climbs() {
        return None;
    }
    let backend = match name.backend {
        Some(backend) => Some(number(backend)?),
        None => None,
    };
    let segment = match name.segment {
        Some(segment) => number(segment)?,
        None => 0,
    };
    let key = RelationKey { tablespace, database, backend, number: number(name.number)? };
    Some(RelationFile { key, fork: name.fork, segment })
}

/// The parts of a relation's file name, each digits only.
pub(crate) struct Name<'n> {
    pub(crate) backend: Option<&'n [u8]>,
    pub(crate) number: &'n [u8],
    pub(crate) fork: Fork,
    pub(crate) segment: Option<&'n [u8]>,
}

impl<'n> Name<'n> {
    /// `NNN`, `NNN_fork`, `tBACKEND_NNN`, `tBACKEND_NNN_fork`, each with an optional `.SEGMENT`.
    pub(crate) fn parse(name: &'n [u8]) -> Option<Name<'n>> {
        let (backend, rest) = match name {
            [b't', rest @ ..] => {
                let (backend, rest) = digits(rest)?;
                (Some(backend), rest.strip_prefix(b"_")?)
            }
            _ => (None, name),
        };
        let (number, rest) = digits(rest)?;
        let (fork, rest) = match rest {
            [b'_', b'f', b's', b'm', rest @ ..] => (Fork::Fsm, rest),
            [b'_', b'v', b'm', rest @ ..] => (Fork::Vm, rest),
            [b'_', b'i', b'n', b'i', b't', rest @ ..] => (Fork::Init, rest),
            rest => (Fork::Main, rest),
        };
        let segment = match rest {
            [] => None,
            [b'.', segment @ ..] => match digits(segment)? {
                (segment, []) => Some(segment),
                _ => return None,
            },
            _ => return None,
        };
        Some(Name { backend, number, fork, segment })
    }
}

/// Splits off the digits, at least one, that `bytes` begins with.
fn digits(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let count = bytes.iter().take_while(|b| b.is_ascii_digit()).count();
    if count == 0 { None } else { bytes.split_at_checked(count) }
}

/// An object id: decimal digits that fit into 32 bits.
fn number(digits: &[u8]) -> Option<u32> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u32, |value, digit| {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 { None } else { value.checked_mul(10)?.checked_add(digit.into()) }
    })
}

#[cfg(test)]
mod tests {
    extern crate std;

    use proptest::prelude::*;

    use super::*;
    use crate::Class;
    use crate::postgres::{classify, examples};

    fn file(path: &str) -> Option<(u32, u32, Option<u32>, u32, Fork, u32)> {
        relation_file(path.as_bytes()).map(|file| {
            let RelationKey { tablespace, database, backend, number } = file.key;
            (tablespace, database, backend, number, file.fork, file.segment)
        })
    }

    #[test]
    fn every_form_is_read() {
        assert_eq!(file("base/5/16384"), Some((1663, 5, None, 16384, Fork::Main, 0)));
        assert_eq!(file("./base//5/16384.12"), Some((1663, 5, None, 16384, Fork::Main, 12)));
        assert_eq!(file("global/1262_fsm"), Some((1664, 0, None, 1262, Fork::Fsm, 0)));
        assert_eq!(
            file("pg_tblspc/16385/PG_15_202209061/5/16390_vm.2"),
            Some((16385, 5, None, 16390, Fork::Vm, 2))
        );
        assert_eq!(file("base/5/16400_init"), Some((1663, 5, None, 16400, Fork::Init, 0)));
        assert_eq!(file("base/5/t3_16391_fsm"), Some((1663, 5, Some(3), 16391, Fork::Fsm, 0)));
        assert_eq!(
            file("base/4294967295/4294967295"),
            Some((1663, u32::MAX, None, u32::MAX, Fork::Main, 0))
        );
    }

    #[test]
    fn what_is_no_relation_is_none() {
        for path in [
            "",
            "/base/5/16384",
            "base/5/16384/../16385",
            "base/5/..",
            "base/x/16384",
            "base/5/16384_new",
            "base/5/16384.",
            "base/5/16384.1x",
            "base/5/4294967296",
            "base/5/t_16384",
            "base/5/t3",
            "base/pgsql_tmp/16384",
            "global/pg_control",
            "pg_wal/16384",
            "pg_tblspc/16385/other/5/16390",
            "pg_tblspc/16385/PG_15_202209061/16390",
        ] {
            assert_eq!(file(path), None, "{path}");
        }
    }

    fn class(file: &RelationFile) -> Class {
        match (file.key.backend, file.fork) {
            (Some(_), _) => Class::TempRelation,
            (None, Fork::Main) => Class::Relation,
            (None, Fork::Fsm) => Class::Fsm,
            (None, Fork::Vm) => Class::Vm,
            (None, Fork::Init) => Class::Init,
        }
    }

    const KINDS: [Class; 5] =
        [Class::Relation, Class::TempRelation, Class::Fsm, Class::Vm, Class::Init];

    #[test]
    fn it_agrees_with_the_classifier_on_the_fixtures() {
        for (expected, path) in examples() {
            let found = relation_file(path.as_bytes()).as_ref().map(class);
            assert_eq!(found, KINDS.contains(&expected).then_some(expected), "{path}");
        }
    }

    proptest! {
        #[test]
        fn it_agrees_with_the_classifier(
            path in "(base/|global|pg_tblspc/[0-9]{1,2}/PG_1)?/?[0-9]{0,2}/?t?[0-9]{0,3}[_./]?[a-z.0-9_]{0,5}",
        ) {
            let found = relation_file(path.as_bytes()).as_ref().map(class);
            let classified = classify(path.as_bytes());
            // The numbers are too short to overflow.
            prop_assert_eq!(found, KINDS.contains(&classified).then_some(classified));
        }

        #[test]
        fn any_bytes_are_answered(path in proptest::collection::vec(any::<u8>(), 0..100)) {
            if let Some(file) = relation_file(&path) {
                prop_assert_eq!(classify(&path), class(&file));
            }
        }
    }
}
