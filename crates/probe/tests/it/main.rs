//! Machines of many kinds, and one expected answer each (`snapshots/`).

mod drives;
mod fixtures;
mod hostile;
mod machine;
mod many;
mod proofs;
