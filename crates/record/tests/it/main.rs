//! Recording real writes on loop devices. Tests whose names begin with `root_bpf_` need root and a
//! kernel that takes the BPF program; elsewhere they say `skipped: NAME: reason`.

#![cfg(feature = "bpf")]

mod disk;
mod exact;
mod hostile;
mod life;
mod names;
mod object;
mod pg;
mod reading;
mod stacks;
