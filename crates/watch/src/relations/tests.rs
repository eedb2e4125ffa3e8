use shelflife_control::{NewRun, Registry};
use shelflife_layout::relation::PG_DEFAULT;
use shelflife_postgres::catalog::{Kind, Persistence};

use super::*;

const TEXT: &str = "name = \"mine\"\nlayout = \"postgres\"\n\
    [[rule]]\nrelation = \"shop/public.queue\"\nlifetime = \"short\"\n\
    [[rule]]\nclass = \"index\"\nlifetime = \"medium\"\n\
    [[rule]]\nclass = \"relation\"\nlifetime = \"extreme\"\n";

fn policy(text: &str) -> Policy {
    Policy::parse(text, "a test").expect("a policy")
}

fn key(database: u32, number: u32) -> RelationKey {
    RelationKey { tablespace: PG_DEFAULT, database, backend: None, number }
}

fn relation(name: &str) -> Relation {
    Relation {
        oid: 1,
        database: Some("shop".to_owned()),
        name: name.to_owned(),
        kind: Kind::Heap,
        persistence: Persistence::Permanent,
    }
}

fn relations() -> (Relations, Arc<Rules>) {
    let rules = Arc::new(Rules::of(&policy(TEXT)));
    (Relations::new("few".to_owned(), Arc::clone(&rules), Arc::default()), rules)
}

fn known(class: Class) -> Known {
    Known { class, rule: None }
}

fn book(keys: &[(RelationKey, Known)]) -> HashMap<RelationKey, Known> {
    keys.iter().copied().collect()
}

#[test]
fn a_reading_brings_what_is_new_or_otherwise_and_a_whole_one_forgets() {
    let (relations, rules) = relations();
    let none = BTreeSet::new();
    let (table, index) = (known(Class::Relation), known(Class::Index));
    let first = book(&[(key(5, 1), table), (key(5, 2), index), (key(6, 1), table)]);
    assert_eq!(relations.take(first.clone(), &none, true, &rules), News::All);
    let edition = relations.edition();
    assert_eq!(relations.take(first, &none, true, &rules), News::These(vec![]));
    assert_ne!(relations.edition(), edition);
    let changed = book(&[(key(5, 1), known(Class::Unlogged)), (key(5, 2), index)]);
    let news = relations.take(changed.clone(), &none, false, &rules);
    assert_eq!(news, News::These(vec![key(5, 1)]));
    assert_eq!(relations.figures().known, 3);
    // Database 6 could not be asked, and is not gone; then it is.
    relations.take(changed.clone(), &BTreeSet::from([6]), true, &rules);
    assert_eq!(relations.figures().known, 3);
    relations.take(changed.clone(), &none, true, &rules);
    assert_eq!(relations.figures().known, 2);
    // Other rules make everything news.
    let others = Arc::new(Rules::of(&policy(TEXT)));
    assert_eq!(relations.take(changed, &none, true, &others), News::All);
}

#[test]
fn what_is_unknown_is_asked_for_until_it_is_given_up_and_then_anew() {
    let (relations, rules) = relations();
    let none = BTreeSet::new();
    relations.note(key(5, 7));
    assert_eq!(relations.figures().unknown, 0, "before the first reading");
    relations.take(HashMap::new(), &none, true, &rules);
    relations.note(key(5, 7));
    relations.note(RelationKey { backend: Some(3), ..key(5, 9) });
    assert_eq!(relations.figures().unknown, 1, "temporary ones are not asked for");
    for _ in 0..TRIES {
        assert_eq!(relations.figures().unknown, 1);
        relations.take(HashMap::new(), &none, false, &rules);
    }
    relations.note(key(5, 7));
    assert_eq!(relations.figures().unknown, 0, "an orphan");
    relations.take(HashMap::new(), &none, true, &rules);
    relations.note(key(5, 7));
    assert_eq!(relations.figures().unknown, 1);
    relations.take(book(&[(key(5, 7), known(Class::Index))]), &none, false, &rules);
    assert_eq!(relations.figures().unknown, 0);
}

#[test]
fn what_lies_in_a_database_that_takes_no_connections_is_not_asked_for() {
    let (relations, rules) = relations();
    let none = BTreeSet::new();
    relations.take(HashMap::new(), &none, true, &rules);
    relations.close(BTreeSet::from([4]));
    relations.note(key(4, 7));
    relations.note(key(5, 7));
    let wanted = relations.wanted.lock().expect("whole");
    assert_eq!(wanted.open().collect::<Vec<_>>(), [key(5, 7)]);
}

#[test]
fn rules_for_relations_count_while_the_page_holds_their_policy_and_classes_always() {
    let dir = tempfile::tempdir().expect("a folder");
    let registry = Registry::at(dir.path().join("state")).expect("a state folder");
    let mine = policy(TEXT);
    let run = registry
        .register_daemon(&NewRun {
            name: Some("relations"),
            command: &[],
            hook: std::path::Path::new(""),
            roots: &[],
            owner: None,
            policy: Some((&mine.compile(), mine.name())),
            dry_run: false,
        })
        .expect("a run");
    let driver = run.drive().expect("a driver");
    let (relations, rules) = relations();
    let rule = rules.rule_for(&relation("public.queue"));
    assert_eq!(rules.rule_for(&relation("public.other")), None);
    let queue = Known { class: Class::Relation, rule };
    let first = book(&[(key(5, 1), queue), (key(5, 2), known(Class::Index))]);
    relations.take(first, &BTreeSet::new(), true, &rules);
    let given = |inside: &str| {
        let page = driver.page();
        let (class, given) = relations.decide(page, page.state(), b"/data", inside.as_bytes());
        (class, given.map(Lifetime::name))
    };
    assert_eq!(given("base/5/1"), (Class::Relation, Some("short")));
    assert_eq!(given("base/5/1_vm"), (Class::Vm, Some("short")));
    assert_eq!(given("base/5/2.3"), (Class::Index, Some("medium")));
    assert_eq!(given("base/5/2_fsm"), (Class::Fsm, None));
    assert_eq!(given("base/5/3"), (Class::Relation, Some("extreme")));
    assert_eq!(given("pg_wal/000000010000000000000001"), (Class::Wal, None));
    assert_eq!(relations.figures().unknown, 1, "base/5/3");
    let other = policy(&TEXT.replace("\"short\"", "\"long\"").replace("medium", "long"));
    driver.publish(&other.compile(), "other").expect("published");
    assert_eq!(given("base/5/1"), (Class::Relation, Some("extreme")));
    assert_eq!(given("base/5/2"), (Class::Index, Some("long")));
    driver.publish(&mine.compile(), mine.name()).expect("published");
    assert_eq!(given("base/5/1"), (Class::Relation, Some("short")));
    run.remove().expect("removed");
}
