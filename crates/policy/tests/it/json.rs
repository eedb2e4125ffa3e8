//! How policies, explanations and findings look in JSON.

use serde_json::json;
use shelflife_layout::Class;

use crate::policy;

const TEXT: &str = r#"name = "p"
layout = "postgres"
description = "an example"
default = "extreme"
[[rule]]
class = ["temp", "spill"]
lifetime = "short"
[[rule]]
path = "pg_stat_tmp/*"
lifetime = "short"
[[rule]]
relation = "public.orders"
lifetime = "medium"
"#;

fn value(of: impl serde::Serialize) -> serde_json::Value {
    serde_json::to_value(of).expect("plain data")
}

#[test]
fn a_policy() {
    assert_eq!(
        value(policy(TEXT)),
        json!({
            "origin": "p.toml",
            "name": "p",
            "layout": "postgres",
            "description": "an example",
            "applier": null,
            "default": "extreme",
            "rules": [
                {"number": 1, "line": 5, "column": 1, "class": ["temp", "spill"],
                 "lifetime": "short"},
                {"number": 2, "line": 8, "column": 1, "path": "pg_stat_tmp/*",
                 "lifetime": "short"},
                {"number": 3, "line": 11, "column": 1, "relation": "public.orders",
                 "lifetime": "medium"},
            ],
        })
    );
}

#[test]
fn explanations() {
    let policy = policy(TEXT);
    assert_eq!(
        value(policy.explain(Class::Temp, None, None)),
        json!({
            "class": "temp",
            "lifetime": "short",
            "decision": {"by": "rule", "number": 1, "line": 5, "column": 1},
            "reason": "rule 1 (line 5): class = [\"temp\", \"spill\"]",
        })
    );
    assert_eq!(
        value(policy.explain(Class::Relation, None, None)),
        json!({
            "class": "relation",
            "lifetime": "extreme",
            "decision": {"by": "default", "line": 4, "column": 11},
            "reason": "default (line 4)",
        })
    );
    assert_eq!(
        value(policy.explain(Class::Outside, None, None)),
        json!({
            "class": "outside",
            "lifetime": null,
            "decision": {"by": "nothing"},
            "reason": "no rule; the default stays inside",
        })
    );
}

#[test]
fn a_finding() {
    let findings = value(policy(TEXT).check());
    assert_eq!(findings[1]["severity"], "warning");
    assert_eq!(
        findings[1],
        json!({
            "severity": "warning",
            "lint": "needs-catalog",
            "line": 12,
            "column": 12,
            "text": "a path does not tell a relation's name: the hook ignores this rule",
        })
    );
}
