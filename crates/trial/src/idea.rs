//! What the original idea aimed at, and what of it this server version has.
//!
//! The idea was that files which are temporary by name die young. Which of these names exist, and
//! what writes them, has changed since (PostgreSQL's release notes and `src/backend/storage/file`,
//! `src/backend/postmaster/pgstat.c`, `src/backend/utils/activity/pgstat.c`).

use serde::Serialize;

/// A kind of file that the idea is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Aim {
    /// Its path from the data folder.
    pub path: &'static str,
    /// Its class, as policies name it.
    pub class: &'static str,
    /// Whether this version writes such files by itself.
    pub exists: bool,
    /// By what, or why not.
    pub note: &'static str,
}

/// What the idea aims at, in server version `major`.
pub fn aims(major: u16) -> Vec<Aim> {
    let aim = |path, class, exists, note| Aim { path, class, exists, note };
    let collector = major < 15;
    vec![
        aim(
            "base/pgsql_tmp/*",
            "temp",
            true,
            "sorts, hashes and materialised results that outgrow work_mem; pgbench's own scripts \
             make none",
        ),
        aim("pg_tblspc/*/*/pgsql_tmp/*", "temp", true, "the same, with temp_tablespaces set"),
        aim(
            "base/*/tN_OID",
            "temp-relation",
            true,
            "temporary tables that outgrow temp_buffers; pgbench's own scripts make none",
        ),
        aim(
            "pg_stat_tmp/*",
            "stat",
            collector,
            if collector {
                "rewritten by the statistics collector, at most every 500 ms"
            } else {
                "no collector since 15: statistics live in shared memory, only extensions write here"
            },
        ),
        aim(
            "pg_wal/xlogtemp.PID",
            "wal-new",
            true,
            "a WAL segment while it is made; it keeps its hint when it is renamed into its place",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use shelflife_layout::{Class, postgres};

    #[test]
    fn the_collector_went_with_15() {
        let collector = |major| aims(major).iter().any(|a| a.class == "stat" && a.exists);
        assert!(collector(13) && collector(14));
        assert!(!collector(15) && !collector(19));
    }

    #[test]
    fn classes_are_those_of_the_layout() {
        for (path, class) in [
            ("base/pgsql_tmp/pgsql_tmp1.0", "temp"),
            ("pg_tblspc/16400/PG_15_202209061/pgsql_tmp/pgsql_tmp1.0", "temp"),
            ("base/5/t3_16384", "temp-relation"),
            ("pg_stat_tmp/global.stat", "stat"),
            ("pg_wal/xlogtemp.4711", "wal-new"),
        ] {
            assert_eq!(postgres::classify(path.as_bytes()).name(), class);
            assert!(aims(15).iter().any(|aim| aim.class == class), "{path}");
        }
        assert!(aims(15).iter().all(|aim| Class::ALL.iter().any(|c| c.name() == aim.class)));
    }
}
