//! When catalogs may be read again.
//!
//! Invariant: readings of one server are at least 200 ms apart and take at most a twentieth of the time, and
//! what stays unknown is asked for more and more rarely.

use std::time::{Duration, Instant};

const LEAST: Duration = Duration::from_millis(200);
const MOST: Duration = Duration::from_secs(60);
/// Rest after a reading, in times that it took.
const REST: u32 = 20;

/// The pace of one server's readings.
///
/// ```
/// use std::time::{Duration, Instant};
/// let mut pace = shelflife_postgres::Pace::default();
/// assert_eq!(pace.due(), None);
/// let now = Instant::now();
/// pace.ended(now, Duration::from_secs(1));
/// assert_eq!(pace.due(), Some(now + Duration::from_secs(20)));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    last: Option<Instant>,
    rest: Duration,
    pause: Duration,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace { last: None, rest: Duration::ZERO, pause: LEAST }
    }
}

impl Pace {
    /// Something new is unknown: it is worth asking soon.
    pub fn hurry(&mut self) {
        self.pause = LEAST;
    }

    /// When the next reading may begin; `None`: at once.
    pub fn due(&self) -> Option<Instant> {
        // Far beyond any recording the clock has no such time, and nothing is due.
        self.last?.checked_add(self.rest.max(self.pause))
    }

    /// A reading ended, well or not.
    pub fn ended(&mut self, at: Instant, took: Duration) {
        self.last = Some(at);
        self.rest = took.saturating_mul(REST);
        self.pause = (self.pause * 2).min(MOST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unknown_is_asked_for_more_and_more_rarely() {
        let mut pace = Pace::default();
        assert_eq!(pace.due(), None);
        let start = Instant::now();
        let mut pauses = Vec::new();
        for _ in 0..8 {
            pace.ended(start, Duration::from_millis(10));
            pauses.push((pace.due().unwrap() - start).as_millis());
        }
        assert_eq!(pauses, [400, 800, 1600, 3200, 6400, 12_800, 25_600, 51_200]);
        for _ in 0..8 {
            pace.ended(start, Duration::ZERO);
        }
        assert_eq!(pace.due().unwrap() - start, MOST);
        pace.hurry();
        assert_eq!(pace.due().unwrap() - start, LEAST);
    }

    #[test]
    fn a_slow_server_is_left_in_peace() {
        let mut pace = Pace::default();
        let start = Instant::now();
        pace.ended(start, Duration::from_secs(4));
        pace.hurry();
        assert_eq!(pace.due().unwrap() - start, Duration::from_secs(80));
        pace.ended(start, Duration::MAX);
        pace.hurry();
    }
}
