//! The policies that come along.

use shelflife_layout::{Class, Layout};
use shelflife_lifetime::Lifetime;
use shelflife_policy::{Policy, find, shipped, suggest};

fn get(name: &str, path: &str) -> Option<Lifetime> {
    let policy = Policy::parse(find(name).expect("it comes along"), name).expect("a policy");
    policy.explain_path(path.as_bytes(), Some(b"/data")).lifetime
}

#[test]
fn each_is_clean_and_has_the_name_of_its_file() {
    let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../policies"))
        .expect("the folder of policies")
        .map(|file| file.expect("a file").file_name().to_string_lossy().into_owned());
    let mut files: Vec<_> = files.collect();
    files.sort();
    let mut named: Vec<_> = shipped().iter().map(|(name, _)| format!("{name}.toml")).collect();
    named.sort();
    assert_eq!(files, named);
    for (name, text) in shipped() {
        let policy = Policy::parse(text, name).expect("a policy");
        assert_eq!((policy.name(), policy.layout()), (*name, Layout::Postgres));
        assert!(policy.description().is_some());
        let failing: Vec<_> = policy.check().into_iter().filter(|f| f.fails()).collect();
        assert_eq!(failing, []);
        assert!(text.lines().all(|line| line.len() <= 110), "{name}");
    }
}

#[test]
fn wal_and_the_file_that_becomes_it_get_the_same_everywhere() {
    for (name, text) in shipped() {
        let table = Policy::parse(text, name).expect("a policy").compile();
        let get = |class| table.lookup(class, None, None);
        assert_eq!(get(Class::Wal), get(Class::WalNew), "{name}");
    }
}

#[test]
fn nothing_outside_is_ever_hinted() {
    for (name, _) in shipped() {
        assert_eq!(get(name, "/archive/000000010000000000000001"), None);
        assert_eq!(get(name, "../other/base/5/16384"), None);
    }
}

#[test]
fn they_do_what_they_say() {
    use Lifetime::{Extreme, Short};
    for (path, temp_vs_rest, broad, wal_first) in [
        ("base/pgsql_tmp/pgsql_tmp7.0", Some(Short), Some(Short), Some(Short)),
        ("pg_wal/000000010000000000000001", Some(Extreme), Some(Short), Some(Short)),
        ("pg_wal/xlogtemp.7", Some(Extreme), Some(Short), Some(Short)),
        ("base/5/t3_16391", Some(Extreme), Some(Short), None),
        ("pg_stat_tmp/db_0.stat", Some(Extreme), Some(Short), None),
        ("pg_stat/pgstat.stat", Some(Extreme), Some(Extreme), None),
        ("base/5/16384", Some(Extreme), Some(Extreme), None),
        ("pg_replslot/s/xid-7-lsn-0-1000000.spill", Some(Extreme), Some(Extreme), Some(Short)),
    ] {
        assert_eq!(get("temp-vs-rest", path), temp_vs_rest, "{path}");
        assert_eq!(get("temp-vs-rest-broad", path), broad, "{path}");
        assert_eq!(get("wal-first", path), wal_first, "{path}");
    }
}

#[test]
fn names_are_found_and_near_ones_suggested() {
    assert_eq!(find("wal-frist"), None);
    assert_eq!(suggest("wal-frist"), Some("wal-first"));
    assert_eq!(suggest("temp_vs_rest"), Some("temp-vs-rest"));
    assert_eq!(suggest("something-else"), None);
}
