//! What a page is made of.

use crate::sample::{FIGURES, HOSTILE, page};

#[test]
fn hostile_names_are_text_everywhere() {
    let html = page().to_string();
    assert!(!html.contains("<script") && !html.contains("<img"), "markup of a name");
    assert!(html.matches("&lt;script&gt;").count() > 20, "names are there, escaped");
    // an attribute of a name's own would need its quotation mark
    assert!(!html.contains("\"'>") && !html.contains("=\"\"'"));
    assert!(html.contains("%3Cscript%3E"), "and in the CSV");
    assert!(html.contains("%27=1+1"), "no formula");
    assert!(HOSTILE.contains("<script"));
}

#[test]
fn nothing_is_asked_for() {
    let html = page().to_string();
    let addresses = ["href=\"", "src=\"", "url(", "@import", "xlink:href=\""];
    for address in addresses {
        for rest in html.split(address).skip(1) {
            assert!(rest.starts_with("data:") || rest.starts_with('#'), "{address}{rest:.40}");
        }
    }
    assert!(html.contains("default-src 'none'"));
    assert_eq!(html.matches("<figure").count(), FIGURES);
    assert!(html.len() < 1_000_000, "{}", html.len());
}
