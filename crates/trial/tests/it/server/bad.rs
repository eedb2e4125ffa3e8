//! What goes wrong: one clear error each, and nothing left.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use shelflife_lifetime::Lifetime;
use shelflife_postgres::Error as Server;
use shelflife_trial::record::FILE;
use shelflife_trial::{Error, Phase, resume, run};

use super::{Bed, deaf, ear, is_root, skip, spec, tiny};

#[test]
fn without_postgresql_every_place_looked_at_is_named() {
    let Some(bed) = Bed::new("without_postgresql_every_place_looked_at_is_named") else { return };
    let mut options = bed.options();
    options.bindir = Some("/nonexistent".into());
    let error = run(&spec(&tiny(&["off", "off"])), &options, &mut deaf()).unwrap_err();
    assert!(matches!(error, Error::Postgres(Server::ProgramsNotFound { .. })));
    assert!(error.to_string().contains("apt-get install postgresql"), "{error}");
    bed.assert_left(&[]);
}

#[test]
fn a_server_that_refuses_to_start_shows_its_log() {
    let Some(bed) = Bed::new("a_server_that_refuses_to_start_shows_its_log") else { return };
    let mut wishes = tiny(&["off", "off"]);
    wishes.settings = vec![("shared_buffers".into(), "plenty".into())];
    let error = run(&spec(&wishes), &bed.options(), &mut deaf()).unwrap_err();
    assert!(matches!(error, Error::Postgres(Server::ServerRefused { .. })), "{error}");
    assert!(
        error.to_string().contains("invalid value for parameter \"shared_buffers\""),
        "{error}"
    );
    bed.assert_left(&[]);
}

#[test]
fn a_folder_without_results_cannot_be_resumed() {
    let Some(bed) = Bed::new("a_folder_without_results_cannot_be_resumed") else { return };
    let told = || resume(&bed.options(), &mut deaf()).unwrap_err().to_string();
    assert!(told().starts_with("cannot follow"), "{}", told());
    std::fs::create_dir(bed.dir()).unwrap();
    assert!(told().starts_with("cannot open"), "{}", told());
    std::fs::write(bed.dir().join(FILE), "time,tps\n").unwrap();
    assert!(told().ends_with(":1: this is no file of a trial's results"), "{}", told());
    bed.assert_left(&[FILE]);
}

#[test]
fn hints_that_somebody_changes_fail_the_rounds() {
    let Some(bed) = Bed::new("hints_that_somebody_changes_fail_the_rounds") else { return };
    let (active, over) = (Arc::new(AtomicBool::new(false)), AtomicBool::new(false));
    let wal = bed.dir().join("cluster/data/pg_wal");
    let ended = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                if active.load(Ordering::Relaxed) {
                    set_all(&wal, Lifetime::Long);
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let mut ear = ear(|progress| {
            active.store(progress.phase == Phase::WarmingUp, Ordering::Relaxed);
        });
        let ended = run(&spec(&tiny(&["off", "wal-first"])), &bed.options(), &mut ear);
        over.store(true, Ordering::Relaxed);
        ended
    });
    let error = ended.unwrap_err();
    assert!(matches!(error, Error::RoundsFail { count: 3, .. }), "{error}");
    let told = error.to_string();
    assert!(told.contains("pg_wal/") && told.contains("with hint long"), "{told}");
    bed.assert_left(&[FILE]);
}

fn set_all(folder: &Path, lifetime: Lifetime) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if let Ok(file) = std::fs::File::open(entry.path())
            && file.metadata().is_ok_and(|meta| meta.is_file())
        {
            let _ = shelflife_lifetime::set(&file, lifetime);
        }
    }
}

/// A small file system in memory; unmounted when dropped.
struct Mounted<'p>(&'p Path);

impl<'p> Mounted<'p> {
    fn tmpfs(path: &'p Path, size: &str) -> Option<Mounted<'p>> {
        std::fs::create_dir(path).unwrap();
        let size = format!("size={size},mode=0755");
        let done =
            Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(path).status();
        done.is_ok_and(|status| status.success()).then_some(Mounted(path))
    }
}

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).status();
    }
}

#[test]
fn a_disk_that_is_or_gets_full_is_said_to_be_full_needs_root() {
    const NAME: &str = "a_disk_that_is_or_gets_full_is_said_to_be_full_needs_root";
    let Some(mut bed) = Bed::new(NAME) else { return };
    if !is_root() {
        skip::<()>(NAME, "needs root");
        return;
    }
    let outer = std::mem::replace(&mut bed.folder, tempfile::tempdir().unwrap());
    let point = outer.path().join("disk");
    let Some(_mounted) = Mounted::tmpfs(&point, "2g") else {
        skip::<()>(NAME, "no tmpfs can be mounted here");
        return;
    };
    let mut options = bed.options();
    options.dir = point.join("trial");

    let mut big = tiny(&["off", "off"]);
    big.scale = Some(200);
    let error = run(&spec(&big), &options, &mut deaf()).unwrap_err();
    assert!(matches!(error, Error::LowSpace { .. }), "{error}");
    assert!(!options.dir.exists());

    // Somebody else fills the disk while it is loaded.
    let filler = point.join("filler");
    let mut ear = ear(|progress| {
        if progress.phase == Phase::Loading && !filler.exists() {
            let file = std::fs::File::create(&filler).unwrap();
            let stat = rustix::fs::statvfs(&point).unwrap();
            let free = stat.f_bavail * stat.f_frsize;
            let all = rustix::fs::FallocateFlags::empty();
            rustix::fs::fallocate(&file, all, 0, free.saturating_sub(4 << 20)).unwrap();
        }
    });
    let mut wishes = tiny(&["off", "off"]);
    wishes.scale = Some(2);
    let error = run(&spec(&wishes), &options, &mut ear).unwrap_err();
    assert!(matches!(error, Error::Postgres(Server::DiskFull { .. })), "{error:?}");
    assert!(error.to_string().starts_with("disk full during"), "{error}");
    assert!(!options.dir.exists());
    assert_eq!(super::processes_below(&point), [] as [u32; 0]);
}
