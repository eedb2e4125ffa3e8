//! `simulate`: figures that agree with the closed forms, documented fields, traces that were
//! imported, and input that makes no sense.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::{Need, Place, Said, said};

/// Uniform greedy at ρ = 28 % with units of 64 pages, S_f = 21.9 %: α/A = H(P) − H(X), A = P/(P − X).
fn closed_form(alpha: f64, pages: u32) -> f64 {
    let harmonic = |x: f64| x.ln() + 0.577_215_664_901_532_9 + 0.5 / x - 1.0 / (12.0 * x * x);
    let p = f64::from(pages);
    let (mut low, mut high) = (1.0, p - 1e-6);
    for _ in 0..200 {
        let x = (low + high) / 2.0;
        let is_low = harmonic(p) - harmonic(x) > alpha * (p - x) / p;
        (low, high) = if is_low { (x, high) } else { (low, x) };
    }
    p / (p - low)
}

fn simulate(place: &Place, args: &[&str]) -> Said {
    said(place.shelflife(["simulate"]).args(args))
}

fn sample(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../trace/samples");
    folder.join(name).to_str().unwrap().to_owned()
}

#[test]
fn uniform_writes_agree_with_the_closed_form() {
    let name = "uniform_writes_agree_with_the_closed_form";
    let Some(place) = Place::new(name, Need::Nothing) else { return };
    let uniform = ["--workload", "uniform", "--pages", "65536", "--ru-pages", "64"];
    for rho in ["0.15", "0.28"] {
        let args = [uniform.as_slice(), &["--op", rho, "--json"]].concat();
        let report = simulate(&place, &args).expect(0).json();
        let waf = report["results"][0]["waf"].as_f64().unwrap();
        let expected = closed_form(1.0 + rho.parse::<f64>().unwrap(), 64);
        assert!((waf / expected - 1.0).abs() < 0.01, "{rho}: {waf} instead of {expected}");
    }
    let told = simulate(&place, &[uniform.as_slice(), &["--op", "0.28"]].concat());
    let first = told.expect(0).out.lines().next().unwrap();
    assert!(first.starts_with("simulated: WAF 2."), "{told:#?}");
    assert_eq!(told.err, "");
}

#[test]
fn results_have_the_documented_fields() {
    let Some(place) = Place::new("results_have_the_documented_fields", Need::Nothing) else {
        return;
    };
    let workload = ["--workload", "hotcold:20/80", "--pages", "32768", "--overwrites", "4"];
    let hints = ["--hints", "off", "--hints", "flip:0.1", "--drive", "consumer-7"];
    let more = ["--op", "0.28", "--transport", "f2fs-fdp", "--json"];
    let args = [workload.as_slice(), &hints, &more].concat();
    let told = simulate(&place, &args);
    let report = told.expect(0).json();
    assert_eq!(report["source"], "simulated");
    let rows = report["results"].as_array().unwrap();
    let pair = |row: &Value| [row["policy"].clone(), row["drive"].clone()];
    let names: Vec<_> = rows.iter().map(pair).collect();
    let (drives, hints) = (["consumer-7", "op 0.28"], ["off", "flip:0.1"]);
    let expected: Vec<_> =
        hints.iter().flat_map(|hint| drives.map(|drive| [(*hint).into(), drive.into()])).collect();
    assert_eq!(names, expected as Vec<[Value; 2]>);
    for row in rows {
        for field in ["host_pages", "flash_pages", "copied_pages", "erases"] {
            assert!(row[field].as_u64().unwrap() > 0, "{field}: {row:#}");
        }
        let ratio = row["flash_pages"].as_f64().unwrap() / row["host_pages"].as_f64().unwrap();
        assert!((row["waf"].as_f64().unwrap() - ratio).abs() < 1e-9, "{row:#}");
        assert_eq!(row["windows"].as_array().unwrap().len(), 16, "{row:#}");
        assert!(!row["per_stream"].as_array().unwrap().is_empty(), "{row:#}");
        assert_eq!(row["per_class"][0]["class"], "hot");
        let by_class: u64 =
            (0..2).map(|i| row["per_class"][i]["host_pages"].as_u64().unwrap()).sum();
        assert_eq!(row["host_pages"], by_class);
    }
    assert!(rows[1]["notes"][0].as_str().unwrap().starts_with("model"), "{:#}", rows[1]);
    let again = simulate(&place, &args);
    assert_eq!(again.out, told.out, "the same seed gives the same result");
}

#[test]
fn an_imported_trace_is_simulated() {
    let Some(place) = Place::new("an_imported_trace_is_simulated", Need::Nothing) else { return };
    let csv = sample("generic.csv");
    said(&mut place.shelflife(["import", &csv, "--volume", "vdb", "-o", "mine"])).expect(0);
    let rules = ["mine", "--op", "0.5", "--ru-pages", "1"];
    let policies = ["--policy", "off", "--policy", "recorded", "--policy", "wal-first", "--json"];
    let report = simulate(&place, &[rules.as_slice(), &policies].concat()).expect(0).json();
    let pages = |row: usize, stream: usize| {
        report["results"][row]["per_stream"][stream]["host_pages"].as_u64().unwrap()
    };
    // Two pages of WAL, short as recorded, and one of a relation without a hint.
    assert_eq!([pages(0, 0), pages(0, 2)], [3, 0]);
    assert_eq!([pages(1, 0), pages(1, 2)], [1, 2]);
    assert_eq!([pages(2, 0), pages(2, 2)], [1, 2]);
    assert_eq!(report["results"][0]["per_class"][0]["class"], "wal");

    let repeated = simulate(&place, &[rules.as_slice(), &["--repeat", "--fit", "90"]].concat());
    assert!(repeated.expect(0).out.starts_with("simulated: "), "{repeated:#?}");
    let whole = simulate(&place, &["mine", "--drive", "./missing.toml"]);
    whole.fails(2, &["missing.toml"]);

    // Without classes and hints there is nothing for a policy to match.
    said(&mut place.shelflife(["import", &sample("msr.csv"), "--volume", "hm_0", "-o", "msr"]))
        .expect(0);
    let rules = ["msr", "--op", "0.5", "--ru-pages", "1", "--policy"];
    let with = |policy| simulate(&place, &[rules.as_slice(), &[policy]].concat());
    with("off").expect(0);
    with("recorded").fails(2, &["recorded without hints"]);
    with("wal-first").fails(2, &["wal-first", "matches none", "recorded"]);
    with("wal-frist").fails(2, &["did you mean wal-first?"]);
    said(&mut place.shelflife(["import", &csv, "-o", "two"])).expect(0);
    simulate(&place, &["two", "--op", "0.5"]).fails(2, &["2 devices", "trace cut --device"]);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let Some(place) = Place::new("what_makes_no_sense_is_refused", Need::Nothing) else { return };
    let with = |args: &[&str]| {
        let workload = ["--workload", "uniform", "--pages", "4096"];
        simulate(&place, &[workload.as_slice(), args].concat())
    };
    with(&["--drive", "enterprise-82"]).fails(2, &["enterprise-28"]);
    with(&["--op", "0.28", "--streams", "0"]).fails(2, &["0 streams", "choose 1 to"]);
    with(&["--op", "0.28", "--ru-pages", "65536"]).fails(2, &["smaller units"]);
    with(&["--op", "0.28", "--ru-pages", "0"]).fails(2, &["reclaim unit of 0 pages"]);
    with(&["--op", "0.001"]).fails(2, &["do not fit", "more over-provisioning"]);
    for rho in ["0", "-1", "NaN", "inf", "28", "1e300"] {
        with(&["--op", rho]).fails(2, &["over-provisioning", "0.07 is 7 %"]);
    }
    with(&["--op", "0.28", "--fit", "0"]).fails(2, &["up to 100"]);
    with(&["--op", "0.28", "--fit", "1e-300"]).fails(2, &["larger share"]);
    with(&["--op", "0.28", "--hints", "exact"]).fails(2, &["one class"]);
    with(&["--op", "0.28", "--policy", "off"]).expect(2);
    with(&["--streams", "2"]).expect(2);
    let text = |workload| simulate(&place, &["--workload", workload, "--op", "0.28"]);
    for workload in ["unifrom", "zipf:x", "hotcold:20", "log+random:0/2", "sequential:1"] {
        text(workload).fails(2, &["workload"]);
    }
    simulate(&place, &["nowhere", "--op", "0.28"]).expect(2);
    let many = ["--workload", "uniform", "--pages", "4294967295", "--op", "0.28"];
    simulate(&place, &many).fails(2, &["op 0.28"]);

    fs::write(place.path("far.csv"), "offset,length\n1125899906842624,4096\n").unwrap();
    said(&mut place.shelflife(["import", "far.csv", "-o", "far"])).expect(0);
    let larger = ["far", "--drive", "enterprise-28"];
    simulate(&place, &larger).fails(2, &["larger drive", "--fit"]);
    let fitted = [larger.as_slice(), &["--fit", "0.01"]].concat();
    simulate(&place, &fitted).expect(0);
}
