//! After a crash under load and recovery under the hook the data is whole.

use shelflife_postgres::{Cancel, StopMode, verify};

use crate::held::{EXTREME, hint};
use crate::support::{Need, Place, initialise, load, said};

#[test]
fn data_is_whole_after_kill_9_under_load_and_recovery_under_the_hook() {
    let name = "data_is_whole_after_kill_9_under_load_and_recovery_under_the_hook";
    let Some(place) = Place::new(name, Need::Server) else { return };
    let mut cluster = place.cluster("c", |options| {
        options.set("checkpoint_timeout", "30s").set("max_wal_size", "8MB");
    });
    // A run of its own that stays, so that the harness can start and kill the server under it.
    let mut run = place.as_user(["run", "--policy", "temp-vs-rest", "--name", "main", "--"]);
    let _run = crate::support::Guard::spawn(run.args(["sleep", "600"]));
    let folder = place.path("state-of-user/main");
    crate::support::eventually("the run", || folder.join("page").exists().then_some(()));
    cluster.set_server_env(vec![
        ("LD_PRELOAD".into(), place.hook().into()),
        ("SHELFLIFE_RUN".into(), folder.into()),
    ]);
    cluster.start().unwrap();
    initialise(&place, &cluster);
    for round in 0..3 {
        let load = load(&place, &cluster, &["-c", "4", "-j", "2"]);
        std::thread::sleep(std::time::Duration::from_millis(700));
        if round == 1 {
            said(&mut place.as_user(["switch", "off"])).expect(0);
            said(&mut place.as_user(["switch", "on"])).expect(0);
        }
        cluster.kill9().unwrap();
        drop(load);
        cluster.start().unwrap();
        let recovered = cluster.log_tail(200).iter().any(|line| line.contains("redo done at"));
        assert!(recovered, "{:#?}", cluster.log_tail(200));
        let verdict =
            verify::amcheck(place.programs(), &cluster.dsn("postgres"), &Cancel::never()).unwrap();
        assert!(verdict.is_clean(), "{verdict:#?}");
        let control = cluster.data().path().join("global/pg_control");
        assert_eq!(hint(&control).unwrap(), EXTREME, "recovered under the hook");
    }
    cluster.stop(StopMode::Fast).unwrap();
    let verdict = verify::checksums(place.programs(), cluster.data(), &Cancel::never()).unwrap();
    assert!(verdict.is_clean(), "{verdict:#?}");
}
