//! `doctor` and `prove` on the machine at hand.

use std::fs;
use std::process::Command;

use crate::support::{Need, Place, said, skip};

#[test]
fn doctor_answers_and_ends_with_its_code() {
    let place = Place::new("doctor_answers_and_ends_with_its_code", Need::Nothing).unwrap();
    let told = said(&mut place.shelflife(["doctor", "--json", "."]));
    let report = told.json();
    let verdict = report["verdict"].as_str().unwrap();
    let code = match verdict {
        "delivered" => 0,
        "unknown" => 3,
        "not-delivered" | "file-system-only" => 1,
        other => panic!("{other}"),
    };
    assert_eq!(told.code, Some(code), "{told:#?}");
    assert_eq!(report["answers"][0]["lifetimes"].as_array().unwrap().len(), 6);
    let list = said(&mut place.shelflife(["doctor"]));
    assert_eq!(list.code, Some(0), "{list:#?}");
}

/// Whatever can be seen here: it agrees with doctor, and nothing is left.
#[test]
fn root_proves_what_doctor_predicts() {
    let Some(place) = Place::new("root_proves_what_doctor_predicts", Need::Root) else { return };
    let folder = place.path("here");
    fs::create_dir(&folder).unwrap();
    let told = said(&mut place.shelflife(["prove", "--json", "here"]));
    let ruling = match told.code {
        Some(0) => "proven",
        Some(1) => "disproven",
        // No drive below, or no right to look even for root.
        Some(3) => {
            eprintln!("skipped: root_proves_what_doctor_predicts: {}", told.err.trim());
            return;
        }
        _ => panic!("{told:#?}"),
    };
    let proof = told.json();
    assert_eq!(proof["ruling"], ruling);
    assert_eq!(proof["answers"][0]["agrees"], true, "{proof:#}");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "something is left");
}

/// Several paths are several answers, in order, under the worst of their rulings.
#[test]
fn root_proves_several_paths_at_once() {
    let Some(place) = Place::new("root_proves_several_paths_at_once", Need::Root) else { return };
    for folder in ["one", "other"] {
        fs::create_dir(place.path(folder)).unwrap();
    }
    let told = said(&mut place.shelflife(["prove", "--json", "one", "other"]));
    if told.code == Some(3) && told.out.is_empty() {
        eprintln!("skipped: root_proves_several_paths_at_once: {}", told.err.trim());
        return;
    }
    let proof = told.json();
    let answers = proof["answers"].as_array().unwrap();
    let paths: Vec<&str> = answers.iter().map(|one| one["path"].as_str().unwrap()).collect();
    assert_eq!(paths, [place.path("one").to_str().unwrap(), place.path("other").to_str().unwrap()]);
    // both lie on one file system
    assert!(answers.iter().all(|one| one["ruling"] == proof["ruling"]), "{proof:#}");
    for one in answers {
        let written = one["lifetimes"].as_array().unwrap();
        let bytes = |mode: &str| written.iter().map(|l| l[mode]["bytes"].as_u64().unwrap()).sum();
        let (buffered, direct): (u64, u64) = (bytes("buffered"), bytes("direct"));
        assert!(buffered == 6 * (256 << 10) && direct <= buffered, "{one:#}");
    }
    let told = said(&mut place.shelflife(["prove", "one", "other"]));
    assert!(told.out.starts_with("Proven for "), "{told:#?}");
    for folder in ["one", "other"] {
        assert_eq!(fs::read_dir(place.path(folder)).unwrap().count(), 0, "something is left");
    }
}

/// Where no file can be made is known before any is written.
#[test]
fn root_is_told_of_a_folder_that_takes_no_files() {
    let name = "root_is_told_of_a_folder_that_takes_no_files";
    let Some(place) = Place::new(name, Need::Root) else { return };
    for folder in ["good", "fixed"] {
        fs::create_dir(place.path(folder)).unwrap();
    }
    // In a mount namespace of its own: nothing stays mounted.
    let script = "mount --bind fixed fixed && mount -o remount,bind,ro fixed || exit 99
        exec \"$@\"";
    let ours = place.shelflife(["prove", "good", "fixed"]);
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", script, "sh"]).current_dir(place.path(""));
    command.arg(ours.get_program()).args(ours.get_args());
    let told = said(&mut command);
    let reason = match told.code {
        Some(99) => "no mount namespace of one's own",
        _ if told.err.contains("unshare") => "no mount namespace of one's own",
        Some(3) => told.err.trim(),
        _ => {
            told.fails(2, &["nothing was written", "/fixed", "Read-only file system"]);
            return;
        }
    };
    skip::<()>(name, reason);
}

/// One path that is refused keeps all from being written to.
#[test]
fn one_wrong_path_of_several_is_wrong_use() {
    let place = Place::new("one_wrong_path_of_several_is_wrong_use", Need::Nothing).unwrap();
    let told = said(&mut place.shelflife(["prove", ".", "/nowhere"]));
    told.fails(2, &["/nowhere"]);
    assert!(told.out.is_empty(), "{told:#?}");
    said(&mut place.shelflife(["prove", "/dev/null"])).fails(2, &["/dev/null is neither file"]);
    assert_eq!(said(&mut place.shelflife(["prove"])).code, Some(2));
}

#[test]
fn a_path_that_is_not_there_is_wrong_use() {
    let place = Place::new("a_path_that_is_not_there_is_wrong_use", Need::Nothing).unwrap();
    let told = said(&mut place.shelflife(["prove", "/nowhere"]));
    told.fails(2, &["/nowhere"]);
}
