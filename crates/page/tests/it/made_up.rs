//! Results that are made up, with hostile names, and a trace of one round.

use std::path::Path;
use std::time::Duration;

use shelflife_layout::Class;
use shelflife_trace::{Device, Event, FileEntry, Meta, TraceWriter, Volume};
use shelflife_trial::machine::{Machine, Mount, Strain};
use shelflife_trial::record::{
    self, FORMAT, Header, Hints, Measured, Record, Recorded, Round, ServerFacts, SettingAt, What,
};
use shelflife_trial::stats::Plan;
use shelflife_trial::{Bounds, Estimate, Results, Simulated, SimulatedArm, Spec, Waf, Wishes};

/// A name, a setting, a message may be this.
pub const HOSTILE: &str = "\"'><script>alert(1)</script>";

fn header(blocks: usize) -> Header {
    let spec = Spec::new(&Wishes {
        policies: vec!["off".into(), "wal-first".into()],
        rounds: Some(blocks),
        seed: Some(7),
        ..Wishes::default()
    })
    .unwrap();
    let plan = Plan::new(2, blocks, 7).unwrap();
    let storage = Mount {
        device: HOSTILE.into(),
        point: "/".into(),
        file_system: "ext4".into(),
        options: "rw".into(),
    };
    Header {
        format: FORMAT.into(),
        version: 1,
        shelflife: "0.1.0".into(),
        started: 1_700_000_000,
        estimate: Estimate::of(&spec, Duration::from_millis(1), 2),
        spec,
        orders: plan.orders().to_vec(),
        machine: Machine {
            kernel: "6.18".into(),
            processor: None,
            cores: 2,
            memory: None,
            storage,
        },
        server: ServerFacts {
            own: true,
            version: "15.18".into(),
            major: 15,
            database: "bench".into(),
            data_folder: "/x/data".into(),
            settings: vec![SettingAt {
                name: "cluster_name".into(),
                value: HOSTILE.into(),
                source: "default".into(),
            }],
        },
        recorded: true,
        device: None,
    }
}

fn round(header: &Header, position: u32, trace: &Path) -> Round {
    let (block, at) = (position as usize / 2, position as usize % 2);
    let arm = header.orders[block][at];
    let noise = [0.3, -0.2, 0.1, -0.4, 0.25, -0.05, 0.15, -0.15][block % 8];
    let volume = |class: &str, bytes| Volume {
        class: class.into(),
        hint: if arm == 1 { "short" } else { "not-set" }.into(),
        writes: 10,
        bytes,
    };
    let mut measured = Measured {
        value: 1000.0 + arm as f64 * (20.0 + 10.0 * noise) - f64::from(position),
        pgbench: Default::default(),
        latency: None,
        script_latency: Vec::new(),
        load: Default::default(),
        whole: Default::default(),
        checkpoints: Some(3),
        whole_checkpoints: 2,
        before: Default::default(),
        after: Default::default(),
        hints: Hints::default(),
        opened: Vec::new(),
        machine: Strain::default(),
        recorded: Some(Recorded {
            trace: trace.to_owned(),
            events: 1,
            written_bytes: 1,
            discards: 0,
            lost: 0,
            attributed: Some(1.0),
            uncommitted_files: 0,
            blocks: vec![volume("wal", 600_000), volume(HOSTILE, 400_000), volume("vm", 1)],
        }),
        epoch: None,
    };
    measured.pgbench.transactions = 100;
    measured.pgbench.tps = measured.value;
    Round {
        at: 1_700_000_100,
        position,
        block,
        arm,
        label: header.spec.arms[arm].label.clone(),
        took_s: 10.0,
        transient: false,
        measured: Some(Box::new(measured)),
        failed: None,
    }
}

/// Results of the first `rounds` rounds of eight blocks.
pub fn results(trace: &Path, rounds: u32) -> Results {
    let header = header(8);
    let warning = record::Event { at: 1_700_000_000, what: What::Warning { text: HOSTILE.into() } };
    let mut records = vec![Record::Header(Box::new(header.clone())), Record::Event(warning)];
    records.extend((0..rounds).map(|at| Record::Round(Box::new(round(&header, at, trace)))));
    let line = |record: &Record| serde_json::to_string(record).unwrap() + "\n";
    let text: String = records.iter().map(line).collect();
    Results::from_reader(text.as_bytes(), Path::new("/x/results.jsonl")).unwrap()
}

/// What a drive makes of them.
pub fn simulated() -> Simulated {
    let bounds = |mean| Bounds { mean, least: mean - 0.1, most: mean + 0.1 };
    let arm = |label: &str, waf: f64| SimulatedArm {
        label: label.into(),
        predicted: vec![Waf { waf: bounds(waf), saved: bounds(0.1) }],
        recorded: vec![Waf { waf: bounds(waf), saved: bounds(0.1) }],
        victims: vec![std::array::from_fn(|bin| 100 * bin as u64 / (1 + waf as u64))],
    };
    Simulated {
        source: "simulated",
        drive: "ufs-5-groups".into(),
        full_percent: vec![90.0],
        blocks: 4,
        arms: vec![arm("off", 2.8), arm("wal-first", 1.4)],
        notes: Vec::new(),
    }
}

/// A log that goes round beside a heap that is written at random.
pub fn trace(folder: &Path, events: u64) {
    let meta = Meta::new("record", vec![Device::new("empty", None), Device::new(HOSTILE, None)]);
    let mut writer = TraceWriter::create(folder, meta).unwrap();
    let files = writer.files_mut();
    let wal = files.push(FileEntry::new(Class::Wal.into())).unwrap();
    let mut entry = FileEntry::new(Class::Relation.into());
    entry.relation = Some(HOSTILE.into());
    let heap = files.push(entry).unwrap();
    let mut state = 1_u64;
    for n in 0..events {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let (file, page) = match n % 2 {
            0 => (wal, n / 2 % 1000),
            _ => (heap, 1_000_000 + (state >> 33) % 20_000),
        };
        let event = Event {
            time: n * 1_000_000,
            offset: page * 8192,
            length: 8192,
            device: 1,
            file,
            ..Event::default()
        };
        writer.push(&event).unwrap();
    }
    writer.finish().unwrap();
}
