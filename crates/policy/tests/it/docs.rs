//! Every example in the documentation is a policy, and every lint stands in it.

use shelflife_policy::{Lint, Policy};

const DOCS: &str = include_str!("../../../../docs/policy.md");

/// The fenced blocks marked `toml`, with the line that each begins in.
fn examples() -> Vec<(usize, String)> {
    let mut examples = Vec::new();
    let mut lines = DOCS.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        if line == "```toml" {
            let body: Vec<_> = lines.by_ref().map(|(_, l)| l).take_while(|l| *l != "```").collect();
            examples.push((at + 2, body.join("\n")));
        }
    }
    examples
}

#[test]
fn every_example_is_a_clean_policy() {
    let examples = examples();
    assert!(examples.len() >= 4, "the documentation lost its examples");
    for (line, text) in examples {
        let policy = Policy::parse(&text, &format!("docs/policy.md from line {line}"))
            .unwrap_or_else(|error| panic!("{error}"));
        let failing: Vec<_> = policy
            .check()
            .into_iter()
            // the one example about a catalog says that the hook ignores it
            .filter(|f| f.fails() && f.lint != Lint::NeedsCatalog)
            .collect();
        assert_eq!(failing, [], "docs/policy.md from line {line}");
    }
}

#[test]
fn every_lint_is_described_with_its_severity() {
    for lint in Lint::ALL {
        let row = format!("| `{}` | {} |", lint.name(), lint.severity());
        assert!(DOCS.contains(&row), "docs/policy.md lacks {row}");
    }
}

#[test]
fn every_class_is_described() {
    for class in shelflife_layout::Class::ALL {
        assert!(DOCS.contains(&format!("`{class}`")), "docs/policy.md lacks {class}");
    }
}
