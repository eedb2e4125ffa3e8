//! Latencies of every single transaction, from pgbench's log (pgbench documentation, "Per-Transaction
//! Logging").
//!
//! Invariant: the log is read line by line into histograms of fixed precision (three significant digits); memory
//! does not grow with its length. A line that does not fit the format is an error, never skipped.

use std::fs;
use std::fs::File;
use std::io::BufRead;
use std::io::BufReader;
use std::path::Path;

use hdrhistogram::Histogram;
use serde::Deserialize;
use serde::Serialize;

use crate::cancel::Cancel;
use crate::error::Error;
use crate::error::Result;

/// pgbench calls its logs `PREFIX.PID` and, of further threads, `PREFIX.PID.THREAD`.
pub(super) const PREFIX: &str = "transactions";

/// Lines between two looks at the cancel flag.
const LINES_PER_LOOK: u64 = 1 << 16;

/// Percentiles of a set of transactions, in µs; each is exact to 0.1 %, the maximum and the count exactly.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    /// Transactions.
    pub count: u64,
    /// Mean.
    pub mean_us: f64,
    /// Half are faster.
    pub p50_us: u64,
    /// 95 of 100 are faster.
    pub p95_us: u64,
    /// 99 of 100 are faster.
    pub p99_us: u64,
    /// The slowest.
    pub max_us: u64,
}

impl Percentiles {
    fn of(latencies: &Exact) -> Option<Self> {
        let histogram = &latencies.histogram;
        (!histogram.is_empty()).then(|| Percentiles {
            count: histogram.len(),
            mean_us: latencies.sum as f64 / histogram.len() as f64,
            p50_us: histogram.value_at_quantile(0.50),
            p95_us: histogram.value_at_quantile(0.95),
            p99_us: histogram.value_at_quantile(0.99),
            max_us: latencies.max,
        })
    }
}

/// The latencies of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Latencies {
    /// Of all transactions; `None` if there was none.
    pub all: Option<Percentiles>,
    /// Of each script, in the order given; `None` for a script that was never run. Empty if there is only one.
    pub scripts: Vec<Option<Percentiles>>,
    /// Transactions that failed for good (15 and newer).
    pub failed: u64,
    /// Transactions never started, because they were late already (`--latency-limit`).
    pub skipped: u64,
}

/// A histogram, with what it rounds kept exactly.
struct Exact {
    histogram: Histogram<u64>,
    sum: u128,
    max: u64,
}

impl Exact {
    fn new() -> Self {
        // Two as the largest value and three digits are in the range that the constructor accepts; the
        // histogram grows with what is recorded.
        let mut histogram = Histogram::new_with_bounds(1, 2, 3)
            .unwrap_or_else(|_| unreachable!("1, 2 and 3 are valid bounds"));
        histogram.auto(true);
        Exact { histogram, sum: 0, max: 0 }
    }

    fn record(&mut self, us: u64) {
        if self.histogram.record(us).is_err() {
            // Too large even for a grown one: it counts in the last bucket.
            self.histogram.saturating_record(us);
        }
        self.sum += u128::from(us);
        self.max = self.max.max(us);
    }
}

/// One line of the log.
enum Logged {
    Done { script: usize, us: u64 },
    Failed,
    Skipped,
}

/// `client transaction time script epoch_s epoch_us [lag] [retries]`, the time in µs or a word.
fn parse(line: &str) -> Option<Logged> {
    let mut fields = line.split_ascii_whitespace();
    let time = fields.nth(2)?;
    let script = fields.next()?.parse().ok()?;
    fields.nth(1)?.parse::<u32>().ok()?;
    match time {
        "skipped" => Some(Logged::Skipped),
        // 15 and newer; the detailed words come with --failures-detailed.
        "failed" | "serialization" | "deadlock" | "other" => Some(Logged::Failed),
        time => time.parse().ok().map(|us| Logged::Done { script, us }),
    }
}

impl Latencies {
    /// Reads every log in `folder`.
    pub(super) fn read_folder(folder: &Path, cancel: &Cancel) -> Result<Self> {
        let failed = |source| Error::io("cannot list", folder, source);
        let mut tally = Tally::new();
        for entry in fs::read_dir(folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let file = File::open(&path).map_err(|e| Error::io("cannot read", &path, e))?;
            tally.read(BufReader::with_capacity(1 << 16, file), &path, cancel)?;
        }
        Ok(tally.finish())
    }
}

struct Tally {
    all: Exact,
    scripts: Vec<Exact>,
    failed: u64,
    skipped: u64,
}

impl Tally {
    fn new() -> Self {
        Tally { all: Exact::new(), scripts: Vec::new(), failed: 0, skipped: 0 }
    }

    fn read(&mut self, mut log: impl BufRead, path: &Path, cancel: &Cancel) -> Result<()> {
        let mut line = String::new();
        for number in 1_u64.. {
            line.clear();
            let read = log.read_line(&mut line);
            if read.map_err(|source| Error::io("cannot read", path, source))? == 0 {
                break;
            }
            match parse(&line) {
                Some(Logged::Done { script, us }) => self.record(script, us),
                Some(Logged::Failed) => self.failed += 1,
                Some(Logged::Skipped) => self.skipped += 1,
                None => {
                    return Err(Error::Unreadable {
                        source_name: format!("pgbench's log {}:{number}", path.display()),
                        why: "not a line of a transaction log",
                        line: line.trim_end().chars().take(200).collect(),
                    });
                }
            }
            if number % LINES_PER_LOOK == 0 {
                cancel.check()?;
            }
        }
        Ok(())
    }

    fn record(&mut self, script: usize, us: u64) {
        self.all.record(us);
        // pgbench takes 128 scripts at most (MAX_SCRIPTS), so the index is small.
        while self.scripts.len() <= script.min(127) {
            self.scripts.push(Exact::new());
        }
        self.scripts[script.min(127)].record(us);
    }

    fn finish(&self) -> Latencies {
        let scripts: Vec<_> = self.scripts.iter().map(Percentiles::of).collect();
        Latencies {
            all: Percentiles::of(&self.all),
            scripts: if scripts.len() > 1 { scripts } else { Vec::new() },
            failed: self.failed,
            skipped: self.skipped,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn read(text: &str) -> Result<Latencies> {
        let mut tally = Tally::new();
        tally.read(Cursor::new(text), Path::new("log"), &Cancel::never())?;
        Ok(tally.finish())
    }

    #[test]
    fn percentiles_of_a_known_set() {
        let text: String =
            (1..=10_000).map(|us| format!("0 {us} {us} 0 1700000000 {us}\n")).collect();
        let all = read(&text).unwrap().all.unwrap();
        assert_eq!((all.count, all.max_us, all.mean_us), (10_000, 10_000, 5000.5));
        for (found, exact) in [(all.p50_us, 5000.0), (all.p95_us, 9500.0), (all.p99_us, 9900.0)] {
            assert!((found as f64 / exact - 1.0).abs() <= 0.001, "{found} {exact}");
        }
    }

    #[test]
    fn every_form_of_a_line_is_read() {
        // Plain; with lag (--rate); with lag and retries (15+, --max-tries); skipped; failed.
        let text = "0 199 2241 0 1175850568 995598\n\
                    1 2 100 1 1175850568 995600 20\n\
                    1 3 200 1 1175850568 995600 20 2\n\
                    0 4 skipped 0 1175850568 995600 5000\n\
                    0 5 failed 0 1175850568 995600\n\
                    0 6 serialization 2 1175850568 995600 0 9\n";
        let found = read(text).unwrap();
        assert_eq!((found.skipped, found.failed), (1, 2));
        assert_eq!(found.all.unwrap().count, 3);
        let counts: Vec<_> = found.scripts.iter().map(|script| script.unwrap().count).collect();
        assert_eq!(counts, [1, 2]);
        assert_eq!(found.scripts[1].unwrap().max_us, 200);
    }

    #[test]
    fn a_torn_line_is_told_with_its_place() {
        let told = read("0 1 5 0 1 2\n0 2 x 0 1 2\n").unwrap_err().to_string();
        assert!(told.starts_with("pgbench's log log:2: "), "{told}");
        assert!(read("0 1 5 0 1").is_err());
        assert_eq!(read("").unwrap().all, None);
    }

    #[test]
    fn huge_latencies_do_not_panic() {
        let text = format!("0 1 {} 0 1 2\n0 1 0 99999999 1 2\n", u64::MAX);
        let found = read(&text).unwrap();
        assert_eq!(found.all.unwrap().max_us, u64::MAX);
        assert_eq!(found.scripts.len(), 128);
    }
}
