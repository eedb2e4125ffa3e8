//! `status` says whether the hook is really loaded, and if not, why not.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::held::pids;
use crate::support::{Guard, Need, Place, eventually, said, session, skip};

/// The only server of the only run.
fn only_server(status: &Value) -> &Value {
    assert_eq!(status.as_array().map(Vec::len), Some(1), "{status}");
    assert_eq!(status[0]["servers"].as_array().map(Vec::len), Some(1), "{status}");
    &status[0]["servers"][0]
}

/// That the only server does not carry the hook, for a cause that holds `words`.
#[track_caller]
fn expect_cause(place: &Place, words: &[&str]) -> String {
    let told = said(&mut place.shelflife(["status", "--json"]));
    told.expect(1);
    let status = told.json();
    let postmaster = &only_server(&status)["postmaster"];
    assert_eq!(postmaster["carries"], "no", "{status}");
    let cause = postmaster["cause"].as_str().unwrap().to_owned();
    for word in words {
        assert!(cause.contains(word), "{word:?} is not in {cause:?}");
    }
    let told = said(&mut place.shelflife(["status"]));
    assert!(told.expect(1).out.contains("does NOT carry the hook: "), "{told:#?}");
    cause
}

#[test]
fn status_counts_the_processes_that_carry_the_hook() {
    let name = "status_counts_the_processes_that_carry_the_hook";
    let Some(place) = Place::new(name, Need::Server) else { return };
    let cluster = place.cluster("c", |_| ());
    place.start(&cluster, &["--policy", "temp-vs-rest", "--name", "main"]);
    session(&cluster).batch("CREATE TABLE t AS SELECT 1 AS a; CHECKPOINT").unwrap();
    let _backend = session(&cluster);

    let told = said(&mut place.as_user(["status", "--json"]));
    let status = told.expect(0).json();
    let server = only_server(&status);
    assert_eq!(server["folder"], cluster.data().path().to_str().unwrap());
    assert_eq!(server["postmaster"]["carries"], "yes");
    let postmaster = server["postmaster"]["pid"].as_i64().unwrap();
    assert_eq!(cluster.data().pid_file().unwrap().unwrap().pid, postmaster as i32);
    // checkpointer, writer, WAL writer, launchers and the backend
    assert!(server["children"].as_u64().unwrap() >= 5, "{status}");
    assert_eq!(server["children"], server["children_with_hook"]);
    let attached = status[0]["attached"].as_u64().unwrap();
    assert!(attached > server["children"].as_u64().unwrap(), "{status}");

    let text = said(&mut place.as_user(["status"])).out;
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("run main: on, policy temp-vs-rest, generation 1, "), "{text}");
    assert!(lines[0].ends_with(" processes carry the hook"), "{text}");
    assert!(lines[1].starts_with("  command: ") && lines[1].contains("pg_ctl"), "{text}");
    let expected =
        format!("  {}: the postmaster ({postmaster}) and ", server["folder"].as_str().unwrap());
    assert!(
        lines[2].starts_with(&expected) && lines[2].ends_with("children carry the hook"),
        "{text}"
    );
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(lines[3]), ["class", "hint", "opened", "for", "writing"], "{text}");
    let wal = lines.iter().map(|line| words(line)).find(|words| words[0] == "wal").unwrap();
    assert_eq!(wal[1], "extreme", "{text}");
}

#[test]
fn a_server_whose_environment_was_cleared_is_named_with_the_cause() {
    let name = "a_server_whose_environment_was_cleared_is_named_with_the_cause";
    let Some(place) = Place::new(name, Need::Server) else { return };
    let cluster = place.cluster("c", |_| ());
    let mut start = place.as_user(["run", "--", "env", "-i", "PATH=/usr/bin:/bin"]);
    said(start.args(place.pg_ctl_start(&cluster))).expect(0);
    // again and again: a run whose server is up is not over, hook or no hook
    for _ in 0..2 {
        let told = said(&mut place.as_user(["status"]));
        told.expect(1);
        let cause = "does NOT carry the hook: it was started without the run's environment";
        assert!(told.out.contains(cause), "{told:#?}");
    }
    let folder = cluster.data().path().to_owned();
    drop(cluster);
    assert!(!folder.exists());
    let told = said(&mut place.as_user(["status"]));
    assert!(told.expect(1).out.starts_with("no runs in "), "{told:#?}");
}

#[test]
fn a_command_that_only_talks_to_a_running_server_leaves_no_run() {
    let name = "a_command_that_only_talks_to_a_running_server_leaves_no_run";
    let Some(place) = Place::new(name, Need::Server) else { return };
    let mut cluster = place.cluster("c", |_| ());
    cluster.start().unwrap();
    let mut reload = place.as_user(["run", "--"]);
    reload.arg(place.programs().pg_ctl()).arg("-D").arg(cluster.data().path()).arg("reload");
    said(&mut reload).expect(0);
    let told = said(&mut place.as_user(["status"]));
    assert!(told.expect(1).out.starts_with("no runs in "), "{told:#?}");
}

#[test]
fn a_hook_that_the_servers_user_cannot_read_is_named_with_the_folder() {
    let name = "a_hook_that_the_servers_user_cannot_read_is_named_with_the_folder";
    let Some(place) = Place::new(name, Need::RootAndServer) else { return };
    let cluster = place.cluster("c", |_| ());
    let closed = place.path("closed");
    fs::create_dir(&closed).unwrap();
    let hook = closed.join("libshelflife_preload.so");
    fs::copy(place.hook(), &hook).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    let mut start = place.shelflife(["run", "--", "runuser", "-u", place.user.name(), "--"]);
    let told = said(start.env("SHELFLIFE_HOOK", &hook).args(place.pg_ctl_start(&cluster)));
    let warning = format!("shelflife: {} is closed to other users", closed.display());
    assert!(told.expect(0).err.starts_with(&warning), "{told:#?}");
    let closed = closed.to_str().unwrap();
    expect_cause(&place, &["the server's user cannot read it", closed, "is closed to others"]);
}

#[test]
fn a_program_that_gained_rights_is_named_with_the_cause() {
    let name = "a_program_that_gained_rights_is_named_with_the_cause";
    let Some(place) = Place::new(name, Need::RootAndServer) else { return };
    let cluster = place.cluster("c", |_| ());
    // PostgreSQL finds its files relative to where it lies.
    let bindir = place.programs().bindir().to_owned();
    let bin = place.path("rights").join(bindir.strip_prefix("/").unwrap());
    fs::create_dir_all(&bin).unwrap();
    for folder in [bindir.parent().unwrap().join("lib"), "/usr/share".into()] {
        if let Some(place) = Some(place.path("rights").join(folder.strip_prefix("/").unwrap()))
            && !place.exists()
            && folder.exists()
        {
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(&folder, &place).unwrap();
        }
    }
    let postgres = bin.join("postgres");
    fs::copy(place.programs().postgres(), &postgres).unwrap();
    let caps = Command::new("setcap").arg("cap_net_bind_service+ep").arg(&postgres).output();
    if !caps.is_ok_and(|output| output.status.success()) {
        skip::<()>(name, "no setcap, or no file capabilities here");
        return;
    }
    let mut start = place.shelflife(["run", "--", "runuser", "-u", place.user.name(), "--"]);
    start.arg(&postgres).arg("-D").arg(cluster.data().path()).args(cluster.server_args());
    let _server = Guard::spawn(start.stderr(std::process::Stdio::null()));
    eventually("the server is up", || {
        cluster.data().pid_file().unwrap().filter(|file| file.is_ready())
    });
    expect_cause(&place, &["the program gained rights when it started"]);
    drop(cluster);
}

#[test]
fn a_static_program_is_named_with_the_cause() {
    let name = "a_static_program_is_named_with_the_cause";
    let Some(place) = Place::new(name, Need::Nothing) else { return };
    let data = place.path("data");
    fs::create_dir(&data).unwrap();
    fs::write(data.join("PG_VERSION"), "15\n").unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/server.c");
    let program = place.path("postgres");
    let done = Command::new("cc").args(["-static", "-o"]).arg(&program).arg(source).output();
    if !done.is_ok_and(|output| output.status.success()) {
        skip::<()>(name, "no C compiler, or no static libc");
        return;
    }
    let mut start = place.shelflife(["run", "--"]);
    let server = Guard::spawn(start.arg(program).arg("-D").arg(&data));
    eventually("its pid file", || {
        fs::read_to_string(data.join("postmaster.pid")).ok().filter(|text| !text.is_empty())
    });
    expect_cause(&place, &["statically linked", "shelflife apply"]);
    drop(server);
}

#[test]
fn a_server_that_was_started_for_a_run_that_is_gone_is_named_with_the_cause() {
    let name = "a_server_that_was_started_for_a_run_that_is_gone_is_named_with_the_cause";
    let Some(place) = Place::new(name, Need::Server) else { return };
    let cluster = place.cluster("c", |_| ());
    let gone = place.path("state-of-user/gone");
    let hook = format!("LD_PRELOAD={}", place.hook().display());
    let mut start = place.as_user(["run", "--", "env"]);
    start.arg(hook).arg(format!("SHELFLIFE_RUN={}", gone.display()));
    said(start.args(place.pg_ctl_start(&cluster))).expect(0);
    let told = said(&mut place.as_user(["status"]));
    let cause = "does NOT carry the hook: the hook is loaded, but for another run or for one that";
    assert!(told.expect(1).out.contains(cause), "{told:#?}");
}

#[test]
fn dead_runs_are_collected_with_their_memory() {
    let name = "dead_runs_are_collected_with_their_memory";
    let Some(place) = Place::new(name, Need::Nothing) else { return };
    for _ in 0..3 {
        said(&mut place.shelflife(["run", "--", "true"])).expect(0);
    }
    let mut run = place.shelflife(["run", "--name", "living", "--", "sleep", "600"]);
    let living = Guard::spawn(&mut run);
    let state = place.state();
    let segments = |name: &str| -> Option<Vec<i32>> {
        let line = fs::read_to_string(state.join(name).join("page")).ok()?;
        Some(line.split(' ').skip(2).take(2).map(|id| id.parse().unwrap()).collect())
    };
    let alive = |id: &i32| {
        let table = fs::read_to_string("/proc/sysvipc/shm").unwrap();
        table.lines().any(|row| row.split_whitespace().nth(1) == Some(&id.to_string()))
    };
    let page = eventually("the living run", || segments("living"))[0];
    eventually("it has become the command", || {
        let exe = fs::read_link(format!("/proc/{}/exe", living.0.id())).ok()?;
        (exe.file_name().unwrap() != "shelflife").then_some(())
    });
    said(&mut place.shelflife(["run", "--name", "killed", "--", "sh", "-c", "kill -9 $$"]));
    let killed = segments("killed").unwrap();
    assert!(killed.iter().all(alive));

    let told = said(&mut place.shelflife(["status"]));
    assert!(told.expect(0).out.starts_with("run living: on, policy wal-first"), "{told:#?}");
    assert_eq!(fs::read_dir(&state).unwrap().count(), 1);
    assert!(!killed.iter().any(alive), "{killed:?}");
    assert!(alive(&page));
    drop(living);
    let told = said(&mut place.shelflife(["status", "--json"]));
    assert_eq!(told.expect(1).json(), serde_json::json!([]));
    assert!(!alive(&page));
    assert_eq!(fs::read_dir(&state).unwrap().count(), 0);
    assert!(pids().all(|pid| {
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let state = state.to_str().unwrap().as_bytes();
        pid == std::process::id() as i32 || !environ.windows(state.len()).any(|w| w == state)
    }));
}
