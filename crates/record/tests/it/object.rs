//! The BPF object that is checked in is what its source makes, so that whoever builds the program needs no
//! clang. `src/bpf/update.sh` runs this with `SHELFLIFE_UPDATE` set, which writes it anew.

use std::fs;
use std::process::Command;

use libbpf_cargo::SkeletonBuilder;

const OBJECT: &str = "src/bpf/record.bpf.o";
/// Other versions make other code of the same source.
const CLANG: &str = "version 14.";
/// `-Wno-unused-parameter`: the macro `BPF_PROG`. The names of the source's lines stand in the object: the
/// same ones wherever it is compiled.
const ARGUMENTS: [&str; 5] =
    ["-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-fdebug-compilation-dir=."];

#[test]
fn what_is_checked_in_is_what_the_source_makes() {
    let updating = std::env::var_os("SHELFLIFE_UPDATE").is_some();
    let version = Command::new("clang").arg("--version").output();
    if !version.is_ok_and(|out| String::from_utf8_lossy(&out.stdout).contains(CLANG)) {
        assert!(!updating, "needs clang 14");
        println!("skipped: what_is_checked_in_is_what_the_source_makes: needs clang 14");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (compiled, stripped) = (folder.path().join("c.o"), folder.path().join("s.o"));
    let mut builder = SkeletonBuilder::new();
    builder.source("src/bpf/record.bpf.c").obj(&compiled).clang_args(ARGUMENTS).build().unwrap();
    let strip = Command::new("llvm-strip").args(["-g", "-o"]).args([&stripped, &compiled]).status();
    assert!(strip.is_ok_and(|status| status.success()), "llvm-strip");
    let made = fs::read(&stripped).unwrap();
    if updating {
        fs::write(OBJECT, &made).unwrap();
    }
    let ours = fs::read(OBJECT).unwrap_or_default();
    assert!(
        ours == made,
        "{} bytes made, {} bytes checked in: {OBJECT} is not what its source makes: run src/bpf/update.sh",
        made.len(),
        ours.len(),
    );
}
