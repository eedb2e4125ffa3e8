//! The BPF program: loaded, attached, its ring emptied.
//!
//! Invariant: a kernel that cannot tell the hint is refused before anything is attached; a hint of
//! 0 in a trace is one that was 0.

use std::cell::RefCell;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

use libbpf_rs::btf::types::Struct;
use libbpf_rs::btf::{Btf, HasSize};
use libbpf_rs::{MapCore, MapFlags, RingBufferBuilder};

use crate::engine::{Loaded, Next, Setup, Sink, Tally, wait};
use crate::error::Error;
use crate::object::{FUNCTIONS, Program, refused};
use crate::privileges;
use crate::raw::Record;
use crate::symbols;

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
    let path = Path::new("/proc/kallsyms");
    let found = symbols::addresses(path, FUNCTIONS).map_err(Error::io("read", path))?;
    let addresses = found.is_some();
    let program = Program::load(setup.ring_bytes, found.unwrap_or_default(), ON_ISSUE)?;
    let devices = program.map("devices")?;
    for (index, leaf) in setup.target.leaves.iter().enumerate() {
        for disk in &leaf.disks {
            let mut value = [0; 16];
            value[..8].copy_from_slice(&disk.sequence.unwrap_or(0).to_ne_bytes());
            value[8..12].copy_from_slice(&(index as u32).to_ne_bytes());
            let added = devices.update(&key(&disk.name), &value, MapFlags::ANY);
            added.map_err(refused("the map of devices"))?;
        }
    }
    let on_requeue = program.attach("on_requeue", ON_REQUEUE)?;
    let on_issue = program.attach("on_issue", ON_ISSUE)?;
    if setup.drop_capabilities {
        // where it is refused there is less to drop
        let _ = privileges::drop_capabilities(false);
    }
    // the starter may have given up; then the channel of `stopped` says so too
    let _ = ready.send(Loaded { addresses });

    let taking = RefCell::new(Taking { sink, error: None, unreadable: 0 });
    let events = program.map("events")?;
    let mut builder = RingBufferBuilder::new();
    builder.add(&events, |record| taking.borrow_mut().take(record)).map_err(refused("the ring"))?;
    let ring = builder.build().map_err(refused("the ring"))?;
    let tally = || count(&program, taking.borrow().unreadable);
    let mut pause = Duration::ZERO;
    while wait(stopped, pause) == Next::Go {
        let taken = ring.consume_raw_n(BATCH);
        if let Some(error) = taking.borrow_mut().error.take() {
            return Err(error);
        }
        let so_far = tally()?;
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
    let mut end = tally()?;
    end.lost += program.missed("on_issue")?;
    Ok(end)
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

fn count(program: &Program, unreadable: u64) -> Result<Tally, Error> {
    let counts = program.counts()?;
    Ok(Tally {
        lost: counts.lost + counts.zone_appends + unreadable,
        zone_appends: counts.zone_appends,
        flushes: counts.flushes,
        retries: counts.retries,
    })
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
