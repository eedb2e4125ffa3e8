//! Reading and writing of results.
//!
//! Invariant: a line is written in one piece and synchronised before the next round begins, so that
//! a crash tears at most the last line, which has no line break then and is left out. Everything
//! else that makes no sense is an error that names the line.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use serde::Deserialize;

use super::{Event, FILE, FORMAT, Header, ProbeAt, Record, VERSION, What, now};
use crate::error::{Error, Result};
use crate::stats::Plan;

/// The longest line, in bytes: 16 policies of a megabyte each, escaped.
const MAX_LINE: u64 = 64 << 20;

/// Writes results; holds their lock.
#[derive(Debug)]
pub(crate) struct Writer {
    file: File,
    path: PathBuf,
}

impl Writer {
    /// Begins new results.
    pub(crate) fn create(path: &Path, header: Header) -> Result<Writer> {
        let failed = Error::io("cannot write", path);
        let file = OpenOptions::new().append(true).create_new(true).open(path).map_err(failed)?;
        let mut writer = Writer { file, path: path.to_owned() };
        writer.lock()?;
        writer.write(&Record::Header(Box::new(header)))?;
        Ok(writer)
    }

    /// Goes on with results; a torn last line is cut off.
    pub(crate) fn resume(path: &Path) -> Result<(Writer, Results)> {
        let failed = |source| Error::Io { what: "cannot open", path: path.to_owned(), source };
        let file = OpenOptions::new().read(true).append(true).open(path).map_err(failed)?;
        let mut writer = Writer { file, path: path.to_owned() };
        writer.lock()?;
        let results = Results::from_reader(&writer.file, path)?;
        writer.file.set_len(results.whole_bytes).map_err(failed)?;
        writer.file.seek(SeekFrom::End(0)).map_err(failed)?;
        Ok((writer, results))
    }

    fn lock(&mut self) -> Result<()> {
        match rustix::fs::flock(&self.file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(()),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(Error::InUse { path: self.path.clone() }),
            Err(errno) => Err(Error::io("cannot lock", &self.path)(errno.into())),
        }
    }

    pub(crate) fn write(&mut self, record: &Record) -> Result<()> {
        let failed = |source| Error::Io { what: "cannot write", path: self.path.clone(), source };
        let mut line = serde_json::to_vec(record).map_err(|e| failed(e.into()))?;
        line.push(b'\n');
        (&self.file).write_all(&line).and_then(|()| self.file.sync_data()).map_err(failed)
    }

    pub(crate) fn event(&mut self, what: What) -> Result<()> {
        self.write(&Record::Event(Event { at: now(), what }))
    }
}

/// Results as they were read.
#[derive(Clone, Debug, PartialEq)]
pub struct Results {
    /// Where they came from.
    pub path: PathBuf,
    /// The first line.
    pub header: Header,
    /// All other whole lines, in order.
    pub records: Vec<Record>,
    /// Whether the last line was torn and is left out.
    pub torn: bool,
    whole_bytes: u64,
}

impl Results {
    /// Reads results, or those in a trial's folder.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], [`Error::NotResults`], [`Error::Version`].
    pub fn read(path: &Path) -> Result<Results> {
        let path = if path.is_dir() { path.join(FILE) } else { path.to_owned() };
        let file = File::open(&path).map_err(Error::io("cannot open", &path))?;
        Results::from_reader(&file, &path)
    }

    /// Reads results from anywhere; `path` is their name in errors.
    ///
    /// # Errors
    ///
    /// As [`Results::read`].
    pub fn from_reader(file: impl Read, path: &Path) -> Result<Results> {
        let wrong =
            |line: usize, why: String| Error::NotResults { path: path.to_owned(), line, why };
        let mut reader = BufReader::new(file);
        let (mut header, mut records) = (None, Vec::new());
        let (mut whole_bytes, mut torn) = (0, false);
        let mut line = Vec::new();
        for number in 1.. {
            line.clear();
            let read = (&mut reader).take(MAX_LINE).read_until(b'\n', &mut line);
            let read = read.map_err(Error::io("cannot read", path))? as u64;
            if read == 0 {
                break;
            }
            if line.last() != Some(&b'\n') {
                if read == MAX_LINE {
                    return Err(wrong(number, "the line is too long".to_owned()));
                }
                torn = true;
                break;
            }
            if header.is_none() {
                header = Some(read_header(&line).map_err(|problem| match problem {
                    Problem::Version(found) => Error::Version { path: path.to_owned(), found },
                    Problem::Other(why) => wrong(number, why),
                })?);
            } else {
                let record: Record =
                    serde_json::from_slice(&line).map_err(|e| wrong(number, e.to_string()))?;
                let header = header.as_ref();
                header.map_or(Ok(()), |h| fits(h, &record)).map_err(|why| wrong(number, why))?;
                records.push(record);
            }
            whole_bytes += read;
        }
        let Some(header) = header else {
            let why = if torn { "the first line is torn" } else { "the file is empty" };
            return Err(wrong(1, why.to_owned()));
        };
        Ok(Results { path: path.to_owned(), header, records, torn, whole_bytes })
    }
}

enum Problem {
    Version(u32),
    Other(String),
}

fn read_header(line: &[u8]) -> Result<Header, Problem> {
    /// What every version's first line has.
    #[derive(Deserialize)]
    struct Mark {
        format: String,
        version: u32,
    }
    let other = |error: serde_json::Error| Problem::Other(error.to_string());
    let mark: Result<Mark, _> = serde_json::from_slice(line);
    let Some(mark) = mark.ok().filter(|mark| mark.format == FORMAT) else {
        return Err(Problem::Other("this is no file of a trial's results".to_owned()));
    };
    if !(1..=VERSION).contains(&mark.version) {
        return Err(Problem::Version(mark.version));
    }
    let Record::Header(header) = serde_json::from_slice(line).map_err(other)? else {
        return Err(Problem::Other("the first line is no header".to_owned()));
    };
    header.spec.check().map_err(|error| Problem::Other(error.to_string()))?;
    let spec = &header.spec;
    let epochs = spec.device().is_some();
    if header.device.is_some() != epochs || (header.version == VERSION) != epochs {
        return Err(Problem::Other("epochs need a device and version 2".to_owned()));
    }
    match Plan::new(spec.arms.len(), spec.blocks, spec.seed) {
        Ok(plan) if plan.orders() == header.orders => Ok(*header),
        _ => Err(Problem::Other("the order of rounds is not that of its seed".to_owned())),
    }
}

/// Whether a record belongs to the plan.
fn fits(header: &Header, record: &Record) -> Result<(), String> {
    match record {
        Record::Header(_) => Err("a second header".to_owned()),
        Record::Event(Event { what: What::Resumed { block, .. }, .. })
        | Record::Probe(ProbeAt { block, .. })
            if *block > header.spec.blocks =>
        {
            Err(format!("there is no block {block}"))
        }
        Record::Event(_) | Record::Probe(_) => Ok(()),
        Record::Round(round) => {
            let arms = header.spec.arms.len();
            let at = header
                .orders
                .get(round.block)
                .and_then(|order| order.iter().position(|arm| *arm == round.arm));
            if at.map(|at| round.block * arms + at) != Some(round.position as usize) {
                let (block, arm, position) = (round.block, round.arm, round.position);
                return Err(format!(
                    "block {block}, arm {arm} at position {position} is not in the plan"
                ));
            }
            let epoch = round.measured.as_ref().map(|measured| measured.epoch.is_some());
            if epoch.is_some_and(|epoch| epoch != header.device.is_some()) {
                return Err("an epoch in a trial of rounds, or a round in one of epochs".to_owned());
            }
            match (&round.measured, &round.failed) {
                (Some(m), None) if m.value.is_finite() && m.value > 0.0 => Ok(()),
                (None, Some(_)) => Ok(()),
                (Some(_), None) => Err("the round's value is not positive".to_owned()),
                _ => Err("a round has either figures or a failure".to_owned()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use shelflife_postgres::Gauges;

    use super::super::fixtures::{header, round};
    use super::*;

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE);
        (dir, path)
    }

    fn told(path: &Path, text: impl AsRef<[u8]>) -> String {
        std::fs::write(path, text).unwrap();
        Results::read(path).unwrap_err().to_string()
    }

    #[test]
    fn what_is_written_is_read() {
        let (dir, path) = folder();
        let head = header(&["off", "off"], 6);
        let mut writer = Writer::create(&path, head.clone()).unwrap();
        let first = Record::Round(Box::new(round(&head, 0, 1234.5)));
        writer.write(&first).unwrap();
        let aged = What::Aged { rounds: 2, settled: false, gauges: Gauges::default() };
        writer.event(aged.clone()).unwrap();
        assert!(matches!(Writer::resume(&path), Err(Error::InUse { .. })));
        drop(writer);
        let results = Results::read(dir.path()).unwrap();
        assert_eq!(results.header, head);
        assert_eq!(results.records[0], first);
        assert!(matches!(&results.records[1], Record::Event(event) if event.what == aged));
        assert!(!results.torn);
    }

    #[test]
    fn a_torn_last_line_is_left_out_and_cut_off() {
        let (_dir, path) = folder();
        let head = header(&["off", "off"], 6);
        let mut writer = Writer::create(&path, head.clone()).unwrap();
        writer.write(&Record::Round(Box::new(round(&head, 0, 10.0)))).unwrap();
        drop(writer);
        let whole = std::fs::read(&path).unwrap();
        for cut in 1..20 {
            let mut torn = whole.clone();
            torn.extend_from_slice(&whole[whole.len() - 200..whole.len() - cut * 10]);
            std::fs::write(&path, &torn).unwrap();
            let results = Results::read(&path).unwrap();
            assert!(results.torn && results.records.len() == 1);
        }
        let (mut writer, _) = Writer::resume(&path).unwrap();
        writer.event(What::Finished).unwrap();
        let results = Results::read(&path).unwrap();
        assert!(!results.torn && results.records.len() == 2);
    }

    #[test]
    fn foreign_and_hostile_files_are_named_by_line() {
        let (_dir, path) = folder();
        assert!(told(&path, "").ends_with("results.jsonl:1: the file is empty"));
        assert!(told(&path, "{\"format\"").ends_with("the first line is torn"));
        assert!(told(&path, "id,tps\n").ends_with("no file of a trial's results"));
        assert!(told(&path, [0xff, b'\n']).ends_with("no file of a trial's results"));
        let future = "{\"format\":\"shelflife-trial\",\"version\":9}\n";
        assert!(told(&path, future).contains("format version 9, this shelflife knows up to 2"));

        let head = header(&["off", "off"], 6);
        let line = |record: &Record| serde_json::to_string(record).unwrap() + "\n";
        let first = line(&Record::Header(Box::new(head.clone())));
        let mut other = head.clone();
        other.orders[0].reverse();
        assert!(
            told(&path, line(&Record::Header(Box::new(other)))).contains("not that of its seed")
        );
        assert!(told(&path, format!("{first}{first}")).ends_with(":2: a second header"));
        assert!(told(&path, format!("{first}{{}}\n")).contains(":2: "));
        let mut epochs = head.clone();
        epochs.version = 2;
        assert!(told(&path, line(&Record::Header(Box::new(epochs)))).contains("need a device"));
        let mut far = round(&head, 0, 1.0);
        far.block = usize::MAX;
        let far = line(&Record::Round(Box::new(far)));
        assert!(told(&path, format!("{first}{far}")).contains("is not in the plan"));
        let zero = line(&Record::Round(Box::new(round(&head, 0, 0.0))));
        assert!(told(&path, format!("{first}{zero}")).contains("not positive"));
        let mut both = round(&head, 0, 1.0);
        both.failed = Some("x".into());
        let both = line(&Record::Round(Box::new(both)));
        assert!(told(&path, format!("{first}{both}")).contains("either figures or a failure"));
    }

    /// Written by version 1 of the format, and never again changed.
    #[test]
    fn a_frozen_sample_is_read_for_ever() {
        let sample = include_bytes!("../../tests/fixtures/results-v1.jsonl");
        let results = Results::from_reader(&sample[..], Path::new("sample")).unwrap();
        assert_eq!(results.header.spec.arms[1].name, "wal-first");
        let outcome = results.outcome().unwrap();
        assert!(outcome.complete && outcome.measured == 4);
        assert!(outcome.answer.starts_with("quick look, no verdict"), "{}", outcome.answer);
        let mut again = Vec::new();
        for record in std::iter::once(&Record::Header(Box::new(results.header.clone())))
            .chain(&results.records)
        {
            again.extend(serde_json::to_vec(record).unwrap());
            again.push(b'\n');
        }
        let again = Results::from_reader(&again[..], Path::new("sample")).unwrap();
        assert_eq!(again, results);
    }

    /// Written by version 2 of the format (`make lab-epoch`), and never again changed.
    #[test]
    fn a_frozen_sample_of_epochs_is_read_for_ever() {
        let sample = include_bytes!("../../tests/fixtures/results-v2.jsonl");
        let results = Results::from_reader(&sample[..], Path::new("sample")).unwrap();
        assert_eq!(results.header.device.as_ref().unwrap().size, 384 << 20);
        let outcome = results.outcome().unwrap();
        assert!(outcome.complete && outcome.measured == 2);
        let begins = "measured on the drive, write amplification: in the only block wal-first is ";
        assert!(outcome.answer.starts_with(begins), "{}", outcome.answer);
        assert!(outcome.arms.iter().all(|arm| arm.waf.is_some_and(|waf| waf >= 1.0)));
    }

    #[test]
    fn no_bytes_make_the_reader_panic() {
        let (_dir, path) = folder();
        let head = header(&["off", "wal-first"], 6);
        let line = |record: &Record| serde_json::to_vec(record).unwrap();
        let mut whole = line(&Record::Header(Box::new(head.clone())));
        whole.push(b'\n');
        whole.extend(line(&Record::Round(Box::new(round(&head, 0, 3.0)))));
        whole.push(b'\n');
        for at in (0..whole.len()).step_by(17) {
            let mut changed = whole.clone();
            changed[at] ^= 0x15;
            std::fs::write(&path, &changed).unwrap();
            let _ = Results::read(&path);
        }
    }
}
