//! The zones of `/proc/self/mountstats`.
//!
//! Invariant: lines that are not understood are left out; nothing is guessed from them.

use std::path::Path;

use shelflife_mounts::unescape;

/// Whether `mountstats` shows zones for the XFS mounted at `point`
/// (`fs/xfs/xfs_zone_info.c`: a line `zone N, wp …` or `max open zones: N`).
pub(crate) fn has_zones(mountstats: &str, point: &Path) -> bool {
    zones_of(mountstats, point).next().is_some()
}

/// The lines about zones of the file system mounted at `point`.
pub(crate) fn zones_of<'a>(mountstats: &'a str, point: &Path) -> impl Iterator<Item = &'a str> {
    let wanted = format!(" mounted on {} with fstype xfs", point.display());
    let mut inside = false;
    mountstats.lines().filter(move |line| {
        if line.starts_with("device ") || line.starts_with("no device ") {
            let line = unescape(line.as_bytes());
            inside = String::from_utf8_lossy(&line).contains(&wanted);
            return false;
        }
        let line = line.trim_start();
        inside && (line.starts_with("zone ") || line.contains("open zones"))
    })
}

/// Hints of the zones that are open, in lower case, each once.
pub(crate) fn hints(mountstats: &str, point: &Path) -> Vec<String> {
    let mut hints: Vec<String> = zones_of(mountstats, point)
        // Linux 7.3 has a blank after it
        .filter_map(|line| line.rsplit_once("hint ").map(|(_, hint)| hint.trim().to_lowercase()))
        .collect();
    hints.sort_unstable();
    hints.dedup();
    hints
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_belong_to_their_mount() {
        let stats = "\
device /dev/vda mounted on / with fstype ext4
device /dev/sdb mounted on /srv/z with fstype xfs
\tmax open zones: 10
\tzone 3, wp 4096, written 4096, used 4096, hint SHORT
\tzone 4, wp 4096, written 4096, used 4096, hint SHORT\x20
\tzone 5, wp 4096, written 4096, used 4096, hint NONE
device /dev/sdc mounted on /srv/plain with fstype xfs
";
        assert!(has_zones(stats, Path::new("/srv/z")));
        assert_eq!(zones_of(stats, Path::new("/srv/z")).count(), 4);
        assert_eq!(hints(stats, Path::new("/srv/z")), ["none", "short"]);
        assert!(!has_zones(stats, Path::new("/srv/plain")));
        assert!(!has_zones(stats, Path::new("/srv")));
    }
}
