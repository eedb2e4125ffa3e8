//! What `status` tells of hints that came too late, while a recorder runs.

use std::process::Stdio;

use rustix::process::Signal;

use crate::support::{Guard, Need, Place, eventually, said, session, skip};
use crate::watched::{As, Watcher};

/// Bytes of hinted classes that were recorded, and how many of them had no hint.
fn recorded(place: &Place) -> Option<(u64, u64)> {
    let json = said(&mut place.shelflife(["status", "--json"])).json();
    let folders = json[0]["recording"]["folders"].as_array()?;
    let classes = folders.iter().flat_map(|folder| folder["classes"].as_array().unwrap());
    let bytes = classes.map(|class| {
        let number = |name: &str| class[name].as_u64().unwrap();
        (number("bytes"), number("late_bytes"))
    });
    Some(bytes.fold((0, 0), |(all, late), (a, l)| (all + a, late + l)))
}

#[test]
fn root_bpf_status_tells_late_bytes_while_a_recorder_runs() {
    const NAME: &str = "root_bpf_status_tells_late_bytes_while_a_recorder_runs";
    let Some(place) = Place::new(NAME, Need::RootAndServer) else { return };
    // Without it a checkpoint leaves everything in the page cache.
    let mut cluster = place.cluster("c", |options| {
        options.set("fsync", "on");
    });
    cluster.start().unwrap();
    let data = cluster.data().path().to_owned();
    let args = [data.to_str().unwrap(), "--policy", "temp-vs-rest", "--name", "w"];
    let watcher = Watcher::start(&place, As::Root, &args);
    assert_eq!(recorded(&place), None);
    let mut command = place.shelflife(["record", "-o", "t", "--path"]);
    command.arg(&data).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut recorder = Guard::spawn(&mut command);
    let mut session = session(&cluster);
    let mut count = 0;
    let mut write = |rows: u32| {
        count += 1;
        let made = format!(
            "CREATE TABLE made{count} AS SELECT g, repeat('x', 100) FROM generate_series(1, {rows}) g"
        );
        session.batch(&made).unwrap();
        session.batch("CHECKPOINT").unwrap();
    };
    let first = eventually("bytes that are recorded, or why not", || {
        write(2000);
        let ended = recorder.0.try_wait().unwrap().is_some();
        match recorded(&place).filter(|(all, _)| *all > 0) {
            None if ended => Some(None),
            bytes => bytes.map(Some),
        }
    });
    let Some(first) = first else {
        let mut said = String::new();
        let pipe = recorder.0.stderr.as_mut().unwrap();
        std::io::Read::read_to_string(pipe, &mut said).unwrap();
        assert_eq!(recorder.0.wait().unwrap().code(), Some(3), "{said}");
        skip::<()>(NAME, &said);
        return;
    };
    assert!(first.1 <= first.0, "{first:?}");
    // Nobody hints what is made now.
    watcher.signal(Signal::STOP);
    let grown = eventually("bytes that are late", || {
        write(2000);
        recorded(&place).filter(|(_, late)| *late >= first.1 + 100_000)
    });
    assert!(grown.0 > first.0 && grown.1 <= grown.0, "{first:?} {grown:?}");
    let text = said(&mut place.shelflife(["status"])).out;
    let line = text.lines().find(|line| line.contains("recorded so far"));
    assert!(line.is_some_and(|line| line.contains(data.to_str().unwrap())), "{text}");
    assert!(text.contains(" without extreme"), "{text}");
    watcher.signal(Signal::CONT);
    // With the recorder its figures go.
    let pid = rustix::process::Pid::from_child(&recorder.0);
    rustix::process::kill_process(pid, Signal::TERM).unwrap();
    // 1 if events were lost, which is no matter here
    assert!(recorder.0.wait().unwrap().code().is_some_and(|code| code <= 1));
    assert_eq!(recorded(&place), None);
}
