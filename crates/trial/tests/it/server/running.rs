//! A trial on a server that runs already.

use std::path::Path;

use shelflife_control::{NewRun, Registry, Run};
use shelflife_policy::Policy;
use shelflife_postgres::programs::Search;
use shelflife_postgres::{Cluster, ClusterOptions, Programs};
use shelflife_run::environment;
use shelflife_trial::record::FILE;
use shelflife_trial::{Error, Phase, Place, run};

use super::{Bed, deaf, spec, stop_at, tiny};

/// A server of the user's, under a run of the user's.
struct Host {
    cluster: Cluster,
    registry: Registry,
    run: Run,
}

impl Host {
    fn new(bed: &Bed, hooked: bool) -> Host {
        let programs = Programs::find(&Search::new(None)).unwrap();
        let mut options = ClusterOptions::new(programs, bed.folder.path().join("host"));
        options.initdb_args = vec!["--no-sync".into()];
        let mut cluster = Cluster::create(options).unwrap();
        let registry = Registry::at(bed.folder.path().join("state")).unwrap();
        let text = shelflife_policy::find("temp-vs-rest").unwrap();
        let table = Policy::parse(text, "temp-vs-rest").unwrap().compile();
        let run = registry
            .register(&NewRun {
                name: Some("host"),
                command: &[],
                hook: bed.hook.path(),
                roots: &[cluster.data().path().to_owned()],
                owner: Some(cluster.data().uid()),
                policy: Some((&table, "temp-vs-rest")),
                dry_run: false,
            })
            .unwrap();
        if hooked {
            let hook = readable(bed);
            cluster.set_server_env(environment(&hook, &run, None).into());
        }
        cluster.start().unwrap();
        Host { cluster, registry, run }
    }

    fn place(&self, database: &str) -> Place {
        Place::Running {
            dsn: self.cluster.dsn("postgres").into(),
            database: database.to_owned(),
            registry: self.registry.clone(),
        }
    }

    fn databases(&mut self) -> i64 {
        let mut session = self.cluster.connect("postgres").unwrap();
        session.one("SELECT count(*) FROM pg_database", &[]).unwrap()
    }

    /// Whether the run is on, and its policy.
    fn state(&self) -> (bool, String) {
        let status = shelflife_run::status(&self.run).unwrap();
        (status.on, status.policy.unwrap())
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.run.remove();
    }
}

/// The hook where the server's user can read it.
fn readable(bed: &Bed) -> shelflife_run::Hook {
    let path = bed.folder.path().join("hook.so");
    std::fs::copy(bed.hook.path(), &path).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    std::fs::set_permissions(&path, mode).unwrap();
    shelflife_run::Hook::at(Path::new(&path)).unwrap()
}

#[test]
fn a_running_server_is_left_as_it_was() {
    let Some(bed) = Bed::new("a_running_server_is_left_as_it_was") else { return };
    let mut host = Host::new(&bed, true);
    let before = host.databases();
    let mut options = bed.options();
    options.place = host.place("sl_trial");
    let wishes = tiny(&["off", "wal-first"]);
    let outcome = run(&spec(&wishes), &options, &mut deaf()).unwrap();
    assert!(outcome.complete && outcome.measured == 4, "{outcome:?}");
    bed.assert_left(&[FILE]);
    assert_eq!(host.databases(), before);
    assert_eq!(host.state(), (true, "temp-vs-rest".to_owned()));
    std::fs::remove_dir_all(bed.dir()).unwrap();

    // Ctrl-C under the other policy; and the run was off before
    shelflife_run::switch(&host.run, shelflife_run::To::Off, |_, _| true).unwrap();
    let mut options = bed.options();
    options.place = host.place("sl_trial");
    let mut ear = stop_at(&bed.stop, Phase::Measuring, 2);
    assert!(run(&spec(&wishes), &options, &mut ear).unwrap_err().is_interrupted());
    assert_eq!(host.databases(), before);
    assert_eq!(host.state(), (false, "temp-vs-rest".to_owned()));
    std::fs::remove_dir_all(bed.dir()).unwrap();

    let mut options = bed.options();
    options.place = host.place("postgres");
    let error = run(&spec(&wishes), &options, &mut deaf()).unwrap_err();
    assert!(error.to_string().contains("has a database postgres already"), "{error}");
    options.place = host.place("a; drop");
    assert!(matches!(run(&spec(&wishes), &options, &mut deaf()), Err(Error::Spec(_))));
    let mut set = tiny(&["off", "off"]);
    set.settings = vec![("work_mem".into(), "1MB".into())];
    assert!(matches!(run(&spec(&set), &options, &mut deaf()), Err(Error::Spec(_))));
    bed.assert_left(&[]);
}

#[test]
fn a_server_without_the_hook_is_refused() {
    let Some(bed) = Bed::new("a_server_without_the_hook_is_refused") else { return };
    let host = Host::new(&bed, false);
    let mut options = bed.options();
    options.place = host.place("sl_trial");
    let error = run(&spec(&tiny(&["off", "off"])), &options, &mut deaf()).unwrap_err();
    assert!(matches!(error, Error::NotUnderHook { .. }), "{error}");
    assert!(error.to_string().contains("shelflife run"), "{error}");
    bed.assert_left(&[]);
}
