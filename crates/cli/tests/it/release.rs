//! What is checked of a release before it is packed: the glibc that it needs.

use std::path::Path;
use std::process::Command;

use crate::support::{Said, said, skip};

/// `scripts/glibc.sh LIMIT FILE`.
fn glibc(limit: &str, file: &str) -> Said {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/glibc.sh");
    said(Command::new("sh").arg(script).args([limit, file]))
}

#[test]
fn a_program_that_needs_a_newer_glibc_is_refused_and_the_symbols_are_named() {
    const NAME: &str = "a_program_that_needs_a_newer_glibc_is_refused_and_the_symbols_are_named";
    if Command::new("nm").arg("--version").output().is_err() {
        skip::<()>(NAME, "there is no nm");
        return;
    }
    let program = env!("CARGO_BIN_EXE_shelflife");
    let fine = glibc("2.999", program);
    assert!(fine.expect(0).out.contains("needs glibc 2."), "{fine:?}");
    // Older than the first of x86-64 (2.2.5) and of aarch64 (2.17).
    let refused = glibc("2.1", program);
    assert!(refused.expect(1).err.contains("not 2.1, for "), "{refused:?}");
    // The one that is needed is enough, and it is no matter of spelling: 2.9 is older than 2.17.
    let newest = fine.out.trim().rsplit(' ').next().unwrap();
    glibc(newest, program).expect(0);
    if newest.split('.').nth(1).unwrap().parse::<u32>().unwrap() >= 10 {
        glibc("2.9", program).expect(1);
    }
    let nothing = glibc("2.999", "/proc/self/maps");
    assert!(nothing.expect(1).err.contains("imports nothing"), "{nothing:?}");
}
