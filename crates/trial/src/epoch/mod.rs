//! A trial whose rounds are epochs on a whole device: write amplification by the drive's own counters.
//!
//! Short rounds say nothing of a drive: what one arm wrote is collected while the next one runs. So each
//! arm of a block begins on a trimmed device, with the same image of the cluster and the same cold data, and
//! writes the capacity three times over before it is compared. `docs/trial.md` describes it.
//!
//! Invariant: the device is asked for before anything is written to it; afterwards, whatever happens but
//! `kill -9`, it is neither mounted nor does it carry anything. An epoch is in the results whole or not at
//! all.

mod count;
mod device;
mod load;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use shelflife_postgres::Programs;
use shelflife_postgres::programs::Search;
use shelflife_report::bytes;

use crate::arm::Arm;
use crate::error::{Error, Result};
use crate::filesystem::{self, Mounted, Wanted};
use crate::machine::{Machine, free_space};
use crate::observer::{Observer, Progress};
use crate::outcome::{self, Outcome, rounds_of};
use crate::record::{DeviceFacts, Event, Header, Record, Results, What, Writer};
use crate::round::Failures;
use crate::server::{Own, Server, own};
use crate::spec::Spec;
use crate::stats::{Plan, Slot};
use crate::trial::{self, Dir, Options, Place, SCRIPTS, Trial};

pub(crate) use count::CAPACITIES;
use device::Device;
pub(crate) use device::device_size;
use load::{Epochs, label};

/// Runs the trial of `spec`, whose file system is to be made on `wanted.device`.
pub(crate) fn run(spec: &Spec, options: &Options, observer: &mut dyn Observer) -> Result<Outcome> {
    let wanted = wanted(spec, options)?;
    let programs = Programs::find(&Search::new(options.bindir.clone()))?;
    let device = find(spec, wanted)?;
    let dir = Dir::make(&options.dir)?;
    let (_, estimate) = trial::look(spec, &dir, options, &mut *observer)?;
    let (needed, free) = (estimate.room_bytes, free_space(&dir.path)?);
    if free < needed {
        return Err(Error::LowSpace { path: dir.path.clone(), free, needed });
    }
    if wanted.size < needed {
        return Err(Error::Spec(format!(
            "{} has {}, and the cluster needs {} of room: take a larger one, or a smaller --scale",
            device.path.display(),
            bytes(wanted.size),
            bytes(needed)
        )));
    }
    if !observer.confirm_device(&estimate, &device.facts) {
        options.cancel.check()?;
        return Err(Error::Declined { bytes: estimate.total_bytes() });
    }
    // Before a cluster is aged for hours: whether hints will reach the drive at all.
    let machine = {
        let mounted = Mounted::on_device(wanted, &device.path, &label(spec), &dir.path)?;
        device.check_delivered(mounted.folder())?;
        Machine::read(Path::new("/proc"), mounted.folder())?
    };
    let mut making = making(spec, options, &dir, programs.clone(), &mut *observer)?;
    let facts = making.server.facts(&options.cancel)?;
    let mut header = trial::header(spec, machine, facts, estimate);
    header.device = Some(device.facts.clone());
    making.observer.begins(&header);
    let mut writer = Writer::create(&dir.results(), header)?;
    let done = making.into_image(&mut writer).and_then(|settled| {
        let epochs = epochs(spec, wanted, &device, &dir, options, programs)?;
        all(&epochs, &BTreeSet::new(), settled, &mut writer, observer)
    });
    finish(&dir, writer, options, done)
}

/// Goes on with the next epoch that is missing.
pub(crate) fn resume(
    dir: &Dir,
    mut writer: Writer,
    results: &Results,
    options: &Options,
    observer: &mut dyn Observer,
) -> Result<Outcome> {
    let spec = &results.header.spec;
    let wanted = wanted(spec, options)?;
    let done: BTreeSet<u32> = rounds_of(results).kept.into_keys().collect();
    let Some(next) = missing(spec, &done)?.first().copied() else {
        return Err(Error::Complete { path: dir.results() });
    };
    let programs = Programs::find(&Search::new(options.bindir.clone()))?;
    trial::same_version(&results.header.server, programs.version().major)?;
    // What one that was killed left.
    own::end_leftover(&dir.path, &options.cancel)?;
    filesystem::remove(&dir.path)?;
    let device = find(spec, wanted)?;
    if let Some(was) = results.header.device.as_ref().filter(|was| **was != device.facts) {
        let named = |facts: &DeviceFacts| {
            format!("{} ({}, {} {})", facts.name, bytes(facts.size), facts.model, facts.serial)
        };
        return Err(Error::Changed { was: named(was), now: named(&device.facts) });
    }
    let aged = results.records.iter().rev().find_map(|record| match record {
        Record::Event(Event { what: What::Aged { settled, .. }, .. }) => Some(*settled),
        _ => None,
    });
    let image = aged.filter(|_| own::data(&dir.path).is_dir());
    let rebuilt = image.is_none();
    writer.event(What::Resumed { block: next.block, dropped: 0, rebuilt })?;
    observer.begins(&results.header);
    for text in different(&results.header, &programs, dir)? {
        observer.warn(&text);
        writer.event(What::Warning { text })?;
    }
    let settled = match image {
        Some(settled) => Ok(settled),
        None => {
            own::remove_leftover(&dir.path, &options.cancel)?;
            let making = making(spec, options, dir, programs.clone(), &mut *observer)?;
            making.into_image(&mut writer)
        }
    };
    let done = settled.and_then(|settled| {
        let epochs = epochs(spec, wanted, &device, dir, options, programs)?;
        all(&epochs, &done, settled, &mut writer, observer)
    });
    finish(dir, writer, options, done)
}

/// What is no longer as it was, beside the device.
fn different(was: &Header, programs: &Programs, dir: &Dir) -> Result<Vec<String>> {
    let now = Machine::read(Path::new("/proc"), &dir.path)?;
    let now = Machine { storage: was.machine.storage.clone(), ..now };
    let machine =
        (now != was.machine).then(|| "the machine or its kernel is not what it was".into());
    let version = programs.version().to_string();
    let server = (version != was.server.version)
        .then(|| format!("the server was {}, now it is {version}", was.server.version));
    Ok(machine.into_iter().chain(server).collect())
}

/// What is to be made on the device, if these options fit epochs.
fn wanted<'s>(spec: &'s Spec, options: &Options) -> Result<&'s Wanted> {
    Wanted::check_permitted()?;
    let wrong = |text: &str| Err(Error::Spec(text.to_owned()));
    if matches!(options.place, Place::Running { .. }) {
        return wrong("epochs need a cluster of the trial's own: no --dsn with --device");
    }
    if options.record.is_some() {
        return wrong("epochs are not recorded: no --record with --device");
    }
    match &spec.filesystem {
        Some(wanted) => Ok(wanted),
        None => wrong("epochs need a file system: --fs with --device"),
    }
}

fn find(spec: &Spec, wanted: &Wanted) -> Result<Device> {
    let path = wanted.device.as_deref().unwrap_or(Path::new(""));
    let device = Device::find(path, &label(spec))?;
    if device.facts.size != wanted.size {
        let named = |size| format!("{} of {}", path.display(), bytes(size));
        return Err(Error::Changed { was: named(wanted.size), now: named(device.facts.size) });
    }
    Ok(device)
}

/// The making of the image: a cluster in the trial's folder.
fn making<'a>(
    spec: &'a Spec,
    options: &'a Options,
    dir: &Dir,
    programs: Programs,
    observer: &'a mut dyn Observer,
) -> Result<Trial<'a>> {
    let build = trial::build(options, &dir.path, programs)?;
    let server = Server::Own(Own::create(&build, spec)?.into());
    let making = Trial::new(spec, options, dir, server, observer)?;
    making.server.check_hook()?;
    Ok(making)
}

fn epochs<'a>(
    spec: &'a Spec,
    wanted: &'a Wanted,
    device: &'a Device,
    dir: &'a Dir,
    options: &'a Options,
    programs: Programs,
) -> Result<Epochs<'a>> {
    let scripts = dir.path.join(SCRIPTS);
    spec.write_scripts(&scripts)?;
    Ok(Epochs {
        spec,
        wanted,
        device,
        dir: &dir.path,
        build: trial::build(options, &dir.path, programs)?,
        tables: spec.arms.iter().map(Arm::table).collect::<Result<_>>()?,
        scripts: spec.scripts_in(&scripts),
        cancel: &options.cancel,
    })
}

/// The epochs that are not `done` yet, in the order of the plan.
fn missing(spec: &Spec, done: &BTreeSet<u32>) -> Result<Vec<Slot>> {
    let plan = Plan::new(spec.arms.len(), spec.blocks, spec.seed)?;
    Ok(plan.slots().filter(|slot| !done.contains(&slot.position)).collect())
}

/// Runs all epochs that are missing.
fn all(
    epochs: &Epochs<'_>,
    done: &BTreeSet<u32>,
    settled: bool,
    writer: &mut Writer,
    observer: &mut dyn Observer,
) -> Result<()> {
    let spec = epochs.spec;
    let missing = missing(spec, done)?;
    let (mut taken, mut failures) = (Duration::ZERO, Failures::default());
    for (number, slot) in (0u32..).zip(&missing) {
        let label = spec.arms.get(slot.arm).map_or("", |arm| &arm.label);
        let begun = Instant::now();
        let left = taken.checked_div(number).map(|each| each * (missing.len() as u32 - number));
        let ended = epochs.run(*slot, &mut |phase, share| {
            observer.progress(&Progress {
                phase,
                share,
                round: Some((slot.position as usize + 1, label)),
                rounds: spec.rounds(),
                left: left.map(|left| left.saturating_sub(begun.elapsed())),
            });
        })?;
        taken += begun.elapsed();
        let round = ended.round(*slot, label, begun.elapsed(), !settled);
        observer.round(&round);
        let failed = round.failed.clone();
        writer.write(&Record::Round(Box::new(round)))?;
        failures.note(failed)?;
    }
    writer.event(What::Finished)
}

/// Writes down how it ended. The image stays if it is wanted, or a later [`resume`] needs it.
fn finish(dir: &Dir, mut writer: Writer, options: &Options, done: Result<()>) -> Result<Outcome> {
    if let Err(error) = &done {
        // On a full disk this fails too; the error itself is what matters.
        let _ = writer.event(What::Ended { why: error.to_string() });
    }
    drop(writer);
    let _ = fs::remove_dir_all(dir.path.join(SCRIPTS));
    let resumable = done.is_err() && dir.has_round();
    let removed = match options.keep || resumable {
        true => Ok(()),
        false => own::remove_leftover(&dir.path, &options.cancel),
    };
    done.and(removed)?;
    dir.keep();
    outcome::read(&options.dir)
}
