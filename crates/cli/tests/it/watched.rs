//! A daemon for tests, and an independent witness of opens.

use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::fs::inotify;

use crate::held::{EXTREME, hint};
use crate::support::{Guard, Place, eventually, is_root};

/// How the daemon is started.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum As {
    /// As the files' owner, with marks on folders.
    Owner,
    /// As root, with marks on file systems.
    Root,
}

/// Both, or what this user may.
pub fn ways() -> &'static [As] {
    if is_root() { &[As::Owner, As::Root] } else { &[As::Owner] }
}

/// A running daemon.
pub struct Watcher {
    pub child: Guard,
    log: PathBuf,
}

impl Watcher {
    /// Starts a daemon and waits until the first sweep has ended.
    pub fn start(place: &Place, way: As, args: &[&str]) -> Watcher {
        let log =
            place.path(format!("watch-{}.log", fs::read_dir(place.path("")).unwrap().count()));
        let mut command = match way {
            As::Owner => place.as_user(["watch", "--mode", "folders"]),
            As::Root => place.shelflife(["watch", "--mode", "filesystem"]),
        };
        command.args(args).stdout(Stdio::null()).stderr(File::create(&log).unwrap());
        let mut watcher = Watcher { child: Guard::spawn(&mut command), log };
        eventually("the first sweep", || {
            let alive = watcher.child.0.try_wait().unwrap().is_none();
            assert!(alive, "the daemon ended: {}", watcher.log());
            watcher.log().contains(" swept in ").then_some(())
        });
        watcher
    }

    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    pub fn pid(&self) -> i32 {
        self.child.0.id().cast_signed()
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(self.pid()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// That it lives, and answered everything that happened before: a file that is made now, as the
    /// last event, carries its hint.
    #[track_caller]
    pub fn has_seen_everything(&mut self, place: &Place, data: &Path) {
        let name = format!("base/5/{}", fs::read_dir(data.join("base/5")).unwrap().count() + 70000);
        let last = data.join(name);
        make(place, &last);
        eventually("the last file's hint", || {
            assert!(self.child.0.try_wait().unwrap().is_none(), "it ended: {}", self.log());
            // Looked at without an open: that would be an event again.
            (hint(&last).unwrap() == EXTREME).then_some(())
        });
    }
}

/// Makes a file of the server's user.
#[track_caller]
pub fn make(place: &Place, path: &Path) {
    fs::write(path, "x").unwrap();
    place.give(path);
    // Opened again by its owner: as root's it was left alone.
    File::options().append(true).open(path).unwrap();
}

/// A folder that looks like a data folder, without a server.
pub fn data_folder(place: &Place, name: &str) -> PathBuf {
    let data = place.user_folder(name);
    for folder in ["base", "base/5", "global", "pg_wal", "pg_tblspc"] {
        place.user_folder(data.join(folder));
    }
    for (file, text) in [("PG_VERSION", "15\n"), ("base/5/16384", ""), ("global/1262", "")] {
        fs::write(data.join(file), text).unwrap();
        place.give(&data.join(file));
    }
    data
}

/// Counts opens of some files, by inotify.
pub struct Witness(OwnedFd);

impl Witness {
    pub fn of(paths: &[&Path]) -> Witness {
        let flags = inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK;
        let fd = inotify::init(flags).unwrap();
        for path in paths {
            let flags = inotify::WatchFlags::OPEN | inotify::WatchFlags::ACCESS;
            inotify::add_watch(&fd, *path, flags).unwrap();
        }
        Witness(fd)
    }

    /// The events since the last look.
    pub fn opens(&self) -> Vec<String> {
        let mut buffer = [std::mem::MaybeUninit::uninit(); 65536];
        let mut reader = inotify::Reader::new(&self.0, &mut buffer);
        let mut found = Vec::new();
        while let Ok(event) = reader.next() {
            found.push(format!("{:?} {:?}", event.events(), event.file_name()));
        }
        found
    }
}

/// A file of someone else, in a folder of someone else, that everybody may read.
pub fn foreign_file(place: &Place, name: &str) -> PathBuf {
    let folder = place.path(name);
    fs::create_dir(&folder).unwrap();
    let file = folder.join("16500");
    fs::write(&file, "x").unwrap();
    if is_root() {
        chown(&folder, Some(0), Some(0)).unwrap();
        chown(&file, Some(0), Some(0)).unwrap();
    }
    file
}
