//! What a drive and the block layer count, and what follows from it.
//!
//! Invariant: a figure comes only from counters that went forward, for this device's writes and nobody
//! else's; else the epoch has none, and it is said why.

use shelflife_report::bytes;

use crate::error::Result;
use crate::record::Written;

/// So many times the capacity is written under load: once before the counters are compared (the drive is
/// steady only when it had to collect garbage), then a half that shows whether it is, then the one that
/// counts.
pub(crate) const CAPACITIES: u64 = 3;

/// The drive's count of host bytes and the block layer's may be so far apart, as a share: they are not read
/// at the same moment.
const APART: f64 = 0.01;

/// A drive's counters may lag behind by so much of the capacity.
const LAG: f64 = 0.05;

/// So many slices of load may pass in which nothing is written.
const IDLE_SLICES: u32 = 10;

/// All counters at one moment, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Count {
    /// Written by hosts, by the drive's count.
    pub(crate) host: u128,
    /// Written to the media, by the drive's count.
    pub(crate) media: u128,
    /// Issued to the device, by the block layer's count.
    pub(crate) issued: u128,
}

/// Why an epoch has no figure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Fault {
    #[error("a counter of {0} went back: it was reset, or has wrapped around")]
    Back(&'static str),
    #[error("the drive did not count on while {} were written to it", bytes(*.0))]
    Still(u64),
    #[error("the drive counted {} by hosts and nothing to its media", bytes(*.0))]
    NoMedia(u64),
    #[error(
        "the drive counted {} by hosts, {} went to this device: somebody else writes to the endurance \
         group (its other namespaces, passthrough), whose counters cannot be told apart",
        bytes(.0.host_bytes), bytes(.0.issued_bytes)
    )]
    Others(Written),
    #[error("the load writes nothing to the device")]
    Idle,
    #[error("{0}")]
    Load(String),
}

impl Count {
    /// What was written since `earlier`.
    fn since(&self, earlier: &Count) -> Result<Written, Fault> {
        let less = |whose, now: u128, then: u128| {
            now.checked_sub(then).and_then(|n| u64::try_from(n).ok()).ok_or(Fault::Back(whose))
        };
        Ok(Written {
            host_bytes: less("the drive's host writes", self.host, earlier.host)?,
            media_bytes: less("the drive's media writes", self.media, earlier.media)?,
            issued_bytes: less("the block layer", self.issued, earlier.issued)?,
        })
    }
}

/// That the figures are of this device's writes; the drive counts in steps of `step` bytes.
fn sound(written: Written, step: u64) -> Result<Written, Fault> {
    let Written { host_bytes, media_bytes, issued_bytes } = written;
    if host_bytes.abs_diff(issued_bytes) as f64 > host_bytes as f64 * APART + step as f64 {
        return Err(Fault::Others(written));
    }
    if media_bytes == 0 {
        return Err(Fault::NoMedia(host_bytes));
    }
    Ok(written)
}

/// A device under load.
pub(crate) trait Course {
    /// Reads the counters.
    fn count(&mut self) -> Result<Count>;

    /// Some load; `share` of the epoch is done. The inner error is this epoch's only.
    fn load(&mut self, share: f64) -> Result<Result<(), String>>;
}

/// Loads until `capacity` bytes have been written [`CAPACITIES`] times; what was written each time.
pub(crate) fn stages(
    course: &mut dyn Course,
    capacity: u64,
    step: u64,
) -> Result<Result<[Written; CAPACITIES as usize], Fault>> {
    let mut stages =
        [Written { host_bytes: 0, media_bytes: 0, issued_bytes: 0 }; CAPACITIES as usize];
    let mut from = course.count()?;
    for (done, stage) in stages.iter_mut().enumerate() {
        let last = match once(course, from, capacity, step, done)? {
            Ok(last) => last,
            Err(fault) => return Ok(Err(fault)),
        };
        match last.since(&from).and_then(|written| sound(written, step)) {
            Ok(written) => *stage = written,
            Err(fault) => return Ok(Err(fault)),
        }
        from = last;
    }
    Ok(Ok(stages))
}

/// Loads until the drive has counted `capacity` bytes since `from`; the counters then.
fn once(
    course: &mut dyn Course,
    from: Count,
    capacity: u64,
    step: u64,
    done: usize,
) -> Result<Result<Count, Fault>> {
    let patience = (capacity as f64 * LAG) as u64 + step;
    let (mut last, mut moved, mut idle) = (from, from, 0);
    loop {
        let written = last.host.saturating_sub(from.host) as f64 / capacity.max(1) as f64;
        let share = (done as f64 + written.min(1.0)) / CAPACITIES as f64;
        if let Err(why) = course.load(share)? {
            return Ok(Err(Fault::Load(why)));
        }
        let now = course.count()?;
        let (slice, whole, stood) = match (now.since(&last), now.since(&from), now.since(&moved)) {
            (Ok(slice), Ok(whole), Ok(stood)) => (slice, whole, stood),
            (Err(fault), ..) | (_, Err(fault), _) | (.., Err(fault)) => return Ok(Err(fault)),
        };
        if whole.host_bytes >= capacity {
            return Ok(Ok(now));
        }
        idle = if slice.issued_bytes + slice.host_bytes == 0 { idle + 1 } else { 0 };
        if idle == IDLE_SLICES {
            return Ok(Err(Fault::Idle));
        }
        if stood.host_bytes > 0 {
            moved = now;
        } else if stood.issued_bytes > patience {
            return Ok(Err(Fault::Still(stood.issued_bytes)));
        }
        last = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u128 = 1 << 20;

    /// A drive that takes so many MiB with each slice of load.
    struct Made {
        now: Count,
        slice: Count,
        slices: u32,
        /// Something that happens with a slice.
        happens: fn(&mut Made),
        shares: Vec<f64>,
    }

    fn made(host: u128, media: u128, issued: u128, happens: fn(&mut Made)) -> Made {
        let slice = Count { host: host * MIB, media: media * MIB, issued: issued * MIB };
        let now = Count { host: 7 * MIB, media: 11 * MIB, issued: 5 * MIB };
        Made { now, slice, slices: 0, happens, shares: Vec::new() }
    }

    impl Course for Made {
        fn count(&mut self) -> Result<Count> {
            Ok(self.now)
        }

        fn load(&mut self, share: f64) -> Result<Result<(), String>> {
            self.shares.push(share);
            self.slices += 1;
            let add = |sum: u128, more| sum.wrapping_add(more);
            self.now.host = add(self.now.host, self.slice.host);
            self.now.media = add(self.now.media, self.slice.media);
            self.now.issued = add(self.now.issued, self.slice.issued);
            (self.happens)(self);
            match self.slices {
                1000 => Ok(Err("it goes on for ever".to_owned())),
                _ => Ok(Ok(())),
            }
        }
    }

    fn run(mut made: Made) -> (Result<[Written; 3], Fault>, Made) {
        let done = stages(&mut made, 100 << 20, 0).unwrap();
        (done, made)
    }

    #[test]
    fn each_stage_writes_the_capacity_and_the_last_one_counts() {
        // garbage is collected once the capacity was written
        let (done, after) = run(made(30, 30, 30, |made| {
            if made.slices == 4 {
                made.slice.media = 75 * MIB;
            }
        }));
        let [precondition, first, last] = done.unwrap();
        assert_eq!(after.slices, 12);
        for written in [precondition, first, last] {
            assert_eq!(written.host_bytes, 120 << 20);
        }
        assert!((precondition.waf() - 1.0).abs() < 1e-12);
        assert!((first.waf() - 2.5).abs() < 1e-12 && (last.waf() - 2.5).abs() < 1e-12);
        assert!(after.shares.is_sorted() && after.shares[11] > 0.9 && after.shares[11] < 1.0);
    }

    #[test]
    fn a_counter_that_goes_back_is_no_figure() {
        let reset = |made: &mut Made| {
            if made.slices == 9 {
                made.now.host = 0;
            }
        };
        let (done, _) = run(made(30, 60, 30, reset));
        assert_eq!(done, Err(Fault::Back("the drive's host writes")));
        let (done, _) = run(made(30, 60, 30, |made| {
            if made.slices == 9 {
                made.now.media -= 61 * MIB;
            }
        }));
        assert_eq!(done, Err(Fault::Back("the drive's media writes")));
        // the widest counter at its end
        let mut wraps = made(30, 60, 30, |_| ());
        wraps.now.media = u128::MAX - 100 * MIB;
        assert_eq!(run(wraps).0, Err(Fault::Back("the drive's media writes")));
        // a difference that no drive can write
        let (done, _) = run(made(30, 60, 30, |made| made.now.host = u128::MAX));
        assert_eq!(done, Err(Fault::Back("the drive's host writes")));
    }

    #[test]
    fn other_writers_are_found_out() {
        let (done, _) = run(made(31, 60, 30, |_| ()));
        let said = done.unwrap_err().to_string();
        assert!(said.contains("somebody else writes to the endurance group"), "{said}");
        // what was written and is not counted is as bad
        assert!(matches!(run(made(30, 60, 31, |_| ())).0, Err(Fault::Others(_))));
        // within the tolerance
        let mut close = made(0, 60, 30, |_| ());
        close.slice.host = 301 * MIB / 10;
        assert!(run(close).0.is_ok());
    }

    #[test]
    fn counters_that_stand_still_end_the_epoch() {
        let (done, after) = run(made(0, 0, 2, |_| ()));
        assert_eq!((done, after.slices), (Err(Fault::Still(6 << 20)), 3));
        let (done, _) = run(made(30, 0, 30, |_| ()));
        assert_eq!(done, Err(Fault::NoMedia(120 << 20)));
        let (done, after) = run(made(0, 0, 0, |_| ()));
        assert_eq!((done, after.slices), (Err(Fault::Idle), IDLE_SLICES));
    }

    #[test]
    fn a_drive_that_counts_in_steps_has_time_for_them() {
        // in steps of 40 MiB, as log page 09h has steps of 10⁹ bytes
        let mut coarse = made(0, 0, 4, |made| {
            let steps = u128::from(made.slices / 10);
            made.now.host = (7 + 40 * steps) * MIB;
            made.now.media = (11 + 80 * steps) * MIB;
        });
        let done = stages(&mut coarse, 100 << 20, 40 << 20).unwrap().unwrap();
        assert!((done[2].waf() - 2.0).abs() < 1e-12, "{done:?}");
    }

    #[test]
    fn what_ends_the_load_ends_the_epoch() {
        let (done, _) = run(made(0, 0, 1, |made| made.now.host += u128::from(made.slices % 2)));
        assert_eq!(done, Err(Fault::Load("it goes on for ever".to_owned())));
    }
}
