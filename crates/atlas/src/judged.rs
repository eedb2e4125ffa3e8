//! The second step: a policy learned for a drive, and all of them judged.
//!
//! Invariant: what is on disk is what was judged, with the profile that it was judged on; another
//! profile of the same name is judged anew.

use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use shelflife_learn::{
    Aim, Applier, LearnProgress, LearnRequest, Learned, Size, Stage, learn, policy_name,
};
use shelflife_lifetime::Lifetime;
use shelflife_policy::Policy;
use shelflife_postgres::Cancel;
use shelflife_simulate::{Hinting, Target};
use shelflife_ssd::{Drive, Isolation, Transport, Victim};
use shelflife_trace::{Batch, Op, Trace};

use crate::Error;
use crate::folder::{FORMAT, VERSION, plain, read_json, write, write_json};
use crate::request::Request;

/// Policies whose hints are described; the learned one is the third.
const SHIPPED: [&str; 2] = ["temp-vs-rest", "wal-first"];
/// What the judgement calls the learned policy.
pub(crate) const LEARNED: &str = "learned";
/// What it calls the learned hints dealt at random.
pub(crate) const DEALT: &str = "learned, dealt at random";
/// What it calls no hints.
pub(crate) const OFF: &str = "off";

/// A scenario on a drive, judged. All write amplification is simulated.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Judged {
    /// `shelflife-atlas`
    pub format: String,
    /// Of the format.
    pub version: u32,
    /// Always `simulated`.
    pub source: String,
    /// The drive, in its own size; it is scaled to the recorded file system.
    pub drive: Drive,
    /// How hints reach it.
    pub transport: Transport,
    /// The rules it was judged under.
    pub firmwares: Vec<Rules>,
    /// What was compared.
    pub arms: Vec<ArmWaf>,
    /// Which bytes go where under each policy.
    pub flows: Vec<Flow>,
    /// Share (0 to 1) that the learned grouping saves in the worst case.
    pub saving: f64,
    /// Up to which it is none.
    pub noise: f64,
    /// The learned policy; `None` if nothing beats no hints by more than the noise.
    pub policy: Option<String>,
    /// Share of what the clairvoyant by file saves that the learned grouping saves, by firmware; `None`
    /// where that saves less than a twentieth.
    pub share_of_clairvoyant: Vec<Option<f64>>,
    /// Page writes that were learned from.
    pub trained_pages: u64,
    /// Page writes that were judged on.
    pub judged_pages: u64,
    /// What must be said beside the figures.
    pub notes: Vec<String>,
}

/// What firmware decides.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct Rules {
    /// Which unit is collected next.
    pub victim: Victim,
    /// Where relocated data go.
    pub isolation: Isolation,
    /// Whether these are the profile's.
    pub own: bool,
}

/// One thing that was compared.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ArmWaf {
    /// `off`, a policy, or what is done instead.
    pub name: String,
    /// Write amplification by firmware; `None` where it cannot be.
    pub wafs: Vec<Option<f64>>,
    /// By firmware: half of the 95 % interval of what it saves against no hints; `None` where it is not known. The
    /// first judgements did not tell it.
    #[serde(default)]
    pub errors: Vec<Option<f64>>,
    /// Units that were collected by the drive's own rules, by their share of valid pages, in twentieths from 0. The
    /// first judgements did not tell it.
    #[serde(default)]
    pub victims: Option<[u64; 20]>,
}

/// Which bytes of a recording go to which stream under a policy.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Flow {
    /// The policy.
    pub policy: String,
    /// The streams that get any, most bytes first.
    pub streams: Vec<StreamFlow>,
}

/// What goes to a stream.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct StreamFlow {
    /// The stream, from 0.
    pub stream: u32,
    /// The lifetimes by which it is reached.
    pub lifetimes: Vec<String>,
    /// Bytes written.
    pub bytes: u64,
    /// Bytes by class, most first.
    pub classes: Vec<(String, u64)>,
}

impl Judged {
    /// Write amplification of an arm by firmware.
    pub fn wafs(&self, arm: &str) -> Option<&[Option<f64>]> {
        self.arm(arm).map(|found| found.wafs.as_slice())
    }

    /// What was found of an arm.
    pub fn arm(&self, arm: &str) -> Option<&ArmWaf> {
        self.arms.iter().find(|found| found.name == arm)
    }

    /// The rules that the profile states.
    pub fn own(&self) -> Option<usize> {
        self.firmwares.iter().position(|rules| rules.own)
    }
}

/// `ufs-5-groups.scsi`
fn stem(drive: &Drive, transport: Transport) -> String {
    format!("{}.{}", plain(&drive.name), transport.name())
}

/// What is there of a drive in a scenario's folder.
pub(crate) fn existing(
    folder: &Path,
    drive: &Drive,
    transport: Transport,
) -> Result<Option<Judged>, Error> {
    let path = folder.join(stem(drive, transport) + ".json");
    Ok(read_json::<Judged>(&path)?.filter(|judged| judged.drive == *drive))
}

/// Learns and judges; `step` is told the share that is done.
pub(crate) fn judge(
    folder: &Path,
    trace: &Path,
    drive: &Drive,
    request: &Request,
    step: &mut dyn FnMut(f64),
) -> Result<Judged, Error> {
    let (transport, trace) = (request.transport(drive), Trace::open(trace)?);
    let stem = stem(drive, transport);
    let wanted = LearnRequest {
        targets: vec![Target::Drive(Box::new(drive.clone()))],
        transport,
        applier: Applier::Hook,
        relations: false,
        // the recorded file system is the drive, and as full
        size: Size::Recorded,
        aim: Aim::Mean,
        name: policy_name(&stem),
        seed: 1,
        memory_bytes: request.memory_bytes,
    };
    let by_file = bytes_by_file(&trace, &request.cancel)?;
    let mut flows = Vec::new();
    let mut flow = |name: &str, text: &str| -> Result<(), Error> {
        let policy = Hinting::Policy(Box::new(Policy::parse(text, name)?));
        // one that matches nothing names nothing
        if let Ok(Some(hints)) = policy.by_file(trace.files()) {
            flows.push(flow_of(name, &trace, &by_file, &hints, transport, drive.streams));
        }
        Ok(())
    };
    for name in SHIPPED {
        flow(name, shelflife_policy::find(name).unwrap_or_default())?;
    }
    let learned = learn_or_stop(Trace::open(trace.folder())?, wanted, &request.cancel, step)?;
    if let Some(policy) = &learned.policy {
        flow(LEARNED, policy)?;
        write(&folder.join(stem.clone() + ".toml"), policy)?;
    }
    let judged = from(&learned, drive, flows);
    write_json(&folder.join(stem + ".json"), &judged)
}

fn from(learned: &Learned, drive: &Drive, flows: Vec<Flow>) -> Judged {
    let rules = learned.firmwares.iter().map(|firmware| Rules {
        victim: firmware.victim,
        isolation: firmware.isolation,
        own: firmware.own,
    });
    let arms = learned.arms.iter().map(|arm| ArmWaf {
        name: arm.name.clone(),
        wafs: arm.wafs.clone(),
        errors: arm.errors.clone(),
        // one drive has one pair of rules of its own
        victims: arm.victims.iter().find_map(|victims| *victims),
    });
    Judged {
        format: FORMAT.to_owned(),
        version: VERSION,
        source: learned.source.to_owned(),
        drive: drive.clone(),
        transport: learned.transport,
        firmwares: rules.collect(),
        arms: arms.collect(),
        flows,
        saving: learned.saving,
        noise: learned.noise,
        policy: learned.policy.clone(),
        share_of_clairvoyant: learned.share_of_clairvoyant(),
        trained_pages: learned.trained_pages,
        judged_pages: learned.judged_pages,
        notes: learned.notes.clone(),
    }
}

/// Bytes written by row of the file table.
fn bytes_by_file(trace: &Trace, cancel: &Cancel) -> Result<Vec<u64>, Error> {
    let mut bytes = vec![0_u64; trace.files().len()];
    let (mut events, mut batch) = (trace.events().without_processes(), Batch::default());
    while events.read(&mut batch)? {
        for event in batch.iter().filter(|event| event.op == Op::Write) {
            if let Some(sum) = bytes.get_mut(event.file.0 as usize) {
                *sum = sum.saturating_add(event.length);
            }
        }
        if cancel.is_raised() {
            return Err(Error::Interrupted);
        }
    }
    Ok(bytes)
}

fn flow_of(
    policy: &str,
    trace: &Trace,
    bytes: &[u64],
    hints: &[Lifetime],
    transport: Transport,
    streams: u32,
) -> Flow {
    let mut found: Vec<StreamFlow> = Vec::new();
    for (((_, file), bytes), lifetime) in trace.files().iter().zip(bytes).zip(hints) {
        if *bytes == 0 {
            continue;
        }
        let stream = transport.stream(*lifetime, streams);
        let at = found.iter().position(|flow| flow.stream == stream).unwrap_or_else(|| {
            found.push(StreamFlow { stream, lifetimes: Vec::new(), bytes: 0, classes: Vec::new() });
            found.len() - 1
        });
        let flow = &mut found[at];
        flow.bytes += bytes;
        if !flow.lifetimes.iter().any(|name| name == lifetime.name()) {
            flow.lifetimes.push(lifetime.name().to_owned());
        }
        match flow.classes.iter_mut().find(|(class, _)| class == file.class.name()) {
            Some((_, sum)) => *sum += bytes,
            None => flow.classes.push((file.class.name().to_owned(), *bytes)),
        }
    }
    found.sort_by_key(|flow| (std::cmp::Reverse(flow.bytes), flow.stream));
    for flow in &mut found {
        flow.classes.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    }
    Flow { policy: policy.to_owned(), streams: found }
}

/// Learns in a thread of its own: what cannot be broken off is left behind when the caller wants to
/// stop, and ends by itself or with the program. It writes nothing.
fn learn_or_stop(
    trace: Trace,
    request: LearnRequest,
    cancel: &Cancel,
    step: &mut dyn FnMut(f64),
) -> Result<Learned, Error> {
    enum Told {
        At(LearnProgress),
        Done(Box<Result<Learned, shelflife_learn::Error>>),
    }
    let (tell, told) = channel();
    std::thread::spawn(move || {
        let learned = learn(&trace, &request, &|now| {
            // nobody listens any more: the caller has stopped
            let _ = tell.send(Told::At(now));
        });
        let _ = tell.send(Told::Done(Box::new(learned)));
    });
    loop {
        match told.recv_timeout(Duration::from_millis(100)) {
            Ok(Told::Done(learned)) => return Ok((*learned)?),
            Ok(Told::At(now)) => step(share(now)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(Error::Gone),
        }
        if cancel.is_raised() {
            return Err(Error::Interrupted);
        }
    }
}

/// How much of it is done; the stages take about so long.
fn share(now: LearnProgress) -> f64 {
    let (from, to) = match now.stage {
        Stage::Reading => (0.0, 0.05),
        Stage::Searching => (0.05, 0.5),
        Stage::Comparing => (0.5, 0.6),
        Stage::Judging => (0.6, 1.0),
    };
    from + (to - from) * (now.done as f64 / now.of.max(1) as f64).min(1.0)
}
