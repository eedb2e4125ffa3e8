//! Requests from beginning to end, on small drives.

use shelflife_lifetime::Lifetime;
use shelflife_ssd::{Victim, analytic};
use shelflife_trace::Event;

use super::*;
use crate::target::Rules;
use crate::touched::tests::trace;

fn rules(rho: f64) -> Target {
    Target::Rules(Rules { ru_pages: 64, ..Rules::over_provisioning(rho) })
}

fn request(targets: Vec<Target>) -> Request {
    Request { targets, size: Size::Own, memory_bytes: None }
}

fn synthetic(text: &str, hints: Vec<Hints>) -> Source {
    Synthetic { text: text.into(), pages: 1 << 16, overwrites: 10, seed: 1, hints }.into()
}

fn found(source: &Source, request: &Request) -> Report {
    simulate(source, request, &|_| ()).unwrap()
}

/// Pages of a drive written at random.
fn random(pages: u64, writes: u64) -> Vec<Event> {
    let mut state = 1_u64;
    let page = |_| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Event { offset: (state >> 33) % pages * 4096, length: 4096, ..Event::default() }
    };
    (0..writes).map(page).collect()
}

fn recorded(events: &[Event], hintings: Vec<Hinting>, repeat: bool) -> (tempfile::TempDir, Source) {
    let folder = tempfile::tempdir().unwrap();
    let trace = trace(folder.path(), events);
    (folder, Recorded { trace, hintings, repeat }.into())
}

#[test]
fn uniform_writes_agree_with_the_closed_form() {
    let report = found(&synthetic("uniform", vec![]), &request(vec![rules(0.15), rules(0.28)]));
    for row in &report.rows {
        let expected = analytic::greedy(1.0 + row.outcome.sizes.over_provisioning, 64);
        let off = (row.outcome.waf / expected - 1.0).abs();
        assert!(off < 0.01, "{}: {} instead of {expected}", row.drive, row.outcome.waf);
    }
    let (best, worst) = report.best_and_worst().unwrap();
    assert_eq!((best.drive.as_str(), worst.drive.as_str()), ("op 0.28", "op 0.15"));
}

#[test]
fn a_repeated_trace_agrees_with_it_too_and_fit_gives_spare() {
    let (_folder, source) = recorded(&random(1 << 14, 1 << 16), vec![Hinting::Off], true);
    let report = found(&source, &request(vec![rules(0.28)]));
    let outcome = &report.rows[0].outcome;
    assert!(outcome.steady.reached, "{:?}", outcome.steady);
    let expected = analytic::greedy(1.0 + outcome.sizes.over_provisioning, 64);
    assert!((outcome.waf / expected - 1.0).abs() < 0.02, "{} and {expected}", outcome.waf);
    let half = Request { size: Size::Fit(50.0), ..request(vec![rules(0.28)]) };
    let waf = found(&source, &half).rows[0].outcome.waf;
    let expected = analytic::greedy(2.0 * 1.28, 64);
    assert!((waf / expected - 1.0).abs() < 0.02, "{waf} and {expected}");
}

#[test]
fn hints_are_classes_and_combinations_stand_in_order() {
    let hints = vec![Hints::Off, Hints::Exact];
    let quota = |rho| {
        let rules = Rules::over_provisioning(rho);
        Target::Rules(Rules { ru_pages: 64, victim: Victim::Quota, ..rules })
    };
    let drives = request(vec![quota(0.15), quota(0.28)]);
    let report = found(&synthetic("log+random:50/2", hints), &drives);
    let names: Vec<_> = report.rows.iter().map(|r| (r.policy.as_str(), r.drive.as_str())).collect();
    let (a, b) = ("op 0.15", "op 0.28");
    assert_eq!(names, [("off", a), ("off", b), ("exact", a), ("exact", b)]);
    let waf = |row: usize| report.rows[row].outcome.waf;
    assert!(waf(3) < 0.9 * waf(1), "{} {}", waf(3), waf(1));
    let classes: Vec<_> = report.rows[3].per_class.iter().map(|c| c.class.as_str()).collect();
    assert_eq!(classes, ["log", "random"]);
    let streams = &report.rows[3].outcome.per_stream;
    let used: Vec<u32> = streams.iter().filter(|s| s.host_pages > 0).map(|s| s.id).collect();
    assert_eq!(used, [Lifetime::Short as u32, Lifetime::Extreme as u32]);
    let row = &report.to_json().unwrap()["results"][3];
    assert_eq!(row["policy"], "exact");
    assert_eq!(row["per_class"][0]["class"], "log");
    let alone = request(vec![quota(0.28)]);
    let again = found(&synthetic("log+random:50/2", vec![Hints::Exact]), &alone);
    assert_eq!(again.rows[0].outcome, report.rows[3].outcome);
}

#[test]
fn recorded_hints_choose_streams_where_there_are_any() {
    let mut events = random(1 << 12, 1 << 14);
    let (_folder, none) = recorded(&events, vec![], false);
    let report = found(&none, &request(vec![rules(0.28)]));
    assert_eq!(report.rows.len(), 1, "no hints: off alone");
    assert_eq!(report.rows[0].outcome.host_pages, 1 << 14);
    events.iter_mut().step_by(2).for_each(|event| event.hint = Lifetime::Short);
    let (_folder, some) = recorded(&events, vec![], false);
    let report = found(&some, &request(vec![rules(0.28)]));
    assert_eq!([&report.rows[0].policy, &report.rows[1].policy], ["off", "recorded"]);
    let pages = |row: &Row| [0, 2].map(|stream| row.outcome.per_stream[stream].host_pages);
    assert_eq!(pages(&report.rows[0]), [1 << 14, 0]);
    assert_eq!(pages(&report.rows[1]), [1 << 13, 1 << 13]);
}

#[test]
fn what_is_wrong_is_said() {
    let uniform = synthetic("uniform", vec![]);
    let with = |change: fn(&mut Rules)| {
        let mut rules = Rules::over_provisioning(0.28);
        change(&mut rules);
        request(vec![Target::Rules(rules)])
    };
    let error = |source: &Source, request: &Request| {
        let error = simulate(source, request, &|_| ()).unwrap_err();
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        format!("{error}: {}", cause.unwrap_or_default())
    };
    assert!(error(&uniform, &with(|r| r.streams = 0)).contains("0 streams"));
    assert!(error(&uniform, &with(|r| r.ru_pages = 1 << 20)).contains("smaller units"));
    assert!(error(&uniform, &with(|r| r.over_provisioning = 0.001)).contains("do not fit"));
    assert!(error(&uniform, &with(|r| r.over_provisioning = 28.0)).contains("0.07 is 7 %"));
    for rho in [1e300, 1e15] {
        let text = format!(
            "name = \"x\"\nsources = [\"x\"]\npage_bytes = 4096\nlogical_bytes = 1_000_000_000\n\
             net_over_provisioning = {rho:?}\nru_bytes = 65536\nstreams = 2\nisolation = \"initial\"\n\
             frontier = \"single\"\nvictim = \"greedy\"\ntransport = \"ideal\"\n"
        );
        let error = Target::parse("x", &text).unwrap_err().to_string();
        assert!(error.contains("32-bit addresses"), "{error}");
    }
    let tiny = Request { size: Size::Fit(1e-300), ..with(|_| ()) };
    assert!(error(&uniform, &tiny).contains("a larger share"));
    let live = Request { size: Size::Fit(0.0), ..with(|_| ()) };
    assert!(error(&uniform, &live).contains("up to 100"));
    let live = Request { size: Size::Live(50.0), ..with(|_| ()) };
    assert!(error(&uniform, &live).contains("--fit LIVE"));
    let small = Request { memory_bytes: Some(1000), ..with(|_| ()) };
    assert!(error(&uniform, &small).contains("MiB may be"));
    let one_class = synthetic("uniform", vec![Hints::Exact]);
    assert!(error(&one_class, &with(|_| ())).contains("one class"));
    assert!(error(&synthetic("zipf:x", vec![]), &with(|_| ())).contains("not a number"));
    let (_folder, source) = recorded(&random(1 << 14, 1 << 14), vec![Hinting::Recorded], false);
    assert!(error(&source, &with(|_| ())).contains("without hints"));
    let far = Event { offset: 1 << 50, length: 4096, ..Event::default() };
    let (_folder, source) = recorded(&[far], vec![], false);
    let drive = request(vec![Target::named("enterprise-28").unwrap()]);
    assert!(error(&source, &drive).contains("use a larger drive"));
}
