//! Where on a device what was written when, by class of file.
//!
//! Invariant: memory follows the stretches of the device that were touched, not the length of the
//! trace.

use std::collections::BTreeSet;

use shelflife_report::html::{Axis, Figure, Raster, Series, Unit};
use shelflife_trace::{Batch, Error, Event, Op, Trace};

/// Stretches that were not touched are left out of the picture, in steps of so many bytes.
const STRETCH: u64 = 1 << 20;

/// The picture of the device with most bytes; `None` if nothing was written.
pub(crate) fn figure(trace: &Trace, series: &[Series]) -> Result<Option<Figure>, Error> {
    let mut written = vec![0_u64; trace.meta().devices.len()];
    each_write(trace, |event| {
        let bytes = &mut written[usize::from(event.device)];
        *bytes = bytes.saturating_add(event.length);
    })?;
    let most = written.iter().enumerate().max_by_key(|(_, bytes)| **bytes);
    let Some((device, _)) = most.filter(|(_, bytes)| **bytes > 0) else { return Ok(None) };
    let here = |event: &Event| usize::from(event.device) == device;
    let (mut touched, mut first, mut last) = (BTreeSet::new(), u64::MAX, 0);
    each_write(trace, |event| {
        if here(&event) {
            touched.extend(event.offset / STRETCH..=event.end().saturating_sub(1) / STRETCH);
            first = first.min(event.time);
            last = last.max(event.time);
        }
    })?;
    let touched: Vec<u64> = touched.into_iter().collect();
    let seconds = |time: u64| time.saturating_sub(first) as f64 / 1e9;
    let mut named = series.to_vec();
    named.push(Series::new("other", 0));
    let other = series.len();
    let class_of: Vec<usize> = trace
        .files()
        .iter()
        .map(|(_, file)| {
            let name = file.class.name();
            series.iter().position(|series| series.name == name).unwrap_or(other)
        })
        .collect();
    let mut raster = Raster::new(
        (Axis::new("time", Unit::Seconds), seconds(last)),
        (Axis::new("place on the device", Unit::Bytes), (touched.len() as u64 * STRETCH) as f64),
        ("written", Unit::Bytes),
        named,
    );
    each_write(trace, |event| {
        // stretches of one write lie beside each other, and all of them were touched
        let stretch = touched.partition_point(|stretch| *stretch < event.offset / STRETCH) as u64;
        if here(&event) {
            let place = (stretch * STRETCH + event.offset % STRETCH) as f64;
            let class = class_of.get(event.file.0 as usize).copied().unwrap_or(other);
            let length = event.length as f64;
            raster.add(class, seconds(event.time), (place, length), length);
        }
    })?;
    let reading = "From left to right the time of the round, from below the device; stretches that \
                   were not written are left out. A cell has the colour of the class that wrote most \
                   there, and is the paler the less it was.";
    Ok(Some(Figure::new("Place and time of writes, by class of file", raster).reading(reading)))
}

fn each_write(trace: &Trace, mut take: impl FnMut(Event)) -> Result<(), Error> {
    let (mut events, mut batch) = (trace.events().without_processes(), Batch::default());
    while events.read(&mut batch)? {
        // a reader gives no event of a device that is not in the table
        batch.iter().filter(|event| event.op == Op::Write).for_each(&mut take);
    }
    Ok(())
}
