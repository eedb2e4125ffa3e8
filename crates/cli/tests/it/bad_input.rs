//! Bad input: one clear error, the right exit code, and nothing left behind.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::held::{SHORT, hint, remove_segment, segments_made_by, with_segment};
use crate::support::{Guard, Need, Place, Said, eventually, said, skip};

/// `shelflife ARGS…`, with the certainty that no shared memory of it and no run is left.
fn refused<A: AsRef<OsStr>>(place: &Place, args: impl IntoIterator<Item = A>) -> Said {
    let before = runs(place);
    let told = said(&mut place.shelflife(args));
    nothing_left(place, &told, &before);
    told
}

#[track_caller]
fn nothing_left(place: &Place, told: &Said, before: &[OsString]) {
    assert_eq!(segments_made_by(told.pid), [] as [i32; 0], "{told:#?}");
    assert_eq!(runs(place), before, "{told:#?}");
}

fn runs(place: &Place) -> Vec<OsString> {
    let entries = fs::read_dir(place.state()).into_iter().flatten().flatten();
    let mut names: Vec<OsString> = entries.map(|entry| entry.file_name()).collect();
    names.sort();
    names
}

/// A run that goes on, and its two segments.
fn running(place: &Place, name: &str) -> (Guard, [i32; 2]) {
    let child = Guard::spawn(&mut place.shelflife(["run", "--name", name, "--", "sleep", "600"]));
    let page = place.state().join(name).join("page");
    let line = eventually("the run", || fs::read_to_string(&page).ok());
    let mut ids = line.split(' ').skip(2).map(|id| id.parse().unwrap());
    let ids = [ids.next().unwrap(), ids.next().unwrap()];
    eventually("it is the command", || {
        let exe = fs::read_link(format!("/proc/{}/exe", child.0.id())).ok()?;
        (exe.file_name().unwrap() != "shelflife").then_some(())
    });
    (child, ids)
}

#[test]
fn a_command_that_cannot_be_run_leaves_no_run() {
    let name = "a_command_that_cannot_be_run_leaves_no_run";
    let Some(place) = Place::new(name, Need::Nothing) else { return };
    refused(&place, ["run", "--", "/no/such/program"])
        .fails(2, &["cannot run /no/such/program", "No such file"]);
    refused(&place, ["run", "--", "no-such-program"]).fails(2, &["cannot run no-such-program"]);
    refused(&place, ["run", "--", ""]).fails(2, &["cannot run"]);
    let file = place.policy("not-executable", "#!/bin/sh\n");
    refused(&place, ["run", "--", &file]).fails(3, &["cannot run", &file, "Permission denied"]);
    let told = refused(&place, ["run"]);
    assert!(told.expect(2).err.contains("Usage: shelflife run"), "{told:#?}");
    let run = ["run", "--policy", "wal-frist", "--", "true"];
    refused(&place, run).fails(2, &["wal-frist", "did you mean wal-first?"]);
    refused(&place, ["run", "--policy", "off", "--", "true"]).fails(2, &["the switch"]);
    refused(&place, ["run", "--name", "../x", "--", "true"]).fails(2, &["../x", "1 to 32 letters"]);
    refused(&place, ["run", "--name", "", "--", "true"]).fails(2, &["1 to 32 letters"]);
    let mut run = place.shelflife(["run", "--", "true"]);
    let told = said(run.env("SHELFLIFE_HOOK", "/no/hook.so"));
    told.fails(3, &["libshelflife_preload.so was not found", "/no/hook.so", "make hook"]);
    nothing_left(&place, &told, &[]);
}

#[test]
fn the_name_of_a_living_run_is_not_given_twice() {
    let name = "the_name_of_a_living_run_is_not_given_twice";
    let Some(place) = Place::new(name, Need::Nothing) else { return };
    let _run = running(&place, "main");
    refused(&place, ["run", "--name", "main", "--", "true"]).fails(2, &["main is there already"]);
}

#[test]
fn a_switch_names_the_candidates_if_there_are_several() {
    let name = "a_switch_names_the_candidates_if_there_are_several";
    let Some(place) = Place::new(name, Need::Nothing) else { return };
    refused(&place, ["switch", "off"]).fails(1, &["nothing to switch", "shelflife run -- CMD"]);
    refused(&place, ["switch", "off", "--run", "x"]).fails(2, &["no run named x", "status"]);
    refused(&place, ["status", "--run", "x"]).fails(2, &["no run named x", "status"]);
    let _runs = (running(&place, "first"), running(&place, "second"));
    let told = refused(&place, ["switch", "off"]);
    let expected = "shelflife: which run? Name one:\n  --run first   sleep 600\n  \
                    --run second   sleep 600\n";
    assert_eq!(told.expect(2).err, expected);
    refused(&place, ["switch", "of"]).fails(2, &["no policy named \"of\""]);
    let told = refused(&place, ["switch", "off", "--run", "second"]);
    let words = "no data folder to sweep: files opened from now on follow, others do not\n";
    assert!(told.expect(0).out.ends_with(words), "{told:#?}");
    let states = said(&mut place.shelflife(["status", "--json"])).json();
    assert_eq!((&states[0]["on"], &states[1]["on"]), (&true.into(), &false.into()));
}

#[test]
fn a_control_page_that_is_none_is_refused_by_name() {
    let name = "a_control_page_that_is_none_is_refused_by_name";
    let Some(place) = Place::new(name, Need::Nothing) else { return };
    let (child, [page, _]) = running(&place, "main");
    let alone = |words: &[&str]| {
        refused(&place, ["switch", "off"]).fails(2, words);
        refused(&place, ["status", "--run", "main"]).fails(2, words);
        // among all runs it is a note, and the answer is no
        refused(&place, ["status"]).fails(1, words);
    };
    let mut saved = Vec::new();
    with_segment(page, |bytes| saved = bytes.to_vec());
    // the version follows the magic
    with_segment(page, |bytes| bytes[8..12].copy_from_slice(&77u32.to_ne_bytes()));
    alone(&["run main: ", "version 77", "use the shelflife that started the run"]);
    with_segment(page, |bytes| bytes.fill(0));
    alone(&["run main: ", "zeroed or not a control page"]);
    with_segment(page, |bytes| {
        bytes.copy_from_slice(&saved);
        bytes[48] ^= 1;
    });
    alone(&["run main: ", "checksum is wrong"]);
    with_segment(page, |bytes| {
        bytes.copy_from_slice(&saved);
        bytes[16] ^= 1;
    });
    alone(&["run main: "]);
    with_segment(page, |bytes| bytes.copy_from_slice(&saved));
    refused(&place, ["switch", "off"]).expect(0);

    // Removed while the command has it attached: it stays until the command ends.
    remove_segment(page);
    refused(&place, ["switch", "on"]).expect(0);
    drop(child);
    let told = said(&mut place.shelflife(["switch", "off", "--run", "main"]));
    told.fails(2, &["run main: ", "its shared memory was removed"]);
    let told = said(&mut place.shelflife(["status"]));
    assert!(told.expect(1).out.starts_with("no runs in "), "collected: {told:#?}");
    assert_eq!(runs(&place), [] as [&str; 0]);
}

#[test]
fn a_run_of_root_is_for_others_to_see_but_not_to_switch() {
    let name = "a_run_of_root_is_for_others_to_see_but_not_to_switch";
    let Some(place) = Place::new(name, Need::Root) else { return };
    let _run = running(&place, "main");
    let mut foreign = place.as_user(["switch", "off"]);
    let told = said(foreign.env("SHELFLIFE_STATE", place.state()));
    told.fails(3, &["main/lock", "Permission denied"]);
    let mut foreign = place.as_user(["status"]);
    let told = said(foreign.env("SHELFLIFE_STATE", place.state()));
    assert!(told.expect(0).out.starts_with("run main: on, policy wal-first"), "{told:#?}");
    // It is not for them to collect either.
    let state = said(&mut place.shelflife(["status", "--json"])).json();
    assert_eq!(state[0]["generation"], 1);
}

#[test]
fn a_record_that_is_none_is_refused_with_its_file() {
    let name = "a_record_that_is_none_is_refused_with_its_file";
    let Some(place) = Place::new(name, Need::Nothing) else { return };
    let folder = place.state().join("main");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("page"), "nonsense\n").unwrap();
    refused(&place, ["status"]).fails(1, &["main/page", "not the record of a run"]);
    refused(&place, ["switch", "off", "--run", "main"]).fails(2, &["main/page", "not the record"]);
    fs::write(folder.join("page"), format!("shelflife-run 1 1 1 {:016x}\n", 1)).unwrap();
    refused(&place, ["status", "--run", "main"]).fails(2, &["main/run.json", "No such file"]);
    fs::write(folder.join("run.json"), "{").unwrap();
    refused(&place, ["status", "--run", "main"]).fails(2, &["main/run.json", "line 1"]);
}

#[test]
fn a_state_folder_that_cannot_be_used_is_refused() {
    let name = "a_state_folder_that_cannot_be_used_is_refused";
    let Some(place) = Place::new(name, Need::Root) else { return };
    let with = |mut command: Command, state: &Path| {
        let told = said(command.env("SHELFLIFE_STATE", state));
        assert_eq!(segments_made_by(told.pid), [] as [i32; 0]);
        told
    };
    let closed = place.path("closed");
    fs::create_dir(&closed).unwrap();
    let run = ["run", "--", "true"];
    with(place.as_user(run), &closed).fails(3, &["closed", "Permission denied"]);
    with(place.as_user(run), &closed.join("deeper")).fails(3, &["deeper", "Permission denied"]);
    let file = place.policy("file", "");
    with(place.shelflife(run), Path::new(&file)).fails(2, &[&file]);
    with(place.shelflife(run), Path::new("/proc/nowhere")).fails(2, &["/proc/nowhere"]);
    // a folder of another user, who could plant runs there
    let foreign = place.user_folder("foreign");
    for args in [&run[..], &["status"], &["switch", "off"]] {
        with(place.shelflife(args), &foreign)
            .fails(2, &["foreign", "belongs to user", "must belong to you or to root"]);
    }
    assert_eq!(fs::read_dir(&foreign).unwrap().count(), 0);
    let mut none = place.as_user(["status"]);
    let told = said(none.env_remove("SHELFLIFE_STATE"));
    told.fails(2, &["$SHELFLIFE_STATE", "$XDG_RUNTIME_DIR"]);
    let told = with(place.shelflife(["status"]), Path::new("/nowhere/at/all"));
    assert!(told.expect(1).out.starts_with("no runs in /nowhere/at/all"), "{told:#?}");
}

#[test]
fn a_full_state_folder_leaves_neither_memory_nor_record() {
    let name = "a_full_state_folder_leaves_neither_memory_nor_record";
    let Some(place) = Place::new(name, Need::Root) else { return };
    // In a mount namespace of its own: nothing stays mounted.
    let script = "mount -t tmpfs -o size=8k none \"$SHELFLIFE_STATE\" || exit 99
        dd if=/dev/zero of=\"$SHELFLIFE_STATE/.full\" bs=4k 2>/dev/null
        \"$@\" & wait $!; code=$?
        ls -A \"$SHELFLIFE_STATE\"; awk -v made=$! '$5 == made' /proc/sysvipc/shm
        exit $code";
    let ours = place.shelflife(["run", "--", "true"]);
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", script, "sh"]);
    command.arg(ours.get_program()).args(ours.get_args()).env("SHELFLIFE_STATE", place.state());
    let told = said(&mut command);
    if told.code == Some(99) || told.err.contains("unshare") {
        skip::<()>(name, "no mount namespace of one's own");
        return;
    }
    told.fails(2, &["No space left on device"]);
    assert_eq!(told.out, ".full\n", "neither a record nor a segment: {told:#?}");
}

#[test]
fn a_policy_that_is_none_is_refused_with_line_and_column() {
    let name = "a_policy_that_is_none_is_refused_with_line_and_column";
    let Some(place) = Place::new(name, Need::Nothing) else { return };
    let (_run, _) = running(&place, "main");
    let head = "name = \"x\"\nlayout = \"postgres\"\n";
    for (text, place_in_text, words) in [
        ("name = \"x\"\nlayout = \n", "2:", "") as (&str, &str, &str),
        (&format!("{head}default = \"shrot\"\n"), "3:11", "shrot"),
        (&format!("{head}[[rule]]\nclass = \"wall\"\nlifetime = \"short\"\n"), "4:9", "wall"),
        (&format!("{head}[[rule]]\npath = \"a[\"\nlifetime = \"short\"\n"), "4:10", ""),
        (&format!("{head}colour = \"red\"\n"), "3:1", "colour"),
        ("\u{1b}[31m", "1:", ""),
        ("", "1:1", ""),
    ] {
        let file = place.policy("bad.toml", text);
        let at = format!("{file}:{place_in_text}");
        for args in [
            &["run", "--policy", &file, "--", "true"][..],
            &["switch", &file],
            &["policy", "show", &file],
            &["policy", "explain", "--policy", &file, "x"],
        ] {
            let told = refused(&place, args);
            told.expect(2);
            assert!(told.err.contains(&at) && told.err.contains(words), "{at} {words} {told:#?}");
            assert!(!told.err.contains('\u{1b}'), "{told:#?}");
        }
        let told = refused(&place, ["policy", "check", &file]);
        assert!(told.expect(1).out.contains(&at), "{at} {told:#?}");
    }
    let state = said(&mut place.shelflife(["status", "--json"])).json();
    assert_eq!(state[0]["generation"], 1, "a policy that is none switches nothing");
    refused(&place, ["switch", "/no/such.toml"]).fails(2, &["/no/such.toml", "No such file"]);
    refused(&place, ["switch", "/"]).fails(2, &["/", "Is a directory"]);
}

#[test]
fn what_is_no_data_folder_is_not_swept() {
    let name = "what_is_no_data_folder_is_not_swept";
    let Some(place) = Place::new(name, Need::Nothing) else { return };
    let folder = place.path("folder");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("16384"), "").unwrap();
    let dir = folder.to_str().unwrap();
    let apply = |dir: &str| refused(&place, ["apply", dir, "--policy", "temp-vs-rest"]);
    apply(dir).fails(2, &[dir, "not a PostgreSQL data folder", "PG_VERSION"]);
    apply("/no/such").fails(2, &["/no/such", "no such folder"]);
    let file = folder.join("16384");
    apply(file.to_str().unwrap()).fails(2, &["16384"]);
    assert_eq!(hint(&file).unwrap(), 0);
    let told = refused(&place, ["apply", dir]);
    assert!(told.expect(2).err.contains("--policy <POLICY>|--clear"), "{told:#?}");
    let told = refused(&place, ["apply", dir, "--clear", "--policy", "wal-first"]);
    assert!(told.expect(2).err.contains("cannot be used with"), "{told:#?}");
    // Clearing needs no data folder.
    refused(&place, ["hint", "set", "short", file.to_str().unwrap()]).expect(0);
    refused(&place, ["apply", dir, "--clear"]).expect(0);
    assert_eq!(hint(&file).unwrap(), 0);
}

#[test]
fn a_folder_of_another_user_is_not_swept() {
    let name = "a_folder_of_another_user_is_not_swept";
    let Some(place) = Place::new(name, Need::Root) else { return };
    let folder = place.path("folder");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(folder.join("PG_VERSION"), "15\n").unwrap();
    let dir = folder.to_str().unwrap();
    let told = said(&mut place.as_user(["apply", dir, "--policy", "temp-vs-rest"]));
    told.fails(3, &[dir, "Permission denied"]);
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    let told = said(&mut place.as_user(["apply", dir, "--policy", "temp-vs-rest"]));
    assert!(told.expect(3).out.contains("refused"), "{told:#?}");
    assert_eq!(hint(&folder.join("PG_VERSION")).unwrap(), 0);
}

#[test]
fn odd_names_are_hinted_and_shown_without_control_characters() {
    let name = "odd_names_are_hinted_and_shown_without_control_characters";
    let Some(place) = Place::new(name, Need::Nothing) else { return };
    let folder = place.path("odd");
    fs::create_dir(&folder).unwrap();
    let names: [&[u8]; 6] =
        [b"with space", b"new\nline", b"\xff\xfe", b"\x1b[31mred", b"-r", b"quote'\"\\"];
    let files: Vec<_> = names.iter().map(|name| folder.join(OsStr::from_bytes(name))).collect();
    files.iter().for_each(|file| fs::write(file, "").unwrap());
    let mut set = place.shelflife(["hint", "set", "short", "--"]);
    said(set.args(names.map(OsStr::from_bytes)).current_dir(&folder)).expect(0);
    assert!(files.iter().all(|file| hint(file).unwrap() == SHORT));
    let told = said(&mut place.shelflife([
        OsStr::new("hint"),
        "get".as_ref(),
        "-r".as_ref(),
        folder.as_ref(),
    ]));
    assert_eq!(told.expect(0).out.matches("short").count(), names.len(), "{told:#?}");
    assert!(!told.out.contains('\u{1b}') && told.out.contains("\\u{1b}[31mred"), "{told:#?}");
    let lines = told.out.lines().count();
    assert_eq!(lines, names.len() + 2, "one line each: {told:#?}");
    let mut get = place.shelflife(["hint", "get", "--json", "-r"]);
    let json = said(get.arg(&folder)).json();
    let paths: Vec<&str> =
        json.as_array().unwrap().iter().map(|row| row["path"].as_str().unwrap()).collect();
    assert!(paths.contains(&folder.join("new\nline").to_str().unwrap()), "{paths:?}");

    // What is not there is named, and the others are done all the same.
    let mut get = place.shelflife(["hint", "get", "--"]);
    let told = said(get.args(["no\nsuch", "with space"]).current_dir(&folder));
    told.fails(2, &["no\\nsuch", "No such file"]);
    assert!(told.out.contains("short  with space"), "{told:#?}");
    said(place.shelflife(["hint", "get"]).arg(&folder)).fails(2, &["it is a folder; -r"]);
    said(&mut place.shelflife(["hint", "set", "off", "x"])).expect(2);
}

#[test]
fn a_pipe_keeps_nobody_waiting() {
    let name = "a_pipe_keeps_nobody_waiting";
    let Some(place) = Place::new(name, Need::Nothing) else { return };
    let fifo = place.path("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let told = said(place.shelflife(["hint", "get", "/proc/version"]).arg(&fifo));
    assert!(told.expect(0).out.contains("not-set  /proc/version"), "{told:#?}");
    said(&mut place.shelflife(["hint", "get", "/proc/self/fd/nine"])).expect(2);
}

#[test]
fn a_file_of_another_user_is_not_hinted() {
    let name = "a_file_of_another_user_is_not_hinted";
    let Some(place) = Place::new(name, Need::Root) else { return };
    let (foreign, closed) = (place.policy("foreign", ""), place.policy("closed", ""));
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o600)).unwrap();
    let own = place.path("user/own");
    fs::write(&own, "").unwrap();
    place.give(&own);
    let mut set = place.as_user(["hint", "set", "short", &closed]);
    let told = said(set.arg(&own));
    told.fails(3, &[&closed, "cannot open it", "Permission denied"]);
    assert_eq!(hint(&own).unwrap(), SHORT, "the others are done all the same");
    said(&mut place.as_user(["hint", "get", &foreign])).expect(0);
    // Since 6.13 the kernel asks for the owner.
    let told = said(&mut place.as_user(["hint", "set", "short", &foreign]));
    if told.code == Some(0) {
        skip::<()>(name, "this kernel lets anyone set hints");
        return;
    }
    told.fails(3, &[&foreign, "owner"]);
    assert_eq!(hint(Path::new(&foreign)).unwrap(), 0);
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let name = "a_reader_that_has_seen_enough_is_no_error";
    let Some(place) = Place::new(name, Need::Nothing) else { return };
    let folder = place.path("many");
    fs::create_dir(&folder).unwrap();
    (0..1000).for_each(|n| fs::write(folder.join(format!("{n:0>100}")), "").unwrap());
    let mut get = place.shelflife(["hint", "get", "-r"]);
    let mut child = get.arg(&folder).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), &*output.stderr), (Some(0), &b""[..]), "{output:?}");
}

#[test]
fn an_interrupted_switch_leaves_a_run_that_can_be_switched() {
    let name = "an_interrupted_switch_leaves_a_run_that_can_be_switched";
    let Some(place) = Place::new(name, Need::Nothing) else { return };
    let data = place.path("data");
    fs::create_dir_all(data.join("base/5")).unwrap();
    fs::write(data.join("PG_VERSION"), "15\n").unwrap();
    (0..10000).for_each(|n| fs::write(data.join(format!("base/5/{n}")), "").unwrap());
    let mut run = place.shelflife(["run", "--name", "main", "--", "sh", "-c"]);
    let script = "exec sleep 600";
    let _run = Guard::spawn(run.args([script, "postgres", "-D"]).arg(&data));
    let page = place.state().join("main/page");
    eventually("the run", || page.exists().then_some(()));
    for signal in [Signal::INT, Signal::TERM, Signal::KILL] {
        let mut switch = place.shelflife(["switch", "temp-vs-rest"]);
        let mut switch = Guard(switch.stdout(Stdio::null()).spawn().unwrap());
        std::thread::sleep(std::time::Duration::from_millis(15));
        let _ = kill_process(Pid::from_raw(switch.0.id() as i32).unwrap(), signal);
        let _ = switch.0.wait();
        said(&mut place.shelflife(["switch", "off"])).expect(0);
        let left = crate::held::files_below(&data);
        assert!(left.iter().all(|(_, hint)| *hint == 0), "after {signal:?}");
    }
}
