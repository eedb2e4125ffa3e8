//! Whether the database has come to a steady state.
//!
//! Invariant: "settled" needs three looks, each right after a checkpoint: the size grew by less
//! than 1 % since the last one, and the number of WAL files did not change over two cycles.

use shelflife_postgres::Gauges;

/// What the last looks saw.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Settling {
    sizes: [Option<u64>; 2],
    wal_files: [Option<u64>; 3],
}

impl Settling {
    /// Notes the state right after a checkpoint.
    pub(crate) fn note(&mut self, gauges: &Gauges) {
        self.sizes = [self.sizes[1], Some(gauges.database_bytes)];
        let [_, older, last] = self.wal_files;
        self.wal_files = [older, last, Some(gauges.wal_files)];
    }

    pub(crate) fn is_settled(&self) -> bool {
        let ([Some(then), Some(now)], [Some(first), Some(second), Some(third)]) =
            (self.sizes, self.wal_files)
        else {
            return false;
        };
        now <= then.saturating_add(then / 100) && first == second && second == third
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(looks: &[(u64, u64)]) -> bool {
        let mut settling = Settling::default();
        for &(database_bytes, wal_files) in looks {
            settling.note(&Gauges { database_bytes, wal_files, ..Gauges::default() });
        }
        settling.is_settled()
    }

    #[test]
    fn size_and_wal_must_rest() {
        assert!(!settled(&[(1000, 8), (1000, 8)]), "one cycle is not enough");
        assert!(settled(&[(500, 8), (1000, 8), (1009, 8)]));
        assert!(!settled(&[(1000, 8), (1000, 8), (1011, 8)]), "it grew by 1.1 %");
        assert!(!settled(&[(1000, 7), (1000, 8), (1000, 8)]), "WAL files came");
        assert!(settled(&[(1000, 7), (1000, 8), (900, 8), (900, 8)]));
    }
}
