//! How long an answer takes on a machine with 200 block devices.

#[path = "../tests/it/drives.rs"]
#[allow(dead_code)]
mod drives;
#[path = "../tests/it/machine.rs"]
#[allow(dead_code)]
mod machine;

use std::path::Path;

use criterion::{Criterion, criterion_group, criterion_main};
use machine::Machine;

fn doctor(criterion: &mut Criterion) {
    let mut machine = Machine::new("7.3.4-amd64");
    for n in 0..200 {
        drives::nvme(&mut machine, n, "ACME FDP 1.92TB");
        drives::fdp(&mut machine, &format!("nvme{n}n1"), true, 1);
        let point = format!("/srv/{n}");
        machine.mount((259, 10 * n), &point, "f2fs", &format!("/dev/nvme{n}n1"), "active_logs=6");
    }
    let doctor = machine.doctor();
    criterion.bench_function("the list, 200 devices", |b| b.iter(|| doctor.everything()));
    criterion.bench_function("one path of 200 devices", |b| {
        b.iter(|| doctor.path(Path::new("/srv/150")));
    });
}

criterion_group! {
    name = all;
    config = Criterion::default().sample_size(20);
    targets = doctor
}
criterion_main!(all);
