//! Is a trace what it says it is?
//!
//! Invariant: everything is read, and nothing is repaired.

use serde::Serialize;

use crate::error::Error;
use crate::event::{Batch, Op};
use crate::meta::Counts;
use crate::trace::Trace;

/// What a check found.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Check {
    /// Events read.
    pub events: u64,
    /// What is wrong, in words; empty if nothing.
    pub findings: Vec<String>,
    /// What one should know, though it is not wrong.
    pub notes: Vec<String>,
}

/// Reads all of `trace` and compares it with what `meta.json` says. `progress` is told how many
/// events there were so far; when it answers `false`, this ends with an error.
///
/// # Errors
///
/// Only for `progress`: what cannot be read is a finding.
pub fn check(trace: &Trace, progress: &mut dyn FnMut(u64) -> bool) -> Result<Check, Error> {
    let mut found = Check::default();
    let meta = trace.meta();
    let (mut counts, mut last) = (Counts::default(), 0);
    let (mut past, mut sectors) = (0u64, 0u64);
    let mut events = trace.events();
    let mut batch = Batch::default();
    loop {
        match events.read(&mut batch) {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => {
                found.findings.push(in_words(&error));
                break;
            }
        }
        for event in batch.iter() {
            counts.events += 1;
            match event.op {
                Op::Write => {
                    counts.writes += 1;
                    counts.written_bytes = counts.written_bytes.saturating_add(event.length);
                }
                Op::Discard => counts.discards += 1,
                Op::WriteZeroes => counts.write_zeroes += 1,
            }
            counts.backwards += u64::from(event.time < last);
            last = event.time;
            let page = u64::from(meta.page_size) - 1;
            counts.unaligned += u64::from((event.offset | event.length) & page != 0);
            sectors += u64::from((event.offset | event.length) & 511 != 0);
            let device = meta.devices.get(usize::from(event.device));
            past +=
                u64::from(device.and_then(|d| d.bytes).is_some_and(|bytes| event.end() > bytes));
        }
        if !progress(counts.events) {
            return Err(Error::Stopped);
        }
    }
    found.events = counts.events;
    found.notes = trace.notes().iter().map(ToString::to_string).collect();
    let torn = trace.notes().iter().any(|n| matches!(n, crate::trace::Note::Torn { .. }));
    if found.findings.is_empty() && !torn {
        let stated = &meta.counts;
        for (what, stated, read) in [
            ("events", stated.events, counts.events),
            ("writes", stated.writes, counts.writes),
            ("discards", stated.discards, counts.discards),
            ("write-zeroes", stated.write_zeroes, counts.write_zeroes),
            ("bytes written", stated.written_bytes, counts.written_bytes),
            ("events that are not page-aligned", stated.unaligned, counts.unaligned),
        ] {
            if stated != read {
                found.findings.push(format!("meta.json counts {stated} {what}, there are {read}"));
            }
        }
    }
    if past > 0 {
        found.findings.push(format!("{past} events end beyond their device"));
    }
    if sectors > 0 {
        found
            .findings
            .push(format!("{sectors} events do not begin and end at sectors of 512 bytes"));
    }
    if meta.counts.lost > 0 {
        found.findings.push(format!("the recorder lost {} events", meta.counts.lost));
    }
    if counts.backwards > 0 {
        found.notes.push(format!(
            "{} events have an earlier time than the one before (by up to {} ns)",
            counts.backwards, meta.counts.backwards_most_ns
        ));
    }
    Ok(found)
}

fn in_words(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text += &format!(": {cause}");
        source = cause.source();
    }
    text
}
