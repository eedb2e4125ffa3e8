//! What a trial will write, said before it begins.
//!
//! Invariant: an upper estimate of the usual case, not a promise; it says what it was made from.
//!
//! The factors are those of `tpcb-like` with full-page images, checksums and the default page of
//! 8 KiB, measured at scale 10 (PostgreSQL 15): soon after a checkpoint a transaction touches five
//! or six pages for the first time, of table and index, and each goes into the WAL once and to the
//! data files once, 49 kB in all. A page that was touched before costs a record only, 1 kB for a
//! transaction; so between two checkpoints the pages cost at most twice the database. Loading
//! writes three times the size: the WAL, the table, and index and hint bits.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::epoch::CAPACITIES;
use crate::filesystem::Wanted;
use crate::server::settings::megabytes;
use crate::spec::Spec;

/// pgbench's tables and their indexes, in bytes per unit of scale.
pub const SCALE_BYTES: u64 = 15_500_000;

/// Written by loading, in sizes of the tables.
const LOAD_FACTOR: u64 = 3;

/// Written by one transaction for pages that it touches first after a checkpoint, in bytes.
const PAGE_BYTES: u64 = 49_000;

/// Written by one transaction for its records, in bytes.
const RECORD_BYTES: u64 = 1000;

/// Transactions per second that one processor, shared with pgbench, makes at most.
const TPS_PER_CORE: f64 = 3000.0;

/// Less than this is written without asking.
const SMALL: u64 = 8_000_000_000;

/// Beside the data and the WAL: a new cluster's catalogs, temporary files, logs.
const OVERHEAD: u64 = 300_000_000;

/// An estimate, in bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Written by loading, cold data of a file system of its own included.
    pub load_bytes: u64,
    /// Written by ageing and all rounds.
    pub rounds_bytes: u64,
    /// The room needed at the same time.
    pub room_bytes: u64,
    /// The transactions per second that were assumed.
    pub tps: f64,
    /// What it was made from.
    pub basis: String,
}

impl Estimate {
    /// The estimate for `spec` on a machine with `cores` processors whose storage takes `sync` for
    /// a small write and its `fdatasync`.
    pub fn of(spec: &Spec, sync: Duration, cores: usize) -> Estimate {
        let clients = f64::from(spec.clients);
        let by_core = TPS_PER_CORE * (cores as f64).min(clients);
        // Half of the clients share each synchronisation, as a rule.
        let by_sync = (clients / 2.0).max(1.0) / sync.as_secs_f64().max(1e-6);
        let free = by_core.min(by_sync);
        let tps = spec.rate.map_or(free, |rate| rate.min(free));
        let tables = u64::from(spec.scale) * SCALE_BYTES;
        let load = |seconds: u32| {
            let transactions = (tps * f64::from(seconds)) as u64;
            let timeout = spec.checkpoint_timeout_s.max(1);
            let checkpoints = u64::from(1 + seconds / timeout);
            let pages = transactions.saturating_mul(PAGE_BYTES).min(checkpoints * 2 * tables);
            pages.saturating_add(transactions.saturating_mul(RECORD_BYTES))
        };
        let round = load(spec.seconds.saturating_add(spec.warm_up_s));
        let ageing = load(spec.ageing.seconds).saturating_mul(spec.ageing.most_rounds.into());
        let script = match spec.scripts.is_empty() {
            true => "",
            false => ", as if the scripts wrote like tpcb-like",
        };
        let rate = if spec.rate.is_some() { "the --rate or at most " } else { "" };
        let cold = spec.filesystem.as_ref().map_or(0, |wanted| wanted.cold_bytes());
        let max_wal_mb = spec.settings.iter().rfind(|setting| setting.0 == "max_wal_size");
        let max_wal_mb = max_wal_mb.and_then(|setting| megabytes(&setting.1));
        // A larger one than the preset's need not be reached.
        let preset = u64::from(spec.max_wal_mb);
        let max_wal_mb = max_wal_mb.unwrap_or(preset).min(preset);
        // Every epoch writes the cold data anew.
        let (cold, round) = match &spec.filesystem {
            Some(Wanted { device: Some(_), size, .. }) => {
                (0, size.saturating_mul(CAPACITIES).saturating_add(cold))
            }
            _ => (cold, round),
        };
        let room = tables * 13 / 10 + OVERHEAD;
        Estimate {
            load_bytes: LOAD_FACTOR * tables + cold,
            rounds_bytes: round.saturating_mul(spec.rounds() as u64).saturating_add(ageing),
            room_bytes: room.saturating_add(max_wal_mb.saturating_mul(1_150_000)),
            tps,
            basis: format!(
                "{rate}{tps:.0} transactions a second (the least of {cores} processors and of \
                 {:.2} ms for fdatasync, measured here) for {} s{script}",
                sync.as_secs_f64() * 1000.0,
                spec.load_s()
            ),
        }
    }

    /// All that is written.
    pub fn total_bytes(&self) -> u64 {
        self.load_bytes.saturating_add(self.rounds_bytes)
    }

    /// Whether it is so little that nobody need be asked.
    pub fn is_small(&self) -> bool {
        self.total_bytes() < SMALL
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Preset, Wishes};

    fn spec(preset: Preset, rate: Option<f64>) -> Spec {
        let policies = vec!["off".to_owned(), "temp-vs-rest".to_owned()];
        Spec::new(&Wishes { preset, policies, rate, ..Wishes::default() }).unwrap()
    }

    #[test]
    fn the_slower_of_processor_and_storage_decides() {
        let spec = spec(Preset::Classic, None);
        let disk = Estimate::of(&spec, Duration::from_millis(10), 8);
        assert!((disk.tps - 100.0).abs() < 1e-9);
        let fast = Estimate::of(&spec, Duration::from_micros(1), 2);
        assert!((fast.tps - 6000.0).abs() < 1e-9);
        assert_eq!(disk.load_bytes, 9_300_000_000);
        assert!(disk.room_bytes > 8_000_000_000 && !disk.is_small());
    }

    #[test]
    fn a_rate_is_believed_if_the_machine_can() {
        let slow = Estimate::of(&spec(Preset::Quick, Some(50.0)), Duration::from_millis(1), 2);
        assert!((slow.tps - 50.0).abs() < 1e-9 && slow.is_small());
        let too_fast = Estimate::of(&spec(Preset::Quick, Some(1e6)), Duration::from_millis(1), 2);
        assert!(too_fast.tps < 10_000.0);
    }

    #[test]
    fn epochs_write_the_capacity_three_times_and_the_cold_data() {
        let mut spec = spec(Preset::Classic, None);
        let rounds = Estimate::of(&spec, Duration::from_millis(1), 2);
        let room = rounds.room_bytes;
        spec.filesystem = Some(Wanted {
            kind: crate::filesystem::Kind::F2fs,
            device: Some("/dev/nvme9n1".into()),
            size: 1 << 40,
            fill: Some(0.5),
            dirty: None,
            mount_options: "discard".into(),
        });
        spec.settings = vec![("max_wal_size".into(), "64MB".into())];
        spec.ageing.most_rounds = 0;
        let epochs = Estimate::of(&spec, Duration::from_millis(1), 2);
        assert_eq!(epochs.rounds_bytes, 16 * (7 << 39));
        assert_eq!(epochs.load_bytes, rounds.load_bytes, "cold data are not written in --dir");
        assert_eq!(room - epochs.room_bytes, (4096 - 64) * 1_150_000);
    }

    #[test]
    fn the_pages_of_a_round_are_at_most_twice_the_database_a_checkpoint() {
        let mut spec = spec(Preset::Classic, None);
        spec.scale = 1;
        let estimate = Estimate::of(&spec, Duration::from_micros(1), 2);
        // 630 s with 300 s between checkpoints, at 6,000 tps
        let round = 3 * 2 * SCALE_BYTES + 630 * 6000 * RECORD_BYTES;
        let ageing = 3 * 2 * SCALE_BYTES + 600 * 6000 * RECORD_BYTES;
        assert_eq!(estimate.rounds_bytes, 16 * round + 6 * ageing);
    }
}
