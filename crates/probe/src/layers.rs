//! What stacked block devices do to a hint.
//!
//! Generic rule: `bio_alloc_clone` and `bio_split` copy hint and stream (`block/bio.c`); a driver
//! that allocates a fresh request drops both. The limit `max_write_streams` is not stacked, so no
//! producer sets a stream above a stacking driver but the NVMe multipath head.
//!
//! Invariant: a target or level that is not in the tables is unknown.

use crate::block::{Block, Kind};
use crate::dm;
use crate::host::Host;
use crate::step::{Effect, Step};

/// What a device-mapper target does, why, and the kernel's source.
const TARGETS: [(&str, Effect, &str, &str); 24] = [
    ("linear", Effect::Keeps, "clones requests with their hint", "drivers/md/dm.c"),
    ("striped", Effect::Keeps, "clones requests with their hint", "drivers/md/dm.c"),
    ("multipath", Effect::Keeps, "clones requests with their hint", "drivers/md/dm-rq.c"),
    ("thin", Effect::Keeps, "clones requests with their hint", "drivers/md/dm-thin.c"),
    ("thin-pool", Effect::Keeps, "clones requests with their hint", "drivers/md/dm-thin.c"),
    ("snapshot-origin", Effect::Keeps, "clones requests with their hint", "drivers/md/dm-snap.c"),
    ("raid raid0", Effect::Keeps, "clones requests with their hint", "drivers/md/raid0.c"),
    ("raid raid1", Effect::Keeps, "clones requests with their hint", "drivers/md/raid1.c"),
    ("raid raid10", Effect::Keeps, "clones requests with their hint", "drivers/md/raid10.c"),
    (
        "raid raid4",
        Effect::Drops,
        "writes its stripes in requests of its own",
        "drivers/md/raid5.c",
    ),
    (
        "raid raid5",
        Effect::Drops,
        "writes its stripes in requests of its own",
        "drivers/md/raid5.c",
    ),
    (
        "raid raid6",
        Effect::Drops,
        "writes its stripes in requests of its own",
        "drivers/md/raid5.c",
    ),
    ("mirror", Effect::Drops, "writes by dm-io, in requests of its own", "drivers/md/dm-io.c"),
    ("flakey", Effect::Keeps, "clones requests with their hint", "drivers/md/dm.c"),
    ("delay", Effect::Keeps, "clones requests with their hint", "drivers/md/dm.c"),
    (
        "cache",
        Effect::Keeps,
        "clones requests; what it moves later carries no hint",
        "drivers/md/dm-cache-target.c",
    ),
    ("clone", Effect::Keeps, "clones requests with their hint", "drivers/md/dm-clone-target.c"),
    (
        "zoned",
        Effect::Keeps,
        "clones requests; what it moves later carries no hint",
        "drivers/md/dm-zoned-target.c",
    ),
    ("verity", Effect::Drops, "is read only", "drivers/md/dm-verity-target.c"),
    (
        "crypt",
        Effect::Drops,
        "encrypts into requests of its own, and copies no hint",
        "drivers/md/dm-crypt.c",
    ),
    (
        "writecache",
        Effect::Drops,
        "writes back in requests of its own",
        "drivers/md/dm-writecache.c",
    ),
    (
        "snapshot",
        Effect::Drops,
        "copies to its exception store in requests of its own",
        "drivers/md/dm-snap.c",
    ),
    ("vdo", Effect::Drops, "writes in requests of its own", "drivers/md/dm-vdo"),
    (
        "integrity",
        Effect::Drops,
        "with a journal, writes in requests of its own",
        "drivers/md/dm-integrity.c",
    ),
];

/// The step for a stacked device; `None` for a device that is no stack.
pub(crate) fn step(host: &Host, block: &Block) -> Option<Step> {
    let sysfs = |name: &str| block.shown(name);
    match &block.kind {
        Kind::Mapper { uuid } => Some(mapper(host, block, uuid)),
        Kind::Raid { level } => Some(raid(block, level).from(sysfs("md/level"))),
        Kind::Bcache { mode } => Some(bcache(block, mode).from(sysfs("bcache/cache_mode"))),
        Kind::Drbd => Some(
            Step::new(
                "drbd",
                &block.name,
                Effect::Keeps,
                "clones requests for this node's disk; the peer writes without hints",
            )
            .source("drivers/block/drbd/drbd_req.c")
            .from(sysfs("")),
        ),
        _ => None,
    }
}

fn mapper(host: &Host, block: &Block, uuid: &str) -> Step {
    let name = host.text(block.folder.join("dm/name")).unwrap_or_default();
    let shown =
        if name.is_empty() { block.name.clone() } else { format!("{} ({name})", block.name) };
    let evidence = format!("{}: {uuid:?}", block.shown("dm/uuid"));
    let table = block.number(host).map(|number| host.calls().device_mapper(number));
    if let Some(Ok(buffer)) = table {
        let decoded = dm::targets(&buffer);
        if let Ok(targets) = decoded.as_deref()
            && !targets.is_empty()
        {
            return of_targets(&shown, targets).from("device-mapper table (DM_TABLE_STATUS)");
        }
    }
    match guess(host, block, uuid) {
        Some(target) => of_targets(&shown, &[target.to_owned()]).from(evidence),
        None => Step::new(
            "device mapper",
            shown,
            Effect::Unknown,
            "which target it has is shown to root only",
        )
        .from(evidence)
        .missing("the device-mapper table: run as root"),
    }
}

/// The target by the uuid that cryptsetup, LVM and multipathd give, and for LVM by the names of what
/// is below (`lib/activate/dev_manager.c` of lvm2: suffixes of hidden volumes).
fn guess(host: &Host, block: &Block, uuid: &str) -> Option<&'static str> {
    if uuid.starts_with("CRYPT-") {
        // CRYPT-INTEGRITY-… stands for a dm-integrity device of its own.
        return Some(if uuid.starts_with("CRYPT-INTEGRITY") { "integrity" } else { "crypt" });
    }
    if uuid.starts_with("mpath-") {
        return Some("multipath");
    }
    if uuid.starts_with("part") && uuid.contains("-mpath-") {
        return Some("linear");
    }
    if !uuid.starts_with("LVM-") {
        return None;
    }
    let below: Vec<(String, String)> = block
        .slaves
        .iter()
        .map(|slave| {
            let folder = std::path::Path::new("/sys/class/block").join(slave);
            let read = |name: &str| host.text(folder.join(name)).unwrap_or_default();
            (read("dm/uuid"), read("dm/name"))
        })
        .collect();
    let suffix = |end: &str| below.iter().any(|(uuid, _)| uuid.ends_with(end));
    let named = |part: &str| below.iter().any(|(_, name)| name.contains(part));
    let target = match () {
        () if suffix("-tpool") || suffix("-pool") => "thin",
        () if suffix("-vpool") || named("_vpool") => "vdo",
        () if suffix("-cow") => "snapshot",
        () if named("_cdata") || suffix("-cpool") || suffix("-cvol") => "cache",
        () if named("_wcorig") => "writecache",
        () if named("_iorig") => "integrity",
        // dm-raid hands its work to md, whose level is not shown here.
        () if named("_rimage") => return None,
        () if named("_mimage") => "mirror",
        () => "linear",
    };
    Some(target)
}

fn of_targets(shown: &str, targets: &[String]) -> Step {
    // The worst of several segments decides.
    let rows = targets.iter().map(|target| {
        let row = TARGETS.iter().find(|(name, ..)| name == target);
        (target.as_str(), row.map(|(_, effect, why, source)| (*effect, *why, *source)))
    });
    let rank = |row: &Option<(Effect, &str, &str)>| match row {
        Some((Effect::Drops, ..)) => 2,
        None => 1,
        Some(_) => 0,
    };
    let (target, row) = rows.max_by_key(|(_, row)| rank(row)).unwrap_or(("", None));
    let layer = format!("dm-{target}");
    let Some((effect, why, source)) = row else {
        return Step::new(&layer, shown, Effect::Unknown, format!("{layer} was not examined"))
            .missing(format!("what {layer} does with a hint; `shelflife prove` shows it"));
    };
    let step = Step::new(&layer, shown, effect, why).source(source);
    match (effect, target) {
        (Effect::Drops, "crypt") => step.change(
            "encrypt in the drive (TCG Opal) or in the file system (fscrypt) instead of by dm-crypt",
        ),
        (Effect::Drops, _) => step.change(format!("a volume without {layer}")),
        _ => step,
    }
}

fn raid(block: &Block, level: &str) -> Step {
    let layer = format!("md {level}");
    match level {
        "raid0" | "raid1" | "raid10" | "linear" => {
            let source = match level {
                "raid1" => "drivers/md/raid1.c raid1_write_request",
                "raid10" => "drivers/md/raid10.c raid10_write_one_disk",
                _ => "drivers/md/raid0.c, block/bio.c",
            };
            let why = "clones requests with their hint";
            Step::new(layer, &block.name, Effect::Keeps, why).source(source)
        }
        "raid4" | "raid5" | "raid6" => Step::new(
            layer,
            &block.name,
            Effect::Drops,
            "data goes through its stripe cache and is written in requests of its own",
        )
        .source("drivers/md/raid5.c ops_run_io")
        .change("RAID 10 or RAID 1 instead of parity RAID"),
        _ => Step::new("md", &block.name, Effect::Unknown, format!("its level is {level:?}"))
            .missing("the array's level: is it running?"),
    }
}

fn bcache(block: &Block, mode: &str) -> Step {
    let step = |effect, why: &str| {
        Step::new(format!("bcache {mode}"), &block.name, effect, why)
            .source("drivers/md/bcache/request.c, writeback.c")
    };
    match mode {
        "writeback" => step(Effect::Drops, "writes back from the cache in requests of its own")
            .change("cache_mode writethrough"),
        "writethrough" | "writearound" | "none" => {
            step(Effect::Keeps, "clones requests with their hint")
        }
        _ => step(Effect::Unknown, "its mode cannot be read").missing("bcache/cache_mode"),
    }
}
