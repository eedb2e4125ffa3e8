//! What is generated and checked in is what its source makes: the BPF object, and the skeleton of that.
//!
//! So that whoever builds the program needs neither clang nor the generator. `src/bpf/update.sh` runs this
//! with `SHELFLIFE_UPDATE` set, which writes both anew.

use std::fs;
use std::path::Path;
use std::process::Command;

use libbpf_cargo::SkeletonBuilder;

const OBJECT: &str = "src/bpf/record.bpf.o";
const SKELETON: &str = "src/bpf/record.skel.rs";
/// Other versions make other code of the same source.
const CLANG: &str = "version 14.";
/// `-Wno-unused-parameter`: the macro `BPF_PROG`. The names of the source's lines stand in the object: the
/// same ones wherever it is compiled.
const ARGUMENTS: [&str; 5] =
    ["-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-fdebug-compilation-dir=."];

fn updating() -> bool {
    std::env::var_os("SHELFLIFE_UPDATE").is_some()
}

fn is_the_same(path: &str, made: &[u8]) {
    if updating() {
        fs::write(path, made).unwrap();
    }
    let ours = fs::read(path).unwrap_or_default();
    assert!(
        ours == made,
        "{} bytes made, {} bytes checked in: {path} is not what its source makes: run src/bpf/update.sh",
        made.len(),
        ours.len(),
    );
}

#[test]
fn what_is_checked_in_is_what_the_source_makes() {
    const NAME: &str = "what_is_checked_in_is_what_the_source_makes";
    let folder = tempfile::tempdir().unwrap();
    let version = Command::new("clang").arg("--version").output();
    if version.is_ok_and(|out| String::from_utf8_lossy(&out.stdout).contains(CLANG)) {
        let (compiled, stripped) = (folder.path().join("c.o"), folder.path().join("s.o"));
        let mut builder = SkeletonBuilder::new();
        builder.source("src/bpf/record.bpf.c").obj(&compiled).clang_args(ARGUMENTS);
        builder.build().unwrap();
        let strip =
            Command::new("llvm-strip").args(["-g", "-o"]).args([&stripped, &compiled]).status();
        assert!(strip.is_ok_and(|status| status.success()), "llvm-strip");
        is_the_same(OBJECT, &fs::read(&stripped).unwrap());
    } else {
        assert!(!updating(), "needs clang 14");
        println!("skipped: {NAME} (the object): needs clang 14");
    }
    is_the_same(SKELETON, skeleton(folder.path()).as_bytes());
}

/// The skeleton of the object that is checked in, which it includes instead of repeating it.
fn skeleton(folder: &Path) -> String {
    let made = folder.join("record.skel.rs");
    SkeletonBuilder::new().obj(OBJECT).generate(&made).unwrap();
    let text = fs::read_to_string(&made).unwrap();
    let (before, bytes) = text.split_once("static DATA: ").unwrap();
    let (kind, _) = bytes.split_once(" = ").unwrap();
    let (_, after) = bytes.split_once("];\n").unwrap();
    format!("{before}static DATA: {kind} = *include_bytes!(\"record.bpf.o\");\n{after}")
}
