//! A sweep over a million files.

use std::fs::{self, File};
use std::time::{Duration, Instant};

use crate::beside::{Beside, data_folder};

const FOLDERS: usize = 100;

/// Makes the files, sweeps twice (the first fills the kernel's caches), and looks at the peace after.
pub fn run() {
    let files: usize =
        std::env::var("FILES").ok().and_then(|n| n.parse().ok()).unwrap_or(1_000_000);
    let dir = tempfile::Builder::new().tempdir_in("/var/tmp").expect("a folder");
    let data = data_folder(dir.path());
    let begun = Instant::now();
    for folder in 0..FOLDERS {
        let path = data.join(format!("base/{}", 20_000 + folder));
        fs::create_dir(&path).expect("a folder");
        for file in 0..files / FOLDERS {
            File::create(path.join(format!("{}", 16_384 + file))).expect("a file");
        }
    }
    println!("million: {files} files made in {:.0} s", begun.elapsed().as_secs_f64());
    for (turn, mode) in ["folders", "folders", "filesystem"].into_iter().enumerate() {
        let beside = Beside::start(&data, mode, &dir.path().join(format!("state{turn}")));
        let figures = beside.figures().expect("figures");
        let before = beside.ticks();
        std::thread::sleep(Duration::from_secs(10));
        let idle = beside.ticks() - before;
        println!(
            "million, marks on {mode}, sweep {}: {} files in {:.2} s ({:.2} s of processor), {} hints set, {} overflows; at \
             most {} KiB resident, now {}; idle {:.2} % of a processor",
            turn + 1,
            figures.files,
            figures.sweep_ms as f64 / 1e3,
            before as f64 / 100.0,
            figures.by_sweeps,
            beside.figures().map_or(0, |f| f.overflows),
            beside.kib("VmHWM:"),
            beside.kib("VmRSS:"),
            idle as f64 / 10.0
        );
    }
}
