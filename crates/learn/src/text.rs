//! The policy as TOML, with its reasons.
//!
//! Invariant: whatever files and relations are called, the text is a policy.

use std::fmt::Write;

use shelflife_lifetime::Lifetime;
use shelflife_policy::Applier;
use shelflife_report::{bytes, figure, plain};

use crate::outcome::LearnedRule;
use crate::units::Unit;

/// One rule's units, and what they get.
pub(crate) struct Ruled<'a> {
    pub units: Vec<&'a Unit>,
    pub lifetime: Lifetime,
}

/// The rules alone, in an order in which each decides about what it names: relations first.
pub(crate) fn bare(name: &str, applier: Applier, rules: &[Ruled<'_>]) -> String {
    write(name, applier, &[], "learned", rules, &[])
}

/// A name that a policy may have: of a file's name, what is allowed.
pub fn policy_name(text: &str) -> String {
    let lower = text.to_lowercase();
    let kept =
        lower.chars().map(|c| if c.is_ascii_lowercase() || c.is_ascii_digit() { c } else { '-' });
    let name: String = kept.take(shelflife_policy::MAX_NAME).collect();
    let name = name.trim_matches('-');
    match name {
        "" | "on" | "off" => "learned".to_owned(),
        name => name.to_owned(),
    }
}

/// The policy with its reasons; `reasons` belong to `rules` one by one, or are not there.
pub(crate) fn write(
    name: &str,
    applier: Applier,
    head: &[String],
    description: &str,
    rules: &[Ruled<'_>],
    reasons: &[LearnedRule],
) -> String {
    let mut text = String::new();
    for line in head {
        let _ = writeln!(text, "# {}", plain(line));
    }
    let _ = writeln!(text, "name = \"{name}\"\nlayout = \"postgres\"");
    let _ = writeln!(text, "applier = \"{}\"", applier.name());
    let description: String =
        plain(description).chars().take(shelflife_policy::MAX_DESCRIPTION).collect();
    let _ = writeln!(text, "description = {}", quoted(&description));
    let reason = |at: usize| reasons.get(at).map(said);
    for relations in [true, false] {
        for (at, rule) in rules.iter().enumerate() {
            let lifetime = rule.lifetime.name();
            let (with, classes): (Vec<&Unit>, Vec<&Unit>) =
                rule.units.iter().partition(|unit| unit.relation.is_some());
            if relations {
                for relation in with.iter().filter_map(|unit| unit.relation.as_ref()) {
                    let _ = writeln!(text);
                    reason(at).iter().for_each(|reason| {
                        let _ = writeln!(text, "# {reason}");
                    });
                    let relation = quoted(&relation.to_string());
                    let _ = writeln!(
                        text,
                        "[[rule]]\nrelation = {relation}\nlifetime = \"{lifetime}\""
                    );
                }
            } else if !classes.is_empty() {
                let names: Vec<String> = classes
                    .iter()
                    .flat_map(|unit| &unit.classes)
                    .map(|class| format!("\"{class}\""))
                    .collect();
                let _ = writeln!(text);
                reason(at).iter().for_each(|reason| {
                    let _ = writeln!(text, "# {reason}");
                });
                let _ = writeln!(
                    text,
                    "[[rule]]\nclass = [{}]\nlifetime = \"{lifetime}\"",
                    names.join(", ")
                );
            }
        }
    }
    text
}

/// The reasons of one rule in a line.
fn said(rule: &LearnedRule) -> String {
    let lives = match rule.median_bytes {
        Some(median) => format!("half of it dead after {} of host writes", bytes(median)),
        None => "more than half of it alive at the end".to_owned(),
    };
    let names = plain(&rule.names.join(", ")).into_owned();
    format!(
        "{names}: {} ({} % of what was written), {lives}; this rule takes {} % off the write \
         amplification",
        bytes(rule.bytes),
        figure(rule.share * 100.0),
        figure(rule.gain * 100.0)
    )
}

/// A basic string of TOML.
fn quoted(text: &str) -> String {
    let mut quoted = "\"".to_owned();
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use shelflife_layout::Class;
    use shelflife_policy::{Policy, RelationName};

    use super::*;

    #[test]
    fn names_from_outside_make_a_policy() {
        let relation = RelationName::parse("a\"b/sch\\ema.t # x").unwrap();
        let unit = |classes: &[Class], relation| Unit {
            name: "\u{1b}[2J\n[[rule]]".into(),
            classes: classes.into(),
            relation,
            written: 1,
            median: None,
        };
        let units = [unit(&[], Some(relation.clone())), unit(&[Class::Wal, Class::WalNew], None)];
        let rule = Ruled { units: units.iter().collect(), lifetime: Lifetime::Short };
        let reason = LearnedRule {
            names: vec![units[0].name.clone()],
            lifetime: Lifetime::Short,
            bytes: 5,
            share: 0.5,
            median_bytes: None,
            gain: 0.25,
        };
        let head = ["a\nname = \"evil\"".to_owned()];
        let applier = Applier::Watch;
        let text = write("x", applier, &head, "it's \"\u{7}\\ fine", &[rule], &[reason]);
        let policy = Policy::parse(&text, "x").unwrap();
        assert_eq!((policy.name(), policy.rules().len()), ("x", 2));
        assert_eq!(policy.applier(), Some(applier));
        assert!(policy.check().iter().all(|finding| !finding.fails()), "{text}");
        assert!(policy.rules()[0].matcher.to_string().contains(&relation.to_string()), "{text}");
        assert!(text.contains("takes 25 % off"), "{text}");
    }

    #[test]
    fn any_file_name_gives_a_name() {
        let names = ["My Policy_2", "off", "", "ü", "---"].map(policy_name);
        assert_eq!(names, ["my-policy-2", "learned", "learned", "learned", "learned"]);
        assert_eq!(policy_name(&"x".repeat(500)).len(), shelflife_policy::MAX_NAME);
    }
}
