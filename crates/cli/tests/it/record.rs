//! `record`: commands, signals, kills, rights.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{Need, Place, Said, eventually, said as run};

/// A loop device, let go at the end.
struct Loop(String);

impl Loop {
    fn new(place: &Place) -> Loop {
        let image = place.path("image");
        std::fs::File::create(&image).unwrap().set_len(16 << 20).unwrap();
        let out = Command::new("losetup").args(["-f", "--show"]).arg(&image).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        Loop(String::from_utf8(out.stdout).unwrap().trim().to_owned())
    }

    /// A shell command that writes `count` blocks, each by itself.
    fn write(&self, count: u32) -> String {
        format!("dd if=/dev/zero of={} bs=4k count={count} oflag=direct 2>/dev/null", self.0)
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["-d", &self.0]).output();
    }
}

fn place(name: &str) -> Option<(Place, Loop)> {
    let place = Place::new(name, Need::Root)?;
    let device = Loop::new(&place);
    Some((place, device))
}

fn record(place: &Place, args: &[&str]) -> Said {
    run(&mut place.shelflife([&["record", "-o", "t"], args].concat()))
}

fn events(place: &Place, trace: &str) -> u64 {
    let said = run(&mut place.shelflife(["trace", "info", trace, "--json"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let info: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    info["meta"]["counts"]["events"].as_u64().unwrap()
}

#[test]
fn root_bpf_a_commands_writes_and_status_are_passed_on() {
    let Some((place, device)) = place("root_bpf_a_commands_writes_and_status_are_passed_on") else {
        return;
    };
    let script = format!("{}; exit 7", device.write(50));
    let said = record(&place, &["--device", &device.0, "--", "sh", "-c", &script]);
    assert_eq!(said.code, Some(7), "{said:?}");
    assert!(said.out.starts_with("t: 50 writes, 205 kB, 0 lost"), "{said:?}");
    assert!(said.out.contains("the command failed: exit status: 7"), "{said:?}");
    assert_eq!(events(&place, "t"), 50);
    // the place is taken now
    let said = record(&place, &["--device", &device.0, "--for", "1s"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    let said = run(&mut place.shelflife([
        "record",
        "-o",
        "u",
        "--json",
        "--device",
        &device.0,
        "--",
        "sh",
        "-c",
        "kill -9 $$",
    ]));
    assert_eq!(said.code, Some(137), "{said:?}");
    let json: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((&json["command"]["signal"], &json["reason"]), (&9.into(), &"command".into()));
}

#[test]
fn root_bpf_ctrl_c_and_time_end_a_recording_well() {
    let Some((place, device)) = place("root_bpf_ctrl_c_and_time_end_a_recording_well") else {
        return;
    };
    let begun = ["INT", "TERM"].map(|signal| {
        let mut command = place.shelflife(["record", "-o", signal, "--device", &device.0]);
        (signal, command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    });
    for (signal, child) in begun {
        write_until(&device, &place.path(format!("{signal}/events-0000.parquet")));
        let kill = ["-s", signal, &child.id().to_string()];
        assert!(Command::new("kill").args(kill).status().unwrap().success());
        let out = child.wait_with_output().unwrap();
        assert_eq!(out.status.code(), Some(0), "{out:?}");
        assert!(String::from_utf8_lossy(&out.stdout).contains(" 0 lost"), "{out:?}");
        assert!(events(&place, signal) > 0);
    }
    let said = record(&place, &["--device", &device.0, "--for", "50ms"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("nothing written"), "{said:?}");
}

#[test]
fn root_bpf_a_kill_loses_the_open_segment_at_most() {
    let Some((place, device)) = place("root_bpf_a_kill_loses_the_open_segment_at_most") else {
        return;
    };
    let mut command = place.shelflife(["record", "-o", "t", "--device", &device.0]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    write_until(&device, &place.path("t/events-0000.parquet"));
    child.kill().unwrap();
    child.wait().unwrap();
    let said = run(&mut place.shelflife(["trace", "check", "t"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("did not finish") || said.err.contains("did not finish"), "{said:?}");
    assert!(events(&place, "t") > 0);
    // and nothing of it is left in the kernel: another recorder starts as usual
    std::fs::remove_dir_all(place.path("t")).unwrap();
    let said = record(&place, &["--device", &device.0, "--", "sh", "-c", &device.write(5)]);
    assert_eq!((said.code, events(&place, "t")), (Some(0), 5), "{said:?}");
}

#[test]
fn root_bpf_missing_rights_are_named_and_leave_nothing() {
    let Some((place, device)) = place("root_bpf_missing_rights_are_named_and_leave_nothing") else {
        return;
    };
    let output = place.path("user/t");
    let mut command =
        place.as_user(["record", "-o", output.to_str().unwrap(), "--device", &device.0]);
    command.args(["--for", "1s"]);
    let said = run(&mut command);
    assert_eq!(said.code, Some(3), "{said:?}");
    assert!(said.err.contains("recording needs CAP_BPF and CAP_PERFMON"), "{said:?}");
    assert_eq!(said.err.lines().count(), 1, "{said:?}");
    assert!(!output.exists());
}

#[test]
fn what_cannot_be_recorded_is_told() {
    let Some(place) = Place::new("what_cannot_be_recorded_is_told", Need::Nothing) else { return };
    for (args, code, text) in [
        (&["--path", "/proc"][..], 3, "which has no block device"),
        (&["--path", "/absent"], 2, "cannot find /absent"),
        (&["--device", "/dev/null"], 2, "is no block device"),
        (&[], 2, "--device"),
        (&["--path", "/proc", "--for", "soon"], 2, "whole number"),
    ] {
        let said = record(&place, args);
        assert_eq!(said.code, Some(code), "{args:?}: {said:?}");
        assert!(said.err.contains(text), "{args:?}: {said:?}");
    }
}

/// Writes again and again until the recorder has closed this segment: the one way to know from
/// outside that it records.
fn write_until(device: &Loop, segment: &Path) {
    eventually("a closed segment", || {
        assert!(Command::new("sh").args(["-c", &device.write(8)]).status().unwrap().success());
        segment.exists().then_some(())
    });
}
