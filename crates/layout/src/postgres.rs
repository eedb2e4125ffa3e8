//! PostgreSQL 13 to 19: what a path relative to the data folder is.
//!
//! Invariant: the folder decides first, then the name. A name proves nothing elsewhere: a file
//! `pg_wal/16384` is not a relation. Names are those of the server's sources: `relpath.c`
//! (relations), `fd.c` (temporary files), `xlog_internal.h` (WAL), `slot.c`, `reorderbuffer.c`,
//! `snapbuild.c`, `relmapper.c`, `pgstat.h`.

use crate::class::Class;
use crate::path::{Components, components};
use crate::relation::{Fork, Name};

/// The class of `path`, relative to the data folder.
///
/// Absolute paths and paths with a `..` component are [`Class::Outside`]: the caller strips the
/// data folder first. Never one of the classes that need a catalog.
pub fn classify(path: &[u8]) -> Class {
    if path.first() == Some(&b'/') {
        return Class::Outside;
    }
    if is_plain_relation(path) {
        return Class::Relation;
    }
    let mut parts = components(path);
    let class = by_folder(&mut parts);
    if parts.climbs() { Class::Outside } else { class }
}

/// `base/DATABASE/NUMBER`: nearly all of what a server opens. One pass over the bytes, since this
/// runs at every `open`; what it does not recognise is looked at with care.
#[inline]
fn is_plain_relation(path: &[u8]) -> bool {
    let [b'b', b'a', b's', b'e', b'/', rest @ ..] = path else { return false };
    let (mut digits, mut folders) = (0, 0);
    for byte in rest {
        match byte {
            b'0'..=b'9' => digits += 1,
            b'/' if digits > 0 => (digits, folders) = (0, folders + 1),
            _ => return false,
        }
    }
    digits > 0 && folders == 1
}

fn by_folder(parts: &mut Components<'_>) -> Class {
    let Some(folder) = parts.next() else { return Class::Other };
    match folder {
        b"base" => database_tree(parts),
        b"global" => database_file(parts.next(), parts.next()),
        b"pg_wal" => wal(parts.next(), parts.next()),
        b"pg_tblspc" => {
            // pg_tblspc/OID/PG_15_202209061/…
            parts.next();
            match parts.next() {
                Some(version) if version.starts_with(b"PG_") => database_tree(parts),
                _ => Class::Other,
            }
        }
        b"pg_xact" => Class::Xact,
        b"pg_multixact" => Class::Multixact,
        b"pg_subtrans" => Class::Subtrans,
        b"pg_commit_ts" => Class::CommitTs,
        b"pg_notify" => Class::Notify,
        b"pg_serial" => Class::Serial,
        b"pg_snapshots" => Class::Snapshots,
        b"pg_twophase" => Class::Twophase,
        b"pg_stat" | b"pg_stat_tmp" => Class::Stat,
        b"pg_replslot" => {
            parts.next();
            slot(parts.next())
        }
        b"pg_logical" => match parts.next() {
            Some(b"mappings") => Class::LogicalMappings,
            Some(b"snapshots") => Class::Spill,
            Some(name) if name.starts_with(b"replorigin_checkpoint") => Class::ReplicationState,
            _ => Class::Other,
        },
        b"log" | b"pg_log" => Class::ServerLog,
        name if parts.next().is_none() => top_level(name),
        _ => Class::Other,
    }
}

/// Below `base`, or below `pg_tblspc/OID/PG_*`: a database's folder or the temporary files.
fn database_tree(parts: &mut Components<'_>) -> Class {
    match parts.next() {
        Some(b"pgsql_tmp") => Class::Temp,
        Some(database) if digits(database) == database.len() => {
            database_file(parts.next(), parts.next())
        }
        _ => Class::Other,
    }
}

/// A file right in a database's folder, or in `global`.
fn database_file(name: Option<&[u8]>, deeper: Option<&[u8]>) -> Class {
    let (Some(name), None) = (name, deeper) else {
        return if name == Some(b"pgsql_tmp") { Class::Temp } else { Class::Other };
    };
    if let Some(class) = relation(name) {
        return class;
    }
    match name {
        b"pgsql_tmp" => Class::Temp,
        b"pg_control" => Class::Control,
        b"PG_VERSION" => Class::Config,
        _ if name.starts_with(b"pg_filenode.map") => Class::RelationMap,
        _ if name.starts_with(b"pg_internal.init") => Class::RelcacheInit,
        _ => Class::Other,
    }
}

/// The class of a relation's file by its name in a database's folder.
fn relation(name: &[u8]) -> Option<Class> {
    let name = Name::parse(name)?;
    Some(match (name.backend, name.fork) {
        (Some(_), _) => Class::TempRelation,
        (None, Fork::Main) => Class::Relation,
        (None, Fork::Fsm) => Class::Fsm,
        (None, Fork::Vm) => Class::Vm,
        (None, Fork::Init) => Class::Init,
    })
}

fn wal(name: Option<&[u8]>, deeper: Option<&[u8]>) -> Class {
    match (name, deeper) {
        (Some(b"archive_status"), _) => Class::ArchiveStatus,
        (Some(b"summaries"), _) => Class::WalSummaries,
        (Some(name), None) => {
            if name.starts_with(b"xlogtemp.") {
                Class::WalNew
            } else if name == b"RECOVERYHISTORY"
                || name.ends_with(b".history")
                || name.ends_with(b".backup")
            {
                Class::WalHistory
            } else if name == b"RECOVERYXLOG" || segment(name) {
                Class::Wal
            } else {
                Class::Other
            }
        }
        _ => Class::Other,
    }
}

/// 24 hexadecimal digits, perhaps with `.partial`.
fn segment(name: &[u8]) -> bool {
    let stem = name.strip_suffix(b".partial").unwrap_or(name);
    stem.len() == 24 && stem.iter().all(u8::is_ascii_hexdigit)
}

fn slot(name: Option<&[u8]>) -> Class {
    match name {
        Some(name) if name.starts_with(b"state") => Class::ReplicationState,
        Some(name) if name.ends_with(b".spill") || name.ends_with(b".snap") => Class::Spill,
        _ => Class::Other,
    }
}

fn top_level(name: &[u8]) -> Class {
    if name.starts_with(b"backup_label") || name.starts_with(b"tablespace_map") {
        Class::BackupLabel
    } else if name == b"PG_VERSION" || name.ends_with(b".conf") || name.ends_with(b".conf.tmp") {
        Class::Config
    } else if name.starts_with(b"current_logfiles") || name == b"logfile" || name.ends_with(b".log")
    {
        Class::ServerLog
    } else {
        Class::Other
    }
}

fn digits(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|b| b.is_ascii_digit()).count()
}

/// One line a path: `CLASS PATH`, from the data folders of 13 to 19.
const FIXTURES: &str = include_str!("../fixtures/postgres.txt");

/// Paths relative to the data folder, from 13 to 19, each with its class; at least one for every
/// class that a path can tell.
pub fn examples() -> impl Iterator<Item = (Class, &'static str)> {
    FIXTURES.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
        let (class, path) = line.split_once(' ')?;
        Some((class.parse().ok()?, path.trim()))
    })
}

#[cfg(test)]
mod tests {
    extern crate std;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_path_of_the_fixtures_has_its_class() {
        let mut seen = std::collections::BTreeSet::new();
        let lines = FIXTURES.lines().filter(|l| !l.is_empty() && !l.starts_with('#')).count();
        assert_eq!(examples().count(), lines, "a line is not CLASS PATH");
        for (class, path) in examples() {
            assert_eq!(classify(path.as_bytes()), class, "{path}");
            seen.insert(class);
        }
        for class in Class::ALL.iter().filter(|c| !c.needs_catalog()) {
            assert!(seen.contains(class), "the fixtures have no {class}");
        }
    }

    #[test]
    fn spelling_of_the_same_path_does_not_matter() {
        assert_eq!(classify(b"./base//5/./16384"), Class::Relation);
        assert_eq!(classify(b""), Class::Other);
    }

    proptest! {
        #[test]
        fn the_short_cut_agrees_with_the_long_way(path in "base/[0-9/.a_]{0,12}") {
            if is_plain_relation(path.as_bytes()) {
                let long = by_folder(&mut components(path.as_bytes()));
                prop_assert_eq!(long, Class::Relation);
            }
        }

        #[test]
        fn any_bytes_have_a_class_and_climbing_paths_are_outside(
            path in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            let class = classify(&path);
            prop_assert!(!class.needs_catalog());
            let mut climbing = path.clone();
            climbing.extend_from_slice(b"/../x");
            prop_assert_eq!(classify(&climbing), Class::Outside);
        }
    }
}
