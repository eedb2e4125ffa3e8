//! A place for each test: a folder that the server's user can reach, with the program and the hook
//! as a build tree has them, two state folders, and servers that are started through the program.
//!
//! All of it is gone when the test ends, also by a panic: servers, runs with their shared memory,
//! folders.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use shelflife_postgres::programs::Search;
use shelflife_postgres::{Cancel, Cluster, ClusterOptions, Programs, ServerUser, Session};

use crate::held::remove_segment;

/// What a test needs.
#[derive(Clone, Copy, Eq, PartialEq)]
pub enum Need {
    Nothing,
    Root,
    Server,
    RootAndServer,
}

/// One test's place.
pub struct Place {
    folder: tempfile::TempDir,
    programs: Option<Programs>,
    pub user: ServerUser,
}

/// What a program said, and how it ended.
#[derive(Debug)]
pub struct Said {
    /// `None` if it was killed by a signal.
    pub code: Option<i32>,
    pub pid: u32,
    pub out: String,
    pub err: String,
}

impl Place {
    /// A place for the test `name`; `None`, and a line, if it has to be skipped.
    pub fn new(name: &str, need: Need) -> Option<Place> {
        if matches!(need, Need::Root | Need::RootAndServer) && !is_root() {
            return skip(name, "needs root");
        }
        let programs = match Programs::find(&Search::new(None)) {
            _ if matches!(need, Need::Nothing | Need::Root) => None,
            Ok(programs) => Some(programs),
            Err(error) => return skip(name, &error.to_string()),
        };
        let user = match ServerUser::choose(None) {
            Ok(user) => user,
            Err(error) => return skip(name, &error.to_string()),
        };
        let folder = tempfile::Builder::new()
            .prefix("shelflife-it-")
            .permissions(fs::Permissions::from_mode(0o755))
            .tempdir()
            .unwrap();
        let place = Place { folder, programs, user };
        // Copies: the build tree may lie where the server's user cannot go.
        for (from, to) in [(program(), "bin/shelflife"), (hook(), "hook/libshelflife_preload.so")] {
            let to = place.path(to);
            fs::create_dir(to.parent().unwrap()).unwrap();
            fs::copy(from, to).unwrap();
        }
        fs::create_dir(place.path("state")).unwrap();
        place.user_folder("state-of-user");
        place.user_folder("user");
        Some(place)
    }

    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    pub fn programs(&self) -> &Programs {
        self.programs.as_ref().expect("a test that needs a server")
    }

    pub fn hook(&self) -> PathBuf {
        self.path("hook/libshelflife_preload.so")
    }

    /// A new folder of the server's user.
    pub fn user_folder(&self, name: impl AsRef<Path>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir(&path).unwrap();
        self.give(&path);
        path
    }

    /// Gives a file or folder to the server's user.
    pub fn give(&self, path: &Path) {
        if is_root() {
            chown(path, Some(self.user.uid()), Some(self.user.gid())).unwrap();
        }
    }

    /// The state folder of whom the test runs as.
    pub fn state(&self) -> PathBuf {
        self.path("state")
    }

    /// `shelflife ARGS…`, as whom the test runs as.
    pub fn shelflife<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Command {
        let mut command = Command::new(self.path("bin/shelflife"));
        clean(&mut command);
        command.env("SHELFLIFE_STATE", self.state()).current_dir(self.path("")).args(args);
        command
    }

    /// The same as the server's user, who has a state folder of its own.
    pub fn as_user<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Command {
        let mut command = self.shelflife(args);
        self.user.apply(&mut command);
        command.env("SHELFLIFE_STATE", self.path("state-of-user"));
        command
    }

    /// A program as the server's user, with nothing of ours in its environment.
    pub fn plain_as_user(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        clean(&mut command);
        self.user.apply(&mut command);
        command.current_dir(self.path(""));
        command
    }

    /// A small cluster that is quick to make; not started.
    pub fn cluster(&self, name: &str, adjust: impl FnOnce(&mut ClusterOptions)) -> Cluster {
        let mut options = ClusterOptions::new(self.programs().clone(), self.path(name));
        options.initdb_args = vec!["--no-sync".into(), "--wal-segsize=1".into()];
        options.set("fsync", "off").set("shared_buffers", "16MB").set("max_connections", "30");
        options.set("min_wal_size", "4MB").set("max_wal_size", "32MB");
        adjust(&mut options);
        Cluster::create(options).unwrap()
    }

    /// `pg_ctl -D … start`: the words that start this cluster on its socket.
    pub fn pg_ctl_start(&self, cluster: &Cluster) -> Vec<OsString> {
        let mut words = vec![self.programs().pg_ctl().into_os_string(), "-D".into()];
        words.push(cluster.data().path().into());
        let args: Vec<String> =
            cluster.server_args().iter().map(|a| a.to_str().unwrap().to_owned()).collect();
        words.extend(["-w".into(), "-o".into(), args.join(" ").into()]);
        words.extend(["-l".into(), self.path("user/server.log").into(), "start".into()]);
        words
    }

    /// Starts the server by `shelflife run RUN_ARGS… -- pg_ctl … start`, as its user.
    pub fn start(&self, cluster: &Cluster, run_args: &[&str]) -> Said {
        let mut command = self.as_user(["run"]);
        command.args(run_args).arg("--").args(self.pg_ctl_start(cluster));
        let said = said(&mut command);
        said.expect(0);
        said
    }

    /// A policy that tells kinds of files apart by different lifetimes, as a file.
    pub fn policy(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for state in ["state", "state-of-user"] {
            for run in fs::read_dir(self.path(state)).into_iter().flatten().flatten() {
                let line = fs::read_to_string(run.path().join("page")).unwrap_or_default();
                let ids = line.split(' ').skip(2).take(2).filter_map(|id| id.parse().ok());
                ids.for_each(remove_segment);
            }
        }
    }
}

impl Said {
    /// That it ended with this exit code.
    #[track_caller]
    pub fn expect(&self, code: i32) -> &Said {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self
    }

    /// That it ended with this code and one line on standard error which holds all of `words`.
    #[track_caller]
    pub fn fails(&self, code: i32, words: &[&str]) {
        self.expect(code);
        assert_eq!(self.err.trim_end().lines().count(), 1, "one clear error: {self:#?}");
        assert!(self.err.starts_with("shelflife: "), "{self:#?}");
        for word in words {
            assert!(self.err.contains(word), "{word:?} is not in it: {self:#?}");
        }
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("{e}: {self:#?}"))
    }
}

/// Runs a command to its end.
pub fn said(command: &mut Command) -> Said {
    let child = spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let pid = child.id();
    let output = child.wait_with_output().unwrap();
    Said {
        code: output.status.code(),
        pid,
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

fn spawn(command: &mut Command) -> Child {
    loop {
        match command.stdin(Stdio::null()).spawn() {
            Ok(child) => return child,
            // Where tests are threads of one process, another one's child may, until it calls
            // exec, hold the copy of the program open that was just written.
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(error) => panic!("{command:?}: {error}"),
        }
    }
}

/// A child that does not outlive the test.
pub struct Guard(pub Child);

impl Guard {
    pub fn spawn(command: &mut Command) -> Guard {
        Guard(spawn(command))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A session with a cluster that was started by other means than `Cluster::start`.
pub fn session(cluster: &Cluster) -> Session {
    Session::connect(&cluster.dsn("postgres"), &Cancel::never()).unwrap()
}

/// A pgbench that runs until it is dropped.
pub fn load(place: &Place, cluster: &Cluster, args: &[&str]) -> Guard {
    let mut command = place.plain_as_user(place.programs().pgbench());
    command.arg("-h").arg(cluster.socket_folder()).args(["-U", "postgres", "-n", "-T", "600"]);
    command.args(args).arg("postgres").stdout(Stdio::null()).stderr(Stdio::null());
    Guard::spawn(&mut command)
}

/// Loads pgbench's tables at scale 1.
pub fn initialise(place: &Place, cluster: &Cluster) {
    let scale = shelflife_postgres::pgbench::Initialise { scale: 1, args: vec!["-q".into()] };
    let dsn = cluster.dsn("postgres");
    let cancel = Cancel::never();
    shelflife_postgres::pgbench::initialise(place.programs(), &dsn, &scale, &cancel, &mut |_| ())
        .unwrap();
}

/// Waits for something that another process does.
#[track_caller]
pub fn eventually<T>(what: &str, mut ready: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(it) = ready() {
            return it;
        }
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Says that a test, or a part of it, is skipped.
pub fn skip<T>(name: &str, reason: &str) -> Option<T> {
    let reason = reason.lines().next().unwrap_or_default();
    let line = format!("skipped: {name}: {reason}\n");
    std::io::stderr().write_all(line.as_bytes()).unwrap();
    None
}

fn clean(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let ours = ["PG", "SHELFLIFE_", "LD_PRELOAD", "XDG_RUNTIME_DIR"];
        if ours.iter().any(|start| name.as_encoded_bytes().starts_with(start.as_bytes())) {
            command.env_remove(name);
        }
    }
    // Folders that the server's user may not enter turn "no such program" into "not permitted".
    command.env("LC_ALL", "C").env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin");
}

fn program() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_shelflife"))
}

/// The hook as it ships, built by `make hook` (profile `hook`).
fn hook() -> PathBuf {
    let path = std::env::var_os("SHELFLIFE_HOOK").map(PathBuf::from).unwrap_or_else(|| {
        let target = program().ancestors().nth(2).unwrap().to_owned();
        target.join("hook/libshelflife_preload.so")
    });
    assert!(path.exists(), "{} is missing: run `make hook` first", path.display());
    path
}
