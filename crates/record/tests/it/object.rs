//! The BPF object that is checked in is the one that its source makes.

use std::process::Command;

#[test]
fn the_checked_in_object_is_that_of_its_source() {
    let Some(compiled) = option_env!("SHELFLIFE_BPF_COMPILED") else {
        println!("skipped: the_checked_in_object_is_that_of_its_source: built without clang");
        return;
    };
    // other versions make other code of the same source
    let version = Command::new("clang").arg("--version").output().unwrap();
    if !String::from_utf8_lossy(&version.stdout).contains("version 14.") {
        println!("skipped: the_checked_in_object_is_that_of_its_source: needs clang 14");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let stripped = folder.path().join("record.bpf.o");
    let strip = Command::new("llvm-strip").args(["-g", "-o"]).arg(&stripped).arg(compiled).status();
    assert!(strip.is_ok_and(|status| status.success()), "llvm-strip");
    let ours = include_bytes!("../../src/bpf/record.bpf.o");
    let made = std::fs::read(&stripped).unwrap();
    assert!(
        made == ours,
        "{} bytes from {compiled}, {} bytes checked in: src/bpf/record.bpf.o is not what src/bpf/record.bpf.c makes: run src/bpf/update.sh",
        made.len(),
        ours.len(),
    );
}
