//! Recording real writes on loop devices. Tests whose names begin with `root_bpf_` need root and a
//! kernel that takes the BPF program; elsewhere they say `skipped: NAME: reason`.

#[cfg(feature = "bpf")]
mod disk;
#[cfg(feature = "bpf")]
mod exact;
#[cfg(feature = "bpf")]
mod hostile;
#[cfg(feature = "bpf")]
mod life;
#[cfg(feature = "bpf")]
mod names;
// without the feature too: it makes what the feature needs
mod object;
#[cfg(feature = "bpf")]
mod pg;
#[cfg(feature = "bpf")]
mod reading;
#[cfg(feature = "bpf")]
mod stacks;
