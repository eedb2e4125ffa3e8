//! The daemon on a real server: what it hints, how it is switched, how it ends and heals.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use shelflife_postgres::Cluster;

use crate::held::{
    EXTREME, NOT_SET, SHORT, files_below, held_in, hint, lasting, segments_made_by, set_hint,
};
use crate::support::{
    Guard, Need, Place, Said, eventually, initialise, is_root, load, said, session,
};
use crate::watched::{As, Watcher, data_folder, make, ways};

pub fn temp_vs_rest(path: &Path) -> u64 {
    if path.iter().any(|part| part == "pgsql_tmp") { SHORT } else { EXTREME }
}

/// Files below `folders` and behind the server's descriptors whose hint is not the expected one.
pub fn wrong(
    cluster: &Cluster,
    folders: &[&Path],
    expected: impl Fn(&Path) -> u64,
) -> BTreeSet<PathBuf> {
    let data = cluster.data().path();
    lasting(|| {
        let held = held_in(data).into_iter().map(|file| (file.path, file.hint));
        let held = held.filter(|(path, _)| folders.iter().any(|folder| path.starts_with(folder)));
        let tree = folders.iter().flat_map(|folder| files_below(folder));
        tree.chain(held).filter(|(p, hint)| *hint != expected(p)).map(|(path, _)| path).collect()
    })
}

fn verb(place: &Place, way: As, args: &[&str]) -> Said {
    said(&mut match way {
        As::Owner => place.as_user(args),
        As::Root => place.shelflife(args),
    })
}

/// Makes and removes temporary files as a server does, for a while; how many.
fn storm(place: &Place, data: &Path, time: Duration) -> u32 {
    let folder = data.join("base/pgsql_tmp");
    if !folder.exists() {
        place.user_folder(&folder);
    }
    let (end, mut made) = (Instant::now() + time, 0);
    while Instant::now() < end {
        let path = folder.join(format!("pgsql_tmp1.{made}"));
        fs::write(&path, "x").unwrap();
        place.give(&path);
        if made >= 100 {
            fs::remove_file(folder.join(format!("pgsql_tmp1.{}", made - 100))).unwrap();
        }
        made += 1;
    }
    // The server removes what lies here when it starts; these last ones stay for the look.
    for file in fs::read_dir(&folder).unwrap().flatten() {
        fs::File::options().append(true).open(file.path()).unwrap();
    }
    made
}

#[test]
fn every_file_of_a_server_under_load_and_a_storm_carries_what_the_policy_says() {
    let name = "every_file_of_a_server_under_load_and_a_storm_carries_what_the_policy_says";
    for way in ways() {
        let Some(place) = Place::new(name, Need::Server) else { return };
        let mut cluster = place.cluster("c", |options| {
            options.set("checkpoint_timeout", "30s");
        });
        cluster.start().unwrap();
        let data = cluster.data().path().to_owned();
        initialise(&place, &cluster);
        let args = [data.to_str().unwrap(), "--policy", "temp-vs-rest", "--name", "w"];
        let mut watcher = Watcher::start(&place, *way, &args);
        let space = place.user_folder("space");
        let load = load(&place, &cluster, &["-c", "4", "-j", "2"]);
        let mut session = session(&cluster);
        session.batch("CREATE DATABASE other").unwrap();
        session.batch(&format!("CREATE TABLESPACE s LOCATION '{}'", space.display())).unwrap();
        session
            .batch("CREATE TABLE t TABLESPACE s AS SELECT g FROM generate_series(1, 20000) AS g")
            .unwrap();
        session.batch("VACUUM FULL pgbench_tellers").unwrap();
        session.batch("CREATE INDEX ON t (g)").unwrap();
        assert!(storm(&place, &data, Duration::from_millis(700)) > 100);
        watcher.has_seen_everything(&place, &data);
        let folders = [data.as_path(), &space];
        assert_eq!(wrong(&cluster, &folders, temp_vs_rest), BTreeSet::new(), "{way:?}");
        // Everybody may see that: no process of the server stopped, none carries anything.
        let status = verb(&place, *way, &["status", "--json"]);
        let json = status.expect(0).json();
        assert_eq!(json[0]["kind"], "watch");
        let folder = &json[0]["watching"]["folders"][0];
        assert_eq!(folder["mode"], if *way == As::Owner { "folders" } else { "filesystem" });
        eventually("the tablespace in the figures", || {
            let json = verb(&place, *way, &["status", "--json"]).json();
            let roots = &json[0]["watching"]["folders"][0]["roots"];
            (roots.as_array()?.len() == 2).then_some(())
        });
        assert_eq!(folder["refused"], serde_json::json!([]), "{json}");
        // Switched like a run under the hook.
        verb(&place, *way, &["switch", "off", "--run", "w"]).expect(0);
        assert_eq!(wrong(&cluster, &folders, |_| NOT_SET), BTreeSet::new(), "{way:?}");
        verb(&place, *way, &["switch", "wal-first", "--run", "w"]).expect(0);
        let wal_first = |path: &Path| {
            let young = path.iter().any(|part| part == "pg_wal" || part == "pgsql_tmp");
            let kept = path.to_string_lossy();
            let named = kept.contains("archive_status") || kept.ends_with(".history");
            if young && !named { SHORT } else { NOT_SET }
        };
        assert_eq!(wrong(&cluster, &folders, wal_first), BTreeSet::new(), "{way:?}");
        drop(load);
    }
}

#[test]
fn kill_9_of_the_daemon_leaves_nothing_and_the_next_start_heals_file_by_file() {
    let name = "kill_9_of_the_daemon_leaves_nothing_and_the_next_start_heals_file_by_file";
    for way in ways() {
        let Some(place) = Place::new(name, Need::Server) else { return };
        let mut cluster = place.cluster("c", |_| ());
        cluster.start().unwrap();
        let data = cluster.data().path().to_owned();
        initialise(&place, &cluster);
        let args = [data.to_str().unwrap(), "--policy", "temp-vs-rest", "--name", "w"];
        let load = load(&place, &cluster, &["-c", "4", "-j", "2"]);
        let mut segments = Vec::new();
        for round in 0..3u64 {
            let watcher = Watcher::start(&place, *way, &args);
            assert_eq!(wrong(&cluster, &[&data], temp_vs_rest), BTreeSet::new(), "{way:?} {round}");
            segments.extend(segments_made_by(watcher.child.0.id()));
            watcher.signal(Signal::KILL);
            drop(watcher);
            // What happens while nobody looks: hints that were lost, and hints that are wrong.
            session(&cluster).batch(&format!("CREATE TABLE t{round} (a int PRIMARY KEY)")).unwrap();
            for (path, _) in files_below(&data.join("base")).iter().step_by(7) {
                set_hint(path, round);
            }
        }
        drop(load);
        let text = verb(&place, *way, &["status"]).out;
        assert!(text.starts_with("no runs in"), "collected: {text}");
        let table = fs::read_to_string("/proc/sysvipc/shm").unwrap();
        for id in segments {
            assert!(!table.contains(&format!(" {id} ")), "segment {id} is left");
        }
    }
}

#[test]
fn sigterm_ends_it_and_leaves_no_memory_behind() {
    let name = "sigterm_ends_it_and_leaves_no_memory_behind";
    for way in ways() {
        let Some(place) = Place::new(name, Need::Nothing) else { return };
        let data = data_folder(&place, "data");
        let mut watcher = Watcher::start(&place, *way, &[data.to_str().unwrap()]);
        let pid = watcher.child.0.id();
        assert_eq!(segments_made_by(pid).len(), 2);
        watcher.signal(Signal::TERM);
        assert!(watcher.child.0.wait().unwrap().success(), "{}", watcher.log());
        assert_eq!(segments_made_by(pid), [] as [i32; 0], "{way:?}");
        let text = verb(&place, *way, &["status"]).out;
        assert!(text.starts_with("no runs in"), "{way:?}: {text}");
    }
}

#[test]
fn sighup_reads_the_policy_again_and_a_broken_one_changes_nothing() {
    let name = "sighup_reads_the_policy_again_and_a_broken_one_changes_nothing";
    let Some(place) = Place::new(name, Need::Nothing) else { return };
    let data = data_folder(&place, "data");
    let text = "name = \"mine\"\nlayout = \"postgres\"\ndefault = \"extreme\"\n";
    let policy = place.policy("mine.toml", text);
    let mut watcher = Watcher::start(
        &place,
        ways()[ways().len() - 1],
        &[data.to_str().unwrap(), "--policy", &policy],
    );
    let file = data.join("base/5/16384");
    assert_eq!(hint(&file).unwrap(), EXTREME);
    fs::write(&policy, "default = \"for ever\"\n").unwrap();
    watcher.signal(Signal::HUP);
    eventually("its word", || watcher.log().contains("stays as it was").then_some(()));
    watcher.has_seen_everything(&place, &data);
    fs::write(&policy, text.replace("extreme", "short")).unwrap();
    watcher.signal(Signal::HUP);
    eventually("the new hint", || (hint(&file).unwrap() == SHORT).then_some(()));
}

#[test]
fn a_second_daemon_is_refused_and_the_first_is_named() {
    let name = "a_second_daemon_is_refused_and_the_first_is_named";
    let Some(place) = Place::new(name, Need::Nothing) else { return };
    let data = data_folder(&place, "data");
    let watcher = Watcher::start(&place, As::Owner, &[data.to_str().unwrap()]);
    for way in ways() {
        let second = verb(&place, *way, &["watch", data.to_str().unwrap()]);
        second.fails(2, &["another daemon watches it", &format!("process {}", watcher.pid())]);
    }
    let words = ["no PG_VERSION", "layout"];
    let nothing = place.user_folder("nothing");
    verb(&place, As::Owner, &["watch", nothing.to_str().unwrap()]).fails(2, &words);
    verb(&place, As::Owner, &["watch", "/nonexistent"]).fails(2, &["no such folder"]);
    let paths = "name = \"p\"\nlayout = \"paths\"\n[[rule]]\npath = \"a\"\nlifetime = \"short\"\n";
    let paths = place.policy("p.toml", paths);
    let args = ["watch", nothing.to_str().unwrap(), "--policy", &paths, "--relations"];
    verb(&place, As::Owner, &args).fails(2, &["layout paths", "no relations"]);
    if is_root() {
        let foreign = place.path("foreign");
        fs::create_dir(&foreign).unwrap();
        fs::set_permissions(&foreign, fs::Permissions::from_mode(0o700)).unwrap();
        let words = ["belongs to user 0", "start the daemon as that user"];
        verb(&place, As::Owner, &["watch", foreign.to_str().unwrap()]).fails(3, &words);
    }
}

#[test]
fn a_hook_and_a_daemon_that_do_not_agree_are_named() {
    let name = "a_hook_and_a_daemon_that_do_not_agree_are_named";
    let Some(place) = Place::new(name, Need::Server) else { return };
    let cluster = place.cluster("c", |_| ());
    place.start(&cluster, &["--policy", "wal-first", "--name", "hook"]);
    let data = cluster.data().path().to_str().unwrap();
    let args = [data, "--policy", "temp-vs-rest", "--name", "daemon"];
    let watcher = Watcher::start(&place, As::Owner, &args);
    let words = "hook is on with wal-first";
    let status = verb(&place, As::Owner, &["status"]);
    assert!(status.expect(1).err.contains(words), "{status:#?}");
    assert!(status.err.contains("daemon is on with temp-vs-rest"), "{status:#?}");
    eventually("its word", || watcher.log().contains(words).then_some(()));
    verb(&place, As::Owner, &["switch", "wal-first", "--run", "daemon"]).expect(0);
    let agreed = verb(&place, As::Owner, &["status"]);
    assert_eq!(agreed.expect(0).err, "", "{agreed:#?}");
    let mut stop = place.plain_as_user(place.programs().pg_ctl());
    stop.arg("-D").arg(data).args(["-m", "fast", "-w", "stop"]);
    assert!(Guard::spawn(&mut stop).0.wait().unwrap().success());
}

#[test]
fn as_root_the_daemon_gives_up_every_right_and_cannot_be_looked_into() {
    let name = "as_root_the_daemon_gives_up_every_right_and_cannot_be_looked_into";
    let Some(place) = Place::new(name, Need::Root) else { return };
    let data = data_folder(&place, "data");
    let mut watcher =
        Watcher::start(&place, As::Root, &[data.to_str().unwrap(), "--policy", "temp-vs-rest"]);
    for task in fs::read_dir(format!("/proc/{}/task", watcher.pid())).unwrap().flatten() {
        let status = fs::read_to_string(task.path().join("status")).unwrap();
        let value = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap();
            line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        };
        let uid = place.user.uid().to_string();
        assert_eq!(value("Uid:"), vec![uid; 4]);
        for set in ["CapPrm:", "CapEff:", "CapInh:", "CapAmb:"] {
            assert_eq!(value(set), ["0000000000000000"], "{set}");
        }
        assert_eq!(value("NoNewPrivs:"), ["1"]);
    }
    // Its marks bring descriptors of everybody's files: the server's user must not get at them.
    let look = place.plain_as_user("ls").arg(format!("/proc/{}/fd", watcher.pid())).output();
    assert!(!look.unwrap().status.success());
    make(&place, &data.join("base/5/16900"));
    watcher.has_seen_everything(&place, &data);
}
