//! What is said about texts that are no policies.

use proptest::prelude::*;
use shelflife_policy::{MAX_BYTES, Policy, Problem, check_text};

const HEAD: &str = "name = \"p\"\nlayout = \"postgres\"\n";

fn error(text: impl AsRef<[u8]>) -> String {
    Policy::parse(text, "p.toml").expect_err("not a policy").to_string()
}

/// The error of the head and `rest`, which begins in line 3.
fn rest(rest: &str) -> String {
    error(format!("{HEAD}{rest}"))
}

#[test]
fn the_head() {
    for (text, want) in [
        (
            "layout = \"postgres\"",
            "p.toml:1:1: the policy has no `name`; add `name = \"my-policy\"`",
        ),
        ("name = \"p\"", "p.toml:1:1: the policy has no `layout`; add `layout = \"postgres\"`"),
        (
            "name = \"p\"\nlayout = \"mysql\"",
            "p.toml:2:10: unknown layout \"mysql\"; expected \"postgres\" or \"paths\"",
        ),
        (
            "name = \"P!\"\nlayout = \"paths\"",
            "p.toml:1:8: \"P!\" is not a name for a policy; use 1 to 63 of a-z, 0-9 and `-`",
        ),
        (
            "layout = \"paths\"\nname = \"off\"",
            "p.toml:2:8: \"off\" is the switch, not a policy; choose another name",
        ),
        ("layout = \"paths\"\nname = 7", "p.toml:2:8: `name` must be a string, not a number"),
        (
            "name = \"p\"\nlayout = \"paths\"\ndefault = \"long\"",
            "p.toml:3:11: layout \"paths\" has no `default`, because every file is outside of a \
             data folder; end with a rule `path = \"**\"` if all files are meant",
        ),
        (
            "name = \"p\"\nlayout = \"paths\"\n[[rule]]\nclass = \"wal\"\nlifetime = \"short\"",
            "p.toml:4:1: layout \"paths\" knows no `class`; use `path` rules",
        ),
    ] {
        assert_eq!(error(text), want);
    }
    assert_eq!(
        rest("descripton = \"x\""),
        "p.toml:3:1: unknown key \"descripton\" in the policy; did you mean `description`?"
    );
    assert_eq!(
        rest("colour = 1"),
        "p.toml:3:1: unknown key \"colour\" in the policy; expected `name`, `layout`, `default`, \
         `description`, `applier` or `rule`"
    );
    assert_eq!(
        rest("description = \"a\\nb\""),
        "p.toml:3:15: the description must be one line of at most 200 characters, without control \
         characters"
    );
    assert_eq!(
        rest("applier = \"daemon\""),
        "p.toml:3:11: unknown applier \"daemon\"; expected \"hook\" or \"watch\""
    );
    assert_eq!(
        rest("[rule]\nclass = \"wal\"\nlifetime = \"short\""),
        "p.toml:3:1: `rule` must be a list of tables, each begun by a line `[[rule]]`, not a table"
    );
}

#[test]
fn lifetimes() {
    assert_eq!(
        rest("default = \"shrt\""),
        "p.toml:3:11: unknown lifetime \"shrt\"; did you mean `short`?"
    );
    assert_eq!(
        rest("default = \"forever\""),
        "p.toml:3:11: unknown lifetime \"forever\"; expected `not-set`, `none`, `short`, \
         `medium`, `long` or `extreme`"
    );
    assert_eq!(
        rest("default = \"NOT_SET\""),
        "p.toml:3:11: unknown lifetime \"NOT_SET\"; did you mean `not-set`?"
    );
    assert_eq!(
        rest("[[rule]]\nclass = \"wal\"\nlifetime = \"off\""),
        "p.toml:5:12: off is the switch, not a lifetime (`shelflife switch off`); `not-set` takes \
         a hint away, and files that no rule names are left alone"
    );
    assert_eq!(
        rest("[[rule]]\nclass = \"wal\"\nlifetime = 2"),
        "p.toml:5:12: `lifetime` must be a string, not a number"
    );
    assert_eq!(
        rest("[[rule]]\nclass = \"wal\""),
        "p.toml:3:1: the rule has no `lifetime`; add `lifetime = \"short\"`"
    );
}

#[test]
fn what_a_rule_is_about() {
    let rule = |matcher: &str| rest(&format!("[[rule]]\n{matcher}\nlifetime = \"short\""));
    for (matcher, want) in [
        ("", "3:1: the rule names no files; give it one of `class`, `path` or `relation`"),
        (
            "path = \"x\"\nclass = \"wal\"",
            "5:1: a rule has only one of `class`, `path` and `relation`; make two rules of it",
        ),
        ("class = \"wall\"", "4:9: unknown class \"wall\"; did you mean `wal`?"),
        ("class = [\"wal\", \"tmp\"]", "4:17: unknown class \"tmp\"; did you mean `temp`?"),
        (
            "class = \"heap\"",
            "4:9: unknown class \"heap\"; `shelflife policy show temp-vs-rest` lists the classes",
        ),
        ("class = []", "4:9: the list of classes is empty; name one, or delete the rule"),
        ("class = 3", "4:9: `class` must be a string or a list of strings, not a number"),
        (
            "class = \"outside\"",
            "4:9: a rule for `outside` would hint any file anywhere that the server or its \
             children write; name the files by an absolute `path`",
        ),
        (
            "path = \"/**/*\"",
            "4:8: \"/**/*\" would hint any file anywhere that the server or its children write; \
             begin it with a folder",
        ),
        ("path = \"base/[0-\"", "4:14: bad glob: `[` is not closed"),
        ("path = \"a\\\\\\\\[\"", "4:14: bad glob: `[` is not closed"),
        ("path = 'ä/x**'", "4:12: bad glob: `**` must be a whole component"),
        ("path = \"../x\"", "4:9: bad glob: a glob with a `..` component matches nothing"),
        ("path = \"a\\u0000\"", "4:10: bad glob: a path has no NUL byte"),
        ("path = \"\"", "4:9: bad glob: an empty glob matches nothing"),
        (
            "relation = \"orders\"",
            "4:12: \"orders\" is not the name of a relation; write \"schema.table\" or \
             \"database/schema.table\"",
        ),
        (
            "clas = \"wal\"",
            "3:1: the rule names no files; give it one of `class`, `path` or `relation`",
        ),
    ] {
        assert_eq!(rule(matcher), format!("p.toml:{want}"));
    }
    let long = format!("path = \"{}\"", "x".repeat(256));
    assert_eq!(rule(&long), "p.toml:4:8: a glob has at most 255 bytes");
}

#[test]
fn everything_wrong_is_found_in_order() {
    let text = format!(
        "{HEAD}defualt = \"long\"\n[[rule]]\nclas = \"wal\"\nlifetime = \"brief\"\n[[rule]]\n\
         class = [\"wal\", \"walnew\"]\nlifetime = \"short\"\n"
    );
    let found: Vec<_> = check_text(&text, "p.toml")
        .into_iter()
        .map(|f| format!("{}:{} {}", f.place.line, f.place.column, f.text))
        .collect();
    assert_eq!(
        found,
        [
            "3:1 unknown key \"defualt\" in the policy; did you mean `default`?",
            "4:1 the rule names no files; give it one of `class`, `path` or `relation`",
            "5:1 unknown key \"clas\" in a rule; did you mean `class`?",
            "6:12 unknown lifetime \"brief\"; expected `not-set`, `none`, `short`, `medium`, \
             `long` or `extreme`",
            "8:17 unknown class \"walnew\"; did you mean `wal-new`?",
        ]
    );
}

#[test]
fn what_is_not_toml() {
    assert_eq!(
        error("name = p"),
        "p.toml:1:8: not TOML: string values must be quoted, expected literal string"
    );
    assert_eq!(error("name = \"p\"\nname = \"p\""), "p.toml:2:1: not TOML: duplicate key");
    assert_eq!(error(b"name = \"\xff\""), "p.toml:1:9: not UTF-8; TOML is UTF-8 without exception");
    assert!(error("name = \"a\0b\"").starts_with("p.toml:1:10: not TOML: "));
    assert_eq!(error(""), "p.toml:1:1: the policy has no `name`; add `name = \"my-policy\"`");
}

#[test]
fn hostile_texts_end_in_an_error() {
    let deep = format!("x = {}", "[".repeat(MAX_BYTES / 2));
    assert!(error(&deep).contains("not TOML: "));
    let dotted = format!("{}a = 1", "a.".repeat(MAX_BYTES / 4));
    assert!(error(&dotted).contains("not TOML: "));
    let tables = "[[rule.rule]]\n".repeat(MAX_BYTES / 20);
    error(&tables);
    let large = vec![b'#'; MAX_BYTES + 1];
    assert_eq!(error(&large), "p.toml:1:1048577: a policy has at most 1048576 bytes");
    // as many rules as the limit lets in, all on one line, none of them right
    let wrong = format!("rule = [{}]", "{class=\"\u{e4}\",lifetime=\"\"},".repeat(30_000));
    assert!(wrong.len() < MAX_BYTES);
    assert!(check_text(&wrong, "p.toml").len() <= 100);
    let right = "{class=\"wal\",lifetime=\"none\"},".repeat(34_000);
    let right = format!("name=\"p\"\nlayout=\"postgres\"\nrule=[{right}]");
    assert!(right.len() < MAX_BYTES);
    assert_eq!(check_text(&right, "p.toml").len(), 33_999 + 1, "and wal-new differs");
    let one_string = format!("{HEAD}default = \"{}\"", "x".repeat(MAX_BYTES / 2));
    assert!(error(&one_string).len() < 300);
}

#[test]
fn path_rules_that_do_not_fit_are_refused_once() {
    let mut text = HEAD.to_owned();
    for at in 0..40 {
        text += &format!("[[rule]]\npath = \"{}{at}\"\nlifetime = \"short\"\n", "x".repeat(200));
    }
    let found = check_text(&text, "p.toml");
    assert_eq!(found.len(), 1);
    let error = Policy::parse(&text, "p.toml").expect_err("too many paths");
    assert_eq!(error.problem, Problem::TooManyPaths);
    let fits = (0..40).scan(0, |sum, at: i32| {
        *sum += 4 + 200 + at.to_string().len();
        Some(*sum)
    });
    let fits = fits.take_while(|sum| *sum <= 6144).count();
    assert_eq!(error.place.line, 3 + fits * 3 + 1);
}

#[test]
fn messages_cannot_talk_to_the_terminal() {
    let message = rest("default = \"\\u001b[2J\\u202e\"");
    assert!(message.chars().all(|c| !c.is_control() && c != '\u{202e}'), "{message:?}");
}

proptest! {
    #[test]
    fn any_bytes_are_a_policy_or_an_error(text in proptest::collection::vec(any::<u8>(), 0..200)) {
        check_text(&text, "p.toml");
    }

    #[test]
    fn any_damage_to_a_policy_is_survived(
        at in any::<prop::sample::Index>(), cut in 0usize..8, put in "[\\x00-\\x7f]{0,4}",
        shipped in 0usize..3,
    ) {
        let text = shelflife_policy::shipped()[shipped].1;
        let at = at.index(text.len());
        let after = (at + cut).min(text.len());
        let damaged = [&text.as_bytes()[..at], put.as_bytes(), &text.as_bytes()[after..]].concat();
        match Policy::parse(&damaged, "p.toml") {
            Ok(policy) => { policy.check(); policy.compile(); }
            Err(error) => {
                let lines = damaged.split(|b| *b == b'\n').count();
                prop_assert!((1..=lines).contains(&error.place.line));
            }
        }
    }
}
