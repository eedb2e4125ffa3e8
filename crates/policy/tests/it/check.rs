//! What check finds in texts that are policies.

use shelflife_policy::{Lint, Severity};

use crate::policy;

/// The findings in a policy of the rules `(matcher, lifetime)`: "LINE LINT".
fn found(rules: &[(&str, &str)], default: &str) -> Vec<String> {
    let findings = policy(&text(rules, default)).check();
    findings.iter().map(|f| format!("{} {}", f.place.line, f.lint.name())).collect()
}

/// The head takes two lines, with a default three, and each rule another three.
fn text(rules: &[(&str, &str)], default: &str) -> String {
    let mut text = "name = \"p\"\nlayout = \"postgres\"\n".to_owned();
    if !default.is_empty() {
        text += &format!("{default}\n");
    }
    for (matcher, lifetime) in rules {
        text += &format!("[[rule]]\n{matcher}\nlifetime = \"{lifetime}\"\n");
    }
    text
}

#[test]
fn rules_that_nothing_reaches() {
    for rules in [
        [("class = \"wal-history\"", "short"), ("class = \"wal-history\"", "long")],
        [("class = [\"stat\", \"temp\"]", "short"), ("class = [\"temp\", \"stat\"]", "long")],
        [("path = \"**\"", "short"), ("class = \"temp\"", "short")],
        [("path = \"**/*\"", "short"), ("path = \"base/5/*\"", "short")],
        [("path = \"base/5/*\"", "short"), ("path = \"base/5/*\"", "long")],
        [("path = \"/srv/**\"", "short"), ("path = \"/srv/x/*.gz\"", "long")],
        [("path = \"base/**\"", "short"), ("path = \"base/5/16384\"", "long")],
    ] {
        assert_eq!(found(&rules, ""), ["6 unreachable-rule"], "{rules:?}");
    }
    let findings = found(&[("path = \"**\"", "short")], "default = \"long\"");
    assert_eq!(findings, ["3 unreachable-rule"]);
    let same = [("relation = \"s.t\"", "short"), ("relation = \"d/s.t\"", "long")];
    assert_eq!(found(&same, ""), ["4 needs-catalog", "6 unreachable-rule", "7 needs-catalog"]);
}

#[test]
fn an_absolute_rule_reaches_files_that_relative_ones_do_not() {
    let rules = [("path = \"**\"", "short"), ("path = \"/archive/*\"", "long")];
    assert_eq!(found(&rules, ""), [""; 0]);
}

#[test]
fn the_message_names_the_rule_that_takes_the_files() {
    let rules = [("class = \"temp\"", "short"), ("class = \"temp\"", "long")];
    let findings = policy(&text(&rules, "")).check();
    assert_eq!(
        findings[0].text,
        "no file gets here: rule 1 (line 3) takes them all; move or delete it"
    );
    assert_eq!((findings[0].severity, findings[0].place.column), (Severity::Error, 1));
}

#[test]
fn classes_named_twice() {
    let rules = [("class = \"temp\"", "short"), ("class = [\"stat\", \"temp\"]", "long")];
    let findings = policy(&text(&rules, "")).check();
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].lint, Lint::RepeatedClass);
    assert_eq!((findings[0].place.line, findings[0].place.column), (7, 18));
    assert_eq!(findings[0].text, "class `temp` is taken by rule 1 (line 3)");
    let twice = policy(&text(&[("class = [\"temp\", \"temp\"]", "short")], "")).check();
    assert_eq!(twice.len(), 1);
    assert_eq!(twice[0].text, "class `temp` is named twice");
}

#[test]
fn paths_whose_files_a_class_rule_takes() {
    let stat = ("class = \"stat\"", "short");
    assert_eq!(found(&[stat, ("path = \"pg_stat_tmp/*\"", "long")], ""), ["6 taken-by-class"]);
    assert_eq!(found(&[("path = \"pg_stat_tmp/*\"", "long"), stat], ""), [""; 0]);
    // the folder holds more than segments
    let wal = ("class = [\"wal\", \"wal-new\"]", "short");
    assert_eq!(found(&[wal, ("path = \"pg_wal/**\"", "long")], ""), [""; 0]);
    // a path that no example matches says nothing
    assert_eq!(found(&[stat, ("path = \"my_extension/*\"", "long")], ""), [""; 0]);
}

#[test]
fn what_the_hook_cannot_tell() {
    let relation = ("class = \"relation\"", "long");
    let index = ("class = [\"vm\", \"index\"]", "medium");
    let findings = policy(&text(&[relation, index], "")).check();
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].lint, Lint::HookCannotTell);
    assert_eq!((findings[0].place.line, findings[0].place.column), (7, 16));
    assert_eq!(
        findings[0].text,
        "without a catalog a file of class `index` is a `relation`: the hook gives it `long`, by \
         rule 1 (line 3): class = \"relation\""
    );
    assert_eq!(found(&[index], ""), ["4 hook-cannot-tell"]);
    assert_eq!(found(&[("class = [\"relation\", \"index\", \"toast\"]", "long")], ""), [""; 0]);
    assert_eq!(found(&[("class = \"index\"", "long")], "default = \"long\""), [""; 0]);
}

#[test]
fn what_is_not_for_the_hook_need_not_be_told_by_it() {
    let rules = [("relation = \"s.t\"", "short"), ("class = \"index\"", "medium")];
    for (applier, fails) in
        [("", true), ("applier = \"hook\"", true), ("applier = \"watch\"", false)]
    {
        let findings = policy(&text(&rules, applier)).check();
        let lints: Vec<_> = findings.iter().map(|finding| finding.lint).collect();
        assert_eq!(lints, [Lint::NeedsCatalog, Lint::HookCannotTell]);
        assert!(findings.iter().all(|finding| finding.fails() == fails), "{applier}: {findings:?}");
    }
    // what is wrong whoever sets the hints
    let wal = policy(&text(&[("class = \"wal\"", "short")], "applier = \"watch\"")).check();
    assert!(wal.iter().all(|finding| finding.fails()) && wal.len() == 1, "{wal:?}");
}

#[test]
fn wal_is_one_with_the_file_that_becomes_it() {
    assert_eq!(found(&[("class = \"wal\"", "short")], ""), ["3 wal-new-differs"]);
    assert_eq!(
        found(&[("class = \"wal-new\"", "short")], "default = \"long\""),
        ["4 wal-new-differs"]
    );
    assert_eq!(
        found(&[("path = \"pg_wal/0*\"", "short")], "default = \"long\""),
        ["3 wal-new-differs"]
    );
    assert_eq!(found(&[("path = \"pg_wal/*\"", "short")], "default = \"long\""), [""; 0]);
    assert_eq!(found(&[("class = \"wal\"", "not-set")], ""), [""; 0]);
}

#[test]
fn extreme_relations_are_worth_a_note() {
    let findings = policy(&text(&[], "default = \"extreme\"")).check();
    assert_eq!(findings.len(), 1);
    assert_eq!((findings[0].lint, findings[0].severity), (Lint::ColdOnF2fs, Severity::Note));
    assert!(!findings[0].fails());
}

#[test]
fn nothing_and_folders() {
    assert_eq!(found(&[], ""), ["1 hints-nothing"]);
    assert_eq!(found(&[("path = \"base/5/\"", "short")], ""), ["4 matches-no-file"]);
    assert_eq!(found(&[], "default = \"not-set\""), [""; 0]);
}
