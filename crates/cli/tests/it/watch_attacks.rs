//! What the daemon must not touch, whatever the server's user or an accident does to its folders:
//! judged by the hint of what lies outside, and by an independent inotify that sees every open.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::held::{EXTREME, NOT_SET, hint};
use crate::support::{Need, Place, eventually, skip};
use crate::watched::{As, Watcher, Witness, data_folder, foreign_file, make, ways};

const POLICY: [&str; 2] = ["--policy", "temp-vs-rest"];

fn watch(place: &Place, way: As, data: &Path) -> Watcher {
    let data = data.to_str().unwrap();
    Watcher::start(place, way, &[&[data], &POLICY[..]].concat())
}

/// Opens and closes; that is an event.
fn open(path: &Path) {
    File::open(path).unwrap();
}

#[test]
fn links_lead_the_daemon_nowhere() {
    let name = "links_lead_the_daemon_nowhere";
    for way in ways() {
        let Some(place) = Place::new(name, Need::Nothing) else { return };
        let data = data_folder(&place, "data");
        // Of the same owner: only the link stands between the daemon and these.
        let outside = place.user_folder("outside");
        let file = outside.join("16500");
        make(&place, &file);
        let versioned = place.user_folder("elsewhere");
        let other_version = place.user_folder(versioned.join("PG_14_1"));
        make(&place, &other_version.join("16500"));
        // The location of a hostile tablespace belongs to root; its inside looks right.
        let hostile = foreign_file(&place, "hostile");
        fs::create_dir(place.path("hostile/PG_15_1")).unwrap();
        fs::write(place.path("hostile/PG_15_1/16500"), "x").unwrap();

        let plant = |suffix: &str| {
            symlink(&file, data.join(format!("base/5/2{suffix}"))).unwrap();
            symlink(&outside, data.join(format!("base/9{suffix}"))).unwrap();
            symlink(place.path("hostile"), data.join(format!("pg_tblspc/1{suffix}"))).unwrap();
            symlink(&versioned, data.join(format!("pg_tblspc/2{suffix}"))).unwrap();
            symlink("/", data.join(format!("pg_tblspc/3{suffix}"))).unwrap();
            symlink(&data, data.join(format!("pg_tblspc/4{suffix}"))).unwrap();
        };
        plant("1");
        let witness =
            Witness::of(&[&outside, &other_version, &hostile, &place.path("hostile/PG_15_1")]);
        let mut watcher = watch(&place, *way, &data);
        plant("2");
        watcher.has_seen_everything(&place, &data);
        assert_eq!(witness.opens(), [] as [String; 0], "{way:?}");
        // Somebody works through the links: these opens are seen, and no more.
        open(&data.join("base/5/21"));
        open(&data.join("base/91/16500"));
        open(&data.join("pg_tblspc/21/PG_14_1/16500"));
        let own = witness.opens().len();
        watcher.has_seen_everything(&place, &data);
        assert!(own > 0);
        assert_eq!(witness.opens(), [] as [String; 0], "{way:?}");
        for path in [&file, &hostile, &other_version.join("16500")] {
            assert_eq!(hint(path).unwrap(), NOT_SET, "{way:?} {}", path.display());
        }
        assert_eq!(hint(&data.join("base/5/16384")).unwrap(), EXTREME);
    }
}

#[test]
fn a_pg_wal_that_leads_to_someones_home_takes_only_what_a_server_keeps_there() {
    let name = "a_pg_wal_that_leads_to_someones_home_takes_only_what_a_server_keeps_there";
    for way in ways() {
        let Some(place) = Place::new(name, Need::Nothing) else { return };
        let data = data_folder(&place, "data");
        let home = place.user_folder("home");
        let documents = place.user_folder(home.join("documents"));
        make(&place, &documents.join("letter"));
        make(&place, &home.join("000000010000000000000001"));
        fs::remove_dir(data.join("pg_wal")).unwrap();
        symlink(&home, data.join("pg_wal")).unwrap();
        let witness = Witness::of(&[&documents]);
        let mut watcher = watch(&place, *way, &data);
        place.user_folder(home.join("pictures"));
        make(&place, &home.join("pictures/sea"));
        watcher.has_seen_everything(&place, &data);
        assert_eq!(witness.opens(), [] as [String; 0], "{way:?}");
        assert_eq!(hint(&home.join("pictures/sea")).unwrap(), NOT_SET, "{way:?}");
        assert_eq!(hint(&home.join("000000010000000000000001")).unwrap(), EXTREME, "{way:?}");
        assert_eq!(hint(&documents.join("letter")).unwrap(), NOT_SET, "{way:?}");
    }
}

#[test]
fn as_root_files_of_other_owners_are_neither_opened_nor_hinted_however_they_got_there() {
    let name = "as_root_files_of_other_owners_are_neither_opened_nor_hinted";
    for way in [As::Owner, As::Root] {
        let Some(place) = Place::new(name, Need::Root) else { return };
        let data = data_folder(&place, "data");
        let linked = foreign_file(&place, "one");
        let later = foreign_file(&place, "two");
        let inside = data.join("base/5/16600");
        fs::write(&inside, "x").unwrap();
        fs::hard_link(&linked, data.join("base/5/16601")).unwrap();
        fs::create_dir(data.join("base/6")).unwrap();
        make(&place, &data.join("base/6/16384"));
        let witness = Witness::of(&[&linked, &later, &inside, &data.join("base/6/16384")]);
        let mut watcher = watch(&place, way, &data);
        fs::hard_link(&later, data.join("base/5/16602")).unwrap();
        fs::rename(data.join("base/5/16602"), data.join("base/5/16603")).unwrap();
        watcher.has_seen_everything(&place, &data);
        assert_eq!(witness.opens(), [] as [String; 0], "{way:?}");
        // A link of the same owner is as good as any other name.
        fs::hard_link(data.join("base/5/16384"), data.join("base/5/16604")).unwrap();
        open(&data.join("base/5/16601"));
        open(&data.join("base/5/16603"));
        let _own = witness.opens();
        watcher.has_seen_everything(&place, &data);
        assert_eq!(witness.opens(), [] as [String; 0], "{way:?}");
        for path in [&linked, &later, &inside] {
            assert_eq!(hint(path).unwrap(), NOT_SET, "{way:?} {}", path.display());
        }
        assert_eq!(hint(&data.join("base/5/16604")).unwrap(), EXTREME);
    }
}

#[test]
fn renames_in_a_loop_do_not_lead_outside_and_what_stays_is_hinted() {
    let name = "renames_in_a_loop_do_not_lead_outside_and_what_stays_is_hinted";
    for way in ways() {
        let Some(place) = Place::new(name, Need::Nothing) else { return };
        let data = data_folder(&place, "data");
        let outside = place.user_folder("outside");
        make(&place, &outside.join("16500"));
        let witness = Witness::of(&[&outside.join("16500")]);
        let mut watcher = watch(&place, *way, &data);
        let (folder, away) = (data.join("base/7"), place.path("away"));
        place.user_folder(&folder);
        let end = Instant::now() + Duration::from_millis(1500);
        let mut rounds = 0;
        while Instant::now() < end {
            make(&place, &folder.join("16500"));
            fs::rename(folder.join("16500"), folder.join("16501")).unwrap();
            // The folder is away, a link to the outside is in its place; then it is back.
            fs::rename(&folder, &away).unwrap();
            symlink(&outside, &folder).unwrap();
            fs::remove_file(&folder).unwrap();
            fs::rename(&away, &folder).unwrap();
            rounds += 1;
        }
        assert!(rounds > 10);
        watcher.has_seen_everything(&place, &data);
        assert_eq!(witness.opens(), [] as [String; 0], "{way:?} after {rounds} rounds");
        assert_eq!(hint(&outside.join("16500")).unwrap(), NOT_SET, "{way:?}");
        // Folders are followed: what is made in it now is seen.
        make(&place, &folder.join("16502"));
        eventually("the hint of a file in the folder that came back", || {
            (hint(&folder.join("16502")).unwrap() == EXTREME).then_some(())
        });
    }
}

struct Mounted<'p>(&'p Path);

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

#[test]
fn as_root_what_is_mounted_over_a_watched_folder_is_left_alone() {
    let name = "as_root_what_is_mounted_over_a_watched_folder_is_left_alone";
    for way in [As::Owner, As::Root] {
        let Some(place) = Place::new(name, Need::Root) else { return };
        let data = data_folder(&place, "data");
        // Of the same file system and owner: only the mount tells it apart.
        let outside = place.user_folder("outside");
        make(&place, &outside.join("16500"));
        let over = place.user_folder(data.join("base/8"));
        let mut watcher = watch(&place, way, &data);
        let bound = Command::new("mount").arg("--bind").args([&outside, &over]).status();
        if !bound.is_ok_and(|status| status.success()) {
            return skip(name, "mount is refused here").unwrap_or_default();
        }
        let mounted = Mounted(&over);
        let witness = Witness::of(&[&outside.join("16500")]);
        File::options().append(true).open(over.join("16500")).unwrap();
        make(&place, &over.join("16501"));
        let own = witness.opens().len();
        assert_eq!(own, 1);
        watcher.has_seen_everything(&place, &data);
        watcher.signal(rustix::process::Signal::HUP); // sweeps
        eventually("the sweep", || watcher.log().contains("was read again").then_some(()));
        watcher.has_seen_everything(&place, &data);
        assert_eq!(witness.opens(), [] as [String; 0], "{way:?}");
        for file in ["16500", "16501"] {
            assert_eq!(hint(&outside.join(file)).unwrap(), NOT_SET, "{way:?} {file}");
        }
        drop(mounted);
        make(&place, &over.join("16502"));
        eventually("the hint of a file in the folder below the mount", || {
            (hint(&over.join("16502")).unwrap() == EXTREME).then_some(())
        });
    }
}

#[test]
fn a_folder_that_is_removed_and_made_anew_is_watched_anew() {
    let name = "a_folder_that_is_removed_and_made_anew_is_watched_anew";
    for way in ways() {
        let Some(place) = Place::new(name, Need::Nothing) else { return };
        let data = data_folder(&place, "data");
        let mut watcher = watch(&place, *way, &data);
        fs::remove_dir_all(&data).unwrap();
        let status = |words: &str| {
            let mut command = match way {
                As::Owner => place.as_user(["status"]),
                As::Root => place.shelflife(["status"]),
            };
            crate::support::said(&mut command).out.contains(words)
        };
        eventually("that it is gone", || status("gone; it is watched again").then_some(()));
        let data = data_folder(&place, "data");
        eventually("the hint of a file that was there", || {
            (hint(&data.join("base/5/16384")).unwrap() == EXTREME).then_some(())
        });
        watcher.has_seen_everything(&place, &data);
    }
}
