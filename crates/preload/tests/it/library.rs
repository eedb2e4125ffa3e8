//! What the library is made of.

use std::process::Command;

use crate::support::hook;

fn symbols(kind: &str) -> Vec<String> {
    let output = Command::new("nm").arg("-D").arg(kind).arg(hook()).output().expect("nm");
    let text = String::from_utf8(output.stdout).expect("text");
    let mut names: Vec<String> = text
        .lines()
        .filter_map(|l| l.split_whitespace().last())
        .map(|name| name.split('@').next().unwrap_or(name).to_owned())
        .collect();
    names.sort();
    names
}

/// No allocator, no lock, no unwinding, no thread-local storage, no abort: nothing can panic.
#[test]
fn only_harmless_functions_are_imported() {
    let allowed = [
        "_ITM_deregisterTMCloneTable",
        "_ITM_registerTMCloneTable",
        "__cxa_finalize",
        "__errno_location",
        "__gmon_start__",
        "access",
        "close",
        "dlsym",
        "fcntl",
        "fileno",
        "fstat",
        "getauxval",
        "getpid",
        "memcpy",
        "memset",
        "read",
        "readlink",
        "shmat",
        "shmctl",
        "shmdt",
        "strlen",
        "syscall",
    ];
    for name in symbols("--undefined-only") {
        assert!(allowed.contains(&name.as_str()), "the hook imports {name}");
    }
    let output = Command::new("readelf").arg("-lW").arg(hook()).output().expect("readelf");
    assert!(!String::from_utf8_lossy(&output.stdout).contains("TLS"), "thread-local storage");
}

#[test]
fn every_function_of_the_list_is_exported_and_no_other() {
    let mut expected = Vec::new();
    for name in [
        "open",
        "openat",
        "creat",
        "fopen",
        "freopen",
        "mkstemp",
        "mkostemp",
        "mkstemps",
        "mkostemps",
    ] {
        expected.push(name.to_owned());
        expected.push(format!("{name}64"));
    }
    for name in ["__open_2", "__open64_2", "__openat_2", "__openat64_2", "chdir", "fchdir"] {
        expected.push(name.to_owned());
    }
    expected.sort();
    assert_eq!(symbols("--defined-only"), expected);
}
