//! The names of the kinds of file.
//!
//! Invariant: a class keeps its number for ever. Numbers stand in control pages and traces.

use core::fmt;
use core::str::FromStr;

macro_rules! classes {
    ($($(#[$doc:meta])* $variant:ident = $number:literal, $name:literal;)*) => {
        /// What a file is to the database that it belongs to.
        #[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
        #[repr(u8)]
        pub enum Class { $($(#[$doc])* $variant = $number,)* }

        impl Class {
            /// All classes, by number.
            pub const ALL: &'static [Class] = &[$(Class::$variant,)*];

            /// The name used in policies, tables and JSON.
            pub const fn name(self) -> &'static str {
                match self { $(Class::$variant => $name,)* }
            }
        }
    };
}

classes! {
    /// Not in the data folder, the WAL folder or a tablespace. A policy's default never applies.
    Outside = 0, "outside";
    /// Sorts, hashes and other spills: everything below `pgsql_tmp`.
    Temp = 1, "temp";
    /// Temporary tables and their indexes, all forks: `tBACKEND_RELFILENODE`.
    TempRelation = 2, "temp-relation";
    /// WAL segments, `*.partial` and `RECOVERYXLOG`.
    Wal = 3, "wal";
    /// A WAL segment being created: `xlogtemp.PID`. It is renamed into its place, hint and all.
    WalNew = 4, "wal-new";
    /// Timeline and backup history files.
    WalHistory = 5, "wal-history";
    /// `pg_wal/summaries` (17 and later).
    WalSummaries = 6, "wal-summaries";
    /// `pg_wal/archive_status`.
    ArchiveStatus = 7, "archive-status";
    /// The main fork of a table, index, sequence or materialised view.
    Relation = 8, "relation";
    /// Free space maps.
    Fsm = 9, "fsm";
    /// Visibility maps.
    Vm = 10, "vm";
    /// Initialisation forks of unlogged relations.
    Init = 11, "init";
    /// `pg_filenode.map`.
    RelationMap = 12, "relation-map";
    /// `pg_internal.init`.
    RelcacheInit = 13, "relcache-init";
    /// `global/pg_control`.
    Control = 14, "control";
    /// `pg_xact`.
    Xact = 15, "xact";
    /// `pg_multixact`.
    Multixact = 16, "multixact";
    /// `pg_subtrans`.
    Subtrans = 17, "subtrans";
    /// `pg_commit_ts`.
    CommitTs = 18, "commit-ts";
    /// `pg_notify`.
    Notify = 19, "notify";
    /// `pg_serial`.
    Serial = 20, "serial";
    /// `pg_snapshots`: exported snapshots.
    Snapshots = 21, "snapshots";
    /// `pg_twophase`.
    Twophase = 22, "twophase";
    /// `pg_stat` and `pg_stat_tmp`.
    Stat = 23, "stat";
    /// State of replication slots and origins.
    ReplicationState = 24, "replication-state";
    /// Logical decoding's spill files and serialised snapshots.
    Spill = 25, "spill";
    /// `pg_logical/mappings`.
    LogicalMappings = 26, "logical-mappings";
    /// `backup_label` and `tablespace_map`.
    BackupLabel = 27, "backup-label";
    /// The server's own log, where it lies inside the data folder.
    ServerLog = 28, "server-log";
    /// Configuration and version files.
    Config = 29, "config";
    /// In the data folder, and none of the above.
    Other = 30, "other";
    /// An index. Known only with a catalog; without one an index is a `relation`.
    Index = 31, "index";
    /// A TOAST table or its index. Known only with a catalog.
    Toast = 32, "toast";
    /// An unlogged relation. Known only with a catalog.
    Unlogged = 33, "unlogged";
}

impl Class {
    /// The number that stands in control pages and traces.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The class with this number.
    pub fn from_number(number: u8) -> Option<Class> {
        Class::ALL.get(usize::from(number)).copied()
    }

    /// Whether only a catalog can tell this class; elsewhere such a file is a `relation`.
    pub const fn needs_catalog(self) -> bool {
        matches!(self, Class::Index | Class::Toast | Class::Unlogged)
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The text was not the name of a class.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct UnknownClass;

impl fmt::Display for UnknownClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a class of file; `shelflife policy show temp-vs-rest` lists them")
    }
}

impl core::error::Error for UnknownClass {}

impl FromStr for Class {
    type Err = UnknownClass;

    fn from_str(text: &str) -> Result<Class, UnknownClass> {
        Class::ALL.iter().copied().find(|c| c.name() == text).ok_or(UnknownClass)
    }
}

/// How paths become classes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub enum Layout {
    /// A PostgreSQL data folder, versions 13 to 19.
    Postgres = 1,
    /// Any program: every file is `outside`, and only `path` rules apply.
    Paths = 2,
}

impl Layout {
    /// The name used in policies.
    pub const fn name(self) -> &'static str {
        match self {
            Layout::Postgres => "postgres",
            Layout::Paths => "paths",
        }
    }

    /// The number that stands in the flat table.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The layout with this number.
    pub const fn from_number(number: u8) -> Option<Layout> {
        match number {
            1 => Some(Layout::Postgres),
            2 => Some(Layout::Paths),
            _ => None,
        }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The text was not the name of a layout.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct UnknownLayout;

impl fmt::Display for UnknownLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a layout; expected \"postgres\" or \"paths\"")
    }
}

impl core::error::Error for UnknownLayout {}

impl FromStr for Layout {
    type Err = UnknownLayout;

    fn from_str(text: &str) -> Result<Layout, UnknownLayout> {
        match text {
            "postgres" => Ok(Layout::Postgres),
            "paths" => Ok(Layout::Paths),
            _ => Err(UnknownLayout),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_positions_and_names_are_unique() {
        for (at, class) in Class::ALL.iter().enumerate() {
            assert_eq!(usize::from(class.number()), at);
            assert_eq!(Class::from_number(class.number()), Some(*class));
            assert_eq!(class.name().parse(), Ok(*class));
        }
        assert_eq!(Class::from_number(200), None);
    }
}
