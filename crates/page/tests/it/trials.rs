//! What the page of a trial holds.

use std::path::Path;

use shelflife_page::{TrialPage, trial};
use shelflife_trial::{Outcome, Results, Simulated};

use crate::made_up::{HOSTILE, results, simulated, trace};

fn page(results: &Results, simulated: Option<&Simulated>) -> (Outcome, String) {
    let outcome = results.outcome().unwrap();
    let page = trial(&TrialPage { results, outcome: &outcome, simulated, note: Some(HOSTILE) });
    (outcome, page.to_string())
}

/// Titles of pictures.
fn pictures(html: &str) -> Vec<&str> {
    let titles = html.split("<figcaption><h3>").skip(1);
    titles.map(|rest| rest.split("</h3>").next().unwrap()).collect()
}

#[test]
fn a_recorded_trial_has_every_picture() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("trace");
    trace(&place, 20_000);
    let (outcome, html) = page(&results(&place, 16), Some(&simulated()));
    assert_eq!(
        pictures(&html),
        [
            "Against off",
            "Rounds over time",
            "Bytes for a transaction, by class of file",
            "Write amplification",
            "What hints save of it",
            "Victims' valid ratio, 90 % full",
            "Share still alive, by class of file",
            "Place and time of writes, by class of file",
        ]
    );
    assert!(html.contains(&format!(">{}</h1>", outcome.answer)), "{}", outcome.answer);
    assert_eq!(html.matches("class=\"badge simulated\"").count(), 1);
    assert_eq!(html.matches("class=\"badge measured\"").count(), 1);
    assert!(!html.contains("<script") && html.contains("&lt;script&gt;"), "{HOSTILE}");
    assert!(!html.contains("no data"), "every picture has some");
    assert!(html.len() < 1_000_000);
}

#[test]
fn a_trace_that_is_gone_is_said() {
    let (_, html) = page(&results(Path::new("/nowhere/trace"), 16), None);
    assert!(html.contains("/nowhere/trace, cannot be read any more: "));
    assert_eq!(pictures(&html).len(), 3);
}

#[test]
fn a_trial_that_has_hardly_begun_has_a_page() {
    for rounds in [0, 1, 2, 3] {
        let (outcome, html) = page(&results(Path::new("/nowhere"), rounds), None);
        assert!(html.contains(&outcome.answer) || outcome.answer.contains('\''), "{rounds}");
        assert!(!html.contains("NaN") && !html.contains("inf %"), "{rounds}");
    }
}
