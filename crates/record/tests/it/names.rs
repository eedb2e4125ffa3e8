//! Names from a real server, without recording: files are shown by hand as a recorder would show them.
//!
//! A test without a server prints `skipped: NAME: reason`.

use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use shelflife_layout::Class;
use shelflife_postgres::programs::Search;
use shelflife_postgres::{Cluster, ClusterOptions, Dsn, Programs, Session, StopMode};
use shelflife_record::pg::{Pg, PgError, Servers};
use shelflife_trace::{FileEntry, FileId, FileTable};

struct Place {
    cluster: Cluster,
    folder: tempfile::TempDir,
}

/// A started cluster, or `None`, and a line, if there is no server.
fn place(name: &str) -> Option<Place> {
    let programs = match Programs::find(&Search::new(None)) {
        Ok(programs) => programs,
        Err(error) => {
            let reason = error.to_string();
            let reason = reason.lines().next().unwrap_or_default();
            let line = format!("skipped: {name}: {reason}\n");
            std::io::stderr().write_all(line.as_bytes()).unwrap();
            return None;
        }
    };
    let folder = tempfile::Builder::new()
        .prefix("shelflife-record-pg-")
        .permissions(fs::Permissions::from_mode(0o755))
        .tempdir()
        .unwrap();
    let mut options = ClusterOptions::new(programs, folder.path().join("c"));
    options.initdb_args = vec!["--no-sync".into(), "--wal-segsize=1".into()];
    options.set("fsync", "off").set("shared_buffers", "16MB").set("max_connections", "20");
    let mut cluster = Cluster::create(options).unwrap();
    cluster.start().unwrap();
    Some(Place { cluster, folder })
}

impl Place {
    fn file(&self, session: &mut Session, relation: &str) -> PathBuf {
        let path = session.relation_path(relation).unwrap().unwrap();
        self.cluster.data().path().join(path)
    }

    fn known(&self) -> Servers {
        Servers::Known {
            dsn: self.cluster.dsn("postgres").into(),
            data_folder: self.cluster.data().path().to_owned(),
        }
    }
}

/// Shows a file to `pg` as a recorder does.
fn show(pg: &Pg, files: &mut FileTable, path: &Path, class: Class) -> FileId {
    let entry = FileEntry::new(class.into()).at(path.display().to_string());
    let file = files.push(entry).unwrap();
    pg.see(file, path.as_os_str().as_bytes());
    file
}

/// Relation, kind and class of a file.
fn row(files: &FileTable, file: FileId) -> (Option<&str>, Option<&str>, &'static str) {
    let entry = files.get(file).unwrap();
    (entry.relation.as_deref(), entry.kind.as_deref(), entry.class.name())
}

/// Takes names until the file has one.
fn await_name(pg: &Pg, files: &mut FileTable, file: FileId) {
    let end = Instant::now() + Duration::from_secs(60);
    while files.get(file).unwrap().relation.is_none() {
        assert!(Instant::now() < end, "{:?}", files.get(file));
        pg.name(files);
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn files_get_their_names_before_and_after_rewrites() {
    let Some(mut place) = place("files_get_their_names_before_and_after_rewrites") else { return };
    let mut session = place.cluster.connect("postgres").unwrap();
    session
        .batch(
            "CREATE TABLE t (a int PRIMARY KEY, b text); INSERT INTO t VALUES (1, 'x'); \
             CREATE UNLOGGED TABLE u (a int)",
        )
        .unwrap();
    let pg = Pg::start(place.known()).unwrap();
    let mut files = FileTable::new();
    let data = place.cluster.data().path().to_owned();
    let (heap, unlogged) = (place.file(&mut session, "t"), place.file(&mut session, "u"));
    let index = place.file(&mut session, "t_pkey");
    let first = show(&pg, &mut files, &heap, Class::Relation);
    let map = heap.with_file_name(format!("{}_vm", heap.file_name().unwrap().display()));
    let map = show(&pg, &mut files, &map, Class::Vm);
    let index = show(&pg, &mut files, &index, Class::Relation);
    let unlogged = show(&pg, &mut files, &unlogged, Class::Relation);
    let shared = place.file(&mut session, "pg_database");
    let shared = show(&pg, &mut files, &shared, Class::Relation);
    let wal = show(&pg, &mut files, &data.join("pg_wal/000000010000000000000001"), Class::Wal);
    let elsewhere = show(&pg, &mut files, Path::new("/nowhere/base/5/16384"), Class::Outside);
    for file in [first, map, index, unlogged, shared] {
        await_name(&pg, &mut files, file);
    }
    // A rewrite makes another file; it is written before its transaction commits.
    session.batch("BEGIN; TRUNCATE t; INSERT INTO t VALUES (2, 'y')").unwrap();
    let second = place.file(&mut session, "t");
    assert_ne!(second, heap);
    let second = show(&pg, &mut files, &second, Class::Relation);
    // Created and rolled back: it never becomes visible.
    let mut other = place.cluster.connect("postgres").unwrap();
    other.batch("BEGIN; CREATE TABLE never (a int)").unwrap();
    let never = place.file(&mut other, "never");
    let never = show(&pg, &mut files, &never, Class::Relation);
    other.batch("ROLLBACK").unwrap();
    // A temporary table of a session is not asked for, and has the name that it happens to get.
    let temporary = data.join("base/5/t99_99999");
    let temporary = show(&pg, &mut files, &temporary, Class::TempRelation);
    session.batch("COMMIT").unwrap();
    await_name(&pg, &mut files, second);
    session.batch("ALTER TABLE t RENAME TO renamed").unwrap();

    let report = pg.finish(&mut files);
    // The old file is the table's no more, and keeps the name that it had.
    assert_eq!(row(&files, first), (Some("public.t"), Some("heap"), "relation"));
    assert_eq!(row(&files, second), (Some("public.renamed"), Some("heap"), "relation"));
    assert_eq!(row(&files, map), (Some("public.t"), Some("heap"), "vm"));
    assert_eq!(row(&files, index), (Some("public.t_pkey"), Some("index"), "index"));
    assert_eq!(row(&files, unlogged), (Some("public.u"), Some("unlogged"), "unlogged"));
    assert_eq!(row(&files, shared), (Some("pg_catalog.pg_database"), Some("heap"), "relation"));
    assert_eq!(row(&files, never), (None, None, "uncommitted"));
    assert_eq!(row(&files, temporary), (None, None, "temp-relation"));
    assert_eq!(row(&files, wal), (None, None, "wal"));
    assert_eq!(row(&files, elsewhere), (None, None, "outside"));
    let entry = files.get(map).unwrap();
    assert_eq!(entry.fork.as_deref(), Some("vm"));
    assert_eq!(entry.database.as_deref(), Some("postgres"));
    assert_eq!(entry.tablespace.as_deref(), Some("pg_default"));
    assert_eq!(files.get(never).unwrap().database.as_deref(), Some("postgres"));
    assert_eq!(files.get(shared).unwrap().database, None);
    assert_eq!(files.get(shared).unwrap().tablespace.as_deref(), Some("pg_global"));
    assert_eq!((report.servers.len(), report.homeless), (1, 1));
    let server = &report.servers[0];
    assert_eq!((server.named, server.uncommitted), (6, 1), "{server:?}");
    assert_eq!((server.temporary, server.unread), (1, 0), "{server:?}");
    assert_eq!(server.failures, [""; 0]);
}

#[test]
fn a_server_is_found_by_what_it_writes_root() {
    const NAME: &str = "a_server_is_found_by_what_it_writes_root";
    if !rustix::process::geteuid().is_root() {
        std::io::stderr().write_all(format!("skipped: {NAME}: needs root\n").as_bytes()).unwrap();
        return;
    }
    let Some(mut place) = place(NAME) else { return };
    let pg = Pg::start(Servers::Auto).unwrap();
    let space = place.folder.path().join("space");
    fs::create_dir(&space).unwrap();
    std::os::unix::fs::chown(&space, Some(place.cluster.user().uid()), None).unwrap();
    let mut session = place.cluster.connect("postgres").unwrap();
    session.batch("CREATE TABLE t (a int)").unwrap();
    let mut files = FileTable::new();
    let path = place.file(&mut session, "t");
    let here = show(&pg, &mut files, &path, Class::Outside);
    await_name(&pg, &mut files, here);
    // A tablespace that came later lies outside the data folder.
    session.batch(&format!("CREATE TABLESPACE fast LOCATION '{}'", space.display())).unwrap();
    session.batch("CREATE TABLE away (a int) TABLESPACE fast").unwrap();
    let path = place.file(&mut session, "away").canonicalize().unwrap();
    assert!(path.starts_with(space.canonicalize().unwrap()));
    let away = show(&pg, &mut files, &path, Class::Outside);
    await_name(&pg, &mut files, away);
    assert_eq!(files.get(away).unwrap().tablespace.as_deref(), Some("fast"));
    assert_eq!(row(&files, away), (Some("public.away"), Some("heap"), "relation"));
    // Without its server nothing is called uncommitted.
    session.batch("CREATE TABLE late (a int)").unwrap();
    let path = place.file(&mut session, "late");
    place.cluster.stop(StopMode::Fast).unwrap();
    let late = show(&pg, &mut files, &path, Class::Relation);
    let report = pg.finish(&mut files);
    assert_eq!(row(&files, late), (None, None, "relation"));
    assert_eq!(row(&files, here), (Some("public.t"), Some("heap"), "relation"));
    let ours = place.cluster.data().path().display().to_string();
    let server = report.servers.iter().find(|server| server.data_folder == ours).unwrap();
    assert_eq!((server.named, server.unread, server.uncommitted), (2, 1, 0), "{server:?}");
    assert!(server.failures[0].contains("is not running"), "{server:?}");
}

#[test]
fn a_database_that_cannot_be_read_is_named_and_its_files_are_not_uncommitted() {
    let Some(mut place) =
        place("a_database_that_cannot_be_read_is_named_and_its_files_are_not_uncommitted")
    else {
        return;
    };
    let mut session = place.cluster.connect("postgres").unwrap();
    for sql in [
        "CREATE ROLE watcher LOGIN",
        "CREATE DATABASE locked",
        "REVOKE CONNECT ON DATABASE locked FROM PUBLIC",
    ] {
        session.batch(sql).unwrap();
    }
    let mut locked = place.cluster.connect("locked").unwrap();
    let path = place.file(&mut locked, "pg_class");
    let port = shelflife_postgres::cluster::PORT;
    let dsn = Dsn::unix(place.cluster.socket_folder(), port, "watcher", "postgres");
    // It may not even ask where the data folder is.
    let told = Pg::start(Servers::At(dsn.clone().into())).map(drop).unwrap_err();
    assert!(matches!(told, PgError::DataFolder(_)), "{told}");
    assert!(told.to_string().contains("pg_read_all_settings"));
    session.batch("GRANT pg_read_all_settings TO watcher").unwrap();
    let pg = Pg::start(Servers::At(dsn.into())).unwrap();
    let mut files = FileTable::new();
    let file = show(&pg, &mut files, &path, Class::Relation);
    let report = pg.finish(&mut files);
    assert_eq!(row(&files, file), (None, None, "relation"));
    assert_eq!(files.get(file).unwrap().database.as_deref(), Some("locked"));
    let server = &report.servers[0];
    assert_eq!((server.unread, server.uncommitted), (1, 0));
    assert!(server.failures[0].starts_with("database locked: "), "{server:?}");
    assert!(server.failures[0].contains("permission denied"), "{server:?}");
}

#[test]
fn a_server_that_is_not_there_is_an_error_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let dsn = Dsn::unix(folder.path(), 5432, "nobody", "postgres");
    let told = Pg::start(Servers::At(dsn.into())).map(drop).unwrap_err();
    assert!(matches!(told, PgError::Server(_)), "{told}");
}
