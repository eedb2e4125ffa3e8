//! All of it: what is there is taken, what is missing is made, what fails is named.
//!
//! Invariant: the atlas is made from the folder's files alone, so that it is the same whether they were
//! made now or before.

use std::fmt;
use std::time::{Duration, Instant};

use serde::Serialize;
use shelflife_report::in_full;

use crate::Error;
use crate::folder::Folder;
use crate::judged::{self, Judged};
use crate::recorded::{self, Recorded};
use crate::request::{Progress, Request};
use crate::table::Row;
use crate::text;

/// What a recording takes, in judgements, for the time that is left.
const RECORDING: f64 = 2.0;

/// The answer. All write amplification in it is simulated.
#[derive(Clone, Debug, Serialize)]
pub struct Atlas {
    /// Always `simulated`.
    pub source: &'static str,
    /// Best and worst case, in a sentence.
    pub answer: String,
    /// A row for each scenario and drive.
    pub rows: Vec<Row>,
    /// What they were made from.
    pub entries: Vec<Entry>,
    /// What could not be done.
    pub failed: Vec<Failed>,
}

/// A scenario, recorded and judged.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    /// The recording.
    pub recorded: Recorded,
    /// The judgement on each drive.
    pub judged: Vec<Judged>,
}

/// What could not be done.
#[derive(Clone, Debug, Serialize)]
pub struct Failed {
    /// The scenario.
    pub scenario: String,
    /// The drive, if it was recorded.
    pub drive: Option<String>,
    /// Why, in one line.
    pub why: String,
}

impl fmt::Display for Failed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let on = self.drive.as_ref().map_or(String::new(), |drive| format!(" on {drive}"));
        write!(out, "{}{on}: {}", self.scenario, self.why)
    }
}

impl Entry {
    /// What must be said of the recording.
    pub fn notes(&self) -> Vec<String> {
        let captured = &self.recorded.captured;
        let mut notes: Vec<String> = captured
            .not_exercised
            .iter()
            .map(|class| format!("not exercised: no byte of {class} reached the device, which the scenario is for"))
            .collect();
        if !captured.enough {
            notes.push(format!(
                "only {:.1} of {} drive writes in the time it had: what is judged is short",
                captured.written_bytes as f64 / self.recorded.drive_bytes() as f64,
                self.recorded.wanted.writes
            ));
        }
        if captured.lost > 0 {
            notes.push(format!("{} events were lost by the recorder", captured.lost));
        }
        if let Some(known) = captured.attributed.filter(|known| *known < 0.99) {
            notes.push(format!(
                "only {:.1} % of the bytes belong to a file that is known",
                known * 100.0
            ));
        }
        notes
    }
}

/// How much is done.
struct Meter {
    /// In judgements.
    all: f64,
    done: f64,
    /// What was there before.
    before: f64,
}

impl Meter {
    /// Where `part` (0 to 1) of a step of `weight` is done, after so long.
    fn at(&self, weight: f64, part: f64, taken: Duration) -> (f64, Option<Duration>) {
        let done = self.done + weight * part.clamp(0.0, 1.0);
        let made = done - self.before;
        // the first tenth of a step tells little
        let known = made >= 0.1 && done < self.all;
        let left = known.then(|| taken.mul_f64((self.all - done) / made));
        (done / self.all, left)
    }
}

/// Makes an atlas, or what is missing of it.
///
/// # Errors
///
/// The request, Ctrl-C, and what every scenario would meet alike: no right to mount or to record, no
/// server, a folder that holds another atlas. A scenario that fails by itself is named in the answer.
pub fn atlas(request: &Request, progress: &mut dyn FnMut(&Progress)) -> Result<Atlas, Error> {
    request.check()?;
    let folder = Folder::open(&request.folder)?;
    let drives = request.drives.len() as f64;
    let mut meter = Meter {
        all: request.scenarios.len() as f64 * (RECORDING + drives),
        done: 0.0,
        before: 0.0,
    };
    let begun = Instant::now();
    // all of them before any is recorded: one that is refused is refused at once
    let existing = |scenario: &String| recorded::existing(&folder.scenario(scenario), request);
    let existing = request.scenarios.iter().map(existing).collect::<Result<Vec<_>, _>>()?;
    let (mut entries, mut failed) = (Vec::new(), Vec::new());
    for (scenario, there) in request.scenarios.iter().zip(existing) {
        let own = folder.scenario(scenario);
        let fail = |drive: Option<String>, error: &Error| Failed {
            scenario: scenario.clone(),
            drive,
            why: in_full(error),
        };
        let mut tell = |meter: &Meter, step: String, weight: f64, part: f64| {
            let (share, left) = meter.at(weight, part, begun.elapsed());
            progress(&Progress { scenario: scenario.clone(), step, share, left });
        };
        let is_new = there.is_none();
        let recorded = match there {
            Some(recorded) => recorded,
            None => {
                let step = &mut |what: &'static str, part: Option<f64>| {
                    tell(
                        &meter,
                        what.to_owned(),
                        RECORDING,
                        of_recording(what, part.unwrap_or(0.0)),
                    );
                };
                match recorded::record(&folder, scenario, request, step) {
                    Ok(recorded) => recorded,
                    Err(error) if error.is_interrupted() => return Err(Error::Interrupted),
                    Err(error) if error.is_everywhere() => return Err(error),
                    Err(error) => {
                        failed.push(fail(None, &error));
                        meter.all -= RECORDING + drives;
                        continue;
                    }
                }
            }
        };
        meter.done += RECORDING;
        meter.before += if is_new { 0.0 } else { RECORDING };
        let mut judged = Vec::new();
        for drive in &request.drives {
            let there = judged::existing(&own, drive, request.transport(drive));
            meter.before += if let Ok(Some(_)) = there { 1.0 } else { 0.0 };
            let made = match there {
                Ok(Some(there)) => Ok(there),
                Ok(None) => {
                    let trace = recorded::trace(&own);
                    judged::judge(&own, &trace, drive, request, &mut |part| {
                        tell(&meter, format!("judging on {}", drive.name), 1.0, part);
                    })
                }
                Err(error) => Err(error),
            };
            match made {
                Ok(made) => judged.push(made),
                Err(error) if error.is_interrupted() => return Err(Error::Interrupted),
                Err(error) => failed.push(fail(Some(drive.name.clone()), &error)),
            }
            meter.done += 1.0;
        }
        entries.push(Entry { recorded, judged });
    }
    Ok(Atlas::of(entries, failed))
}

impl Atlas {
    pub(crate) fn of(entries: Vec<Entry>, failed: Vec<Failed>) -> Atlas {
        let rows = entries.iter().flat_map(|entry| {
            entry.judged.iter().filter_map(|judged| Row::new(&entry.recorded, judged))
        });
        let rows: Vec<Row> = rows.collect();
        Atlas { source: "simulated", answer: text::answer(&rows), rows, entries, failed }
    }
}

/// How much of a recording is done; its steps take about so long.
fn of_recording(what: &str, part: f64) -> f64 {
    let (from, to) = match what {
        "loading" => (0.0, 0.1),
        "warming up" => (0.1, 0.28),
        "adding cold data" => (0.28, 0.3),
        "recording" => (0.3, 0.97),
        "cleaning up" | "following lifetimes" => (0.97, 1.0),
        _ => (0.0, 0.0),
    };
    from + (to - from) * part
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::folder::{name, write_json};
    use crate::reason::tests as made;
    use crate::recorded::Wanted;
    use crate::request::tests::request;

    /// Puts a recording and a judgement where a run would leave them.
    fn place(request: &Request, scenario: &str) {
        let own = request.folder.join(name(scenario));
        fs::create_dir_all(&own).unwrap();
        let Request { kind, size, fill, writes, .. } = *request;
        let mut recorded = made::recorded();
        recorded.wanted = Wanted { kind, size, fill, writes };
        recorded.captured.scenario = scenario.to_owned();
        write_json(&own.join("recording.json"), &recorded).unwrap();
        let drive = request.drives[0].clone();
        let path = own.join(format!("{}.{}.json", drive.name, request.transport(&drive).name()));
        write_json(&path, &Judged { drive, ..made::judged() }).unwrap();
    }

    #[test]
    fn what_is_there_is_not_done_again() {
        let folder = tempfile::tempdir().unwrap();
        let request = request(folder.path());
        request.scenarios.iter().for_each(|scenario| place(&request, scenario));
        let mut told = 0;
        let first = atlas(&request, &mut |_| told += 1).unwrap();
        assert_eq!((first.rows.len(), first.failed.len(), told), (2, 0, 0));
        assert!(first.answer.starts_with("best case: learned for tpcb"), "{}", first.answer);
        let again = atlas(&request, &mut |_| told += 1).unwrap();
        assert_eq!(again.rows, first.rows);
        let json = serde_json::to_value(&first).unwrap();
        assert_eq!(json["source"], "simulated");
        assert_eq!(json["rows"][0]["cells"][1]["policy"], "wal-first");
    }

    #[test]
    fn another_recording_than_is_asked_for_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let request = request(folder.path());
        place(&request, "tpcb");
        let other = Request { fill: 0.5, ..request };
        let error = atlas(&other, &mut |_| ()).unwrap_err();
        assert!(matches!(error, Error::Changed { .. }), "{error}");
        assert!(error.to_string().contains("--fill 90% --writes 5, now"), "{error}");
        // also if another scenario would have to be recorded before
        let scenarios = other.scenarios.iter().rev().cloned().collect();
        let error = atlas(&Request { scenarios, ..other }, &mut |_| ()).unwrap_err();
        assert!(matches!(error, Error::Changed { .. }), "{error}");
    }

    #[test]
    fn what_cannot_be_judged_is_named_and_the_others_go_on() {
        let folder = tempfile::tempdir().unwrap();
        let mut request = request(folder.path());
        request.scenarios.iter().for_each(|scenario| place(&request, scenario));
        // its rating has changed since: judged anew, but there is no trace
        request.drives[0].rated_bytes = Some(1);
        let atlas = atlas(&request, &mut |_| ()).unwrap();
        assert_eq!((atlas.rows.len(), atlas.failed.len(), atlas.entries.len()), (0, 2, 2));
        assert_eq!(atlas.failed[0].drive.as_deref(), Some("ufs-5-groups"));
        assert!(atlas.failed[0].why.contains("no such folder"), "{}", atlas.failed[0].why);
        fs::write(request.folder.join("tpcb/ufs-5-groups.scsi.json"), "{").unwrap();
        let atlas = super::atlas(&request, &mut |_| ()).unwrap();
        assert_eq!((atlas.rows.len(), atlas.failed.len()), (0, 2));
        assert!(atlas.failed[0].to_string().contains("it is damaged"), "{}", atlas.failed[0]);
    }

    #[test]
    fn the_time_left_counts_what_was_made_now() {
        let meter = Meter { all: 10.0, done: 6.0, before: 5.0 };
        let (share, left) = meter.at(1.0, 0.0, Duration::from_secs(10));
        assert!((share - 0.6).abs() < 1e-9);
        assert_eq!(left, Some(Duration::from_secs(40)));
        let other = Meter { before: 6.0, ..meter };
        assert_eq!(other.at(1.0, 0.01, Duration::from_secs(10)).1, None);
    }

    #[test]
    fn a_recording_says_what_is_wrong_with_it() {
        let mut recorded = made::recorded();
        recorded.captured.enough = false;
        recorded.captured.lost = 3;
        recorded.captured.not_exercised = vec!["temp".to_owned()];
        recorded.captured.attributed = Some(0.5);
        let notes = Entry { recorded, judged: Vec::new() }.notes();
        assert_eq!(notes.len(), 4, "{notes:?}");
        assert!(notes[1].contains("only 5.0 of 5 drive writes"), "{notes:?}");
    }
}
