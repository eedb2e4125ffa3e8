use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::fs::chown;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use shelflife_postgres::Cancel;
use shelflife_postgres::Cluster;
use shelflife_postgres::ClusterOptions;
use shelflife_postgres::DataFolder;
use shelflife_postgres::Error;
use shelflife_postgres::Programs;
use shelflife_postgres::ServerUser;
use shelflife_postgres::StopMode;
use shelflife_postgres::pgbench;
use shelflife_postgres::pgbench::Initialise;
use shelflife_postgres::pgbench::Length;
use shelflife_postgres::pgbench::Load;
use shelflife_postgres::pgbench::Script;
use shelflife_postgres::programs::Search;

use crate::Need;
use crate::Place;
use crate::is_root;
use crate::skip;

#[test]
fn a_folder_in_use_is_refused_and_untouched() {
    let Some(place) = Place::new("a_folder_in_use_is_refused_and_untouched", Need::Nothing) else {
        return;
    };
    fs::create_dir(place.path("c")).unwrap();
    fs::write(place.path("c/mine"), "x").unwrap();
    assert!(matches!(Cluster::create(place.options("c")), Err(Error::NotEmpty { .. })));
    assert_eq!(fs::read(place.path("c/mine")).unwrap(), b"x");
    let told = Cluster::open(place.options("c")).unwrap_err().to_string();
    assert!(told.contains("data is not a PostgreSQL data folder: no such folder"), "{told}");
    let told = Cluster::create(place.options("none/c")).unwrap_err().to_string();
    assert!(told.starts_with("cannot make ") && told.ends_with("none/c"), "{told}");
}

#[test]
fn an_initdb_that_fails_leaves_nothing() {
    let Some(place) = Place::new("an_initdb_that_fails_leaves_nothing", Need::Nothing) else {
        return;
    };
    let mut options = place.options("c");
    options.initdb_args.push("--lc-collate=no_such_locale".into());
    let told = Cluster::create(options).unwrap_err().to_string();
    assert!(told.starts_with("initdb failed (exit status: 1):"), "{told}");
    assert!(told.contains("no_such_locale"), "{told}");
    assert!(!place.path("c").exists());
}

#[test]
fn a_server_that_refuses_shows_its_log() {
    let Some(place) = Place::new("a_server_that_refuses_shows_its_log", Need::Nothing) else {
        return;
    };
    let mut options = place.options("c");
    options.set("shared_buffers", "a lot");
    let mut cluster = Cluster::create(options).unwrap();
    for _ in 0..2 {
        let told = cluster.start().unwrap_err();
        assert!(matches!(told, Error::ServerRefused { .. }), "{told}");
        let told = told.to_string();
        assert_eq!(
            told.matches("invalid value for parameter \"shared_buffers\"").count(),
            1,
            "{told}"
        );
        assert_eq!(cluster.pid(), None);
    }
    assert!(matches!(cluster.check_alive(), Err(Error::NotRunning { .. })));
    cluster.set_settings(Vec::new()).unwrap();
    cluster.start().unwrap();
}

#[test]
fn a_second_server_is_refused() {
    let Some(place) = Place::new("a_second_server_is_refused", Need::Nothing) else { return };
    let mut options = place.options("c");
    options.keep = true;
    let mut first = Cluster::create(options.clone()).unwrap();
    first.start().unwrap();
    match Cluster::open(options.clone()) {
        Err(Error::AlreadyRunning { pid, .. }) => assert_eq!(Some(pid), first.pid()),
        other => panic!("{other:?}"),
    }
    first.check_alive().unwrap();
    drop(first);
    options.keep = false;
    drop(Cluster::open(options).unwrap());
    assert!(!place.path("c").exists());
}

#[test]
fn a_pid_file_of_a_stranger_is_named() {
    let Some(place) = Place::new("a_pid_file_of_a_stranger_is_named", Need::Nothing) else {
        return;
    };
    let mut cluster = Cluster::create(place.options("c")).unwrap();
    let mut stranger = Command::new("/bin/sleep");
    stranger.arg("600").current_dir("/");
    cluster.user().apply(&mut stranger);
    let mut stranger = stranger.spawn().unwrap();
    let file = cluster.data().path().join("postmaster.pid");
    fs::write(&file, format!("{}\n", stranger.id())).unwrap();
    // Who gives the file away is not the server: it must be able to read it.
    if is_root() {
        chown(&file, Some(cluster.user().uid()), Some(cluster.user().gid())).unwrap();
    }
    match cluster.start() {
        Err(Error::StalePidFile { command, .. }) => assert_eq!(command, "/bin/sleep 600"),
        other => panic!("{other:?}"),
    }
    stranger.kill().unwrap();
    stranger.wait().unwrap();
    // The process is gone: the server itself sees that the file is stale.
    cluster.start().unwrap();
}

#[test]
fn another_version_is_refused() {
    let Some(place) = Place::new("another_version_is_refused", Need::Nothing) else { return };
    let mut options = place.options("c");
    options.keep = true;
    let cluster = Cluster::create(options.clone()).unwrap();
    let other = if cluster.data().major() == 13 { 14 } else { 13 };
    fs::write(cluster.data().path().join("PG_VERSION"), format!("{other}\n")).unwrap();
    drop(cluster);
    assert!(matches!(Cluster::open(options), Err(Error::VersionMismatch { .. })));
}

#[test]
fn bad_settings_are_refused_before_anything_is_made() {
    let Some(place) = Place::new("bad_settings_are_refused_before_anything_is_made", Need::Nothing)
    else {
        return;
    };
    let mut options = place.options("c");
    options.set("port", "1");
    assert!(matches!(Cluster::create(options), Err(Error::BadSetting { .. })));
    assert!(!place.path("c").exists());
}

#[test]
fn a_server_started_by_other_means_goes_with_its_folder() {
    let Some(place) =
        Place::new("a_server_started_by_other_means_goes_with_its_folder", Need::Nothing)
    else {
        return;
    };
    let mut cluster = Cluster::create(place.options("c")).unwrap();
    let mut pg_ctl = Command::new(place.programs.pg_ctl());
    pg_ctl.args(["start", "--wait", "--silent", "-D"]).arg(cluster.data().path());
    pg_ctl.arg("-l").arg(cluster.data().path().join("log"));
    let args = cluster.server_args();
    let args: Vec<_> = args.iter().map(|arg| format!("'{}'", arg.display())).collect();
    pg_ctl.arg("-o").arg(args.join(" ")).current_dir("/");
    cluster.user().apply(&mut pg_ctl);
    assert!(pg_ctl.status().unwrap().success());
    let seen = cluster.data().server_processes().unwrap();
    assert!(seen.len() >= 4);
    assert!(matches!(cluster.start(), Err(Error::AlreadyRunning { .. })));
    drop(cluster);
    crate::assert_gone(&seen.iter().map(|process| process.pid).collect::<Vec<_>>());
    assert!(!place.path("c").exists());
}

#[test]
fn root_an_unreachable_folder_is_named() {
    let Some(place) = Place::new("root_an_unreachable_folder_is_named", Need::Root) else { return };
    let shut = place.path("shut");
    fs::create_dir(&shut).unwrap();
    fs::set_permissions(&shut, fs::Permissions::from_mode(0o700)).unwrap();
    fs::create_dir(shut.join("in")).unwrap();
    match Cluster::create(place.options("shut/in/c")) {
        Err(Error::Unreachable { folder, target, .. }) => {
            assert_eq!(folder, shut.canonicalize().unwrap());
            assert!(target.ends_with("shut/in/c"), "{target:?}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(fs::read_dir(shut.join("in")).unwrap().count(), 0);
    fs::set_permissions(&shut, fs::Permissions::from_mode(0o711)).unwrap();
    drop(Cluster::create(place.options("shut/in/c")).unwrap());
}

#[test]
fn root_programs_that_the_user_cannot_run_are_named() {
    let Some(place) = Place::new("root_programs_that_the_user_cannot_run_are_named", Need::Root)
    else {
        return;
    };
    let bindir = place.path("bin");
    fs::create_dir(&bindir).unwrap();
    fs::set_permissions(&bindir, fs::Permissions::from_mode(0o700)).unwrap();
    for name in ["initdb", "pg_ctl", "postgres", "pgbench"] {
        let real = place.programs.bindir().join(name);
        std::os::unix::fs::symlink(real, bindir.join(name)).unwrap();
    }
    let programs = Programs::find(&Search::new(Some(bindir.clone()))).unwrap();
    let told = Cluster::create(ClusterOptions::new(programs, place.path("c"))).unwrap_err();
    let wanted = format!("the server's user cannot run {}", bindir.join("postgres").display());
    assert_eq!(told.to_string(), wanted);
    assert!(!place.path("c").exists());
}

#[test]
fn root_a_foreign_data_folder_is_refused() {
    let Some(place) = Place::new("root_a_foreign_data_folder_is_refused", Need::Root) else {
        return;
    };
    let mut options = place.options("c");
    options.keep = true;
    options.user = Some("nobody".into());
    let cluster = Cluster::create(options.clone()).unwrap();
    let nobody = ServerUser::choose(Some("nobody")).unwrap();
    assert_eq!(cluster.data().uid(), nobody.uid());
    let data = cluster.data().path().to_owned();
    drop(cluster);
    // Its owner is found without being named.
    options.user = None;
    let mut cluster = Cluster::open(options.clone()).unwrap();
    assert_eq!(cluster.user(), &nobody);
    cluster.start().unwrap();
    drop(cluster);
    chown(&data, Some(0), Some(0)).unwrap();
    assert!(matches!(Cluster::open(options.clone()), Err(Error::WrongOwner { owner: 0, .. })));
    chown(&data, Some(1), Some(1)).unwrap();
    options.user = Some("nobody".into());
    assert!(matches!(Cluster::open(options), Err(Error::WrongOwner { owner: 1, .. })));
}

#[test]
fn root_the_server_keeps_nothing_of_roots() {
    let Some(place) = Place::new("root_the_server_keeps_nothing_of_roots", Need::Root) else {
        return;
    };
    let cluster = place.started("c");
    let pid = cluster.pid().unwrap();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let user = cluster.user();
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_ascii_whitespace().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(field("Uid:"), vec![user.uid().to_string(); 4]);
    assert_eq!(field("Gid:"), vec![user.gid().to_string(); 4]);
    assert_eq!(field("Groups:"), Vec::<String>::new());
    // Nor anything of the environment that could hold a secret.
    let environment = fs::read_to_string(format!("/proc/{pid}/environ")).unwrap();
    let names: Vec<_> = environment.split('\0').filter_map(|one| one.split_once('=')).collect();
    assert!(names.contains(&("USER", user.name())), "{names:?}");
    assert!(names.contains(&("LC_ALL", "C")), "{names:?}");
    let known = ["HOME", "USER", "LOGNAME", "PATH", "LD_LIBRARY_PATH", "TZ", "LC_ALL"];
    assert!(names.iter().all(|(name, _)| known.contains(name)), "{names:?}");
}

/// A small file system in memory, unmounted when dropped; that fails loudly if somebody is still in it.
struct Small(PathBuf);

impl Small {
    fn mount(place: &Place, test: &str, size: &str) -> Option<Self> {
        let at = place.path("small");
        fs::create_dir(&at).unwrap();
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size},mode=755"), "tmpfs"])
            .arg(&at)
            .status();
        if mount.is_ok_and(|status| status.success()) {
            Some(Small(at))
        } else {
            skip(test, "cannot mount a tmpfs")
        }
    }

    fn options(&self, place: &Place) -> ClusterOptions {
        let mut options = place.options("small/c");
        options.set("min_wal_size", "2MB").set("max_wal_size", "4MB");
        options
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg(&self.0).status().unwrap().success();
        assert!(unmounted || std::thread::panicking(), "somebody is left in {:?}", self.0);
    }
}

fn assert_disk_full(error: &Error, at: &Path) {
    match error {
        Error::DiskFull { path: Some(path), .. } => assert!(path.starts_with(at), "{error}"),
        other => panic!("{other:?}"),
    }
    let told = error.to_string();
    assert!(told.starts_with("disk full during "), "{told}");
    assert!(told.contains(at.to_str().unwrap()), "{told}");
}

#[test]
fn root_a_full_disk_is_told_by_initdb() {
    const NAME: &str = "root_a_full_disk_is_told_by_initdb";
    let Some(place) = Place::new(NAME, Need::Root) else { return };
    let Some(small) = Small::mount(&place, NAME, "16m") else { return };
    let error = Cluster::create(small.options(&place)).unwrap_err();
    assert_disk_full(&error, &small.0);
    assert!(error.to_string().contains("No space left on device"), "{error}");
    assert_eq!(fs::read_dir(&small.0).unwrap().count(), 0);
}

#[test]
fn root_a_full_disk_is_told_during_load_and_start() {
    const NAME: &str = "root_a_full_disk_is_told_during_load_and_start";
    let Some(place) = Place::new(NAME, Need::Root) else { return };
    let Some(small) = Small::mount(&place, NAME, "64m") else { return };
    let mut cluster = Cluster::create(small.options(&place)).unwrap();
    cluster.start().unwrap();
    let how = Initialise { scale: 5, args: Vec::new() };
    let dsn = cluster.dsn("postgres");
    let loaded = pgbench::initialise(&place.programs, &dsn, &how, &Cancel::never(), &mut |_| ());
    let error = cluster.explain(loaded.unwrap_err());
    assert_disk_full(&error, &small.0);
    assert!(error.to_string().contains("No space left on device"), "{error}");
    cluster.stop(StopMode::Immediate).unwrap();

    // Not a byte is left: not even for the pid file, nor for a whole line of the log. The free space of the file
    // system tells what the log cannot.
    let ballast = small.0.join("ballast");
    let file = fs::File::create(&ballast).unwrap();
    let chunk = vec![1; 4096];
    while std::io::Write::write_all(&mut &file, &chunk).is_ok() {}
    let error = cluster.start().unwrap_err();
    assert_disk_full(&error, &small.0);
    fs::remove_file(&ballast).unwrap();
    cluster.close().unwrap();
    assert_eq!(fs::read_dir(&small.0).unwrap().count(), 0);
}

#[test]
fn root_a_log_that_lacks_transactions_is_no_result() {
    const NAME: &str = "root_a_log_that_lacks_transactions_is_no_result";
    let Some(place) = Place::new(NAME, Need::Root) else { return };
    let Some(small) = Small::mount(&place, NAME, "64k") else { return };
    let cluster = place.started("c");
    let script = place.path("a.sql");
    fs::write(&script, "SELECT 1;\n").unwrap();
    let mut load = Load::new(1, Length::Transactions(5000));
    load.scripts = vec![Script::File(script, 1)];
    load.log_folder = Some(small.0.clone());
    let dsn = cluster.dsn("postgres");
    let run = |load: &Load| {
        pgbench::run(&place.programs, &dsn, load, &Cancel::never(), &mut |_| ()).map(drop)
    };
    // Its last line is torn, or missing.
    let told = run(&load).unwrap_err();
    assert!(matches!(told, Error::Unreadable { .. }), "{told}");
    assert!(told.to_string().starts_with("pgbench's log"), "{told}");
    load.length = Length::Transactions(100);
    run(&load).unwrap();
    assert_eq!(fs::read_dir(&small.0).unwrap().count(), 0);
}

#[test]
fn a_cluster_without_its_owner_is_discarded() {
    let Some(place) = Place::new("a_cluster_without_its_owner_is_discarded", Need::Nothing) else {
        return;
    };
    let mut cluster = place.started("c");
    let mut seen = cluster.data().server_processes().unwrap();
    // What a new process would find.
    Cluster::discard(&place.path("c")).unwrap();
    crate::assert_gone(&seen.iter().map(|process| process.pid).collect::<Vec<_>>());
    assert!(!place.path("c").exists());
    assert!(matches!(cluster.check_alive(), Err(Error::ServerDied { .. })));
    drop(cluster);

    // Nothing that was not made here is touched, even if it is a data folder.
    let cluster = place.started("d");
    fs::write(cluster.data().path().join("postgresql.conf"), "# mine\n").unwrap();
    seen = cluster.data().server_processes().unwrap();
    assert!(matches!(Cluster::discard(&place.path("d")), Err(Error::NotADataFolder { .. })));
    assert!(matches!(Cluster::discard(&place.path("e")), Err(Error::NotADataFolder { .. })));
    assert_eq!(cluster.data().server_processes().unwrap().len(), seen.len());
}

#[test]
fn what_is_no_data_folder_is_told() {
    let Some(place) = Place::new("what_is_no_data_folder_is_told", Need::Nothing) else { return };
    let cluster = Cluster::create(place.options("c")).unwrap();
    let data = cluster.data().path();
    assert!(matches!(DataFolder::open(&place.path("c")), Err(Error::NotADataFolder { .. })));
    fs::rename(data.join("global/pg_control"), data.join("global/away")).unwrap();
    let told = DataFolder::open(data).unwrap_err().to_string();
    assert!(told.contains("it has no file global/pg_control"), "{told}");
}

#[test]
fn only_root_starts_it_as_somebody_else() {
    const NAME: &str = "only_root_starts_it_as_somebody_else";
    if is_root() {
        skip::<()>(NAME, "needs an unprivileged user");
        return;
    }
    let Some(place) = Place::new(NAME, Need::Nothing) else { return };
    let mut options = place.options("c");
    options.user = Some("daemon".into());
    assert!(matches!(Cluster::create(options), Err(Error::NotRoot { .. })));
}

#[test]
fn a_start_that_takes_too_long_is_given_up() {
    let Some(place) = Place::new("a_start_that_takes_too_long_is_given_up", Need::Nothing) else {
        return;
    };
    let mut options = place.options("c");
    crate::ends::hang(&mut options);
    options.start_limit = Duration::from_millis(200);
    let mut cluster = Cluster::create(options).unwrap();
    fs::write(cluster.data().path().join("recovery.signal"), "").unwrap();
    let told = cluster.start().unwrap_err();
    assert!(matches!(told, Error::Timeout { .. }), "{told}");
    let pid = cluster.pid().unwrap();
    drop(cluster);
    crate::assert_gone(&[pid]);
}
