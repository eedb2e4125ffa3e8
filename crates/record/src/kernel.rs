//! The BPF program: loaded, attached, its ring emptied.
//!
//! Invariant: a kernel that cannot tell the hint is refused before anything is attached; a hint of
//! 0 in a trace is one that was 0.

use std::cell::RefCell;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

use libbpf_rs::btf::types::Struct;
use libbpf_rs::btf::{Btf, HasSize};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, RingBufferBuilder};

use crate::engine::{Loaded, Next, Setup, Sink, Tally, wait};
use crate::error::Error;
use crate::privileges;
use crate::raw::Record;
use crate::symbols;

#[allow(
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    unused_imports,
    reason = "generated: src/bpf/update.sh"
)]
mod skeleton {
    include!("bpf/record.skel.rs");
}

use skeleton::{OpenRecordSkel, RecordSkel, RecordSkelBuilder};

/// As in the program.
pub(crate) const MAX_DEVICES: usize = 256;
const DEVICE_NAME: usize = 32;
/// Records taken between two looks at whether to stop.
const BATCH: usize = 1 << 16;

const ON_ISSUE: &str = "the program on tp_btf/block_rq_issue (BPF_PROG_TYPE_TRACING)";
const ON_REQUEUE: &str = "the program on tp_btf/block_rq_requeue (BPF_PROG_TYPE_TRACING)";

/// Takes events until stopped; the whole life of a recording in the kernel.
pub(crate) fn run(
    setup: &Setup,
    sink: &mut dyn Sink,
    ready: &Sender<Loaded>,
    stopped: &Receiver<()>,
) -> Result<Tally, Error> {
    if setup.target.leaves.iter().map(|leaf| leaf.disks.len()).sum::<usize>() > MAX_DEVICES {
        return Err(Error::TooManyDevices {
            path: setup.target.asked.clone(),
            found: setup.target.leaves.len(),
            limit: MAX_DEVICES,
        });
    }
    privileges::check()?;
    check_types()?;
    // what libbpf would print comes back as an error
    libbpf_rs::set_print(None);
    let mut storage = MaybeUninit::uninit();
    let mut open =
        RecordSkelBuilder::default().open(&mut storage).map_err(refused("the object"))?;
    open.maps.events.set_max_entries(setup.ring_bytes).map_err(refused("the ring's size"))?;
    if let Some(data) = open.maps.rodata_data.as_deref_mut() {
        data.page_size = rustix::param::page_size() as u32;
    }
    let addresses = set_addresses(&mut open)?;
    let skel = open.load().map_err(refused(ON_ISSUE))?;
    for (index, leaf) in setup.target.leaves.iter().enumerate() {
        for disk in &leaf.disks {
            let mut value = [0; 16];
            value[..8].copy_from_slice(&disk.sequence.unwrap_or(0).to_ne_bytes());
            value[8..12].copy_from_slice(&(index as u32).to_ne_bytes());
            let added = skel.maps.devices.update(&key(&disk.name), &value, MapFlags::ANY);
            added.map_err(refused("the map of devices"))?;
        }
    }
    let on_requeue = skel.progs.on_requeue.attach_trace().map_err(refused(ON_REQUEUE))?;
    let on_issue = skel.progs.on_issue.attach_trace().map_err(refused(ON_ISSUE))?;
    if setup.drop_capabilities {
        // where it is refused there is less to drop
        let _ = privileges::drop_capabilities(false);
    }
    // the starter may have given up; then the channel of `stopped` says so too
    let _ = ready.send(Loaded { addresses });

    let taking = RefCell::new(Taking { sink, error: None, unreadable: 0 });
    let mut builder = RingBufferBuilder::new();
    builder
        .add(&skel.maps.events, |record| taking.borrow_mut().take(record))
        .map_err(refused("the ring"))?;
    let ring = builder.build().map_err(refused("the ring"))?;
    let tally = || count(&skel, taking.borrow().unreadable);
    let mut pause = Duration::ZERO;
    while wait(stopped, pause) == Next::Go {
        let taken = ring.consume_raw_n(BATCH);
        if let Some(error) = taking.borrow_mut().error.take() {
            return Err(error);
        }
        let so_far = tally();
        if taking.borrow_mut().sink.tick(&so_far)? == Next::Stop {
            break;
        }
        let full = usize::try_from(taken).is_ok_and(|taken| taken >= BATCH);
        pause = if full { Duration::ZERO } else { setup.drain_every };
    }
    drop((on_issue, on_requeue));
    // a call of the program that had begun ends within this
    std::thread::sleep(Duration::from_millis(20));
    while ring.consume_raw_n(BATCH) > 0 {}
    if let Some(error) = taking.borrow_mut().error.take() {
        return Err(error);
    }
    let mut end = tally();
    end.lost += missed(skel.progs.on_issue.as_fd());
    Ok(end)
}

fn refused(what: &'static str) -> impl FnOnce(libbpf_rs::Error) -> Error {
    move |error| Error::Refused { what, reason: format!("{error:#}") }
}

fn key(name: &str) -> [u8; DEVICE_NAME] {
    let mut key = [0; DEVICE_NAME];
    let bytes = name.as_bytes();
    let length = bytes.len().min(DEVICE_NAME - 1);
    key[..length].copy_from_slice(&bytes[..length]);
    key
}

/// Whether the kernel describes its types, and has a hint in its bios.
fn check_types() -> Result<(), Error> {
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        return Err(Error::NoBtf);
    }
    let btf = Btf::from_vmlinux().map_err(|_| Error::NoBtf)?;
    let bio: Option<Struct<'_>> = btf.type_by_name("bio");
    let bio = bio.filter(|bio| bio.size() > 0).ok_or(Error::NoBtf)?;
    if bio.iter().any(|member| member.name.is_some_and(|name| name == "bi_write_hint")) {
        return Ok(());
    }
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    Err(Error::NoHintField { release })
}

fn set_addresses(open: &mut OpenRecordSkel<'_>) -> Result<bool, Error> {
    let path = Path::new("/proc/kallsyms");
    let found = symbols::addresses(
        path,
        [
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
        ],
    );
    let Some(found) = found.map_err(Error::io("read", path))? else { return Ok(false) };
    let Some(data) = open.maps.rodata_data.as_deref_mut() else { return Ok(false) };
    [
        data.fn_bio_chain_endio,
        data.fn_iomap_dio_bio_end_io,
        data.fn_ioend_writeback_end_bio,
        data.fn_xfs_end_bio,
        data.fn_xfs_buf_bio_end_io,
        data.fn_xlog_bio_end_io,
        data.fn_end_bio_bh_io_sync,
        data.fn_journal_end_buffer_io_sync,
        data.fn_ext4_end_buffer_io_sync,
        data.fn_btrfs_simple_end_io,
        data.fn_btrfs_orig_write_end_io,
        data.fn_btrfs_clone_write_end_io,
        data.fn_blkdev_bio_end_io,
        data.fn_blkdev_bio_end_io_async,
    ] = found;
    Ok(true)
}

fn count(skel: &RecordSkel<'_>, unreadable: u64) -> Tally {
    let Some(bss) = skel.maps.bss_data.as_deref() else { return Tally::default() };
    Tally {
        lost: volatile(&bss.lost) + volatile(&bss.zone_appends) + unreadable,
        zone_appends: volatile(&bss.zone_appends),
        flushes: volatile(&bss.flushes),
        retries: volatile(&bss.retries),
    }
}

/// The kernel adds to it at any time.
fn volatile(counter: &u64) -> u64 {
    // SAFETY: a reference is valid to read from. The BPF program changes the value by atomic
    // instructions on this aligned word; a volatile read of one word is whole on 64-bit machines,
    // the only ones BPF's CO-RE programs are loaded on here.
    unsafe { std::ptr::from_ref(counter).read_volatile() }
}

/// Calls that the kernel passed over because the program was running on that processor.
fn missed(program: BorrowedFd<'_>) -> u64 {
    let path = format!("/proc/self/fdinfo/{}", program.as_raw_fd());
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let count = text.lines().find_map(|line| line.strip_prefix("recursion_misses:"));
    count.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

struct Taking<'s> {
    sink: &'s mut dyn Sink,
    error: Option<Error>,
    unreadable: u64,
}

impl Taking<'_> {
    fn take(&mut self, record: &[u8]) -> i32 {
        let done = match Record::parse(record) {
            Some(Record::Issue(issue)) => self.sink.issue(&issue),
            Some(Record::Name(name)) => self.sink.name(name),
            None => {
                self.unreadable += 1;
                Ok(())
            }
        };
        match done {
            Ok(()) => 0,
            Err(error) => {
                self.error = Some(error);
                -1
            }
        }
    }
}
