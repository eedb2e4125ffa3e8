//! What is written back before its hint, as the recorder sees it at the device.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use shelflife_layout::Class;
use shelflife_lifetime::Lifetime;
use shelflife_postgres::pgbench::{self, Length, Load};
use shelflife_postgres::{Cancel, Cluster, Session};
use shelflife_record::{Options, Recorder, Target};
use shelflife_trace::{Trace, Volume, volumes};

use crate::beside::{Beside, POLICY};
use crate::server::cluster;
use crate::storm::storm;

const DISK_BYTES: u64 = 4 << 30;
/// How long the load lasts.
const TIME: Duration = Duration::from_secs(20);

/// Records a server's writes beside a storm of files, once for each kind of marks.
pub fn run() {
    if !rustix::process::geteuid().is_root() {
        println!("late: skipped: needs root");
        return;
    }
    for mode in ["folders", "filesystem"] {
        let Some(disk) = Disk::new() else {
            println!("late: skipped: no loop device here");
            return;
        };
        let Some(mut cluster) = cluster(&disk.place, 10) else { return };
        let data = cluster.data().path().to_owned();
        let beside = Beside::start(&data, mode, &disk.folder.path().join("state"));
        let trace = disk.folder.path().join("trace");
        let target = Target::of_path(&disk.place).expect("a device");
        let mut options = Options::new(&trace, target);
        options.data_folders = vec![data.clone()];
        let recorder = match Recorder::start(options) {
            Ok(recorder) => recorder,
            Err(error) => {
                println!("late: skipped: {error}");
                return;
            }
        };
        let created = load(&mut cluster, &data);
        let summary = recorder.stop().expect("recorded");
        let trace = Trace::open(&trace).expect("a trace");
        say(mode, &volumes(&trace, |file| file.class).expect("read"));
        println!(
            "  beside {created} creations by the storm; {} writes recorded, {} lost; {} overflows",
            summary.meta.counts.writes,
            summary.tally.lost,
            beside.figures().map_or(0, |f| f.overflows)
        );
        drop(beside);
        drop(cluster);
    }
}

/// pgbench, a storm, new tables and sorts that spill, with a checkpoint every five seconds; how many
/// files the storm made.
fn load(cluster: &mut Cluster, data: &Path) -> u64 {
    let (programs, dsn) = (cluster.programs().clone(), cluster.dsn("postgres"));
    let bench = std::thread::spawn(move || {
        let load = Load::new(20, Length::Seconds(TIME.as_secs() as u32));
        pgbench::run(&programs, &dsn, &load, &Cancel::never(), &mut |_| ()).expect("a run")
    });
    let folder = data.join("base/pgsql_tmp");
    fs::create_dir_all(&folder).expect("a folder");
    let user = cluster.user().clone();
    std::os::unix::fs::chown(&folder, Some(user.uid()), Some(user.gid())).expect("given");
    let stormed = std::thread::spawn(move || {
        user.assume().expect("the user");
        storm(&folder, TIME)
    });
    let (mut session, mut checkpoints) = (connect(cluster), connect(cluster));
    session.batch("SET work_mem = '1MB'").expect("set");
    let (begun, mut last) = (Instant::now(), Instant::now());
    while begun.elapsed() < TIME {
        session
            .batch(
                "DROP TABLE IF EXISTS made; CREATE TABLE made AS SELECT g, repeat('x', 200) AS t FROM \
                 generate_series(1, 50000) g ORDER BY md5(g::text); CREATE INDEX ON made (g)",
            )
            .expect("made");
        if last.elapsed() > Duration::from_secs(5) {
            last = Instant::now();
            checkpoints.checkpoint().expect("a checkpoint");
        }
    }
    bench.join().expect("a run");
    let created = stormed.join().expect("a storm").created();
    checkpoints.checkpoint().expect("a checkpoint");
    rustix::fs::syncfs(File::open(data).expect("opened")).expect("synced");
    created
}

fn connect(cluster: &mut Cluster) -> Session {
    cluster.connect("postgres").expect("a session")
}

/// Of the classes that the policy hints: what left without a hint.
fn say(mode: &str, volumes: &[Volume]) {
    let table = shelflife_run::load_policy(POLICY).expect("a policy").compile();
    let hinted = |volume: &&Volume| {
        let class = volume.class.parse::<Class>();
        class.is_ok_and(|class| table.lookup(class, None, None).is_some())
    };
    let (mut all, mut late, mut by_class) = (0, 0, String::new());
    for volume in volumes.iter().filter(hinted) {
        all += volume.bytes;
        if volume.hint == Lifetime::NotSet.name() {
            late += volume.bytes;
            by_class +=
                &format!(" {} {} bytes in {} writes;", volume.class, volume.bytes, volume.writes);
        }
    }
    println!(
        "late, marks on {mode}: {late} of {all} bytes of hinted classes left without their hint ({:.4} %){}{}",
        late as f64 / (all as f64).max(1.0) * 100.0,
        if by_class.is_empty() { "" } else { ":" },
        by_class.trim_end_matches(';')
    );
}

/// ext4 on a loop device over a file in memory.
struct Disk {
    folder: tempfile::TempDir,
    device: String,
    place: PathBuf,
}

impl Disk {
    fn new() -> Option<Disk> {
        let passable = fs::Permissions::from_mode(0o755);
        let mut folder = tempfile::Builder::new();
        let folder = folder.prefix("shelflife-bench-").permissions(passable);
        let folder = folder.tempdir_in("/dev/shm").ok()?;
        let image = folder.path().join("image");
        File::create(&image).and_then(|file| file.set_len(DISK_BYTES)).ok()?;
        let device = run_program("losetup", &["-f".as_ref(), "--show".as_ref(), &image])?;
        let place = folder.path().join("mount");
        // From here on dropping it takes everything away.
        let disk = Disk { folder, device, place };
        fs::create_dir(&disk.place).ok()?;
        run_program("mkfs.ext4", &["-q".as_ref(), "-F".as_ref(), disk.device.as_ref()])?;
        run_program("mount", &[disk.device.as_ref(), &disk.place])?;
        Some(disk)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // What is not there cannot be taken away.
        let _ = Command::new("umount").arg(&self.place).output();
        let _ = Command::new("losetup").args(["-d", &self.device]).output();
    }
}

/// Its output, if it succeeds.
fn run_program(program: &str, args: &[&Path]) -> Option<String> {
    let out = Command::new(program).args(args).output().ok()?;
    out.status.success().then(|| String::from_utf8_lossy(&out.stdout).trim().to_owned())
}
