//! Every replaced function hints, and changes nothing else.

use std::fs;

use shelflife_layout::Class;

use crate::support::{Bed, short_by_name};

fn prepare(bed: &Bed) -> String {
    let dir = bed.folder("work");
    fs::create_dir(dir.join("sub.s")).expect("a folder");
    fs::write(dir.join("untouched.s"), "").expect("a file");
    std::os::unix::fs::symlink("/dev/null", dir.join("null.s")).expect("a link");
    dir.to_str().expect("text").to_owned()
}

#[test]
fn every_function_hints_and_nothing_else_changes() {
    let bed = Bed::new(&short_by_name(), &[]);
    let program = bed.compile("calls", "calls");
    let dir = prepare(&bed);
    let hooked = bed.output(&program, &[&dir]);

    fs::remove_dir_all(&dir).expect("removed");
    prepare(&bed);
    let plain = std::process::Command::new(&program).arg(&dir).output().expect("started");
    let plain = String::from_utf8(plain.stdout).expect("text");

    // apart from the hint the two runs say the same, line by line
    let without_hint = |text: &str| text.replace("hint 2", "hint 0");
    assert_eq!(without_hint(&hooked), plain);
    assert!(!plain.contains("hint 2"));

    let untouched = ["other-name", "read-only", "fopen-r", "device"];
    let mut hinted = 0;
    for line in hooked.lines().filter(|l| l.contains(" ok ")) {
        let name = line.split(' ').next().expect("a name");
        let expected = if untouched.contains(&name) { "hint 0" } else { "hint 2" };
        assert!(line.contains(expected), "{line}");
        hinted += usize::from(expected == "hint 2");
    }
    assert_eq!(hinted, 25);
    for expected in ["missing error 2", "fopen-missing error 2", "errno 0"] {
        assert!(hooked.lines().any(|l| l == expected), "{expected}\n{hooked}");
    }
    let (_, counters) = bed.run.look().expect("counters");
    // the 25 above, and one more open behind the errno check
    assert_eq!(counters.opens(Class::Outside, 2), 26);
}

#[test]
fn without_a_page_every_call_goes_straight_through() {
    let bed = Bed::new(&short_by_name(), &[]);
    let program = bed.compile("calls", "calls");
    let dir = prepare(&bed);
    let long = "x".repeat(5000);
    let spoiled = bed.folder("spoiled");
    for page in [&b""[..], b"shelflife-run 1 1 1 1\n", b"shelflife-run 9", &[0xff; 4096]] {
        fs::write(spoiled.join("page"), page).expect("written");
        let output = bed
            .command(&program)
            .env(shelflife_control::RUN_VARIABLE, &spoiled)
            .arg(&dir)
            .output()
            .expect("started");
        assert!(!crate::support::text(&output).contains("hint 2"));
    }
    for value in ["", "/nonexistent", "relative", long.as_str()] {
        let output = bed
            .command(&program)
            .env(shelflife_control::RUN_VARIABLE, value)
            .arg(&dir)
            .output()
            .expect("started");
        assert!(!crate::support::text(&output).contains("hint 2"), "{value}");
    }
    let unset = bed
        .command(&program)
        .env_remove(shelflife_control::RUN_VARIABLE)
        .arg(&dir)
        .output()
        .expect("started");
    assert!(!crate::support::text(&unset).contains("hint 2"));
}

#[test]
fn switched_off_no_call_is_made_and_a_dry_run_only_counts() {
    let bed = Bed::new(&short_by_name(), &[]);
    let program = bed.compile("calls", "calls");
    let dir = prepare(&bed);
    bed.run.control().expect("control").switch(false);
    assert!(!bed.output(&program, &[&dir]).contains("hint 2"));
    let (_, counters) = bed.run.look().expect("counters");
    assert_eq!(counters.opens(Class::Outside, 2), 0);
    bed.run.control().expect("control").publish(&short_by_name(), "again", true);
    assert!(!bed.output(&program, &[&dir]).contains("hint 2"));
    assert_eq!(counters.opens(Class::Outside, 2), 26);
}
