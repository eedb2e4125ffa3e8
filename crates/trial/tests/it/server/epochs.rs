//! Which devices no epoch begins on. That one begins, and goes to its end, takes a drive with FDP: `make
//! lab-epoch`.

use std::path::{Path, PathBuf};
use std::process::Command;

use shelflife_trial::filesystem::{Kind, Wanted};
use shelflife_trial::{Error, Preset, Wishes, run};

use super::{Bed, deaf, is_root, skip, spec, tiny};

/// A loop device; detached at the end.
struct Loop(PathBuf);

impl Loop {
    fn new(folder: &Path) -> Loop {
        let image = folder.join("image");
        std::fs::File::create(&image).unwrap().set_len(64 << 20).unwrap();
        let device = call(Command::new("losetup").args(["--find", "--show"]).arg(&image));
        Loop(device.trim().into())
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("--detach").arg(&self.0).status();
    }
}

fn call(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn root_a_device_that_holds_something_or_counts_nothing_is_left_alone() {
    let name = "root_a_device_that_holds_something_or_counts_nothing_is_left_alone";
    if !is_root() {
        skip::<()>(name, "only root can attach a loop device");
        return;
    }
    if !Path::new("/dev/loop-control").exists() {
        skip::<()>(name, "this kernel has no loop devices");
        return;
    }
    let Some(bed) = Bed::new(name) else { return };
    let device = Loop::new(bed.folder.path());
    let wishes = Wishes {
        preset: Preset::Standard,
        filesystem: Some(Wanted {
            kind: Kind::Ext4,
            device: Some(device.0.clone()),
            size: 0,
            fill: None,
            dirty: None,
            mount_options: "discard".to_owned(),
        }),
        ..tiny(&["off", "wal-first"])
    };
    let spec = spec(&wishes);
    assert_eq!(spec.filesystem.as_ref().unwrap().size, 64 << 20);
    let refused = || run(&spec, &bed.options(), &mut deaf()).unwrap_err();

    let nothing = refused();
    assert!(matches!(nothing, Error::NoMeasure { .. }), "{nothing}");
    assert!(nothing.to_string().contains("it is no NVMe drive"), "{nothing}");
    bed.assert_left(&[]);

    call(Command::new("mkfs.ext4").args(["-q", "-F", "-L", "data"]).arg(&device.0));
    let held = refused();
    assert!(matches!(held, Error::NotFree { .. }), "{held}");
    assert!(held.to_string().contains("it holds something (ext4 \"data\")"), "{held}");

    let point = bed.folder.path().join("mounted");
    std::fs::create_dir(&point).unwrap();
    call(Command::new("mount").arg(&device.0).arg(&point));
    let used = refused();
    call(Command::new("umount").arg(&point));
    assert!(matches!(used, Error::NotFree { .. }), "{used}");
    assert!(used.to_string().contains("in use"), "{used}");

    let listed = call(Command::new("wipefs").args(["--noheadings", "-O", "LABEL"]).arg(&device.0));
    assert_eq!(listed.trim(), "data", "nothing was done to it");
    bed.assert_left(&[]);
}
