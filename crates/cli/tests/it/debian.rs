//! Debian's `pg_ctlcluster` replaces the environment: `status` says so, and what it says helps.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::held::{EXTREME, NOT_SET, hint};
use crate::support::{Need, Place, said, skip};

/// A cluster of the machine's own kind, removed when dropped.
struct DebianCluster {
    version: String,
    name: String,
}

impl DebianCluster {
    fn create(place: &Place, data: &Path) -> Result<DebianCluster, String> {
        let version = place.programs().version().major.to_string();
        let name = format!("shelflife{}", std::process::id());
        let mut create = Command::new("pg_createcluster");
        create.args(["--start-conf", "manual", "-d"]).arg(data);
        create.args(["--pgoption", "listen_addresses=", "--pgoption", "fsync=off"]);
        create.args(["--pgoption", "shared_buffers=16MB"]);
        create.args([&version, &name, "--", "--no-sync", "--wal-segsize=1"]);
        let cluster = DebianCluster { version, name };
        match create.output() {
            Ok(output) if output.status.success() => Ok(cluster),
            Ok(output) => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
            Err(error) => Err(format!("no pg_createcluster: {error}")),
        }
    }

    fn environment_file(&self) -> PathBuf {
        Path::new("/etc/postgresql").join(&self.version).join(&self.name).join("environment")
    }

    /// `pg_ctlcluster … ACTION`, under `shelflife run` or not.
    fn ctl(&self, mut command: Command, action: &str) {
        command.args(["--skip-systemctl-redirect", &self.version, &self.name, action]);
        said(&mut command).expect(0);
    }
}

impl Drop for DebianCluster {
    fn drop(&mut self) {
        let mut drop = Command::new("pg_dropcluster");
        let _ = drop.args(["--stop", &self.version, &self.name]).output();
    }
}

#[test]
fn a_debian_cluster_is_hinted_once_its_environment_file_has_the_lines_that_status_gives() {
    let name =
        "a_debian_cluster_is_hinted_once_its_environment_file_has_the_lines_that_status_gives";
    let Some(place) = Place::new(name, Need::RootAndServer) else { return };
    let data = place.path("debian-data");
    let cluster = match DebianCluster::create(&place, &data) {
        Ok(cluster) => cluster,
        Err(error) => {
            skip::<()>(name, &error);
            return;
        }
    };
    let run = || place.shelflife(["run", "--name", "main", "--policy", "temp-vs-rest", "--"]);
    let mut start = run();
    start.arg("pg_ctlcluster");
    cluster.ctl(start, "start");

    let told = said(&mut place.shelflife(["status"]));
    told.expect(1);
    let file = cluster.environment_file();
    let cause = format!(
        "does NOT carry the hook: Debian's pg_ctlcluster replaced the environment; put these lines \
         into {} and restart the cluster:\n",
        file.display()
    );
    let (_, after) = told.out.split_once(&cause).unwrap_or_else(|| panic!("{told:#?}"));
    let lines: Vec<&str> = after.lines().take(2).map(str::trim).collect();
    assert_eq!(lines[0], format!("LD_PRELOAD = '{}'", place.hook().display()));
    assert_eq!(lines[1], format!("SHELFLIFE_RUN = '{}'", place.state().join("main").display()));
    assert_eq!(hint(&data.join("global/pg_control")).unwrap(), NOT_SET);

    let mut environment = OpenOptions::new().append(true).open(&file).unwrap();
    writeln!(environment, "\n{}", lines.join("\n")).unwrap();
    cluster.ctl(Command::new("pg_ctlcluster"), "restart");
    let told = said(&mut place.shelflife(["status", "--json"]));
    let server = &told.expect(0).json()[0]["servers"][0];
    assert_eq!(server["postmaster"]["carries"], "yes", "{server}");
    assert_eq!(server["children"], server["children_with_hook"]);
    assert_eq!(hint(&data.join("global/pg_control")).unwrap(), EXTREME);

    said(&mut place.shelflife(["switch", "off"])).expect(0);
    assert_eq!(hint(&data.join("global/pg_control")).unwrap(), NOT_SET);

    // Stopped, its run is over; a run of the same name serves the lines that are there.
    cluster.ctl(Command::new("pg_ctlcluster"), "stop");
    let told = said(&mut place.shelflife(["status"]));
    assert!(told.expect(1).out.starts_with("no runs in "), "{told:#?}");
    let mut start = run();
    start.arg("pg_ctlcluster");
    cluster.ctl(start, "start");
    let told = said(&mut place.shelflife(["status"]));
    assert!(told.expect(0).out.contains("children carry the hook"), "{told:#?}");
    let folder = file.parent().unwrap().to_owned();
    drop(cluster);
    assert!(!folder.exists() && !data.exists() && fs::read_dir(place.state()).is_ok());
}
