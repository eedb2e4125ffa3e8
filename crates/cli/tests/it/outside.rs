//! Nothing outside the data, WAL and tablespace folders is ever hinted.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use shelflife_postgres::{Cancel, Session};

use crate::held::{EXTREME, NOT_SET, files_below, held_in, hint, set_hint};
use crate::support::{Need, Place, eventually, said, session};

#[track_caller]
fn assert_not_hinted(folder: &Path) {
    let files = files_below(folder);
    assert!(!files.is_empty(), "{} has no files: nothing is shown", folder.display());
    let hinted: Vec<_> = files.iter().filter(|(_, hint)| *hint != NOT_SET).collect();
    assert!(hinted.is_empty(), "{hinted:#?}");
}

#[test]
fn archives_exports_and_logs_of_a_hinted_server_are_not_hinted() {
    let name = "archives_exports_and_logs_of_a_hinted_server_are_not_hinted";
    let Some(place) = Place::new(name, Need::Server) else { return };
    // Folders that look like a server's own.
    let archive = place.user_folder("archive");
    let exports = place.user_folder("base");
    let logs = place.user_folder("pg_wal");
    let cluster = place.cluster("c", |options| {
        options.set("archive_mode", "on");
        options.set("archive_command", format!("cp %p {}/%f", archive.display()));
        options.set("logging_collector", "on");
        options.set("log_directory", logs.to_str().unwrap());
    });
    place.start(&cluster, &["--policy", "temp-vs-rest"]);
    let mut session = session(&cluster);
    session.batch("CREATE TABLE t AS SELECT generate_series(1, 1000) AS a").unwrap();
    let exports_text = exports.display();
    session.batch(&format!("COPY t TO '{exports_text}/16384'")).unwrap();
    session.batch(&format!("COPY t TO PROGRAM 'cat > {exports_text}/16385'")).unwrap();
    session.batch(&format!("COPY t TO PROGRAM 'cd {exports_text} && cp 16384 16386'")).unwrap();
    session.batch("SELECT lo_from_bytea(4711, 'x')").unwrap();
    session.batch(&format!("SELECT lo_export(4711, '{exports_text}/16387')")).unwrap();
    for _ in 0..3 {
        session.batch("INSERT INTO t SELECT * FROM t; SELECT pg_switch_wal()").unwrap();
    }
    eventually("three segments in the archive", || {
        (files_below(&archive).len() >= 3).then_some(())
    });
    assert_eq!(files_below(&exports).len(), 4);
    for folder in [&archive, &exports, &logs] {
        assert_not_hinted(folder);
    }
    // A sweep with everything open must not reach them either.
    said(&mut place.as_user(["switch", "temp-vs-rest"])).expect(0);
    for folder in [&archive, &exports, &logs] {
        assert_not_hinted(folder);
    }
    assert_eq!(hint(&place.path("user/server.log")).unwrap(), NOT_SET);
    assert_eq!(hint(&cluster.data().path().join("PG_VERSION")).unwrap(), EXTREME, "swept");
}

#[test]
fn a_base_backup_by_a_client_under_the_run_is_not_hinted() {
    let name = "a_base_backup_by_a_client_under_the_run_is_not_hinted";
    let Some(place) = Place::new(name, Need::Server) else { return };
    let cluster = place.cluster("c", |_| ());
    place.start(&cluster, &["--policy", "temp-vs-rest", "--name", "main"]);
    session(&cluster).batch("CREATE TABLE t AS SELECT 1 AS a").unwrap();
    let backup = place.path("user/backup");
    let mut command = place.plain_as_user(place.programs().bindir().join("pg_basebackup"));
    command.arg("-h").arg(cluster.socket_folder()).args(["-U", "postgres", "-X", "stream"]);
    command.args(["-c", "fast", "--no-sync", "-D"]).arg(&backup);
    command.env("LD_PRELOAD", place.hook());
    said(command.env("SHELFLIFE_RUN", place.path("state-of-user/main"))).expect(0);
    assert_not_hinted(&backup);
    assert!(backup.join("PG_VERSION").exists());
}

#[test]
fn a_second_cluster_without_the_hook_is_not_hinted() {
    let name = "a_second_cluster_without_the_hook_is_not_hinted";
    let Some(place) = Place::new(name, Need::Server) else { return };
    let first = place.cluster("first", |_| ());
    let mut second = place.cluster("second", |_| ());
    place.start(&first, &["--policy", "temp-vs-rest"]);
    second.start().unwrap();
    let sql = "CREATE TABLE t AS SELECT 1 AS a; CHECKPOINT";
    session(&first).batch(sql).unwrap();
    let mut session = Session::connect(&second.dsn("postgres"), &Cancel::never()).unwrap();
    session.batch(sql).unwrap();
    said(&mut place.as_user(["switch", "temp-vs-rest"])).expect(0);
    assert!(held_in(second.data().path()).iter().all(|file| file.hint == NOT_SET));
    assert_not_hinted(second.data().path());
    // Nor is it where the first one's server reaches over.
    let path = second.data().path().join("base/reached");
    self::session(&first).batch(&format!("COPY t TO '{}'", path.display())).unwrap();
    assert_eq!(hint(&path).unwrap(), NOT_SET);
}

#[test]
fn a_rule_with_an_absolute_path_is_what_reaches_outside() {
    let name = "a_rule_with_an_absolute_path_is_what_reaches_outside";
    let Some(place) = Place::new(name, Need::Server) else { return };
    let archive = place.user_folder("archive");
    let policy = format!(
        "name = \"archive\"\nlayout = \"postgres\"\n\
         rule = [{{ path = \"{}/**\", lifetime = \"extreme\" }}]\n",
        archive.display()
    );
    let cluster = place.cluster("c", |_| ());
    place.start(&cluster, &["--policy", &place.policy("archive.toml", &policy)]);
    let copy = format!("COPY (SELECT 1) TO '{}/a'", archive.display());
    session(&cluster).batch(&copy).unwrap();
    assert_eq!(hint(&archive.join("a")).unwrap(), EXTREME);
    assert!(held_in(cluster.data().path()).iter().all(|file| file.hint == NOT_SET));
}

#[test]
fn programs_under_a_run_without_a_server_are_left_alone() {
    let name = "programs_under_a_run_without_a_server_are_left_alone";
    let Some(place) = Place::new(name, Need::Nothing) else { return };
    let folder = place.path("work/base/5");
    fs::create_dir_all(&folder).unwrap();
    fs::write(place.path("work/PG_VERSION"), "15\n").unwrap();
    let mut run = place.shelflife(["run", "--policy", "temp-vs-rest", "--", "sh", "-c"]);
    run.arg("echo > base/5/16384; cp base/5/16384 base/5/16385");
    said(run.current_dir(place.path("work")).stderr(Stdio::null())).expect(0);
    assert_not_hinted(&folder);
    set_hint(&folder.join("16384"), EXTREME);
    assert_eq!(hint(&folder.join("16384")).unwrap(), EXTREME, "the file system can");
}
