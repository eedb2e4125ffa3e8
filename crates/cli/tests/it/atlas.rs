//! `atlas`: what lies in its folder is shown without root or a server; requests that make no sense.

use std::fs;
use std::path::Path;

use crate::support::{Need, Place, said};

/// A folder that an atlas of format version 1 left, without its trace.
const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../atlas/tests/samples/v1");

/// The sample where an atlas may work, and its drive.
fn sample(place: &Place) -> [String; 2] {
    let (from, to) = (Path::new(SAMPLE), place.path("atlas"));
    fs::create_dir_all(to.join("tpcb")).unwrap();
    for name in ["recording.json", "ufs-5-groups.scsi.json"] {
        fs::copy(from.join("tpcb").join(name), to.join("tpcb").join(name)).unwrap();
    }
    [to, from.join("drive.toml")].map(|path| path.to_str().unwrap().to_owned())
}

#[test]
fn an_atlas_that_is_there_is_shown_at_once() {
    let name = "an_atlas_that_is_there_is_shown_at_once";
    let Some(place) = Place::new(name, Need::Nothing) else { return };
    let [dir, drive] = sample(&place);
    let usual = ["--scenarios", "tpcb", "--drives", &drive, "--size", "1GiB"];
    let told = said(place.shelflife(["atlas", &dir]).args(usual));
    let first = told.expect(0).out.lines().next().unwrap();
    assert!(first.starts_with("simulated: best case: "), "{told:#?}");
    for text in [
        "worst case: ",
        "\nwhy\ntpcb on ufs-5-groups\n",
        "wal-first: 65.5 % of the bytes are wal",
        "what was recorded",
    ] {
        assert!(told.out.contains(text), "{text}: {told:#?}");
    }
    let full = said(place.shelflife(["atlas", &dir, "--html", "/dev/full"]).args(usual));
    full.fails(2, &["no page", "No space left"]);
    assert!(full.out.starts_with("simulated: best case: "), "{full:#?}");
    let told = said(place.shelflife(["atlas", &dir, "--json"]).args(usual));
    let json: serde_json::Value = serde_json::from_str(&told.expect(0).out).unwrap();
    assert_eq!(json["source"], "simulated");
    assert_eq!(json["rows"][0]["scenario"], "tpcb");
    assert_eq!(json["failed"], serde_json::json!([]));
}

#[test]
fn an_atlas_of_nonsense_is_refused() {
    let name = "an_atlas_of_nonsense_is_refused";
    let Some(place) = Place::new(name, Need::Nothing) else { return };
    let [dir, drive] = sample(&place);
    for (args, told) in [
        (vec!["--drives", "consumer-7"], "no hint arrives at drive consumer-7"),
        (vec!["--scenarios", "nope"], "there is tpcb"),
        (vec!["--scenarios", "tpcb,tpcb"], "one folder"),
        (vec!["--scenarios", "tpcb", "--drives", &drive], "choose another folder"),
        (vec!["--size", "1MiB"], "--size"),
    ] {
        said(place.shelflife(["atlas", &dir]).args(args)).fails(2, &[told]);
    }
    fs::write(place.path("atlas/tpcb/recording.json"), "{}").unwrap();
    said(&mut place.shelflife(["atlas", &dir, "--scenarios", "tpcb", "--drives", &drive]))
        .fails(2, &["recording.json", "remove it"]);
}
