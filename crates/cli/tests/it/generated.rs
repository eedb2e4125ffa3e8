//! The man pages and completions in the repository are those of the arguments.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn files(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    for part in ["man", "completions"] {
        for entry in fs::read_dir(folder.join(part)).unwrap().flatten() {
            let name = Path::new(part).join(entry.file_name());
            found.insert(name, fs::read_to_string(entry.path()).unwrap());
        }
    }
    found
}

#[test]
fn man_pages_and_completions_are_current() {
    let dir = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_shelflife");
    let status = Command::new(program).arg("generate").arg(dir.path()).status().unwrap();
    assert!(status.success());
    let packaging = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging");
    let (now, kept) = (files(dir.path()), files(&packaging));
    for name in now.keys().chain(kept.keys()) {
        let same = now.get(name) == kept.get(name);
        assert!(same, "packaging/{} is not current: run `make generate`", name.display());
    }
    assert!(kept.contains_key(Path::new("man/shelflife-watch.1")));
}
