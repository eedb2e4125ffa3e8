//! A run of its own for each test, and small C programs to preload the hook into.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use shelflife_control::{NewRun, RUN_VARIABLE, Registry, Run};
use shelflife_layout::{Class, Layout, Table};
use shelflife_lifetime::Lifetime;

/// The hook as it ships, built by `make hook` (profile `hook`).
pub fn hook() -> PathBuf {
    let path = std::env::var_os("SHELFLIFE_HOOK").map(PathBuf::from).unwrap_or_else(|| {
        let exe = std::env::current_exe().expect("the test's own path");
        let target = exe.ancestors().nth(3).expect("target/debug/deps/it");
        target.join("hook/libshelflife_preload.so")
    });
    assert!(path.exists(), "{} is missing: run `make hook` first", path.display());
    path
}

/// A folder with a registered run.
pub struct Bed {
    pub dir: tempfile::TempDir,
    pub run: Run,
}

impl Bed {
    pub fn new(table: &Table, roots: &[PathBuf]) -> Bed {
        let dir = tempfile::tempdir().expect("a folder");
        let registry = Registry::at(dir.path().join("state")).expect("a state folder");
        let new = NewRun {
            name: None,
            command: &[],
            hook: &hook(),
            roots,
            owner: None,
            policy: Some((table, "test")),
            dry_run: false,
        };
        let run = registry.register(&new).expect("a run");
        Bed { dir, run }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn folder(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(&path).expect("a folder");
        path.canonicalize().expect("canonical")
    }

    /// Compiles `tests/programs/NAME.c` to `output`.
    pub fn compile(&self, name: &str, output: &str) -> PathBuf {
        let source = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/programs")
            .join(name)
            .with_extension("c");
        let output = self.path(output);
        let done = Command::new("cc")
            .args(["-O1", "-Wall", "-Wextra", "-pthread", "-o"])
            .arg(&output)
            .arg(&source)
            .status()
            .expect("a C compiler");
        assert!(done.success(), "{} does not compile", source.display());
        output
    }

    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env("LD_PRELOAD", hook()).env(RUN_VARIABLE, self.run.dir());
        command
    }

    pub fn output(&self, program: &Path, args: &[&str]) -> String {
        text(&self.command(program).args(args).output().expect("started"))
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        let _ = self.run.remove();
    }
}

pub fn text(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).expect("text")
}

/// `*.s` and `*.s.*` short, whatever the program.
pub fn short_by_name() -> Table {
    let table = Table::default();
    table.clear(Layout::Paths);
    table.path_rule(0, b"*.s", Lifetime::Short).expect("room");
    table.path_rule(1, b"*.s.*", Lifetime::Short).expect("room");
    table.path_rule(2, b"sub.s", Lifetime::Short).expect("room");
    table
}

/// WAL short, relations long, everything else of the server's extreme.
pub fn for_postgres() -> Table {
    let table = Table::default();
    table.class_rule(0, Class::Wal, Lifetime::Short);
    table.class_rule(1, Class::Relation, Lifetime::Long);
    table.default_rule(Lifetime::Extreme);
    table
}

pub fn hint_of(path: &Path) -> Lifetime {
    shelflife_lifetime::get(std::fs::File::open(path).expect("opened")).expect("read")
}
