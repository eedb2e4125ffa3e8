use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use shelflife_layout::relation::RelationKey;
use shelflife_layout::relation::relation_file;
use shelflife_postgres::Cancel;
use shelflife_postgres::Catalog;
use shelflife_postgres::Cluster;
use shelflife_postgres::Dsn;
use shelflife_postgres::ServerUser;
use shelflife_postgres::Session;
use shelflife_postgres::catalog::Databases;
use shelflife_postgres::cluster::PORT;

use crate::Need;
use crate::Place;

/// Every relation's file in the data folder and its tablespaces, by asking the folders.
fn files(cluster: &Cluster) -> BTreeSet<RelationKey> {
    fn walk(folder: &Path, called: &Path, keys: &mut BTreeSet<RelationKey>) {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let called = called.join(entry.file_name());
            // Through the links of tablespaces too.
            if fs::metadata(entry.path()).is_ok_and(|at| at.is_dir()) {
                walk(&entry.path(), &called, keys);
            } else {
                keys.extend(relation_file(called.as_os_str().as_bytes()).map(|file| file.key));
            }
        }
    }
    let mut keys = BTreeSet::new();
    walk(cluster.data().path(), Path::new(""), &mut keys);
    keys
}

fn key(session: &mut Session, relation: &str) -> RelationKey {
    let path = session.relation_path(relation).unwrap().unwrap();
    relation_file(path.as_os_str().as_bytes()).unwrap().key
}

fn read(catalog: &mut Catalog, dsn: &Dsn) -> BTreeSet<u32> {
    catalog.read(dsn, Databases::All, &Cancel::never()).unwrap().read
}

/// Name and kind of a relation.
fn named(catalog: &Catalog, key: RelationKey) -> (String, &'static str) {
    let relation = catalog.relation(key).unwrap();
    let database = relation.database.as_deref().unwrap_or("-");
    (format!("{database} {}", relation.name), relation.kind_name())
}

#[test]
fn every_relation_file_has_its_name() {
    let Some(place) = Place::new("every_relation_file_has_its_name", Need::Nothing) else { return };
    let mut cluster = place.started("c");
    let space = place.path("space");
    fs::create_dir(&space).unwrap();
    std::os::unix::fs::chown(&space, Some(cluster.user().uid()), None).unwrap();
    let mut session = cluster.connect("postgres").unwrap();
    session.batch("CREATE DATABASE other").unwrap();
    session.batch(&format!("CREATE TABLESPACE fast LOCATION '{}'", space.display())).unwrap();
    session
        .batch(
            "CREATE SCHEMA \"Shop\"; \
             CREATE TABLE \"Shop\".\"Order\" (id serial PRIMARY KEY, note text); \
             CREATE MATERIALIZED VIEW m AS SELECT 1 AS a; \
             CREATE UNLOGGED TABLE u (a int PRIMARY KEY, t text); \
             CREATE TEMP TABLE t (a int PRIMARY KEY); \
             CREATE TABLE away (a int) TABLESPACE fast; \
             CREATE VIEW v AS SELECT 1; CREATE TABLE p (a int) PARTITION BY LIST (a)",
        )
        .unwrap();
    let mut elsewhere = cluster.connect("other").unwrap();
    elsewhere.batch("CREATE TABLE there (a int)").unwrap();

    let mut catalog = Catalog::new();
    let read = read(&mut catalog, &cluster.dsn("postgres"));
    let mut ask = |name: &str| {
        let key = key(&mut session, name);
        named(&catalog, key)
    };
    for (name, wanted, kind) in [
        ("\"Shop\".\"Order\"", "postgres Shop.Order", "heap"),
        ("\"Shop\".\"Order_pkey\"", "postgres Shop.Order_pkey", "index"),
        ("\"Shop\".\"Order_id_seq\"", "postgres Shop.Order_id_seq", "sequence"),
        ("m", "postgres public.m", "materialized-view"),
        ("u", "postgres public.u", "unlogged"),
        ("u_pkey", "postgres public.u_pkey", "unlogged-index"),
        ("away", "postgres public.away", "heap"),
        ("pg_class", "postgres pg_catalog.pg_class", "heap"),
        ("pg_database", "- pg_catalog.pg_database", "heap"),
        ("pg_database_oid_index", "- pg_catalog.pg_database_oid_index", "index"),
    ] {
        assert_eq!(ask(name), (wanted.to_owned(), kind), "{name}");
    }
    let (name, kind) = ask("t");
    assert!(name.starts_with("postgres pg_temp_") && name.ends_with(".t"), "{name}");
    assert_eq!(kind, "temporary");
    let toast: String = session
        .one("SELECT reltoastrelid::regclass::text FROM pg_class WHERE relname = 'Order'", &[])
        .unwrap();
    let toast_key = key(&mut session, &toast);
    assert_eq!(named(&catalog, toast_key), (format!("postgres {toast}"), "toast"));
    let index_key = key(&mut session, &format!("{toast}_index"));
    assert_eq!(named(&catalog, index_key), (format!("postgres {toast}_index"), "toast-index"));
    let there = key(&mut elsewhere, "there");
    assert_eq!(named(&catalog, there), ("other public.there".to_owned(), "heap"));
    let away = key(&mut session, "away");
    assert_eq!(catalog.tablespace(away.tablespace), Some("fast"));
    assert_eq!(catalog.tablespace(there.tablespace), Some("pg_default"));
    assert_eq!(catalog.database(there.database), Some("other"));

    // Not only those that were asked for: all, but template0, which nobody may read.
    let unreadable: BTreeMap<u32, &str> = catalog.unreadable().collect();
    let named: Vec<_> = unreadable.keys().map(|oid| catalog.database(*oid).unwrap()).collect();
    assert_eq!(named, ["template0"]);
    assert_eq!(unreadable.into_values().collect::<Vec<_>>(), ["it takes no connections"]);
    for key in files(&cluster) {
        let readable = read.contains(&key.database);
        assert_eq!(catalog.relation(key).is_some(), readable, "{key:?}");
    }
}

#[test]
fn rewritten_and_dropped_files_keep_their_names() {
    let Some(place) = Place::new("rewritten_and_dropped_files_keep_their_names", Need::Nothing)
    else {
        return;
    };
    let mut cluster = place.started("c");
    let dsn = cluster.dsn("postgres");
    let mut session = cluster.connect("postgres").unwrap();
    session.batch("CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t VALUES (1)").unwrap();
    let mut catalog = Catalog::new();
    read(&mut catalog, &dsn);
    let mut keys = vec![key(&mut session, "t")];
    for rewrite in ["VACUUM FULL t", "TRUNCATE t", "CLUSTER t USING t_pkey"] {
        session.batch(rewrite).unwrap();
        let new = key(&mut session, "t");
        assert!(!keys.contains(&new), "{rewrite}");
        assert_eq!(catalog.relation(new), None, "{rewrite}");
        let only = BTreeSet::from([new.database]);
        let reading = catalog.read(&dsn, Databases::Only(&only), &Cancel::never()).unwrap();
        assert!(reading.news.contains(&new) && reading.read.contains(&new.database), "{reading:?}");
        keys.push(new);
    }
    let index = key(&mut session, "t_pkey");
    session.batch("REINDEX TABLE t").unwrap();
    let new_index = key(&mut session, "t_pkey");
    read(&mut catalog, &dsn);
    for index in [index, new_index] {
        assert_eq!(named(&catalog, index), ("postgres public.t_pkey".to_owned(), "index"));
    }
    // What is not visible yet has no name; a rolled-back creation never gets one.
    session.batch("BEGIN; CREATE TABLE never (a int)").unwrap();
    let never = key(&mut session, "never");
    read(&mut catalog, &dsn);
    assert_eq!(catalog.relation(never), None);
    session.batch("ROLLBACK; DROP TABLE t").unwrap();
    session.batch("CREATE DATABASE gone").unwrap();
    let gone = key(&mut cluster.connect("gone").unwrap(), "pg_class");
    read(&mut catalog, &dsn);
    assert_eq!(catalog.relation(never), None);
    assert_eq!(named(&catalog, gone), ("gone pg_catalog.pg_class".to_owned(), "heap"));
    // A reading leaves no connection behind that would forbid this.
    session.batch("DROP DATABASE gone").unwrap();
    let mut catalog_after = catalog.clone();
    let read = read(&mut catalog_after, &dsn);
    assert!(!read.contains(&gone.database));
    assert_eq!(named(&catalog_after, gone).0, "gone pg_catalog.pg_class");
    for key in keys {
        assert_eq!(named(&catalog_after, key), ("postgres public.t".to_owned(), "heap"));
    }
}

#[test]
fn a_role_with_nothing_but_login_reads_what_it_may_connect_to() {
    let Some(place) =
        Place::new("a_role_with_nothing_but_login_reads_what_it_may_connect_to", Need::Nothing)
    else {
        return;
    };
    let mut cluster = place.started("c");
    let mut session = cluster.connect("postgres").unwrap();
    for sql in [
        "CREATE ROLE watcher LOGIN",
        "CREATE DATABASE locked",
        "REVOKE CONNECT ON DATABASE locked FROM PUBLIC",
        "CREATE TABLE secret (a int)",
    ] {
        session.batch(sql).unwrap();
    }
    let locked: u32 =
        session.one("SELECT oid FROM pg_database WHERE datname = 'locked'", &[]).unwrap();
    let dsn = Dsn::unix(cluster.socket_folder(), PORT, "watcher", "postgres");
    let mut catalog = Catalog::new();
    let read = read(&mut catalog, &dsn);
    let secret = key(&mut session, "secret");
    assert_eq!(named(&catalog, secret), ("postgres public.secret".to_owned(), "heap"));
    assert!(!read.contains(&locked));
    let why = catalog.unreadable().find(|(oid, _)| *oid == locked).unwrap().1;
    assert!(why.contains("permission denied for database"), "{why}");
    assert_eq!(catalog.database(locked), Some("locked"));
}

#[test]
fn a_hostile_search_path_and_foreign_bytes_do_no_harm() {
    let Some(place) =
        Place::new("a_hostile_search_path_and_foreign_bytes_do_no_harm", Need::Nothing)
    else {
        return;
    };
    let mut cluster = place.started("c");
    let mut session = cluster.connect("postgres").unwrap();
    session
        .batch(
            "CREATE DATABASE d TEMPLATE template0 ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C'",
        )
        .unwrap();
    session.batch("ALTER DATABASE d SET search_path = evil, pg_catalog").unwrap();
    let mut session = cluster.connect("d").unwrap();
    session
        .batch(
            "CREATE SCHEMA evil; CREATE TABLE evil.log (a text); \
             CREATE FUNCTION evil.pg_relation_filepath(oid) RETURNS text LANGUAGE plpgsql AS \
               $$ BEGIN RAISE EXCEPTION 'called'; END $$; \
             DO $$ BEGIN EXECUTE 'CREATE TABLE evil.' || quote_ident(E'caf\\xe9') || ' (a int)'; END $$",
        )
        .unwrap();
    let mut catalog = Catalog::new();
    let read = read(&mut catalog, &cluster.dsn("postgres"));
    let key = key(&mut session, "evil.log");
    assert!(read.contains(&key.database), "{:?}", catalog.unreadable().collect::<Vec<_>>());
    assert_eq!(named(&catalog, key), ("d evil.log".to_owned(), "heap"));
    let path: String = session
        .one(
            "SELECT pg_catalog.pg_relation_filepath(oid) FROM pg_class WHERE relname LIKE 'caf%'",
            &[],
        )
        .unwrap();
    let key = relation_file(OsStr::new(&path).as_bytes()).unwrap().key;
    assert_eq!(named(&catalog, key).0, "d evil.caf\u{fffd}");
}

#[test]
fn root_connects_as_the_servers_owner_root() {
    let Some(place) = Place::new("root_connects_as_the_servers_owner_root", Need::Root) else {
        return;
    };
    let mut options = place.options("c");
    options.initdb_args.push("--auth-local=peer".into());
    // The later of two wins: `initdb` gets --auth=trust first.
    let mut cluster = Cluster::create(options).unwrap();
    if cluster.user().name() != shelflife_postgres::cluster::SUPERUSER {
        return crate::skip("root_connects_as_the_servers_owner_root", "no user postgres")
            .unwrap_or_default();
    }
    cluster.start().unwrap();
    let dsn = cluster.dsn("postgres");
    let told = Session::connect(&dsn, &Cancel::never()).unwrap_err();
    let cause = std::error::Error::source(&told).unwrap();
    assert!(format!("{:?}", cause.source()).contains("Peer authentication"), "{told:?}");
    let owner = ServerUser::of(cluster.data().uid()).unwrap();
    let read = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            owner.assume().unwrap();
            assert!(fs::read("/etc/shadow").is_err(), "nothing of root's is left");
            let mut catalog = Catalog::new();
            read(&mut catalog, &dsn).len()
        });
        reader.join().unwrap()
    });
    assert!(read >= 3);
    assert!(rustix::process::geteuid().is_root(), "only the other thread changed");
}
