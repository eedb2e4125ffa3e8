use std::ffi::OsString;

use shelflife_layout::{Class, Layout};
use shelflife_lifetime::Lifetime;

use super::*;
use crate::page::PageError;

fn table(class: Class, lifetime: Lifetime) -> Table {
    let table = Table::default();
    table.clear(Layout::Postgres);
    table.class_rule(0, class, lifetime);
    table
}

fn new_run<'a>(command: &'a [OsString], policy: Option<(&'a Table, &'a str)>) -> NewRun<'a> {
    NewRun {
        name: None,
        command,
        hook: Path::new("/usr/lib/shelflife/libshelflife_preload.so"),
        roots: &[],
        owner: None,
        policy,
        dry_run: false,
    }
}

struct Scratch(tempfile::TempDir);

impl Scratch {
    fn new() -> Scratch {
        Scratch(tempfile::tempdir().expect("a folder"))
    }

    fn registry(&self) -> Registry {
        Registry::at(self.0.path().join("state")).expect("a state folder")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // no segment may outlive a test
        for run in self.registry().runs().into_iter().flatten().flatten() {
            let _ = run.remove();
        }
    }
}

#[test]
fn a_run_is_found_again_with_what_was_published() {
    let scratch = Scratch::new();
    let registry = scratch.registry();
    let first = table(Class::Wal, Lifetime::Short);
    let command = [OsString::from("pg_ctl"), OsString::from("start")];
    let run = registry.register(&new_run(&command, Some((&first, "first")))).expect("registered");
    assert_eq!(run.name(), "1");
    assert_eq!(registry.register(&new_run(&command, None)).expect("a second").name(), "2");

    let found = registry.run("1").expect("found");
    assert_eq!(found.summary().command, ["pg_ctl", "start"]);
    assert_eq!(found.liveness(), Liveness::Launcher);
    let (page, counters) = found.look().expect("attached");
    let state = page.state();
    assert!(state.is_on() && state.generation() == 1);
    assert_eq!(page.policy_name(state, &mut [0; 64]), Some(&b"first"[..]));
    assert_eq!(page.table(state).lookup(Class::Wal, None, None), Some(Lifetime::Short));
    assert_eq!(counters.opens(Class::Wal, 2), 0);

    let second = table(Class::Wal, Lifetime::Long);
    let state = found.control().expect("control").publish(&second, "second", false);
    assert_eq!(page.state(), state);
    assert_eq!(page.table(state).lookup(Class::Wal, None, None), Some(Lifetime::Long));
    let off = found.control().expect("control").switch(false);
    assert!(!page.state().is_on() && off.generation() == 3);
    assert_eq!(page.policy_name(off, &mut [0; 64]), Some(&b"second"[..]));
}

#[test]
fn names_are_checked_and_taken_once() {
    let scratch = Scratch::new();
    let registry = scratch.registry();
    let mut new = new_run(&[], None);
    for bad in ["", ".x", "a/b", "..", "a b", "123456789012345678901234567890123"] {
        new.name = Some(bad);
        assert!(matches!(registry.register(&new), Err(Error::BadName(_))), "{bad}");
    }
    new.name = Some("main");
    registry.register(&new).expect("registered");
    assert!(matches!(registry.register(&new), Err(Error::NameTaken(_))));
    assert!(matches!(registry.run("other"), Err(Error::NoSuchRun(_))));
    assert_eq!(registry.runs().expect("a list").len(), 1);
}

#[test]
fn removed_segments_are_named_and_what_is_attached_stays() {
    let scratch = Scratch::new();
    let registry = scratch.registry();
    let some = table(Class::Temp, Lifetime::Short);
    let run = registry.register(&new_run(&[], Some((&some, "p")))).expect("registered");
    let (page, _counters) = run.look().expect("attached");
    remove(run.page_segment(), std::process::id());
    let state = page.state();
    assert_eq!(page.table(state).lookup(Class::Temp, None, None), Some(Lifetime::Short));
    assert!(matches!(run.liveness(), Liveness::Attached(_)));
    drop(page);
    assert_eq!(run.liveness(), Liveness::PageGone);
    let error = run.control().expect_err("gone");
    assert!(matches!(error, Error::Page { source: AttachError::Gone, .. }), "{error}");
}

#[test]
fn pages_of_other_versions_zeroed_pages_and_other_runs_are_refused() {
    let scratch = Scratch::new();
    let registry = scratch.registry();
    let run = registry.register(&new_run(&[], None)).expect("registered");
    let write = |at: usize, bytes: &[u8]| {
        let page =
            Segment::<Page>::attach(run.page_segment(), Access::ReadWrite).expect("attached");
        let start = (&raw const *page).cast::<std::sync::atomic::AtomicU8>();
        for (i, byte) in bytes.iter().enumerate() {
            // SAFETY: within the page, which is attached for writing and all atomics.
            unsafe { &*start.add(at + i) }.store(*byte, std::sync::atomic::Ordering::Relaxed);
        }
    };
    let refused = || match run.look().map(|_| ()) {
        Err(Error::Page { source: AttachError::Page(error), .. }) => error,
        other => panic!("{other:?}"),
    };
    write(16, &[0xaa]);
    assert_eq!(refused(), PageError::Damaged);
    write(8, &99u32.to_le_bytes());
    assert_eq!(refused(), PageError::Version(99));
    write(0, &[0; 64]);
    assert_eq!(refused(), PageError::NotAPage);

    // the number of a segment that now belongs to someone else
    let other = registry.register(&new_run(&[], None)).expect("registered");
    let mut stolen = run.line;
    stolen.page = other.line.page;
    let stolen = Run { line: stolen, ..run.clone() };
    let error = stolen.look().map(|_| ()).expect_err("another run's");
    assert!(error.to_string().contains("cannot be used"));
    // and of one that is no page at all
    let short = Run { line: RunLine { page: other.line.counters, ..run.line }, ..run.clone() };
    assert!(short.look().is_err());
}

#[test]
fn records_that_are_no_records_are_errors_with_their_file() {
    let scratch = Scratch::new();
    let registry = scratch.registry();
    let run = registry.register(&new_run(&[], None)).expect("registered");
    let spoil = |file: &str, bytes: &[u8]| fs::write(run.dir().join(file), bytes).expect("written");
    let page = fs::read(run.dir().join("page")).expect("read");
    for bad in
        [&b""[..], b"shelflife-run 2 1 2 3\n", b"shelflife-run 1 -1 2 3\n", b"shelflife-run 1 1 2"]
    {
        spoil("page", bad);
        assert!(matches!(registry.run("1"), Err(Error::BadRecord { .. })));
    }
    spoil("page", &page);
    spoil("run.json", b"{\"version\": 1");
    let error = registry.run("1").expect_err("bad");
    assert!(error.to_string().contains("run.json"), "{error}");
    // the listing goes on past it
    assert_eq!(registry.runs().expect("a list").len(), 1);
    remove(run.page_segment(), std::process::id());
    remove(SegmentId(run.line.counters), std::process::id());
}

#[test]
fn a_foreign_state_folder_is_refused() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: a_foreign_state_folder_is_refused: needs root");
        return;
    }
    let scratch = Scratch::new();
    let dir = scratch.0.path().join("foreign");
    fs::create_dir(&dir).expect("created");
    std::os::unix::fs::chown(&dir, Some(12345), None).expect("chown");
    // root is told as well: the folder's owner could exchange what is in it
    assert!(matches!(Registry::at(&dir), Err(Error::ForeignStateFolder { uid: 12345, .. })));
}

#[test]
fn run_lines_return_to_themselves() {
    let line = RunLine { page: 7, counters: i32::MAX, cookie: 0x0123_4567_89ab_cdef };
    assert_eq!(RunLine::parse(line.to_string().as_bytes()), Some(line));
    assert_eq!(RunLine::parse(b"shelflife-run 1 99999999999 1 1\n"), None);
}

#[test]
fn a_number_that_another_process_got_is_not_taken_for_the_runs() {
    let scratch = Scratch::new();
    let registry = scratch.registry();
    let mut run = registry.register(&new_run(&[], None)).expect("registered");
    let (own, segment) = (run.summary.pid, run.page_segment());
    run.summary.pid = 1;
    assert_eq!(run.liveness(), Liveness::PageGone);
    run.remove().expect("the record is removed");
    assert!(attached(segment, own).is_some(), "the other's segment is not");
    remove(segment, own);
    remove(SegmentId(run.line.counters), own);
}

#[test]
fn others_can_read_a_run_but_not_take_its_lock() {
    let scratch = Scratch::new();
    let registry = scratch.registry();
    let run = registry.register(&new_run(&[], None)).expect("registered");
    let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!(mode(registry.dir()), 0o755);
    assert_eq!(mode(run.dir()), 0o755);
    assert_eq!(mode(&run.dir().join("page")), 0o644);
    assert_eq!(mode(&run.dir().join("lock")), 0o600, "whoever opens it can keep it");
}
