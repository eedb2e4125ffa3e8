//! Root sweeps the folder of a user who means ill: nothing of others is hinted, nothing hangs.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::held::{EXTREME, NOT_SET, files_below, hint};
use crate::support::{Guard, Need, Place, Said, eventually, said, skip};

/// A data folder of the server's user without a server.
fn data_folder(place: &Place, name: &str) -> PathBuf {
    let data = place.user_folder(name);
    for folder in ["base", "base/5", "global", "pg_wal", "pg_tblspc"] {
        place.user_folder(data.join(folder));
    }
    own_file(place, &data.join("PG_VERSION"), "15\n");
    own_file(place, &data.join("base/5/16384"), "");
    data
}

fn own_file(place: &Place, path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    place.give(path);
}

fn apply(place: &Place, data: &Path) -> Said {
    let mut command = place.shelflife([OsStr::new("apply"), data.as_os_str()]);
    said(command.args(["--policy", "temp-vs-rest", "--json"]))
}

#[track_caller]
fn assert_none(paths: &[&Path]) {
    for path in paths {
        assert_eq!(hint(path).unwrap(), NOT_SET, "{}", path.display());
    }
}

#[test]
fn links_pipes_and_devices_in_the_folder_lead_nowhere() {
    let name = "links_pipes_and_devices_in_the_folder_lead_nowhere";
    let Some(place) = Place::new(name, Need::Root) else { return };
    let data = data_folder(&place, "data");
    let base = data.join("base/5");
    let roots = PathBuf::from(place.policy("roots", ""));
    let outside = place.user_folder("outside");
    let others = outside.join("16384");
    own_file(&place, &others, "");
    symlink(&roots, base.join("1")).unwrap();
    symlink(&others, base.join("2")).unwrap();
    symlink(&outside, data.join("base/6")).unwrap();
    symlink("/", base.join("root")).unwrap();
    symlink(base.join("loop"), base.join("loop")).unwrap();
    fs::hard_link(&roots, base.join("3")).unwrap();
    assert!(Command::new("mkfifo").arg(base.join("4")).status().unwrap().success());
    let _listener = std::os::unix::net::UnixListener::bind(base.join("5")).unwrap();
    let device = base.join("6");
    if !Command::new("mknod").arg(&device).args(["c", "1", "3"]).status().unwrap().success() {
        skip::<()>(name, "mknod is refused: without a device");
    }
    // A process of the user that works there and holds all that open.
    let script = "exec 5<>4 6>>\"$1\" 7>>own 8</dev/zero 9>'gone (deleted)'; rm 'gone (deleted)'; \
                  echo; exec sleep 600";
    let mut sh = place.plain_as_user("sh");
    sh.args(["-c", script, "sh"]).arg(&others).current_dir(&base).stdout(Stdio::piped());
    chown(base.join("4"), Some(place.user.uid()), None).unwrap();
    let mut holder = Guard(sh.spawn().unwrap());
    let mut line = String::new();
    let mut out = std::io::BufReader::new(holder.0.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut out, &mut line).unwrap();

    let told = apply(&place, &data);
    let tally = told.expect(0).json();
    assert_eq!(tally["files"], 3, "PG_VERSION, 16384 and own: {tally}");
    assert_eq!(tally["foreign"], 1, "the hard link: {tally}");
    assert_eq!(tally["refused"], serde_json::json!({}));
    assert_none(&[&roots, &others]);
    assert_eq!(hint(&base.join("16384")).unwrap(), EXTREME);
    assert_eq!(hint(&base.join("own")).unwrap(), EXTREME);
}

#[test]
fn links_of_the_wal_folder_and_of_tablespaces_open_no_other_folder() {
    let name = "links_of_the_wal_folder_and_of_tablespaces_open_no_other_folder";
    let Some(place) = Place::new(name, Need::Root) else { return };
    let data = data_folder(&place, "data");
    let second = data_folder(&place, "second");
    let shared = place.user_folder("shared");
    for folder in ["PG_15_202209061", "PG_14_202107181", "elsewhere"] {
        place.user_folder(shared.join(folder));
        place.user_folder(shared.join(folder).join("5"));
        own_file(&place, &shared.join(folder).join("5/16384"), "");
    }
    let link = |to: &Path, name: &str| symlink(to, data.join("pg_tblspc").join(name)).unwrap();
    link(Path::new("/"), "1");
    link(&second, "2");
    link(&shared, "3");
    link(&data.join("pg_tblspc/4"), "4");
    link(Path::new("/no/such"), "5");
    link(Path::new("/proc/self"), "6");
    link(&data, "7");
    let tally = |data| apply(&place, data).expect(0).json();
    assert_eq!(tally(&data)["files"], 3, "two of the folder and one of the tablespace");
    assert_eq!(hint(&shared.join("PG_15_202209061/5/16384")).unwrap(), EXTREME);
    let others =
        [shared.join("PG_14_202107181/5/16384"), shared.join("elsewhere/5/16384"), second.clone()];
    assert_none(&[&others[0], &others[1]]);
    assert!(files_below(&second).iter().all(|(_, hint)| *hint == NOT_SET));

    let wal = data.join("pg_wal");
    let elsewhere = place.user_folder("wal");
    place.user_folder(elsewhere.join("archive_status"));
    place.user_folder(elsewhere.join("home"));
    for file in ["000000010000000000000001", "archive_status/x.ready", "home/own"] {
        own_file(&place, &elsewhere.join(file), "");
    }
    for (to, files) in [(Path::new("/"), 3), (&second, 3), (&elsewhere, 5), (&data, 3)] {
        let _ = fs::remove_dir(&wal).or_else(|_| fs::remove_file(&wal));
        symlink(to, &wal).unwrap();
        assert_eq!(tally(&data)["files"], files, "{}", to.display());
    }
    assert!(files_below(&second).iter().all(|(_, hint)| *hint == NOT_SET));
    assert_eq!(hint(&elsewhere.join("archive_status/x.ready")).unwrap(), EXTREME);
    assert_none(&[&elsewhere.join("home/own")]);
}

#[test]
fn a_version_file_that_is_a_pipe_or_endless_keeps_nobody_waiting() {
    let name = "a_version_file_that_is_a_pipe_or_endless_keeps_nobody_waiting";
    let Some(place) = Place::new(name, Need::Nothing) else { return };
    let data = data_folder(&place, "data");
    let version = data.join("PG_VERSION");
    fs::remove_file(&version).unwrap();
    assert!(Command::new("mkfifo").arg(&version).status().unwrap().success());
    apply(&place, &data).fails(2, &["not a PostgreSQL data folder"]);
    fs::remove_file(&version).unwrap();
    symlink("/dev/zero", &version).unwrap();
    apply(&place, &data).fails(2, &["not a PostgreSQL data folder"]);
    fs::remove_file(&version).unwrap();
    own_file(&place, &version, "15\n");
    let pid_file = data.join("postmaster.pid");
    assert!(Command::new("mkfifo").arg(&pid_file).status().unwrap().success());
    let mut run = place.shelflife(["run", "--", "sh", "-c", "exec sleep 600", "postgres", "-D"]);
    let _run = Guard::spawn(run.arg(&data));
    let page = place.state().join("1/page");
    eventually("the run", || page.exists().then_some(()));
    let told = said(&mut place.shelflife(["status"]));
    assert!(told.expect(0).out.contains("no server runs there"), "{told:#?}");
}

#[test]
fn folders_that_are_too_deep_are_counted_as_refused() {
    let name = "folders_that_are_too_deep_are_counted_as_refused";
    let Some(place) = Place::new(name, Need::Nothing) else { return };
    let data = data_folder(&place, "data");
    let mut deep = data.join("base");
    (0..70).for_each(|_| deep.push("d"));
    fs::create_dir_all(&deep).unwrap();
    own_file(&place, &deep.join("file"), "");
    let told = apply(&place, &data);
    let tally = told.expect(3).json();
    assert_eq!(tally["refused"], serde_json::json!({"36": 1}), "ENAMETOOLONG");
    assert_eq!((&tally["files"], &tally["settled"]), (&2.into(), &true.into()));
    let mut text = place.shelflife(["apply", "--clear"]);
    let told = said(text.arg(&data));
    assert!(told.expect(3).out.contains("refused 1 times: File name too long"), "{told:#?}");
}

#[test]
fn odd_names_are_swept_like_others() {
    let name = "odd_names_are_swept_like_others";
    let Some(place) = Place::new(name, Need::Nothing) else { return };
    let data = data_folder(&place, "data\n\u{1b}[31m");
    for name in [&b"\xff\xfe"[..], b"new\nline", b" ", b"x (deleted)", b"...", &[b'n'; 255]] {
        own_file(&place, &data.join("base/5").join(OsStr::from_bytes(name)), "");
    }
    assert_eq!(apply(&place, &data).expect(0).json()["files"], 8);
    assert!(files_below(&data).iter().all(|(_, hint)| *hint == EXTREME));
    let mut clear = place.shelflife(["apply", "--clear"]);
    let told = said(clear.arg(&data));
    assert_eq!(told.expect(0).out.lines().count(), 1, "{told:#?}");
    assert!(told.out.contains("\\n\\u{1b}[31m: 0 hints set, 8 cleared on 8 files"), "{told:#?}");
}

#[test]
fn files_and_folders_that_vanish_during_a_sweep_are_no_errors() {
    let name = "files_and_folders_that_vanish_during_a_sweep_are_no_errors";
    let Some(place) = Place::new(name, Need::Nothing) else { return };
    let data = data_folder(&place, "data");
    let base = data.join("base");
    let (place, stop) = (&place, AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                for database in 10..14 {
                    let folder = base.join(database.to_string());
                    fs::create_dir(&folder).unwrap();
                    place.give(&folder);
                    (0..20).for_each(|n| own_file(place, &folder.join(n.to_string()), ""));
                    fs::rename(&folder, base.join("moved")).unwrap();
                    fs::remove_dir_all(base.join("moved")).unwrap();
                }
            }
        });
        let tallies: Vec<_> = (0..20).map(|_| apply(place, &data)).collect();
        stop.store(true, Ordering::Relaxed);
        for told in tallies {
            assert!(matches!(told.code, Some(0 | 1)), "{told:#?}");
            assert_eq!(told.json()["refused"], serde_json::json!({}));
        }
    });
    assert_eq!(hint(&data.join("base/5/16384")).unwrap(), EXTREME);
}

#[test]
fn who_attaches_roots_page_gets_no_folder_swept() {
    let name = "who_attaches_roots_page_gets_no_folder_swept";
    let Some(place) = Place::new(name, Need::Root) else { return };
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/server.c");
    let program = place.path("postgres");
    let done = Command::new("cc").arg("-o").arg(&program).arg(source).output();
    if !done.is_ok_and(|output| output.status.success()) {
        skip::<()>(name, "no C compiler");
        return;
    }
    let data = data_folder(&place, "data");
    let start = |data: &Path, uid: u32, command: &mut Command| {
        let mut command = Command::new(command.get_program());
        std::os::unix::process::CommandExt::uid(&mut command, uid);
        command.env("LD_PRELOAD", place.hook()).env("SHELFLIFE_RUN", place.state().join("main"));
        let server = Guard::spawn(command.arg("-D").arg(data));
        eventually("its pid file", || {
            fs::read_to_string(data.join("postmaster.pid")).ok().filter(|text| !text.is_empty())
        });
        server
    };
    let mut run = place.shelflife(["run", "--name", "main", "--policy", "temp-vs-rest", "--"]);
    let _run = Guard::spawn(run.args(["sh", "-c", "exec sleep 600", "postgres", "-D"]).arg(&data));
    let page = place.state().join("main/page");
    eventually("the run", || page.exists().then_some(()));
    let _server = start(&data, place.user.uid(), &mut Command::new(&program));
    let nobody = 65534;
    let foreign = place.path("foreign");
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("PG_VERSION"), "15\n").unwrap();
    for path in [&foreign, &foreign.join("PG_VERSION")] {
        chown(path, Some(nobody), None).unwrap();
    }
    let _foreign = start(&foreign, nobody, &mut Command::new(&program));

    let json = said(&mut place.shelflife(["switch", "temp-vs-rest", "--json"])).json();
    let swept = json["switched"]["swept"].as_array().unwrap();
    assert_eq!(swept.len(), 1, "{json}");
    assert_eq!(swept[0]["folder"], data.to_str().unwrap());
    assert_none(&[&foreign.join("PG_VERSION")]);
    assert_eq!(hint(&data.join("base/5/16384")).unwrap(), EXTREME);
}
