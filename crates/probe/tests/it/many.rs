//! The list of everything, and a server's folders.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use insta::assert_snapshot;
use shelflife_probe::{Doctor, Error, Host, Verdict};

use crate::drives::{fdp_drive, nvme, scsi, streams};
use crate::machine::Machine;

#[test]
fn everything_is_listed() {
    let mut machine = Machine::new("7.3.4-amd64");
    let folder = fdp_drive(&mut machine);
    machine.partition(&folder, "nvme0n1p1", (259, 1));
    nvme(&mut machine, 1, "Amazon Elastic Block Store");
    let ufs = scsi(&mut machine, 0, "ufshcd", ("SAMSUNG", "KLUFG8RHDA-B2D1"));
    streams(&mut machine, &ufs, 5);
    scsi(&mut machine, 1, "usb-storage", ("SanDisk", "Extreme"));
    let raid = machine.disk("md0", (9, 0), "virtual/block");
    machine.file(&format!("{raid}/md/level"), "raid1\n");
    machine.slaves(&raid, &["sda", "nvme1n1"]);
    let empty = machine.disk("loop0", (7, 0), "virtual/block");
    machine.file(&format!("{empty}/size"), "0\n");
    machine.mount((259, 1), "/srv/pg", "ext4", "/dev/nvme0n1p1", "x");
    machine.mount((9, 0), "/srv/log", "xfs", "/dev/md0", "x");
    let report = machine.doctor().everything();
    assert_eq!(report.verdict, None);
    assert_snapshot!(report.text());
}

/// A data folder with a WAL folder and a tablespace elsewhere, in a real folder.
#[test]
fn a_servers_folders() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path().canonicalize().unwrap();
    let (data, wal, space) = (place.join("data"), place.join("wal"), place.join("space"));
    for folder in [&data, &wal, &space, &data.join("global"), &data.join("pg_tblspc")] {
        fs::create_dir(folder).unwrap();
    }
    fs::write(data.join("PG_VERSION"), "17\n").unwrap();
    fs::write(data.join("global/pg_control"), "x").unwrap();
    symlink(&wal, data.join("pg_wal")).unwrap();
    symlink(&space, data.join("pg_tblspc/16400")).unwrap();

    let mut machine = Machine::new("7.3.4-amd64");
    fdp_drive(&mut machine);
    machine.mount((259, 0), wal.to_str().unwrap(), "f2fs", "/dev/nvme0n1", "active_logs=6");
    nvme(&mut machine, 1, "Samsung SSD 990 PRO 2TB");
    machine.mount((259, 10), place.to_str().unwrap(), "ext4", "/dev/nvme1n1", "discard");
    machine.at(data.to_str().unwrap(), (259, 10));
    machine.at(space.to_str().unwrap(), (259, 10));
    let report = machine.doctor().server(&data).unwrap();
    let verdicts: Vec<_> =
        report.answers.iter().map(|a| (a.what.as_deref().unwrap(), a.verdict)).collect();
    assert_eq!(
        verdicts,
        [
            ("data folder", Verdict::NotDelivered),
            ("WAL folder", Verdict::Delivered),
            ("tablespace 16400", Verdict::NotDelivered),
        ]
    );
    assert_eq!(report.verdict, Some(Verdict::NotDelivered));
    let text = report.text();
    assert!(text.starts_with("Hints reach the drive from 1 of 3 folders.\n"), "{text}");
    let same = format!("\ntablespace 16400: the same way as {}\n", data.display());
    assert!(text.ends_with(&same), "{text}");
    let nothing = machine.doctor().server(&wal).unwrap_err();
    assert!(matches!(nothing, Error::Server(_)), "{nothing}");
}

#[test]
fn what_cannot_be_asked_about_is_an_error() {
    let mut machine = Machine::new("7.3.4-amd64");
    let error = machine.doctor().path(Path::new("/nowhere")).unwrap_err();
    assert!(error.to_string().starts_with("cannot reach /nowhere"), "{error}");
    let error = Doctor::new(Host::live()).path(Path::new("/dev/null")).unwrap_err();
    assert!(matches!(error, Error::Special { .. }), "{error}");
}

#[test]
fn a_device_is_found_by_its_name() {
    let mut machine = Machine::new("7.3.4-amd64");
    fdp_drive(&mut machine);
    let report = machine.doctor().path(Path::new("nvme0n1")).unwrap();
    assert_eq!(report.verdict, Some(Verdict::Delivered));
    assert_eq!(report.answers[0].buffered, Verdict::NotDelivered);
}

#[test]
fn the_machine_at_hand_gets_an_answer() {
    let folder = std::env::temp_dir();
    let report = Doctor::new(Host::live()).path(&folder).unwrap();
    assert!(!report.answers[0].sentence.is_empty());
    assert!(shelflife_probe::headline(&folder).is_some());
    assert_eq!(shelflife_probe::headline(Path::new("/nowhere/at/all")), None);
    Doctor::new(Host::live()).everything();
}
