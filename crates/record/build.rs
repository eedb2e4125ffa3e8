//! Compiles the BPF program with clang, or takes the object that is checked in where there is no
//! clang, and generates its skeleton.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "bpf")]
    bpf::generate();
}

#[cfg(feature = "bpf")]
mod bpf {
    use std::path::PathBuf;
    use std::process::{Command, exit};

    use libbpf_cargo::SkeletonBuilder;

    const SOURCE: &str = "src/bpf/record.bpf.c";
    const OBJECT: &str = "src/bpf/record.bpf.o";
    /// `-Wno-unused-parameter`: the macro `BPF_PROG`. The names of the source's lines stand in the
    /// object: the same ones wherever it is compiled.
    const ARGUMENTS: [&str; 5] =
        ["-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-fdebug-compilation-dir=."];

    pub fn generate() {
        for file in [
            SOURCE,
            OBJECT,
            "src/bpf/kernel.h",
            "src/bpf/wire.h",
            "src/bpf/owner.h",
            "src/bpf/name.h",
        ] {
            println!("cargo::rerun-if-changed={file}");
        }
        println!("cargo::rerun-if-env-changed=CLANG");
        let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
        let clang = std::env::var_os("CLANG").unwrap_or_else(|| "clang".into());
        let compiled = out.join("record.bpf.o");
        let mut builder = SkeletonBuilder::new();
        if Command::new(&clang).arg("--version").output().is_ok_and(|o| o.status.success()) {
            builder.source(SOURCE).obj(&compiled).clang(&clang).clang_args(ARGUMENTS);
            check(builder.build());
            println!("cargo::rustc-env=SHELFLIFE_BPF_COMPILED={}", compiled.display());
        } else {
            builder.obj(OBJECT);
        }
        check(builder.generate(out.join("record.skel.rs")));
    }

    fn check<E: std::fmt::Debug>(result: Result<(), E>) {
        if let Err(error) = result {
            eprintln!("{error:?}");
            exit(1);
        }
    }
}
