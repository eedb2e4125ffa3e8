//! Names of relation files, as the catalogs of all databases have them.
//!
//! Invariant: a [`Catalog`] never forgets: a file number that was visible at any reading keeps its name,
//! also after the rewrite or drop that took it out of the catalogs. What could not be read is named and is
//! never taken for "is not there".
//!
//! A reading holds no connection afterwards: one that stayed would make `DROP DATABASE` and
//! `CREATE DATABASE … TEMPLATE` fail. It needs `LOGIN` and, in each database, `CONNECT`, which everybody has
//! unless it was revoked; the catalogs that it reads are readable by all.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::collections::HashMap;
use std::time::Duration;
use std::time::Instant;

use postgres::types::FromSql;
use postgres::types::Type;
use shelflife_layout::Class;
use shelflife_layout::relation::PG_GLOBAL;
use shelflife_layout::relation::RelationKey;
use shelflife_layout::relation::relation_file;

use crate::cancel::Cancel;
use crate::datafolder::DataFolder;
use crate::dsn::Dsn;
use crate::error::Error;
use crate::error::Result;
use crate::session::Session;
use crate::user::ServerUser;

/// Databases by which a server is reached, in this order: the second is always there.
const DOORS: [&str; 2] = ["postgres", "template1"];
/// Why a database that takes no connections is not read: nothing is wrong with it.
pub const TAKES_NO_CONNECTIONS: &str = "it takes no connections";

/// How long one statement of a reading may take.
const STATEMENT_LIMIT: Duration = Duration::from_secs(5);

/// Before anything else is asked. The owner of a database decides its default search path, and the reader
/// may be a superuser: none of his functions and operators may come before the system's. Names in a database
/// with encoding `SQL_ASCII` are any bytes, which the server does not give out as UTF-8.
const SETUP: &str = "\
SET search_path = pg_catalog; SET default_transaction_read_only = on; SET lock_timeout = '1s'; \
SELECT set_config('client_encoding', 'SQL_ASCII', false) \
WHERE current_setting('server_encoding') = 'SQL_ASCII'";

/// Everything with a file. `pg_relation_filepath` also knows the numbers of mapped catalogs and the backends
/// of temporary relations, and asks for no privilege (`dbsize.c`, versions 13 to 19).
const RELATIONS: &str = "\
SELECT c.oid, n.nspname, c.relname, c.relkind::text, c.relpersistence::text, \
       n.nspname LIKE 'pg\\_toast%', pg_relation_filepath(c.oid) \
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
WHERE c.relkind IN ('r', 'i', 't', 'S', 'm')";

/// What a relation is.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Kind {
    /// A table.
    Heap,
    /// An index of a table or materialized view.
    Index,
    /// The TOAST table of a table: its long values.
    Toast,
    /// The index of a TOAST table.
    ToastIndex,
    /// A sequence.
    Sequence,
    /// A materialized view.
    MaterializedView,
}

/// How long a relation lasts.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Persistence {
    /// Logged.
    Permanent,
    /// Unlogged: empty after a crash.
    Unlogged,
    /// Gone with its session.
    Temporary,
}

/// A relation by the names that people know.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Relation {
    /// Object id: the same after a rewrite or renaming.
    pub oid: u32,
    /// Its database; `None` for relations that all databases share.
    pub database: Option<String>,
    /// Schema and name, `public.pgbench_accounts`.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// How long it lasts.
    pub persistence: Persistence,
}

impl Relation {
    /// The class of its main fork; what is temporary is told by the path. Unlogged goes first: such an index
    /// dies as its table does.
    pub fn class(&self) -> Class {
        match (self.persistence, self.kind) {
            (Persistence::Unlogged, _) => Class::Unlogged,
            (_, Kind::Index) => Class::Index,
            (_, Kind::Toast | Kind::ToastIndex) => Class::Toast,
            (_, Kind::Heap | Kind::Sequence | Kind::MaterializedView) => Class::Relation,
        }
    }

    /// Kind and persistence in one word: `heap`, `index`, `toast`, `toast-index`, `sequence`,
    /// `materialized-view`; for unlogged ones `unlogged` (a table), `unlogged-index`, …; for temporary
    /// ones `temporary`, `temporary-index`, ….
    pub fn kind_name(&self) -> &'static str {
        match (self.persistence, self.kind) {
            (Persistence::Permanent, Kind::Heap) => "heap",
            (Persistence::Permanent, Kind::Index) => "index",
            (Persistence::Permanent, Kind::Toast) => "toast",
            (Persistence::Permanent, Kind::ToastIndex) => "toast-index",
            (Persistence::Permanent, Kind::Sequence) => "sequence",
            // There is neither an unlogged one nor a temporary one.
            (_, Kind::MaterializedView) => "materialized-view",
            (Persistence::Unlogged, Kind::Heap) => "unlogged",
            (Persistence::Unlogged, Kind::Index) => "unlogged-index",
            (Persistence::Unlogged, Kind::Toast) => "unlogged-toast",
            (Persistence::Unlogged, Kind::ToastIndex) => "unlogged-toast-index",
            (Persistence::Unlogged, Kind::Sequence) => "unlogged-sequence",
            (Persistence::Temporary, Kind::Heap) => "temporary",
            (Persistence::Temporary, Kind::Index) => "temporary-index",
            (Persistence::Temporary, Kind::Toast) => "temporary-toast",
            (Persistence::Temporary, Kind::ToastIndex) => "temporary-toast-index",
            (Persistence::Temporary, Kind::Sequence) => "temporary-sequence",
        }
    }
}

/// Which databases a reading goes through.
#[derive(Clone, Copy, Debug)]
pub enum Databases<'d> {
    /// All that take connections.
    All,
    /// Those with these object ids; 0 stands for what all share.
    Only(&'d BTreeSet<u32>),
}

/// How a reading went.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// Object ids of the databases that were read whole; 0 if the shared relations were.
    pub read: BTreeSet<u32>,
    /// Relations that are new, or are called otherwise than at the reading before.
    pub news: Vec<RelationKey>,
    /// How long it took.
    pub took: Duration,
}

/// What all readings so far have found.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    relations: HashMap<RelationKey, Relation>,
    databases: BTreeMap<u32, String>,
    tablespaces: BTreeMap<u32, String>,
    unreadable: BTreeMap<u32, String>,
}

impl Catalog {
    /// Nothing yet.
    pub fn new() -> Catalog {
        Catalog::default()
    }

    /// The relation that these files were of, at the last reading that knew it.
    pub fn relation(&self, key: RelationKey) -> Option<&Relation> {
        self.relations.get(&key)
    }

    /// The name of the database with this object id, also if it has been dropped since.
    pub fn database(&self, oid: u32) -> Option<&str> {
        self.databases.get(&oid).map(String::as_str)
    }

    /// The name of a tablespace, also if it has been dropped since.
    pub fn tablespace(&self, oid: u32) -> Option<&str> {
        self.tablespaces.get(&oid).map(String::as_str)
    }

    /// Databases that the last reading that tried could not read: object id, and why.
    pub fn unreadable(&self) -> impl Iterator<Item = (u32, &str)> {
        self.unreadable.iter().map(|(oid, why)| (*oid, why.as_str()))
    }

    /// How many relations are known.
    pub fn len(&self) -> usize {
        self.relations.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.relations.is_empty()
    }

    /// Reads the catalogs of the server at `dsn`. A database that cannot be read is noted and passed over.
    ///
    /// # Errors
    /// Those of the first connection, to the database that `dsn` names; [`Error::Interrupted`].
    pub fn read(&mut self, dsn: &Dsn, which: Databases<'_>, cancel: &Cancel) -> Result<Reading> {
        let begun = Instant::now();
        let mut session = open(dsn, cancel)?;
        self.read_tablespaces(&mut session)?;
        let databases = databases(&mut session)?;
        let here: u32 =
            session.one("SELECT oid FROM pg_database WHERE datname = current_database()", &[])?;
        let mut session = Some(session);
        self.unreadable.retain(|oid, _| databases.iter().any(|database| database.oid == *oid));
        let mut reading = Reading::default();
        for Database { oid, name, takes_connections } in databases {
            self.databases.insert(oid, name.clone());
            // What all share is seen from any database, and this one is connected already.
            let wanted = match which {
                Databases::All => true,
                Databases::Only(only) => only.contains(&oid) || oid == here && only.contains(&0),
            };
            if !wanted {
                continue;
            }
            if !takes_connections {
                self.unreadable.insert(oid, TAKES_NO_CONNECTIONS.to_owned());
                continue;
            }
            let session = session.take_if(|_| oid == here);
            match relations(session, &dsn.with_database(&name), &name, cancel) {
                Ok(found) => {
                    reading.news.extend(found.into_iter().filter_map(|one| self.learn(one)));
                    reading.read.extend([oid, 0]);
                    self.unreadable.remove(&oid);
                }
                Err(Error::Interrupted) => return Err(Error::Interrupted),
                Err(error) => drop(self.unreadable.insert(oid, error.in_full())),
            }
        }
        reading.took = begun.elapsed();
        Ok(reading)
    }

    /// As [`Catalog::read`], from the server that runs in `data`, by its socket and as the owner of the folder,
    /// under the name `role` or the owner's own. Where this process is root, a thread becomes the owner.
    ///
    /// # Errors
    /// [`Error::NotRunning`] if no server takes connections there; [`Error::NotRoot`] if this process is
    /// neither root nor the owner; those of [`Catalog::read`].
    pub fn read_in(
        &mut self,
        data: &DataFolder,
        role: Option<&str>,
        which: Databases<'_>,
        cancel: &Cancel,
    ) -> Result<Reading> {
        let owner = ServerUser::of(data.uid())?;
        let not_running = || Error::NotRunning { path: data.path().to_owned() };
        let read = || {
            owner.assume()?;
            let mut first = None;
            for door in DOORS {
                let role = role.unwrap_or(owner.name());
                let dsn = data.local_dsn(role, door)?.ok_or_else(not_running)?;
                match self.read(&dsn, which, cancel) {
                    Ok(reading) => return Ok(reading),
                    Err(Error::Interrupted) => return Err(Error::Interrupted),
                    Err(error) => drop(first.get_or_insert(error)),
                }
            }
            Err(first.unwrap_or_else(not_running))
        };
        std::thread::scope(|scope| match std::thread::Builder::new().spawn_scoped(scope, read) {
            // A panic there is a bug here, and is passed on as one.
            Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(source) => {
                Err(Error::io("cannot start a thread to read the catalogs of", data.path(), source))
            }
        })
    }

    /// The key if that is news.
    fn learn(&mut self, (key, found): (RelationKey, Relation)) -> Option<RelationKey> {
        if self.relations.get(&key) == Some(&found) {
            return None;
        }
        self.relations.insert(key, found);
        Some(key)
    }

    fn read_tablespaces(&mut self, session: &mut Session) -> Result<()> {
        for row in session.rows("SELECT oid, spcname FROM pg_tablespace", &[])? {
            if let (Ok(oid), Ok(Lossy(name))) = (row.try_get(0), row.try_get(1)) {
                self.tablespaces.insert(oid, name);
            }
        }
        Ok(())
    }
}

struct Database {
    oid: u32,
    name: String,
    takes_connections: bool,
}

fn databases(session: &mut Session) -> Result<Vec<Database>> {
    let rows = session.rows("SELECT oid, datname, datallowconn FROM pg_database", &[])?;
    let database = |row: &postgres::Row| {
        let (oid, takes_connections) = (row.try_get(0).ok()?, row.try_get(2).ok()?);
        let Lossy(name) = row.try_get(1).ok()?;
        Some(Database { oid, name, takes_connections })
    };
    Ok(rows.iter().filter_map(database).collect())
}

/// All relations with a file that are seen from one database.
fn relations(
    session: Option<Session>,
    dsn: &Dsn,
    database: &str,
    cancel: &Cancel,
) -> Result<Vec<(RelationKey, Relation)>> {
    let mut session = match session {
        Some(session) => session,
        None => open(dsn, cancel)?,
    };
    let rows = session.rows(RELATIONS, &[])?;
    Ok(rows.iter().filter_map(|row| relation(row, database)).collect())
}

/// `None` for a relation without a file: one that was dropped while the rows were read.
fn relation(row: &postgres::Row, database: &str) -> Option<(RelationKey, Relation)> {
    let path: Option<&str> = row.try_get(6).ok()?;
    let key = relation_file(path?.as_bytes())?.key;
    let (Lossy(schema), Lossy(name)) = (row.try_get(1).ok()?, row.try_get(2).ok()?);
    let toast: bool = row.try_get(5).ok()?;
    let kind = match row.try_get::<_, &str>(3).ok()? {
        "r" => Kind::Heap,
        "i" if toast => Kind::ToastIndex,
        "i" => Kind::Index,
        "t" => Kind::Toast,
        "S" => Kind::Sequence,
        "m" => Kind::MaterializedView,
        _ => return None,
    };
    let persistence = match row.try_get::<_, &str>(4).ok()? {
        "u" => Persistence::Unlogged,
        "t" => Persistence::Temporary,
        _ => Persistence::Permanent,
    };
    let shared = key.tablespace == PG_GLOBAL;
    let relation = Relation {
        oid: row.try_get(0).ok()?,
        database: (!shared).then(|| database.to_owned()),
        name: format!("{schema}.{name}"),
        kind,
        persistence,
    };
    Some((key, relation))
}

fn open(dsn: &Dsn, cancel: &Cancel) -> Result<Session> {
    let mut session = Session::connect(dsn, cancel)?;
    session.batch(SETUP)?;
    session.set_statement_timeout(Some(STATEMENT_LIMIT))?;
    Ok(session)
}

/// A name, whatever its bytes are.
struct Lossy(String);

impl<'a> FromSql<'a> for Lossy {
    fn from_sql(
        _: &Type,
        raw: &'a [u8],
    ) -> std::result::Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Lossy(String::from_utf8_lossy(raw).into_owned()))
    }

    fn accepts(ty: &Type) -> bool {
        matches!(*ty, Type::NAME | Type::TEXT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relation(kind: Kind, persistence: Persistence) -> Relation {
        Relation { oid: 1, database: None, name: "public.t".into(), kind, persistence }
    }

    #[test]
    fn classes_follow_kind_and_persistence() {
        use Persistence::{Permanent, Unlogged};
        for (kind, persistence, class) in [
            (Kind::Heap, Permanent, Class::Relation),
            (Kind::Sequence, Permanent, Class::Relation),
            (Kind::Index, Permanent, Class::Index),
            (Kind::Toast, Permanent, Class::Toast),
            (Kind::ToastIndex, Permanent, Class::Toast),
            (Kind::Heap, Unlogged, Class::Unlogged),
            (Kind::ToastIndex, Unlogged, Class::Unlogged),
        ] {
            assert_eq!(relation(kind, persistence).class(), class);
        }
    }
}
