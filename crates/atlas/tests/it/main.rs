//! An atlas on the real server, broken off and resumed. Without a server, root or the right to record it
//! is skipped and says so.

use std::cell::RefCell;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use shelflife_atlas::{Error, Kind, Progress, Request, atlas, in_words};
use shelflife_postgres::programs::Search;
use shelflife_postgres::{Cancel, Programs};
use shelflife_run::Hook;
use shelflife_ssd::Drive;
use shelflife_trial::filesystem;

fn skip(name: &str, reason: &str) {
    let reason = reason.lines().next().unwrap_or_default();
    let line = format!("skipped: {name}: {reason}\n");
    std::io::stderr().write_all(line.as_bytes()).unwrap();
}

fn hook() -> Hook {
    let found = match std::env::var_os("SHELFLIFE_HOOK") {
        Some(_) => Hook::find(),
        None => {
            // target/debug/deps/it
            let exe = std::env::current_exe().unwrap();
            Hook::at(&exe.ancestors().nth(3).unwrap().join("hook/libshelflife_preload.so"))
        }
    };
    found.expect("the hook is built by `make hook`")
}

/// Loop devices with an image below `folder`, as `/sys` has them.
fn images(folder: &str) -> Vec<String> {
    let devices = std::fs::read_dir("/sys/block").unwrap().flatten();
    let files = devices
        .filter_map(|device| std::fs::read_to_string(device.path().join("loop/backing_file")).ok());
    files.filter(|file| file.starts_with(folder)).collect()
}

#[test]
fn root_bpf_an_atlas_of_two_scenarios_goes_on_where_it_was() {
    const NAME: &str = "root_bpf_an_atlas_of_two_scenarios_goes_on_where_it_was";
    if let Err(error) = Programs::find(&Search::new(None)) {
        return skip(NAME, &error.to_string());
    }
    if !rustix::process::geteuid().is_root() {
        return skip(NAME, "only root can mount a file system");
    }
    if !Path::new("/dev/loop-control").exists() {
        return skip(NAME, "this kernel has no loop devices");
    }
    let folder = tempfile::Builder::new()
        .prefix("shelflife-atlas-it-")
        .permissions(std::fs::Permissions::from_mode(0o755))
        .tempdir()
        .unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let request = Request {
        folder: folder.path().join("atlas"),
        scenarios: vec!["tpcb".to_owned(), "unlogged".to_owned()],
        drives: vec![Drive::named("ufs-5-groups").unwrap()],
        transport: None,
        kind: filesystem::Kind::Ext4,
        size: 512 << 20,
        fill: 0.8,
        writes: 1.0,
        limit: Duration::from_secs(8),
        memory_bytes: None,
        hook: hook(),
        user: None,
        bindir: None,
        cancel: Cancel::new(Arc::clone(&stop)),
    };
    let recording =
        |now: &Progress, scenario: &str| now.scenario == scenario && now.step == "recording";

    // Ctrl-C while the second one is recorded
    let place = RefCell::new(None);
    let ended = atlas(&request, &mut |now| {
        if recording(now, "unlogged") {
            place.replace(std::fs::read_link(request.folder.join("work")).ok());
            stop.store(true, Ordering::Relaxed);
        }
    });
    match ended {
        Err(Error::Trial(shelflife_trial::Error::Record(error))) if error.is_denied() => {
            return skip(NAME, &error.to_string());
        }
        ended => assert!(matches!(ended, Err(Error::Interrupted)), "{ended:?}"),
    }
    let work = place.take().unwrap();
    assert!(!work.exists() && !request.folder.join("work").exists());
    assert_eq!(images(work.to_str().unwrap()), [] as [String; 0]);
    assert!(request.folder.join("tpcb/ufs-5-groups.scsi.json").exists());
    assert!(!request.folder.join("unlogged/trace").exists());

    stop.store(false, Ordering::Relaxed);
    let mut seen = Vec::new();
    let made = atlas(&request, &mut |now| {
        assert!((0.0..=1.0).contains(&now.share));
        seen.push((now.scenario.clone(), now.step.clone()));
    })
    .unwrap();
    assert!(seen.iter().all(|(scenario, _)| scenario == "unlogged"), "{seen:?}");
    assert!(made.failed.is_empty(), "{:?}", made.failed);
    let [tpcb, unlogged] = made.rows.as_slice() else { panic!("{} rows", made.rows.len()) };
    for row in [tpcb, unlogged] {
        assert!(row.waf >= 1.0 && row.drive_writes_per_day > 0.0, "{row:?}");
        assert_eq!(row.cells.iter().filter(|cell| cell.kind == Kind::Policy).count(), 3, "{row:?}");
        assert!(row.cells.iter().all(|cell| cell.low <= cell.high && !cell.reason.is_empty()));
    }
    let share = |at: usize, class: &str| {
        made.entries[at].recorded.class(class).map_or(0.0, |class| class.share)
    };
    assert!(share(0, "wal") > 0.2, "{:?}", made.entries[0].recorded.classes);
    let unlogged_pages = share(1, "unlogged") + share(1, "relation");
    assert!(unlogged_pages > share(1, "wal"), "{:?}", made.entries[1].recorded.classes);
    for entry in &made.entries {
        let captured = &entry.recorded.captured;
        assert!(captured.cold_bytes > 0 && captured.lost == 0, "{captured:?}");
        let used = captured.used_bytes as f64 / captured.bytes as f64;
        assert!(used < 0.82, "{captured:?}");
    }
    assert!(in_words(&made).starts_with("simulated: best case"));

    let mut seen = 0;
    let again = atlas(&request, &mut |_| seen += 1).unwrap();
    assert_eq!((seen, again.rows), (0, made.rows));
}
