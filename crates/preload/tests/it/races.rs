//! Switching, and doing one's worst to the page, while programs run.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use shelflife_layout::{Layout, Table};
use shelflife_lifetime::Lifetime;

use crate::support::{Bed, hint_of, short_by_name};

struct Load {
    child: Child,
    files: Vec<PathBuf>,
}

impl Load {
    fn start(bed: &Bed) -> Load {
        let program = bed.compile("opener", "opener");
        let dir = bed.folder("files");
        let files: Vec<PathBuf> = (0..8).map(|i| dir.join(format!("{i}.s"))).collect();
        files.iter().for_each(|f| std::fs::write(f, "").expect("a file"));
        let mut child =
            bed.command(&program).args(&files).stdout(Stdio::piped()).spawn().expect("started");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("piped");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        assert_eq!(line, "ready\n");
        Load { child, files }
    }

    /// It runs still: nothing has signalled it.
    fn lives(&mut self) {
        assert_eq!(self.child.try_wait().expect("asked"), None, "the program died");
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn lasting(lifetime: Lifetime) -> Table {
    let table = Table::default();
    table.clear(Layout::Paths);
    table.path_rule(0, b"*.s", lifetime).expect("room");
    table
}

/// Opens that began before a switch end with what the switch says: after `off` and one sweep
/// nothing is hinted any more, however often it is tried.
#[test]
fn a_switch_does_not_lose_against_opens_that_have_begun() {
    let bed = Bed::new(&short_by_name(), &[]);
    let mut load = Load::start(&bed);
    let control = bed.run.control().expect("control");
    for round in 0..200 {
        let lifetime = if round % 2 == 0 { Lifetime::Long } else { Lifetime::Medium };
        control.publish(&lasting(lifetime), "p", false);
        control.switch(false);
        for file in &load.files {
            let handle = std::fs::File::open(file).expect("opened");
            shelflife_lifetime::set(&handle, Lifetime::NotSet).expect("cleared");
        }
        // An open that had begun may give its hint now, and must then take it back by itself.
        let deadline = Instant::now() + Duration::from_secs(20);
        while load.files.iter().any(|f| hint_of(f) != Lifetime::NotSet) {
            assert!(Instant::now() < deadline, "round {round}: a hint outlives the switch");
            std::thread::yield_now();
        }
    }
    load.lives();
}

/// Whatever is published is what later opens give; a table is never seen half.
#[test]
fn policies_change_under_load() {
    let bed = Bed::new(&short_by_name(), &[]);
    let mut load = Load::start(&bed);
    let control = bed.run.control().expect("control");
    for round in 0..500u32 {
        let lifetime = [Lifetime::Short, Lifetime::Medium, Lifetime::Long][round as usize % 3];
        control.publish(&lasting(lifetime), "p", false);
        for file in &load.files {
            let found = hint_of(file);
            assert!(
                (Lifetime::Short..=Lifetime::Long).contains(&found) || found == Lifetime::NotSet
            );
        }
    }
    control.publish(&lasting(Lifetime::Extreme), "last", false);
    let deadline = Instant::now() + Duration::from_secs(20);
    while load.files.iter().any(|f| hint_of(f) != Lifetime::Extreme) {
        assert!(Instant::now() < deadline, "the last policy is never given");
        std::thread::yield_now();
    }
    load.lives();
}

/// Removing the segments, scribbling over them, punching holes: the program goes on.
#[test]
fn nothing_done_to_the_page_signals_the_program() {
    let bed = Bed::new(&short_by_name(), &[]);
    let mut load = Load::start(&bed);
    let id = bed.run.page_segment().0;

    // SAFETY: attaches a segment of this test's own, for writing.
    let at = unsafe { libc::shmat(id, std::ptr::null(), 0) };
    assert_ne!(at as isize, -1);
    let size = size_of::<shelflife_control::Page>();
    for round in 0..200u8 {
        // SAFETY: within the attached segment.
        unsafe { std::ptr::write_bytes(at.cast::<u8>(), round.wrapping_mul(37), size) };
        std::thread::sleep(Duration::from_millis(1));
        // A hole: the pages come back zeroed when they are next touched.
        // SAFETY: whole pages of the attached segment.
        let rc = unsafe { libc::madvise(at, size.next_multiple_of(4096), libc::MADV_REMOVE) };
        assert_eq!(rc, 0, "{}", std::io::Error::last_os_error());
    }
    load.lives();
    // SAFETY: removes the segment; whoever has it attached keeps it.
    unsafe { libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut()) };
    // SAFETY: attached above, detached once.
    unsafe { libc::shmdt(at) };
    std::thread::sleep(Duration::from_millis(100));
    load.lives();
    assert!(bed.run.look().is_err());
}
