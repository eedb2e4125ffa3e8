//! A made-up header and rounds, for tests.

use super::*;
use crate::spec::{Preset, Wishes};
use crate::stats::Plan;

pub(crate) fn header(policies: &[&str], blocks: usize) -> Header {
    let policies: Vec<String> = policies.iter().map(ToString::to_string).collect();
    let spec = Spec::new(&Wishes {
        preset: Preset::Standard,
        policies,
        rounds: Some(blocks),
        seed: Some(7),
        ..Wishes::default()
    })
    .unwrap();
    let plan = Plan::new(spec.arms.len(), blocks, 7).unwrap();
    let storage = crate::machine::Mount {
        device: "/dev/x".into(),
        point: "/".into(),
        file_system: "ext4".into(),
        options: String::new(),
    };
    Header {
        format: FORMAT.into(),
        version: 1,
        shelflife: "0.1.0".into(),
        started: 1_700_000_000,
        estimate: Estimate::of(&spec, std::time::Duration::from_millis(1), 2),
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
            settings: Vec::new(),
        },
        recorded: false,
        device: None,
    }
}

pub(crate) fn round(header: &Header, position: u32, value: f64) -> Round {
    let arms = header.spec.arms.len();
    let block = position as usize / arms;
    let arm = header.orders[block][position as usize % arms];
    Round {
        at: 1_700_000_100,
        position,
        block,
        arm,
        label: header.spec.arms[arm].label.clone(),
        took_s: 1.0,
        transient: false,
        measured: Some(Box::new(Measured {
            value,
            pgbench: Summary { tps: value, transactions: 100, ..Summary::default() },
            latency: None,
            script_latency: Vec::new(),
            load: Counters { temp_bytes: Some(0), ..Counters::default() },
            whole: Counters::default(),
            checkpoints: Some(3),
            whole_checkpoints: 2,
            before: Gauges::default(),
            after: Gauges::default(),
            hints: Hints::default(),
            opened: Vec::new(),
            machine: Strain::default(),
            recorded: None,
            epoch: None,
        })),
        failed: None,
    }
}
