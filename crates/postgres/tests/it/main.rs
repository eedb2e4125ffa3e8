//! The crate on the real server. Without one, or without root where root is needed, a test is skipped and says
//! so: one line `skipped: NAME: reason` on standard error, which the test runner does not capture.

mod catalog;
mod cluster;
mod ends;
mod failures;
mod pgbench;
mod session;
mod verify;

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use shelflife_postgres::Cancel;
use shelflife_postgres::Cluster;
use shelflife_postgres::ClusterOptions;
use shelflife_postgres::Programs;
use shelflife_postgres::procfs::Procfs;
use shelflife_postgres::programs::Search;

/// A folder of one test, reachable by the server's user.
struct Place {
    folder: tempfile::TempDir,
    programs: Programs,
}

/// What a test needs beside a server.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    Nothing,
    Root,
}

impl Place {
    /// A place for the test `name`, or `None`, and a line, if it has to be skipped.
    fn new(name: &str, need: Need) -> Option<Self> {
        if need == Need::Root && !is_root() {
            return skip(name, "needs root");
        }
        let programs = match Programs::find(&Search::new(None)) {
            Ok(programs) => programs,
            Err(error) => return skip(name, &error.to_string()),
        };
        let folder = tempfile::Builder::new()
            .prefix("shelflife-it-")
            .permissions(fs::Permissions::from_mode(0o755))
            .tempdir()
            .unwrap();
        Some(Place { folder, programs })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Options of a cluster that is quick to make: durability is not the point.
    fn options(&self, name: &str) -> ClusterOptions {
        let mut options = ClusterOptions::new(self.programs.clone(), self.path(name));
        options.initdb_args = vec!["--no-sync".into(), "--wal-segsize=1".into()];
        options.set("fsync", "off").set("shared_buffers", "16MB").set("max_connections", "20");
        options
    }

    fn started(&self, name: &str) -> Cluster {
        let mut cluster = Cluster::create(self.options(name)).unwrap();
        cluster.start().unwrap();
        cluster
    }
}

fn skip<T>(name: &str, reason: &str) -> Option<T> {
    let reason = reason.lines().next().unwrap_or_default();
    let line = format!("skipped: {name}: {reason}\n");
    std::io::stderr().write_all(line.as_bytes()).unwrap();
    None
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// That each of these processes is gone.
fn assert_gone(pids: &[i32]) {
    let left: Vec<_> = pids.iter().filter_map(|pid| Procfs::default().process(*pid)).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Waits for something that another process does.
fn eventually(what: &str, mut ready: impl FnMut() -> bool) {
    let end = std::time::Instant::now() + Duration::from_secs(60);
    while !ready() {
        assert!(std::time::Instant::now() < end, "{what}");
        Cancel::never().sleep(Duration::from_millis(10)).unwrap();
    }
}
