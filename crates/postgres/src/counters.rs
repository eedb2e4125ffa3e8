//! What the server counts: counters that only grow, whose differences tell of a round, and gauges.
//!
//! Invariant: a value that the server's version does not have is `None`, and so is the difference of a
//! counter that went backwards (reset, crash recovery, a dropped table): no made-up zero.

use serde::Deserialize;
use serde::Serialize;

/// Counters of the server and of the connected database since their last reset.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counters {
    /// WAL records written by the server (`pg_stat_wal`, 14 and newer).
    pub wal_records: Option<u64>,
    /// Full-page images among them (14 and newer).
    pub wal_full_page_images: Option<u64>,
    /// WAL bytes generated (`pg_stat_wal`, 14 and newer). In 13 the insert position, whose differences also
    /// hold page headers and the unused rest of switched segments.
    pub wal_bytes: Option<u64>,
    /// The WAL's insert position in bytes; `None` on a standby.
    pub wal_position: Option<u64>,
    /// Checkpoints due to time (`pg_stat_bgwriter` up to 16, `pg_stat_checkpointer` since 17).
    pub checkpoints_timed: Option<u64>,
    /// Checkpoints asked for: by the amount of WAL or by a command.
    pub checkpoints_requested: Option<u64>,
    /// Checkpoints really done, idle ones left out (18 and newer).
    pub checkpoints_done: Option<u64>,
    /// Buffers of 8 KiB that checkpoints wrote.
    pub checkpoint_buffers: Option<u64>,
    /// Time that checkpoints spent writing, in ms.
    pub checkpoint_write_ms: Option<u64>,
    /// Time that checkpoints spent synchronising, in ms.
    pub checkpoint_sync_ms: Option<u64>,
    /// Temporary files made in this database.
    pub temp_files: Option<u64>,
    /// Bytes written to them.
    pub temp_bytes: Option<u64>,
    /// Transactions committed in this database.
    pub commits: Option<u64>,
    /// Transactions rolled back in this database.
    pub rollbacks: Option<u64>,
    /// Rows inserted, over the user tables that exist.
    pub rows_inserted: Option<u64>,
    /// Rows updated, heap-only ones included.
    pub rows_updated: Option<u64>,
    /// Rows updated without a new index entry (heap-only tuples).
    pub rows_hot_updated: Option<u64>,
    /// Rows deleted.
    pub rows_deleted: Option<u64>,
}

impl Counters {
    /// What was counted between `earlier` and this.
    #[must_use]
    pub fn since(&self, earlier: &Counters) -> Counters {
        let less = |now: Option<u64>, then: Option<u64>| now?.checked_sub(then?);
        // Written out without `..`: a new counter that is forgotten here does not compile.
        let &Counters {
            wal_records,
            wal_full_page_images,
            wal_bytes,
            wal_position,
            checkpoints_timed,
            checkpoints_requested,
            checkpoints_done,
            checkpoint_buffers,
            checkpoint_write_ms,
            checkpoint_sync_ms,
            temp_files,
            temp_bytes,
            commits,
            rollbacks,
            rows_inserted,
            rows_updated,
            rows_hot_updated,
            rows_deleted,
        } = self;
        Counters {
            wal_records: less(wal_records, earlier.wal_records),
            wal_full_page_images: less(wal_full_page_images, earlier.wal_full_page_images),
            wal_bytes: less(wal_bytes, earlier.wal_bytes),
            wal_position: less(wal_position, earlier.wal_position),
            checkpoints_timed: less(checkpoints_timed, earlier.checkpoints_timed),
            checkpoints_requested: less(checkpoints_requested, earlier.checkpoints_requested),
            checkpoints_done: less(checkpoints_done, earlier.checkpoints_done),
            checkpoint_buffers: less(checkpoint_buffers, earlier.checkpoint_buffers),
            checkpoint_write_ms: less(checkpoint_write_ms, earlier.checkpoint_write_ms),
            checkpoint_sync_ms: less(checkpoint_sync_ms, earlier.checkpoint_sync_ms),
            temp_files: less(temp_files, earlier.temp_files),
            temp_bytes: less(temp_bytes, earlier.temp_bytes),
            commits: less(commits, earlier.commits),
            rollbacks: less(rollbacks, earlier.rollbacks),
            rows_inserted: less(rows_inserted, earlier.rows_inserted),
            rows_updated: less(rows_updated, earlier.rows_updated),
            rows_hot_updated: less(rows_hot_updated, earlier.rows_hot_updated),
            rows_deleted: less(rows_deleted, earlier.rows_deleted),
        }
    }

    /// Checkpoints begun, of either cause.
    pub fn checkpoints(&self) -> Option<u64> {
        self.checkpoints_timed?.checked_add(self.checkpoints_requested?)
    }

    /// The share of updates that were heap-only, 0 to 1; `None` without updates.
    pub fn hot_share(&self) -> Option<f64> {
        let (hot, all) = (self.rows_hot_updated?, self.rows_updated?);
        (all > 0).then(|| hot as f64 / all as f64)
    }
}

/// States of the connected database at one moment; their differences may be negative.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gauges {
    /// Size of the connected database in bytes, all forks, indexes and tablespaces.
    pub database_bytes: u64,
    /// Dead rows that the statistics know of, over all user tables.
    pub dead_rows: u64,
    /// Live rows that the statistics know of.
    pub live_rows: u64,
    /// Segment files in `pg_wal`, recycled ones included.
    pub wal_files: u64,
    /// Bytes of all files in `pg_wal`.
    pub wal_folder_bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_never_invent_a_zero() {
        let then = Counters { wal_bytes: Some(100), commits: Some(50), ..Counters::default() };
        let now = Counters {
            wal_bytes: Some(350),
            commits: Some(7),
            temp_bytes: Some(9),
            ..Counters::default()
        };
        let round = now.since(&then);
        assert_eq!(round.wal_bytes, Some(250));
        assert_eq!(round.commits, None, "it was reset");
        assert_eq!(round.temp_bytes, None, "there was none before");
        assert_eq!(round.wal_records, None, "neither has it");
    }

    #[test]
    fn shares_need_something_to_share() {
        let mut counters = Counters { rows_hot_updated: Some(3), ..Counters::default() };
        assert_eq!(counters.hot_share(), None);
        counters.rows_updated = Some(0);
        assert_eq!(counters.hot_share(), None);
        counters.rows_updated = Some(4);
        assert_eq!(counters.hot_share(), Some(0.75));
        assert_eq!(counters.checkpoints(), None);
        counters.checkpoints_timed = Some(1);
        counters.checkpoints_requested = Some(2);
        assert_eq!(counters.checkpoints(), Some(3));
    }
}
