//! `explain` and the compiled table say the same, and `check` is right about what nothing reaches.

use proptest::prelude::*;
use shelflife_layout::{Class, Layout, Text};
use shelflife_lifetime::Lifetime;
use shelflife_policy::{Decision, Lint, Matcher, Policy};

use crate::policy;

/// Few names, so that rules and paths meet.
const GLOB: &str = "/?(\\*\\*/|[ab]/|\\*/){0,2}(\\*\\*|[ab]\\*|[ab?]{1,2})";
const PATH: &str = "([ab]{1,2}/){0,2}[ab]{1,2}";

fn class() -> impl Strategy<Value = Class> {
    // a few, among them all that are special
    prop::sample::select(vec![
        Class::Wal,
        Class::Relation,
        Class::Index,
        Class::Toast,
        Class::Unlogged,
        Class::Other,
    ])
}

fn lifetime() -> impl Strategy<Value = &'static str> {
    prop::sample::select(Lifetime::ALL.map(Lifetime::name).to_vec())
}

fn matcher(layout: &'static str) -> BoxedStrategy<String> {
    let path = GLOB.prop_map(|glob| format!("path = \"{glob}\""));
    if layout == "paths" {
        return path.boxed();
    }
    let classes = prop::collection::vec(class().prop_map(|c| format!("\"{c}\"")), 1..3)
        .prop_map(|names| format!("class = [{}]", names.join(", ")));
    let all = Class::ALL.iter().filter(|c| **c != Class::Outside).map(|c| format!("\"{c}\""));
    let all = Just(format!("class = [{}]", all.collect::<Vec<_>>().join(", ")));
    let relation = "(d/)?s\\.[ab]".prop_map(|name| format!("relation = \"{name}\""));
    prop_oneof![6 => path, 6 => classes, 1 => all, 1 => relation].boxed()
}

prop_compose! {
    fn text()(layout in prop::sample::select(vec!["postgres", "paths"]))
             (layout in Just(layout),
              rules in prop::collection::vec((matcher(layout), lifetime()), 0..8),
              default in prop::option::of(lifetime())) -> String {
        let mut text = format!("name = \"p\"\nlayout = \"{layout}\"\n");
        if let Some(default) = default && layout == "postgres" {
            text += &format!("default = \"{default}\"\n");
        }
        for (matcher, lifetime) in rules {
            text += &format!("[[rule]]\n{matcher}\nlifetime = \"{lifetime}\"\n");
        }
        text
    }
}

/// A file, as the hook would see it.
#[derive(Clone, Debug)]
struct File {
    class: Class,
    inside: Option<String>,
    absolute: Option<String>,
    joined: bool,
}

prop_compose! {
    fn file()(class in class(), outside in any::<bool>(), inside in PATH, absolute in PATH,
              known in any::<bool>(), joined in any::<bool>()) -> File {
        if outside {
            File { class: Class::Outside, inside: None, absolute: Some(absolute), joined: false }
        } else {
            File { class, absolute: known.then(|| inside.clone()), inside: Some(inside), joined }
        }
    }
}

impl File {
    fn see<T>(
        &self,
        policy: &Policy,
        ask: impl Fn(Class, Option<&[u8]>, Option<Text<'_>>) -> T,
    ) -> T {
        let paths = policy.layout() == Layout::Paths;
        let class = if paths { Class::Outside } else { self.class };
        let inside = self.inside.as_deref();
        let absolute = self.absolute.as_deref().unwrap_or_default();
        let whole = format!("/{absolute}");
        let text = match absolute.split_once('/') {
            Some((folder, rest)) if self.joined => {
                return ask(
                    class,
                    inside.map(str::as_bytes),
                    Some(Text::joined(format!("/{folder}").as_bytes(), rest.as_bytes())),
                );
            }
            _ => self.absolute.is_some().then(|| Text::whole(whole.as_bytes())),
        };
        ask(class, inside.map(str::as_bytes), text)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]
    #[test]
    fn explain_is_what_the_table_says(
        text in text(), files in prop::collection::vec(file(), 10),
    ) {
        // a glob like `/**` is refused under postgres
        let Ok(policy) = Policy::parse(&text, "p.toml") else { return Ok(()) };
        let table = policy.compile();
        for file in files {
            let told = file.see(&policy, |class, inside, absolute| {
                policy.explain(class, inside, absolute)
            });
            let found = file.see(&policy, |class, inside, absolute| {
                table.lookup(class, inside, absolute)
            });
            prop_assert_eq!(told.lifetime, found, "{:?} {:?}", file, told);
            match told.decision {
                Decision::Rule { number, .. } => {
                    let rule = &policy.rules()[number - 1];
                    prop_assert_eq!(Some(rule.lifetime), found);
                    prop_assert!(!matches!(rule.matcher, Matcher::Relation(_)));
                }
                Decision::Default { .. } => {
                    prop_assert_eq!(policy.default_lifetime().map(|d| d.value), found);
                }
                Decision::Nothing => prop_assert_eq!(None, found),
            }
        }
    }

    #[test]
    fn a_rule_called_unreachable_decides_nothing(
        text in text(), files in prop::collection::vec(file(), 10),
    ) {
        let Ok(policy) = Policy::parse(&text, "p.toml") else { return Ok(()) };
        let findings = policy.check();
        let dead = |lint| findings.iter().filter(move |f| f.lint == lint).map(|f| f.place);
        for file in files {
            let told = file.see(&policy, |class, inside, absolute| {
                policy.explain(class, inside, absolute)
            });
            if let Decision::Rule { place, .. } | Decision::Default { place } = told.decision {
                let unreachable = dead(Lint::UnreachableRule).any(|dead| dead == place);
                prop_assert!(!unreachable, "{:?} {:?}", file, told);
            }
        }
    }
}

#[test]
fn classes_of_the_catalog_fall_back_to_relation() {
    let policy = policy(
        "name = \"p\"\nlayout = \"postgres\"\ndefault = \"none\"\n\
         [[rule]]\nclass = \"index\"\nlifetime = \"medium\"\n\
         [[rule]]\nclass = \"relation\"\nlifetime = \"long\"\n",
    );
    let get = |class| policy.compile().lookup(class, None, None);
    assert_eq!(get(Class::Index), Some(Lifetime::Medium));
    assert_eq!(get(Class::Toast), Some(Lifetime::Long));
    assert_eq!(get(Class::Unlogged), Some(Lifetime::Long));
    assert_eq!(get(Class::Vm), Some(Lifetime::None));
    let toast = policy.explain(Class::Toast, None, None);
    assert_eq!(
        toast.reason,
        "rule 2 (line 7): class = \"relation\", for lack of a rule of its own"
    );
}

#[test]
fn paths_are_seen_as_the_hook_sees_them() {
    let policy = policy(
        "name = \"p\"\nlayout = \"postgres\"\ndefault = \"long\"\n\
         [[rule]]\npath = \"/data/base/5/*\"\nlifetime = \"medium\"\n\
         [[rule]]\npath = \"/archive/**\"\nlifetime = \"extreme\"\n\
         [[rule]]\npath = \"pg_stat_tmp/*\"\nlifetime = \"short\"\n",
    );
    let data = Some(&b"/data"[..]);
    let get = |path: &str, data| {
        let told = policy.explain_path(path.as_bytes(), data);
        (told.class, told.lifetime)
    };
    assert_eq!(get("base/5/1", data), (Class::Relation, Some(Lifetime::Medium)));
    assert_eq!(get("base/5/1", None), (Class::Relation, Some(Lifetime::Long)));
    assert_eq!(get("/data/base/5/1", data), (Class::Relation, Some(Lifetime::Medium)));
    assert_eq!(get("/data/pg_stat_tmp/x", data), (Class::Stat, Some(Lifetime::Short)));
    assert_eq!(get("/database/pg_stat_tmp/x", data), (Class::Outside, None));
    assert_eq!(get("/archive/1/2", data), (Class::Outside, Some(Lifetime::Extreme)));
    assert_eq!(get("/archive/../etc/x", data), (Class::Outside, None));
    assert_eq!(get("../other/pg_stat_tmp/x", data), (Class::Outside, None));
    assert_eq!(policy.explain_path(b"/tmp/x", data).reason, "no rule; the default stays inside");
}

#[test]
fn under_paths_the_path_is_what_the_program_gave() {
    let policy = policy(
        "name = \"p\"\nlayout = \"paths\"\n\
         [[rule]]\npath = \"wal/*.log\"\nlifetime = \"short\"\n\
         [[rule]]\npath = \"/db/**\"\nlifetime = \"long\"\n",
    );
    let get = |path: &str| policy.explain_path(path.as_bytes(), None).lifetime;
    assert_eq!(get("wal/1.log"), Some(Lifetime::Short));
    assert_eq!(get("/db/wal/1.log"), Some(Lifetime::Short));
    assert_eq!(get("/db/1.sst"), Some(Lifetime::Long));
    assert_eq!(get("1.sst"), None);
    assert_eq!(get("../wal/1.log"), Some(Lifetime::Short));
    assert_eq!(get("/db/../etc/x"), None);
    assert_eq!(policy.by_class().count(), 1);
}
