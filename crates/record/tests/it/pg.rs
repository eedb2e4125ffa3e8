//! A real server on a file system of its own, recorded: every byte has its file, and the sums of each
//! relation are those that the server counts.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;

use shelflife_postgres::pgbench::{self, Initialise, Length, Load};
use shelflife_postgres::programs::Search;
use shelflife_postgres::{Cancel, Cluster, ClusterOptions, Programs, Session};
use shelflife_record::pg::{Pg, PgReport, Servers};
use shelflife_record::{Options, Recorder, Summary, Target};
use shelflife_trace::{Event, FileEntry, Op};

use crate::disk::{Disk, MIB, run, skip_unless_root};
use crate::reading::Whole;

/// Bytes of a page of the server.
const PAGE: u64 = 8192;

struct Bed {
    // Field order is drop order: the server ends before its disk goes.
    cluster: Cluster,
    disk: Disk,
}

/// A started server on a disk, or `None`, and a line, if there is no server.
fn bed(name: &str, settings: &[(&str, &str)]) -> Option<Bed> {
    let programs = match Programs::find(&Search::new(None)) {
        Ok(programs) => programs,
        Err(_) => {
            println!("skipped: {name}: no PostgreSQL server found");
            return None;
        }
    };
    let disk = Disk::with("ext4", 1536 * MIB, &[], "");
    // The server's user must be able to come here.
    let passable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(disk.device.folder.path(), passable).unwrap();
    let mut options = ClusterOptions::new(programs, disk.file("c"));
    options.initdb_args = vec!["--no-sync".into(), "--wal-segsize=1".into()];
    for (name, value) in [
        ("shared_buffers", "128MB"),
        ("max_connections", "20"),
        ("autovacuum", "off"),
        ("checkpoint_timeout", "1h"),
        ("max_wal_size", "1GB"),
        // What the background writer writes is not counted by checkpoints.
        ("bgwriter_lru_maxpages", "0"),
    ]
    .iter()
    .chain(settings)
    {
        options.set(*name, *value);
    }
    let mut cluster = Cluster::create(options).unwrap();
    cluster.start().unwrap();
    Some(Bed { cluster, disk })
}

struct Recording {
    recorder: Recorder,
    report: std::sync::mpsc::Receiver<PgReport>,
    trace: PathBuf,
}

impl Bed {
    fn session(&mut self) -> Session {
        self.cluster.connect("postgres").unwrap()
    }

    /// Everything to the disk that the page cache holds of it.
    fn sync(&self) {
        run("sync", &["-f", self.disk.place().to_str().unwrap()]);
    }

    fn record(&self) -> Recording {
        let data_folder = self.cluster.data().path().to_owned();
        let dsn = self.cluster.dsn("postgres").into();
        let pg = Pg::start(Servers::Known { dsn, data_folder: data_folder.clone() }).unwrap();
        let (naming, report) = pg.into_naming();
        let trace = self.disk.trace("trace");
        let mut options = Options::new(&trace, Target::of_path(self.disk.place()).unwrap());
        options.naming = Some(naming);
        options.data_folders = vec![data_folder];
        Recording { recorder: Recorder::start(options).unwrap(), report, trace }
    }
}

impl Recording {
    fn stop(self) -> (Summary, PgReport, Whole) {
        let summary = self.recorder.stop().unwrap();
        assert_eq!(summary.tally.lost, 0);
        (summary, self.report.recv().unwrap(), Whole::read(&self.trace))
    }
}

/// Bytes written by what `key` says of the file; `None` is left out.
fn sums<K: Ord>(whole: &Whole, key: impl Fn(&Event, &FileEntry) -> Option<K>) -> BTreeMap<K, u64> {
    let mut sums = BTreeMap::new();
    for (event, file) in whole.events.iter().filter(|(event, _)| event.op == Op::Write) {
        if let Some(key) = key(event, file) {
            *sums.entry(key).or_insert(0) += event.length;
        }
    }
    sums
}

/// Dirty pages in the server's memory, in bytes, by relation of this database.
fn dirty(session: &mut Session) -> BTreeMap<String, u64> {
    let sql = "SELECT n.nspname || '.' || c.relname, count(*) \
               FROM pg_buffercache b \
               JOIN pg_class c ON b.relfilenode = pg_relation_filenode(c.oid) \
               JOIN pg_namespace n ON n.oid = c.relnamespace \
               WHERE b.isdirty AND b.reldatabase = \
                 (SELECT oid FROM pg_database WHERE datname = current_database()) \
               GROUP BY 1";
    let rows = session.rows(sql, &[]).unwrap();
    rows.iter().map(|row| (row.get(0), row.get::<_, i64>(1).unsigned_abs() * PAGE)).collect()
}

#[test]
fn root_bpf_each_relation_has_the_bytes_that_the_server_counts() {
    const NAME: &str = "root_bpf_each_relation_has_the_bytes_that_the_server_counts";
    skip_unless_root!("root_bpf_each_relation_has_the_bytes_that_the_server_counts");
    let Some(mut bed) = bed(NAME, &[]) else { return };
    let mut session = bed.session();
    if session.batch("CREATE EXTENSION pg_buffercache").is_err() {
        println!("skipped: {NAME}: no extension pg_buffercache (postgresql-contrib)");
        return;
    }
    // Room in each page: an update dirties pages that are there, and makes none.
    session
        .batch(
            "CREATE TABLE a (id int PRIMARY KEY, v int, filler text) WITH (fillfactor = 30); \
             INSERT INTO a SELECT g, 0, repeat('x', 200) FROM generate_series(1, 20000) g; \
             CREATE TABLE b (id int, v int) WITH (fillfactor = 30); CREATE INDEX b_v ON b (v); \
             INSERT INTO b SELECT g, g FROM generate_series(1, 30000) g; \
             CREATE UNLOGGED TABLE u (id int, v int) WITH (fillfactor = 30); \
             INSERT INTO u SELECT g, 0 FROM generate_series(1, 30000) g; \
             CREATE TABLE big (id int, v text); ALTER TABLE big ALTER v SET STORAGE EXTERNAL; \
             INSERT INTO big SELECT g, repeat('y', 9000) FROM generate_series(1, 300) g",
        )
        .unwrap();
    session.batch("VACUUM ANALYZE").unwrap();
    session.checkpoint().unwrap();
    bed.sync();

    let recording = bed.record();
    let before = session.counters().unwrap();
    session
        .batch(
            "UPDATE a SET v = v + 1 WHERE id % 7 = 0; UPDATE b SET v = -v WHERE id < 9000; \
             UPDATE u SET v = 1; UPDATE big SET v = repeat('z', 9000) WHERE id % 3 = 0",
        )
        .unwrap();
    // The first look may itself set hint bits in the catalogs.
    dirty(&mut session);
    let counted = dirty(&mut session);
    session.checkpoint().unwrap();
    let round = session.counters().unwrap().since(&before);
    bed.sync();
    let (summary, report, whole) = recording.stop();

    let toast =
        counted.keys().find(|name| name.starts_with("pg_toast.") && !name.ends_with("index"));
    let toast = toast.unwrap().clone();
    let by_relation = sums(&whole, |_, file| {
        Some(file.relation.clone()?).filter(|_| file.database.as_deref() == Some("postgres"))
    });
    for name in ["public.a", "public.b", "public.b_v", &toast] {
        assert!(counted[name] > 20 * PAGE, "{name}: {counted:?}");
        assert_eq!(
            by_relation.get(name),
            counted.get(name),
            "{name}\n{by_relation:?}\n{counted:?}"
        );
    }
    // Checkpoints pass over unlogged relations, and so nothing of them may be in the trace.
    assert!(counted["public.u"] > 20 * PAGE);
    assert_eq!(by_relation.get("public.u"), None);
    let class_of = |relation: &str| {
        let one = whole.events.iter().find(|(_, file)| {
            file.relation.as_deref() == Some(relation) && file.fork.as_deref() == Some("main")
        });
        one.map(|(_, file)| file.class.name())
    };
    assert_eq!(class_of("public.a"), Some("relation"));
    assert_eq!(class_of("public.b_v"), Some("index"));
    assert_eq!(class_of(&toast), Some("toast"));
    // The server's own count of pages that its checkpoint wrote, of all relations together.
    let relations: u64 = sums(&whole, |_, file| file.fork.clone()).values().sum();
    assert_eq!(Some(relations), round.checkpoint_buffers.map(|pages| pages * PAGE));
    let server = &report.servers[0];
    assert_eq!((server.uncommitted, server.unread), (0, 0), "{server:?}");
    assert!(summary.attributed().unwrap() >= 0.999, "{:?}", whole.by_class(Op::Write));
}

#[test]
fn root_bpf_a_servers_life_is_attributed_and_named() {
    const NAME: &str = "root_bpf_a_servers_life_is_attributed_and_named";
    skip_unless_root!("root_bpf_a_servers_life_is_attributed_and_named");
    let Some(mut bed) = bed(NAME, &[("temp_buffers", "800kB"), ("work_mem", "64kB")]) else {
        return;
    };
    let space = bed.disk.file("space");
    fs::create_dir(&space).unwrap();
    std::os::unix::fs::chown(&space, Some(bed.cluster.user().uid()), None).unwrap();
    let mut session = bed.session();
    session.batch(&format!("CREATE TABLESPACE fast LOCATION '{}'", space.display())).unwrap();
    bed.sync();

    let recording = bed.record();
    let (programs, dsn) = (bed.cluster.programs().clone(), bed.cluster.dsn("postgres"));
    let (never, scale) = (Cancel::never(), Initialise { scale: 2, args: Vec::new() });
    pgbench::initialise(&programs, &dsn, &scale, &never, &mut |_| ()).unwrap();
    let load = Load::new(2, Length::Transactions(150));
    pgbench::run(&programs, &dsn, &load, &never, &mut |_| ()).unwrap();
    session.checkpoint().unwrap();
    session
        .batch(
            "CREATE TABLE long (id int, v text); ALTER TABLE long ALTER v SET STORAGE EXTERNAL; \
             INSERT INTO long SELECT g, repeat('y', 9000) FROM generate_series(1, 200) g; \
             CREATE UNLOGGED TABLE quick (id int PRIMARY KEY, v text); \
             INSERT INTO quick SELECT g, repeat('q', 100) FROM generate_series(1, 9000) g; \
             CREATE TABLE away (id int, v text) TABLESPACE fast; \
             INSERT INTO away SELECT g, repeat('a', 100) FROM generate_series(1, 9000) g",
        )
        .unwrap();
    session.checkpoint().unwrap();
    for rewrite in ["VACUUM FULL pgbench_accounts", "REINDEX TABLE pgbench_accounts"] {
        session.batch(rewrite).unwrap();
        session.checkpoint().unwrap();
    }
    // On the disk, and yet never there.
    session
        .batch(
            "BEGIN; CREATE TABLE never (id int, v text); \
             INSERT INTO never SELECT g, repeat('n', 100) FROM generate_series(1, 9000) g",
        )
        .unwrap();
    let never_file = session.relation_path("never").unwrap().unwrap();
    let never_file = bed.cluster.data().path().join(never_file);
    let mut other = bed.session();
    other.checkpoint().unwrap();
    let never_bytes = fs::metadata(&never_file).unwrap().size();
    session.batch("ROLLBACK").unwrap();
    // Temporary files live long enough to reach the disk only if somebody asks for it.
    session
        .batch(
            "CREATE TEMP TABLE temporary AS SELECT g, repeat('t', 100) FROM generate_series(1, 30000) g; \
             BEGIN; DECLARE c CURSOR FOR SELECT g FROM generate_series(1, 300000) g ORDER BY -g; \
             FETCH 1 FROM c",
        )
        .unwrap();
    bed.sync();
    session.batch("COMMIT; DROP TABLE temporary").unwrap();
    session.checkpoint().unwrap();
    // Files that were written once: their size is the count.
    let mut size = |relation: &str| {
        let path = session.relation_path(relation).unwrap().unwrap();
        fs::metadata(bed.cluster.data().path().join(path)).unwrap().size()
    };
    let sizes = ["away", "pgbench_accounts", "pgbench_accounts_pkey"].map(|name| {
        let relation = format!("public.{name}");
        (relation, size(name))
    });
    bed.sync();
    let (summary, report, whole) = recording.stop();

    let classes = whole.by_class(Op::Write);
    let total: u64 = classes.values().sum();
    let unknown = classes.get("unknown").copied().unwrap_or(0);
    println!("{total} bytes written, {unknown} of unknown files; {classes:?}");
    assert!(summary.attributed().unwrap() >= 0.999, "{classes:?}");
    assert!((unknown as f64) <= total as f64 * 0.001, "{classes:?}");
    for class in
        ["wal", "relation", "index", "toast", "unlogged", "temp", "temp-relation", "fs-journal"]
    {
        assert!(classes.get(class).is_some_and(|bytes| *bytes > 0), "{class}: {classes:?}");
    }
    // Its pages went to the disk once, and a late one of an earlier sync perhaps again.
    let uncommitted = sums(&whole, |_, file| {
        (file.class.name() == "uncommitted" && file.fork.as_deref() == Some("main"))
            .then(|| file.path.clone())
            .flatten()
    });
    let found = uncommitted.get(&never_file.display().to_string()).copied();
    assert!(found.is_some_and(|bytes| bytes >= never_bytes), "{uncommitted:?} {never_bytes}");
    let server = &report.servers[0];
    assert!(server.uncommitted >= 1 && server.unread == 0, "{server:?}");
    assert_eq!(report.homeless, 0);

    let relation = |name: &str, what: fn(&FileEntry) -> Option<String>| {
        let file = whole.events.iter().find(|(_, file)| file.relation.as_deref() == Some(name));
        file.and_then(|(_, file)| what(file))
    };
    let tablespace = |file: &FileEntry| file.tablespace.clone();
    assert_eq!(relation("public.away", tablespace).as_deref(), Some("fast"));
    let kind = |file: &FileEntry| file.kind.clone();
    assert_eq!(relation("public.quick", kind).as_deref(), Some("unlogged"));
    assert_eq!(relation("public.quick_pkey", kind).as_deref(), Some("unlogged-index"));
    // Before and after the rewrite the table has the same name, and other files.
    let files = sums(&whole, |_, file| {
        (file.relation.as_deref() == Some("public.pgbench_accounts")
            && file.fork.as_deref() == Some("main"))
        .then(|| file.path.clone())
    });
    // A file that came and went between two readings of the catalogs is counted as uncommitted (beside
    // `never`): it is named or counted, whichever way the two ran.
    assert!(files.len() as u64 + server.uncommitted > 2, "{files:?} {server:?}");
    // What was written as often as it is large or oftener, but all of it.
    for (name, size) in sizes {
        let mut pages = std::collections::BTreeSet::new();
        let now = whole.events.iter().filter(|(event, file)| {
            event.op == Op::Write
                && file.relation.as_deref() == Some(&name)
                && file.fork.as_deref() == Some("main")
        });
        for (event, _) in now {
            let (first, count) = event.pages(4096);
            pages.extend(first..first + count);
        }
        assert!(pages.len() as u64 * 4096 >= size, "{name}: {} pages, {size} bytes", pages.len());
    }
}
