//! On a real server every file that is held open for writing carries what the policy says.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use shelflife_postgres::{Cancel, Cluster, Session};

use crate::held::{EXTREME, Held, LONG, MEDIUM, NONE, NOT_SET, SHORT, held_in, hint, lasting};
use crate::support::{Need, Place, eventually, session};

/// Each kind of file its own lifetime.
pub const EACH_KIND: &str = r#"
name = "each-kind"
layout = "postgres"
default = "extreme"
rule = [
  { class = "temp", lifetime = "short" },
  { class = "temp-relation", lifetime = "medium" },
  { class = ["wal", "wal-new"], lifetime = "long" },
  { class = ["xact", "multixact", "subtrans"], lifetime = "none" },
]
"#;

/// Where a cluster's files are, and what they are called from its data folder.
struct Folders(Vec<(PathBuf, &'static str)>);

impl Folders {
    /// What [`EACH_KIND`] says of the file, by rules of our own. Outside: nothing.
    fn expected(&self, path: &Path) -> u64 {
        let inside = self.0.iter().find_map(|(folder, called)| {
            path.strip_prefix(folder).ok().map(|rest| Path::new(called).join(rest))
        });
        let Some(inside) = inside else { return NOT_SET };
        let name = inside.file_name().unwrap().to_str().unwrap();
        let parts: Vec<&str> = inside.iter().map(|part| part.to_str().unwrap()).collect();
        if parts.contains(&"pgsql_tmp") {
            return SHORT;
        }
        match parts[0] {
            "pg_wal" if name.len() == 24 || name.starts_with("xlogtemp.") => LONG,
            "pg_xact" | "pg_multixact" | "pg_subtrans" => NONE,
            "base" | "pg_tblspc" if name.starts_with('t') && name.contains('_') => MEDIUM,
            _ => EXTREME,
        }
    }

    fn wrong(&self, data: &Path) -> BTreeSet<Held> {
        lasting(|| {
            let held = held_in(data).into_iter();
            held.filter(|file| file.hint != self.expected(&file.path)).collect()
        })
    }
}

/// Whether any file that is held open for writing has a path that fits.
fn holds(data: &Path, fits: impl Fn(&str) -> bool) -> bool {
    held_in(data).iter().any(|file| fits(file.path.to_str().unwrap()))
}

fn cursor(session: &mut Session, name: &str, from: &str) {
    session
        .batch(&format!(
            "BEGIN; DECLARE {name} CURSOR FOR SELECT * FROM {from} ORDER BY 2; FETCH 1 FROM {name}"
        ))
        .unwrap();
}

fn small_memory(session: &mut Session) {
    session.batch("SET work_mem = '64kB'; SET temp_buffers = '800kB'").unwrap();
}

#[test]
fn every_file_that_a_server_holds_open_for_writing_carries_what_the_policy_says() {
    let name = "every_file_that_a_server_holds_open_for_writing_carries_what_the_policy_says";
    let Some(place) = Place::new(name, Need::Server) else { return };
    let (wal, space) = (place.path("user/wal"), place.user_folder("space"));
    let cluster = place.cluster("c", |options| {
        options.initdb_args.push(format!("--waldir={}", wal.display()).into());
        options.set("checkpoint_timeout", "1h");
    });
    let data = cluster.data().path().to_owned();
    place.start(&cluster, &["--policy", &place.policy("each-kind.toml", EACH_KIND)]);
    let folders =
        Folders(vec![(data.clone(), ""), (wal.clone(), "pg_wal"), (space.clone(), "pg_tblspc/1")]);

    let mut first = session(&cluster);
    let in_place = first.version().major >= 15;
    first
        .batch(&format!("CREATE TABLESPACE outside LOCATION '{}'", space.to_str().unwrap()))
        .unwrap();
    if in_place {
        first.batch("SET allow_in_place_tablespaces = on").unwrap();
        first.batch("CREATE TABLESPACE inplace LOCATION ''").unwrap();
    }
    first
        .batch(
            "CREATE TABLE rows AS SELECT g AS a, repeat(md5(g::text), 3) AS b \
             FROM generate_series(1, 20000) g; \
             CREATE TABLE elsewhere TABLESPACE outside AS SELECT * FROM rows; \
             CREATE INDEX ON elsewhere (a) TABLESPACE outside; \
             CREATE UNLOGGED TABLE unlogged AS SELECT * FROM rows LIMIT 10",
        )
        .unwrap();
    if in_place {
        first.batch("CREATE TABLE inside TABLESPACE inplace AS SELECT * FROM rows").unwrap();
    }

    // A cursor in the database's own space; one with its temporary files in the tablespace, one
    // in the in-place tablespace, and a temporary table that is larger than its buffers.
    let mut sessions: Vec<Session> = (0..3).map(|_| session(&cluster)).collect();
    sessions.iter_mut().for_each(small_memory);
    cursor(&mut sessions[0], "own", "rows");
    sessions[1].batch("SET temp_tablespaces = outside").unwrap();
    sessions[1].batch("CREATE TEMP TABLE temporary AS SELECT * FROM rows").unwrap();
    cursor(&mut sessions[1], "spaced", "rows");
    if in_place {
        sessions[2].batch("SET temp_tablespaces = inplace").unwrap();
        sessions[2].batch("CREATE TEMP TABLE temporary AS SELECT * FROM rows").unwrap();
        cursor(&mut sessions[2], "placed", "elsewhere");
    }

    // Two lockers of a row make a multixact.
    let mut lockers: Vec<Session> = (0..2).map(|_| session(&cluster)).collect();
    for locker in &mut lockers {
        locker.batch("BEGIN; SELECT FROM rows WHERE a = 1 FOR KEY SHARE").unwrap();
    }
    first.batch("INSERT INTO elsewhere SELECT * FROM rows; CHECKPOINT").unwrap();
    first.batch("INSERT INTO rows SELECT * FROM rows").unwrap();

    let space = space.to_str().unwrap();
    let in_space = |path: &str| path.starts_with(space);
    let in_data = |path: &str| path.starts_with(data.to_str().unwrap());
    let temp = |path: &str| path.contains("/pgsql_tmp/");
    assert!(holds(&data, |p| in_data(p) && temp(p) && !p.contains("pg_tblspc")), "cursor");
    assert!(holds(&data, |p| in_space(p) && temp(p)), "cursor in the tablespace");
    assert!(holds(&data, |p| in_space(p) && p.contains("/t")), "temporary table");
    assert!(holds(&data, |p| in_space(p) && !temp(p)), "table in the tablespace");
    assert!(holds(&data, |p| p.starts_with(wal.to_str().unwrap())), "WAL");
    assert!(holds(&data, |p| p.ends_with("/server.log")), "the log, outside");
    if in_place {
        assert!(holds(&data, |p| p.contains("/pg_tblspc/") && temp(p)), "in place");
    }
    assert_eq!(folders.wrong(&data), BTreeSet::new());

    // SLRUs are closed after each write.
    for slru in ["pg_xact/0000", "pg_multixact/offsets/0000", "pg_multixact/members/0000"] {
        assert_eq!(hint(&data.join(slru)).unwrap(), NONE, "{slru}");
    }
    assert_eq!(hint(&data.join("global/pg_control")).unwrap(), EXTREME);
    first.batch("SELECT pg_switch_wal(); CHECKPOINT").unwrap();
    assert_eq!(folders.wrong(&data), BTreeSet::new(), "after a switch of WAL segments");
}

#[test]
fn the_shared_files_of_a_parallel_hash_carry_what_the_policy_says() {
    let name = "the_shared_files_of_a_parallel_hash_carry_what_the_policy_says";
    let Some(place) = Place::new(name, Need::Server) else { return };
    let cluster = place.cluster("c", |_| ());
    let data = cluster.data().path().to_owned();
    place.start(&cluster, &["--policy", &place.policy("each-kind.toml", EACH_KIND)]);
    session(&cluster)
        .batch(
            "CREATE TABLE big AS SELECT g AS id, md5(g::text) AS text \
             FROM generate_series(1, 50000) g; ANALYZE big",
        )
        .unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let query = {
        let (dsn, cancel) = (cluster.dsn("postgres"), Cancel::new(Arc::clone(&stop)));
        // The probe side is slow to read, so that the files it is divided into stay open.
        let sql = "SELECT count(*) FROM big a JOIN \
                   (SELECT id, text FROM big WHERE pg_sleep(0.002) IS NOT NULL) b USING (id)";
        std::thread::spawn(move || {
            let mut session = Session::connect(&dsn, &cancel).unwrap();
            for setting in [
                "work_mem = '64kB'",
                "hash_mem_multiplier = 1",
                "parallel_setup_cost = 0",
                "parallel_tuple_cost = 0",
                "min_parallel_table_scan_size = 0",
                "enable_mergejoin = off",
                "enable_nestloop = off",
                "max_parallel_workers_per_gather = 2",
            ] {
                session.batch(&format!("SET {setting}")).unwrap();
            }
            let _ended = session.batch(sql);
        })
    };
    let shared = |path: &Path| {
        let mut parts = path.iter().rev().map(|part| part.to_str().unwrap());
        let (name, folder) = (parts.next().unwrap(), parts.next().unwrap());
        // `i3of8.p1.0` in `pgsql_tmpPID.0.fileset` (up to 13 `.sharedfileset`)
        name.starts_with('i') && name.contains("of") && folder.ends_with("fileset")
    };
    let seen = eventually("shared temporary files", || {
        let seen: Vec<Held> = held_in(&data).into_iter().filter(|f| shared(&f.path)).collect();
        (seen.iter().map(|file| file.pid).collect::<BTreeSet<_>>().len() > 1).then_some(seen)
    });
    let folders = Folders(vec![(data.clone(), "")]);
    assert_eq!(folders.wrong(&data), BTreeSet::new(), "{seen:#?}");
    let again = held_in(&data).into_iter().filter(|f| shared(&f.path) && f.hint == SHORT);
    assert!(again.count() > 1, "they are still held, by leader and workers");
    stop.store(true, Ordering::Relaxed);
    query.join().unwrap();
}

#[test]
fn a_server_started_by_root_for_another_user_is_hinted_whatever_the_umask() {
    let name = "a_server_started_by_root_for_another_user_is_hinted_whatever_the_umask";
    let Some(place) = Place::new(name, Need::RootAndServer) else { return };
    fs::remove_dir(place.state()).unwrap();
    let cluster = place.cluster("c", |_| ());
    let data = cluster.data().path().to_owned();
    start_as_root(&place, &cluster, "umask 077; exec \"$@\"");
    let mut session = session(&cluster);
    session.batch("CREATE TABLE t AS SELECT 1 AS a; CHECKPOINT").unwrap();
    assert!(holds(&data, |path| path.contains("/pg_wal/")));
    assert_eq!(Folders(vec![(data.clone(), "")]).wrong(&data), BTreeSet::new());
}

/// `shelflife run` by root, the server by `runuser`.
fn start_as_root(place: &Place, cluster: &Cluster, shell: &str) {
    let mut command = std::process::Command::new("sh");
    let ours = place.shelflife(["run"]);
    command.args(["-c", shell, "sh"]).arg(ours.get_program()).args(ours.get_args());
    command.envs(ours.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.args(["--policy", &place.policy("each-kind.toml", EACH_KIND), "--"]);
    command.args(["runuser", "-u", place.user.name(), "--"]).args(place.pg_ctl_start(cluster));
    crate::support::said(command.current_dir(place.path(""))).expect(0);
}
