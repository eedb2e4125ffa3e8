//! One server whose files are being written: which of them are known, and asking for the others.
//!
//! Invariant: a file keeps the first relation that it was found to be of, under the last name that the
//! relation had while the file was its. A number never becomes `uncommitted` because the server could not be asked.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::time::Instant;

use serde::Serialize;
use shelflife_layout::relation::{RelationFile, RelationKey, relation_file};
use shelflife_layout::{Class, postgres::classify};
use shelflife_postgres::catalog::{Databases, Reading};
use shelflife_postgres::{Cancel, Catalog, DataFolder, Dsn, Error, Pace};
use shelflife_sweep::Territory;
use shelflife_trace::{FileClass, FileId};

use super::names::Name;

/// What was found out about a server's files.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ServerReport {
    /// Its data folder.
    pub data_folder: String,
    /// How often its catalogs were read.
    pub readings: u32,
    /// Relation files that have a name.
    pub named: u64,
    /// Relation files of transactions that were never visible at a reading.
    pub uncommitted: u64,
    /// Relation files of temporary tables without a name: they are not asked for.
    pub temporary: u64,
    /// Relation files that nobody could be asked about: their class is that of their path.
    pub unread: u64,
    /// What could not be read, and why.
    pub failures: Vec<String>,
}

/// How a server is reached.
pub(super) enum Way {
    /// At this address, as the user who records.
    Given(Box<Dsn>),
    /// By its socket, as the owner of its data folder.
    Owner,
}

/// A file of the trace that is a relation's.
#[derive(Clone, Copy)]
struct Seen {
    file: FileId,
    part: RelationFile,
    /// By its path.
    class: Class,
    /// Object id of the relation that it was found to be of.
    relation: Option<u32>,
}

pub(super) struct Server {
    data: DataFolder,
    territory: Territory,
    way: Way,
    catalog: Catalog,
    seen: HashMap<RelationKey, Vec<Seen>>,
    unknown: BTreeSet<RelationKey>,
    pace: Pace,
    readings: u32,
    /// Why the last reading failed as a whole.
    failure: Option<String>,
}

impl Server {
    /// `None` if the data folder cannot be looked at.
    pub(super) fn new(data: DataFolder, way: Way) -> Option<Server> {
        let territory = Territory::data_folder(data.path()).ok()?;
        Some(Server {
            data,
            territory,
            way,
            catalog: Catalog::new(),
            seen: HashMap::new(),
            unknown: BTreeSet::new(),
            pace: Pace::default(),
            readings: 0,
            failure: None,
        })
    }

    pub(super) fn data_folder(&self) -> &Path {
        self.data.path()
    }

    pub(super) fn is_at(&self, data: &DataFolder) -> bool {
        self.data.id() == data.id()
    }

    /// Takes note of new tablespaces.
    pub(super) fn look_again(&mut self) {
        if let Ok(territory) = Territory::data_folder(self.data.path()) {
            self.territory = territory;
        }
    }

    /// Whether the file at `path` is this server's, and what is known of it by now.
    pub(super) fn see(&mut self, file: FileId, path: &[u8]) -> Option<Name> {
        let inside = self.territory.inside(path)?;
        let class = classify(&inside);
        let Some(part) = relation_file(&inside) else { return Some(Name::class(file, class)) };
        let name = Name::of(file, &part, class, &self.catalog);
        let relation = self.catalog.relation(part.key).map(|relation| relation.oid);
        let list = self.seen.entry(part.key).or_default();
        if !list.iter().any(|seen| seen.file == file) {
            list.push(Seen { file, part, class, relation });
        }
        // A temporary table dies soon, and each would cost a reading.
        if relation.is_none() && part.key.backend.is_none() && self.unknown.insert(part.key) {
            self.pace.hurry();
        }
        Some(name)
    }

    /// When the next reading is due: `None` if nothing is to be asked.
    pub(super) fn due(&self, now: Instant) -> Option<Instant> {
        (!self.unknown.is_empty()).then(|| self.pace.due().unwrap_or(now))
    }

    /// Asks for what is unknown; the names that are news.
    pub(super) fn read(&mut self) -> Vec<Name> {
        let wanted: BTreeSet<u32> = self.unknown.iter().map(|key| key.database).collect();
        self.ask(Databases::Only(&wanted)).map_or_else(Vec::new, |reading| self.take(&reading))
    }

    /// Asks for everything, before the first file is seen.
    ///
    /// # Errors
    ///
    /// The server cannot be reached.
    pub(super) fn read_all(&mut self) -> Result<(), Error> {
        let begun = Instant::now();
        let done = self.reading(Databases::All);
        self.pace.ended(Instant::now(), begun.elapsed());
        self.readings += u32::from(done.is_ok());
        done.map(drop)
    }

    /// The last reading: the names that are news, and what is left unknown.
    pub(super) fn finish(&mut self) -> (Vec<Name>, ServerReport) {
        let mut report = ServerReport {
            data_folder: self.data.path().display().to_string(),
            ..ServerReport::default()
        };
        let wanted: BTreeSet<u32> = self.seen.keys().map(|key| key.database).collect();
        let mut names = Vec::new();
        let reading = if wanted.is_empty() { None } else { self.ask(Databases::Only(&wanted)) };
        if let Some(reading) = &reading {
            names = self.take(reading);
        }
        let unreadable: Vec<(u32, String)> = self
            .catalog
            .unreadable()
            .filter(|(oid, _)| wanted.contains(oid))
            .map(|(oid, why)| (oid, why.to_owned()))
            .collect();
        for seen in self.seen.values().flatten() {
            let database = seen.part.key.database;
            if seen.relation.is_some() {
                report.named += 1;
            } else if seen.part.key.backend.is_some() {
                report.temporary += 1;
            } else if reading.is_none() || unreadable.iter().any(|(oid, _)| *oid == database) {
                report.unread += 1;
            } else {
                report.uncommitted += 1;
                let mut name = Name::of(seen.file, &seen.part, seen.class, &self.catalog);
                name.class = Some(FileClass::Uncommitted);
                names.push(name);
            }
        }
        report.readings = self.readings;
        report.failures = unreadable
            .into_iter()
            .map(|(oid, why)| match self.catalog.database(oid) {
                Some(name) => format!("database {name}: {why}"),
                None => format!("database {oid}: {why}"),
            })
            .chain(self.failure.take())
            .collect();
        (names, report)
    }

    fn ask(&mut self, which: Databases<'_>) -> Option<Reading> {
        let begun = Instant::now();
        let done = self.reading(which);
        self.pace.ended(Instant::now(), begun.elapsed());
        match done {
            Ok(reading) => {
                self.readings += 1;
                self.failure = None;
                Some(reading)
            }
            Err(error) => {
                self.failure = Some(error.in_full());
                None
            }
        }
    }

    fn reading(&mut self, which: Databases<'_>) -> Result<Reading, Error> {
        match &self.way {
            Way::Given(dsn) => self.catalog.read(dsn, which, &Cancel::never()),
            Way::Owner => self.catalog.read_in(&self.data, None, which, &Cancel::never()),
        }
    }

    /// The names that a reading brought.
    fn take(&mut self, reading: &Reading) -> Vec<Name> {
        let known = |key: &RelationKey| self.catalog.relation(*key).is_some();
        let (found, left) = std::mem::take(&mut self.unknown).into_iter().partition(known);
        self.unknown = left;
        let found: BTreeSet<RelationKey> = found;
        let mut names = Vec::new();
        for key in reading.news.iter().chain(&found) {
            let Some(relation) = self.catalog.relation(*key) else { continue };
            for seen in self.seen.get_mut(key).into_iter().flatten() {
                // The number may have been used again: then this is another file with another row.
                if *seen.relation.get_or_insert(relation.oid) == relation.oid {
                    names.push(Name::of(seen.file, &seen.part, seen.class, &self.catalog));
                }
            }
        }
        names
    }
}

/// Whether a path ends like a relation's file of some server.
pub(super) fn looks_like_a_relation(path: &[u8]) -> bool {
    let mut parts = path.rsplit(|byte| *byte == b'/');
    let (Some(name), Some(parent), Some(above)) = (parts.next(), parts.next(), parts.next()) else {
        return false;
    };
    let inside = match (above, parent) {
        (_, b"global") => [b"global/", name].concat(),
        (b"base", database) => [b"base/", database, b"/", name].concat(),
        (space, database) => [b"pg_tblspc/1/", space, b"/", database, b"/", name].concat(),
    };
    relation_file(&inside).is_some()
}
