//! What being watched adds to an open, and what reading its events costs the watcher.

use std::fs::{self, File};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rustix::fs::inotify;
use rustix::time::{ClockId, clock_gettime};
use shelflife_watch::fanotify::{Group, Mask};

const FILES: usize = 200;
const OPENS: usize = 200_000;

fn thread_time() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Opens all the time, while `drain` reads events on another thread; nanoseconds an open took, and
/// what the reader used of the processor for it, with the events that it got.
fn measure(
    folder: &std::path::Path,
    drain: &mut (dyn FnMut() -> usize + Send),
) -> (f64, f64, usize) {
    let paths: Vec<_> = (0..FILES).map(|n| folder.join(format!("{n}"))).collect();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let (begun, mut events) = (thread_time(), 0);
            loop {
                let last = done.load(Relaxed);
                match drain() {
                    0 if last => break,
                    0 => std::thread::sleep(std::time::Duration::from_micros(200)),
                    n => events += n,
                }
            }
            (thread_time() - begun, events)
        });
        let begun = thread_time();
        for at in 0..OPENS {
            drop(File::open(&paths[at % FILES]).expect("opened"));
        }
        let open = (thread_time() - begun) / OPENS as f64 * 1e9;
        done.store(true, Relaxed);
        let (time, events) = reader.join().expect("read");
        (open, time * 1e9 / OPENS as f64, events)
    })
}

/// Prints one line for each kind.
pub fn run() {
    let dir = tempfile::tempdir().expect("a folder");
    for n in 0..FILES {
        fs::write(dir.path().join(format!("{n}")), "").expect("a file");
    }
    let folder = File::open(dir.path()).expect("opened");
    let mut buffer = vec![0; 128 * 1024];
    let say = |what: &str, (open, read, events): (f64, f64, usize)| {
        println!(
            "opens, {what:<22} {open:>6.0} ns an open+close, {read:>5.0} ns of the reader an open, \
             {events} events of {OPENS} opens"
        );
    };
    say("unwatched", measure(dir.path(), &mut || 0));
    {
        let fd = inotify::init(inotify::CreateFlags::NONBLOCK).expect("inotify");
        inotify::add_watch(&fd, dir.path(), inotify::WatchFlags::OPEN).expect("watched");
        let mut room = vec![MaybeUninit::uninit(); 128 * 1024];
        let mut drain = || {
            let mut reader = inotify::Reader::new(&fd, &mut room);
            let mut events = 0;
            while reader.next().is_ok() {
                events += 1;
            }
            events
        };
        say("inotify", measure(dir.path(), &mut drain));
    }
    match Group::names() {
        Ok(group) => {
            group.mark_folder(&folder, Mask::OPEN).expect("marked");
            let mut drain = || group.read(&mut buffer, &mut |_| ()).expect("readable");
            say("fanotify on folders", measure(dir.path(), &mut drain));
        }
        Err(error) => println!("opens, fanotify on folders: {error}"),
    }
    match Group::files().and_then(|g| g.mark_file_system(&folder).map(|()| g)) {
        Ok(group) => {
            let mut drain = || group.read(&mut buffer, &mut |_| ()).expect("readable");
            say("fanotify, file system", measure(dir.path(), &mut drain));
        }
        Err(error) => println!("opens, fanotify on file systems: {error}"),
    }
}
