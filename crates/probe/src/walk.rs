//! The walk from a path to the drives: kernel → file system → stacked layers → partition → drive.
//!
//! Invariant: each layer is asked by itself, whether or not the hint was lost above it, so that all
//! that stands in the way is told.

use std::path::Path;

use shelflife_lifetime::Lifetime;
use shelflife_mounts::{DevNumber, Mount, Mounts};

use crate::block::{Block, Kind};
use crate::fs::{self, Ground, Use};
use crate::host::{Host, Located};
use crate::kernel::Kernel;
use crate::layers;
use crate::leaf::{self, Above, Leaf};
use crate::mountstats;
use crate::rules;
use crate::signal::{Grid, Mode, Signal};
use crate::step::{Effect, Step};

/// Deeper stacks are not followed.
const DEEPEST: usize = 16;

/// What is mounted; nothing if that cannot be read.
pub(crate) fn mounts(host: &Host) -> Mounts {
    Mounts::parse(host.text("/proc/self/mountinfo").unwrap_or_default().as_bytes())
}

/// All that the walks over one machine share.
#[derive(Debug)]
pub(crate) struct Ways<'a> {
    pub(crate) host: &'a Host,
    pub(crate) kernel: Kernel,
    pub(crate) mounts: Mounts,
    mountstats: String,
    /// Whether devices may be asked.
    ask: bool,
}

/// One walk.
#[derive(Debug)]
pub(crate) struct Walk {
    pub(crate) steps: Vec<Step>,
    pub(crate) leaves: Vec<Leaf>,
    pub(crate) uses: Option<Use>,
    pub(crate) root: Vec<&'static str>,
    /// The file system at the path; `None` for a raw device.
    pub(crate) file_system: Option<String>,
    /// Whether the path is a raw device.
    pub(crate) raw: bool,
}

impl<'a> Ways<'a> {
    pub(crate) fn new(host: &'a Host, path: &Path, ask: bool) -> Ways<'a> {
        Ways {
            host,
            kernel: Kernel::read(host, path),
            mounts: mounts(host),
            mountstats: host.text("/proc/self/mountstats").unwrap_or_default(),
            ask,
        }
    }

    /// Walks from `place` down.
    pub(crate) fn walk(&self, place: &Located) -> Walk {
        let mut walk = Walk {
            steps: Vec::new(),
            leaves: Vec::new(),
            uses: None,
            root: Vec::new(),
            file_system: None,
            raw: place.block.is_some(),
        };
        walk.steps.push(self.kernel_step());
        // Where the call is refused no file ever has a hint.
        let refused = self.kernel.call == Some(false);
        let given = Grid::new(|_, l: Lifetime| Some(if refused { 0 } else { l as u8 }));
        match place.block {
            Some(number) => self.raw(&mut walk, number, &given),
            None => {
                let uses = self.file(&mut walk, place, &given, 1);
                walk.uses = uses.filter(|_| !refused);
            }
        }
        walk.root.sort_unstable();
        walk.root.dedup();
        walk
    }

    fn kernel_step(&self) -> Step {
        let kernel = &self.kernel;
        let evidence = "/proc/sys/kernel/osrelease; fcntl F_GET_RW_HINT";
        if kernel.call == Some(false) {
            return Step::new(
                "kernel",
                &kernel.release,
                Effect::Drops,
                "refuses the call (EINVAL)",
            )
            .from(evidence)
            .source(format!("{} ({})", rules::CALL.source, rules::CALL.since))
            .change("Linux itself instead of a sandbox such as gVisor, 4.13 or later");
        }
        let mut why = match kernel.call {
            Some(_) => "takes the call".to_owned(),
            None => "whether it takes the call could not be tried".to_owned(),
        };
        if kernel.has_backports() {
            why += "; a distribution's kernel may have later changes: `shelflife prove` shows it";
        }
        Step::new("kernel", &kernel.release, Effect::Keeps, why).from(evidence)
    }

    /// A block device as the path itself.
    fn raw(&self, walk: &mut Walk, number: DevNumber, given: &Grid<Option<u8>>) {
        let Some(block) = Block::numbered(self.host, number) else {
            let name = number.to_string();
            walk.steps.push(
                Step::new("device", name, Effect::Unknown, "it is not in /sys")
                    .from("/sys/dev/block")
                    .missing("/sys: is it mounted?"),
            );
            return;
        };
        let hints = self.kernel.does(&rules::BLOCK_HINT);
        let streams = block.write_streams(self.host).unwrap_or(0);
        let signals = Grid::new(|mode, lifetime: Lifetime| {
            let hint = given.of(mode)[lifetime as usize];
            let carried = match hints {
                Some(true) => hint,
                Some(false) => Some(0),
                None => None,
            };
            // A hint beyond the last stream goes untagged (`block/fops.c`).
            let stream = match (mode, hint) {
                (Mode::Direct, Some(hint)) if u16::from(hint) <= streams => u16::from(hint),
                _ => 0,
            };
            Signal { hint: carried, stream: Some(stream) }
        });
        let step = match hints {
            Some(false) => Step::new(
                "raw device",
                &block.name,
                Effect::Drops,
                format!("requests have no hint before Linux {}", rules::BLOCK_HINT.since),
            )
            .change(format!("Linux {} or later", rules::BLOCK_HINT.since)),
            _ if streams > 0 => Step::new(
                "raw device",
                &block.name,
                Effect::DirectOnly,
                "with O_DIRECT the hint is the write stream; through the page cache there is none",
            ),
            _ => Step::new("raw device", &block.name, Effect::Keeps, "requests carry the hint"),
        };
        let source = format!("block/fops.c; {}", rules::BLOCK_HINT.source);
        walk.steps.push(step.source(source).from(block.shown("queue/max_write_streams")));
        self.device(walk, &block, &signals, 2, (None, &block.name));
    }

    /// A file, or a folder for the files to be made in it.
    fn file(
        &self,
        walk: &mut Walk,
        place: &Located,
        given: &Grid<Option<u8>>,
        depth: usize,
    ) -> Option<Use> {
        let Some(mount) = self.mounts.of_file(&place.path, place.device) else {
            walk.steps.push(
                Step::new("file system", "?", Effect::Unknown, "its mount was not found")
                    .from("/proc/self/mountinfo")
                    .missing("/proc/self/mountinfo"),
            );
            return None;
        };
        if depth == 1 {
            walk.file_system = Some(mount.file_system.clone());
        }
        let below = self.below(mount, place);
        let ground = Ground {
            kernel: &self.kernel,
            mount,
            attributes: self.host.calls().attributes(&place.path),
            zoned: mount.file_system == "xfs"
                && mountstats::has_zones(&self.mountstats, &mount.point),
            streams: below.first().and_then(|block| block.write_streams(self.host)),
        };
        let produced = fs::produce(&ground, given);
        walk.steps.push(Step { depth, ..produced.step });
        if let Some(upper) = mount.option("upperdir").filter(|_| mount.file_system == "overlay") {
            // On the host itself the file below can be seen; in a container it cannot.
            let upper = self.host.calls().locate(Path::new(upper)).ok();
            if let Some(upper) = upper.filter(|u| u.device != place.device && depth < DEEPEST) {
                self.file(walk, &upper, &Grid::all(Some(0)), depth + 1);
            }
        }
        if produced.ends {
            return None;
        }
        if below.is_empty() {
            let name = mount.source.display().to_string();
            walk.steps.push(
                Step::new("device", &name, Effect::Unknown, "the device below was not found")
                    .from("/sys/dev/block, /sys/fs/btrfs")
                    .missing(format!("the block device of {name} in /sys")),
            );
        }
        for block in &below {
            let top = (Some(mount.file_system.as_str()), block.name.as_str());
            self.device(walk, block, &produced.signals, depth + 1, top);
        }
        produced.uses
    }

    /// The devices that hold the data of a mount: its own, or all of a btrfs, or the realtime device
    /// of XFS.
    fn below(&self, mount: &Mount, place: &Located) -> Vec<Block> {
        let host = self.host;
        if let Some(realtime) = mount.option("rtdev").filter(|_| mount.file_system == "xfs") {
            return self.by_path(Path::new(realtime)).into_iter().collect();
        }
        let numbers = [mount.device, place.device];
        let by_number = numbers.iter().filter(|number| number.major != 0);
        let own = by_number.filter_map(|number| Block::numbered(host, *number)).next();
        let own = own.or_else(|| self.by_path(&mount.source));
        if mount.file_system != "btrfs" {
            return own.into_iter().collect();
        }
        for id in host.names("/sys/fs/btrfs") {
            let names = host.names(format!("/sys/fs/btrfs/{id}/devices"));
            if own.as_ref().is_some_and(|own| names.contains(&own.name)) {
                return names.iter().filter_map(|name| Block::named(host, name)).collect();
            }
        }
        own.into_iter().collect()
    }

    /// The block device at a path such as `/dev/mapper/pg`.
    pub(crate) fn by_path(&self, path: &Path) -> Option<Block> {
        let located = self.host.calls().locate(path).ok();
        let number = located.and_then(|located| located.block);
        let by_number = number.and_then(|number| Block::numbered(self.host, number));
        by_number.or_else(|| Block::named(self.host, path.strip_prefix("/dev").ok()?.to_str()?))
    }

    /// A block device, with what stands on it: the file system's type, and the name of the device
    /// that it was made on.
    fn device(
        &self,
        walk: &mut Walk,
        block: &Block,
        given: &Grid<Signal>,
        depth: usize,
        top: (Option<&str>, &str),
    ) {
        if depth > DEEPEST {
            let step = Step::new("device", &block.name, Effect::Unknown, "the stack is too deep");
            walk.steps.push(Step { depth, ..step.missing("a stack of fewer layers") });
            return;
        }
        if let Some(disk) = &block.disk {
            let why = "hints pass; write streams exist on whole devices only";
            let step = Step::new("partition", &block.name, Effect::Keeps, why)
                .from(block.shown("partition"))
                .source("include/linux/blkdev.h bdev_max_write_streams");
            walk.steps.push(Step { depth, ..step });
            if let Some(disk) = Block::named(self.host, disk) {
                self.device(walk, &disk, given, depth + 1, top);
            }
            return;
        }
        if let Kind::Loop { file, direct } = &block.kind {
            self.loop_device(walk, block, (file.as_deref(), *direct), depth);
            return;
        }
        if let Some(step) = layers::step(self.host, block) {
            let below = match step.effect {
                Effect::Drops => Grid::all(Signal::NOTHING),
                Effect::Unknown => given.map(|signal| match signal.hint {
                    Some(0) => Signal::NOTHING,
                    _ => Signal { hint: None, stream: Some(0) },
                }),
                // A stream ends here: the limit is not stacked, so there is none.
                _ => given.map(|signal| Signal { stream: Some(0), ..signal }),
            };
            walk.steps.push(Step { depth, ..step });
            for slave in block.slaves.iter().filter_map(|name| Block::named(self.host, name)) {
                self.device(walk, &slave, &below, depth + 1, top);
            }
            return;
        }
        let above = Above {
            kernel: &self.kernel,
            file_system: top.0,
            whole: top.1 == block.name,
            ask: self.ask,
        };
        let reached = leaf::reach(self.host, block, given, above);
        walk.steps.push(Step { depth, ..reached.step });
        walk.leaves.push(reached.leaf);
        walk.root.extend(reached.root);
    }

    /// A loop device writes its file, and with the file's own hint.
    fn loop_device(
        &self,
        walk: &mut Walk,
        block: &Block,
        (file, direct): (Option<&Path>, bool),
        depth: usize,
    ) {
        let evidence = block.shown("loop/backing_file");
        if file.is_none() {
            let step = Step::new("loop", &block.name, Effect::Drops, "no file is attached to it");
            walk.steps.push(Step { depth, ..step.from(evidence) });
            return;
        }
        let own = file.map(|file| self.host.calls().hint(file));
        let own = own.and_then(Result::ok);
        let shown = match own {
            Some(hint) => format!("; all is written with that of its file, now {hint}"),
            None => "; all is written with that of its file".to_owned(),
        };
        let why = format!("the hint of what is inside is lost{shown}");
        let step = Step::new("loop", &block.name, Effect::Replaces, why)
            .from(evidence)
            .source("drivers/block/loop.c lo_rw_aio")
            .change("the file system on a device of its own instead of a loop device");
        walk.steps.push(Step { depth, ..step });
        let place = file.and_then(|file| self.host.calls().locate(file).ok());
        let Some(place) = place.filter(|_| depth < DEEPEST) else {
            let name = file.map_or_else(String::new, |file| file.display().to_string());
            let step = Step::new("file", name, Effect::Unknown, "the file below cannot be seen")
                .missing("the file below the loop device");
            walk.steps.push(Step { depth: depth + 1, ..step });
            return;
        };
        // The loop driver writes in one way whatever the program above does.
        let hint = own.map(|hint| hint as u8);
        let given = Grid::all(hint);
        let first = walk.leaves.len();
        self.file(walk, &place, &given, depth + 1);
        for leaf in &mut walk.leaves[first..] {
            let way = if direct { leaf.arrivals.direct } else { leaf.arrivals.buffered };
            leaf.arrivals = Grid { buffered: way, direct: way };
        }
    }
}
