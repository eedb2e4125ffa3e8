//! `doctor` and `prove` on the machine at hand.

use std::fs;

use crate::support::{Need, Place, said};

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

#[test]
fn a_path_that_is_not_there_is_wrong_use() {
    let place = Place::new("a_path_that_is_not_there_is_wrong_use", Need::Nothing).unwrap();
    let told = said(&mut place.shelflife(["prove", "/nowhere"]));
    told.fails(2, &["/nowhere"]);
}
