//! The BPF object: what it is told before it is loaded, and what it counts.
//!
//! Invariant: its `.rodata` is `struct known` and its `.bss` is `struct counts` of `bpf/wire.h`, nothing else;
//! an object where they have another size is refused.

use std::os::fd::{AsFd, AsRawFd};

use libbpf_rs::{Link, Map, MapCore, MapFlags, Object, ObjectBuilder, ProgramMut};

use crate::error::Error;

static OBJECT: &[u8] = include_bytes!("bpf/record.bpf.o");

/// The functions that end a bio, in the order of `struct known`.
pub(crate) const FUNCTIONS: [&str; 14] = [
    "bio_chain_endio",
    "iomap_dio_bio_end_io",
    "ioend_writeback_end_bio",
    "xfs_end_bio",
    "xfs_buf_bio_end_io",
    "xlog_bio_end_io",
    "end_bio_bh_io_sync",
    "journal_end_buffer_io_sync",
    "ext4_end_buffer_io_sync",
    "btrfs_simple_end_io",
    "btrfs_orig_write_end_io",
    "btrfs_clone_write_end_io",
    "blkdev_bio_end_io",
    "blkdev_bio_end_io_async",
];

/// `struct counts`, without its last word.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) lost: u64,
    pub(crate) flushes: u64,
    pub(crate) zone_appends: u64,
    pub(crate) retries: u64,
}

/// Bytes of `struct counts`.
const COUNTS: usize = 40;

/// The loaded object.
pub(crate) struct Program(Object);

pub(crate) fn refused(what: &'static str) -> impl FnOnce(libbpf_rs::Error) -> Error {
    move |error| Error::Refused { what, reason: format!("{error:#}") }
}

fn other(what: &'static str) -> Error {
    Error::Refused { what, reason: "the object is not that of this version".to_owned() }
}

impl Program {
    /// Loads it with a ring of `ring_bytes`; `addresses` as [`FUNCTIONS`] has them, 0 for what is not
    /// known.
    pub(crate) fn load(
        ring_bytes: u32,
        addresses: [u64; FUNCTIONS.len()],
        what: &'static str,
    ) -> Result<Program, Error> {
        let opened = ObjectBuilder::default().name("record").and_then(|b| b.open_memory(OBJECT));
        let mut opened = opened.map_err(refused("the object"))?;
        let page_size = rustix::param::page_size() as u64;
        let known: Vec<u8> =
            addresses.iter().chain([&page_size]).flat_map(|word| word.to_ne_bytes()).collect();
        let mut told = false;
        for mut map in opened.maps_mut() {
            let name = map.name().to_string_lossy().into_owned();
            if name == "events" {
                map.set_max_entries(ring_bytes).map_err(refused("the ring's size"))?;
            } else if name.ends_with(".rodata") {
                let value = map.initial_value_mut().filter(|value| value.len() == known.len());
                value.ok_or_else(|| other("the constants"))?.copy_from_slice(&known);
                told = true;
            }
        }
        if !told {
            return Err(other("the constants"));
        }
        Ok(Program(opened.load().map_err(refused(what))?))
    }

    /// The map of this name; of a section by its ending.
    pub(crate) fn map(&self, name: &'static str) -> Result<Map<'_>, Error> {
        let is_it = |map: &Map<'_>| map.name().to_string_lossy().ends_with(name);
        self.0.maps().find(is_it).ok_or_else(|| other(name))
    }

    /// Attaches the program of this name; `what` it is, for an error.
    pub(crate) fn attach(&self, name: &'static str, what: &'static str) -> Result<Link, Error> {
        self.program(name)?.attach_trace().map_err(refused(what))
    }

    fn program(&self, name: &'static str) -> Result<ProgramMut<'_>, Error> {
        self.0.progs_mut().find(|program| program.name() == name).ok_or_else(|| other(name))
    }

    /// What it counted so far.
    pub(crate) fn counts(&self) -> Result<Counts, Error> {
        let value = self.map(".bss")?.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY);
        let value = value.map_err(refused("the counters"))?.unwrap_or_default();
        // the kernel copies an array's value word by word, so that no counter is torn
        let Ok(value): Result<[u8; COUNTS], _> = value.try_into() else {
            return Err(other("the counters"));
        };
        let (words, _) = value.as_chunks::<8>();
        let word = |at: usize| words.get(at).map_or(0, |word| u64::from_ne_bytes(*word));
        Ok(Counts { lost: word(0), flushes: word(1), zone_appends: word(2), retries: word(3) })
    }

    /// Calls of the program of this name that the kernel passed over because it was running on that
    /// processor.
    pub(crate) fn missed(&self, name: &'static str) -> Result<u64, Error> {
        let program = self.program(name)?;
        let path = format!("/proc/self/fdinfo/{}", program.as_fd().as_raw_fd());
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let count = text.lines().find_map(|line| line.strip_prefix("recursion_misses:"));
        Ok(count.and_then(|count| count.trim().parse().ok()).unwrap_or(0))
    }
}
