//! `learn`: from a trace to a policy that the other verbs take, and input that makes no sense.

use std::fs;

use shelflife_layout::Class;
use shelflife_trace::{Device, Event, FileEntry, FileId, Meta, TraceWriter};

use crate::support::{Need, Place, said};

const PAGES: u64 = 1 << 12;
const DRIVE: &str = "\
name = \"small\"
sources = [\"a test\"]
page_bytes = 4096
logical_bytes = 16_777_216
over_provisioning = 0.15
ru_bytes = 65_536
reserved_rus = 2
streams = 6
isolation = \"persistent\"
frontier = \"separate\"
victim = \"quota\"
transport = \"scsi\"
";

/// Seven of ten writes are of a fifth of the pages, the class `xact`; the others of relations. If they are
/// `told` apart: else whose a write is is a matter of chance.
fn trace(place: &Place, name: &str, told: bool) -> String {
    let path = place.path(name);
    let meta = Meta::new("record", vec![Device::new("sda", Some(PAGES * 4096))]);
    let mut writer = TraceWriter::create(&path, meta).unwrap();
    for class in [Class::Xact, Class::Relation] {
        writer.files_mut().push(FileEntry::new(class.into())).unwrap();
    }
    // SplitMix64
    let mut state = 7_u64;
    let mut random = |below: u64| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % below
    };
    for at in 0..20 * PAGES {
        let page = match at {
            at if at < PAGES => at,
            _ if random(10) < 7 => random(PAGES / 5),
            _ => PAGES / 5 + random(PAGES - PAGES / 5),
        };
        let hot = if told { page < PAGES / 5 } else { random(2) == 0 };
        let file = FileId(if hot { 1 } else { 2 });
        let event = Event { time: at, offset: page * 4096, length: 4096, file, ..Event::default() };
        writer.push(&event).unwrap();
    }
    writer.finish().unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_learned_policy_explains_itself_and_goes_into_the_other_verbs() {
    let name = "a_learned_policy_explains_itself_and_goes_into_the_other_verbs";
    let Some(place) = Place::new(name, Need::Nothing) else { return };
    let (trace, drive) = (trace(&place, "told", true), place.policy("small.toml", DRIVE));
    let policy = place.path("mine.toml").to_str().unwrap().to_owned();
    let usual = ["--transport", "scsi", "--drive", &drive, "--applier", "hook", "--for", "small"];
    let learn = |output: &str, trace: &str, more: &[&str]| {
        said(place.shelflife(["learn", trace, "-o", output]).args(usual).args(more))
    };
    let told = learn(&policy, &trace, &[]);
    let first = told.expect(0).out.lines().next().unwrap().to_owned();
    assert!(first.starts_with("simulated: ") && first.contains(" saves "), "{told:#?}");
    assert!(
        told.out.contains("* by the drive's own rules") && told.out.contains(" ± "),
        "{told:#?}"
    );
    let text = fs::read_to_string(&policy).unwrap();
    assert!(text.contains("half of it dead after") && text.contains("off the write amplification"));
    said(&mut place.shelflife(["policy", "check", &policy])).expect(0);
    let run = ["simulate", &trace, "--policy", "off", "--policy", &policy, "--drive", &drive];
    let report = said(place.shelflife(run).args(["--repeat", "--json"])).expect(0).json();
    let waf = |at: usize| report["results"][at]["waf"].as_f64().unwrap();
    assert!(waf(1) < 0.95 * waf(0), "{report:#}");

    // what is there is not written over, and the same trace says the same
    learn(&policy, &trace, &[]).fails(2, &["exists already"]);
    let other = place.path("other.toml").to_str().unwrap().to_owned();
    let again = learn(&other, &trace, &["--json"]).expect(0).json();
    assert_eq!(again["source"], "simulated");
    assert!(again["saving"].as_f64() > again["noise"].as_f64(), "{again:#}");
    assert_eq!(fs::read_to_string(&other).unwrap().replace("other", "mine"), text);
}

#[test]
fn where_nothing_is_to_be_learned_no_policy_is_written() {
    let name = "where_nothing_is_to_be_learned_no_policy_is_written";
    let Some(place) = Place::new(name, Need::Nothing) else { return };
    let (trace, drive) = (trace(&place, "mixed", false), place.policy("small.toml", DRIVE));
    let policy = place.path("none.toml");
    let output = policy.to_str().unwrap();
    let args = ["--transport", "scsi", "--drive", &drive, "--applier", "hook"];
    let told = said(place.shelflife(["learn", &trace, "-o", output]).args(args));
    let first = told.expect(1).out.lines().next().unwrap().to_owned();
    assert!(first.starts_with("simulated: nothing beats no hints"), "{told:#?}");
    assert!(!policy.exists());
    let args = ["--transport", "unhinted", "--drive", &drive, "--applier", "hook"];
    said(place.shelflife(["learn", &trace, "-o", output]).args(args)).fails(2, &[]);
    let args = ["--transport", "scsi", "--drive", &drive, "--applier", "hook", "--relations"];
    said(place.shelflife(["learn", &trace, "-o", output]).args(args)).fails(2, &["watch"]);
}
