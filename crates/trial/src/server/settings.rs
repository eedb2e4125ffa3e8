//! The settings that decide how much is written, and when.
//!
//! Invariant: what a version of PostgreSQL would silently do otherwise (checksums are on since 18,
//! the completion target is 0.9 since 14, checkpoints are logged since 15, …) is pinned for the
//! trial's own cluster, so that results of different versions can be set side by side.

use crate::spec::{Preset, Spec};

/// The settings of the trial's own cluster on major version `major`.
pub(crate) fn pinned(spec: &Spec, major: u16) -> Vec<(String, String)> {
    let max_wal = format!("{}MB", spec.max_wal_mb);
    // Recycling settles soon if as many segments are kept as may ever be needed. The classic trial
    // keeps the default, which is what it would have met.
    let min_wal = match spec.preset {
        Preset::Classic => "80MB".to_owned(),
        Preset::Standard | Preset::Quick => max_wal.clone(),
    };
    let connections = spec.clients.saturating_add(20).max(100);
    let mut settings: Vec<(&str, String)> = vec![
        ("fsync", "on".into()),
        ("synchronous_commit", "on".into()),
        ("full_page_writes", "on".into()),
        ("wal_compression", "off".into()),
        ("wal_level", "replica".into()),
        ("wal_init_zero", "on".into()),
        ("wal_recycle", "on".into()),
        ("archive_mode", "off".into()),
        ("max_wal_size", max_wal),
        ("min_wal_size", min_wal),
        ("checkpoint_timeout", format!("{}s", spec.checkpoint_timeout_s)),
        ("checkpoint_completion_target", "0.9".into()),
        ("checkpoint_flush_after", "256kB".into()),
        ("shared_buffers", "128MB".into()),
        ("work_mem", "4MB".into()),
        ("temp_buffers", "8MB".into()),
        ("max_connections", connections.to_string()),
        ("max_wal_senders", "0".into()),
        ("autovacuum", "on".into()),
        ("jit", "off".into()),
        ("log_checkpoints", "on".into()),
    ];
    if major >= 18 {
        settings.push(("io_method", "worker".into()));
    }
    let pinned = settings.into_iter().map(|(name, value)| (name.to_owned(), value));
    // The last one of a name counts.
    pinned.chain(spec.settings.iter().cloned()).collect()
}

/// A size as PostgreSQL's settings have it, in its own unit of these settings.
pub(crate) fn megabytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: u64 = digits.trim().parse().ok()?;
    match &text[digits.len()..] {
        "" | "MB" => Some(number),
        "kB" => Some(number / 1024),
        "GB" => number.checked_mul(1024),
        "TB" => number.checked_mul(1024 * 1024),
        _ => None,
    }
}

/// The settings that are recorded, of any server.
pub(crate) const SHOWN: &[&str] = &[
    "data_checksums",
    "fsync",
    "synchronous_commit",
    "full_page_writes",
    "wal_compression",
    "wal_level",
    "wal_segment_size",
    "wal_init_zero",
    "wal_recycle",
    "archive_mode",
    "max_wal_size",
    "min_wal_size",
    "checkpoint_timeout",
    "checkpoint_completion_target",
    "checkpoint_flush_after",
    "shared_buffers",
    "work_mem",
    "temp_buffers",
    "temp_tablespaces",
    "block_size",
    "autovacuum",
    "jit",
    "io_method",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Wishes;

    #[test]
    fn the_users_settings_come_last() {
        let mut wishes = Wishes { preset: Preset::Classic, ..Wishes::default() };
        wishes.policies = vec!["off".into(), "off".into()];
        wishes.settings = vec![("work_mem".into(), "64kB".into())];
        let spec = Spec::new(&wishes).unwrap();
        let settings = pinned(&spec, 15);
        assert_eq!(settings.last().unwrap(), &("work_mem".to_owned(), "64kB".to_owned()));
        let of = |name: &str| settings.iter().find(|s| s.0 == name).map(|s| s.1.as_str());
        assert_eq!(of("max_wal_size"), Some("4096MB"));
        assert_eq!(of("io_method"), None);
        assert!(pinned(&spec, 18).iter().any(|s| s.0 == "io_method"));
    }
}
