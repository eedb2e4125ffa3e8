//! The caller's wish to stop, as a flag that every wait of this crate polls.
//!
//! Invariant: no wait in this crate lasts longer than [`POLL`] after the flag was raised, except for the
//! orderly end of a process that was started here, which is bounded by its own limit.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::time::Instant;

use crate::error::Error;
use crate::error::Result;

/// The longest sleep between two looks at the flag.
pub const POLL: Duration = Duration::from_millis(50);

/// A flag that a signal handler raises (`signal_hook::flag::register` takes the same
/// `Arc<AtomicBool>`), shared by everything that waits.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Option<Arc<AtomicBool>>);

impl Cancel {
    /// Polls `flag`: once it is true, every wait ends in [`Error::Interrupted`].
    pub fn new(flag: Arc<AtomicBool>) -> Self {
        Cancel(Some(flag))
    }

    /// Never ends a wait early: for cleaning up, and for tests.
    pub fn never() -> Self {
        Cancel(None)
    }

    /// Whether the flag is raised.
    pub fn is_raised(&self) -> bool {
        self.0.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed))
    }

    /// [`Error::Interrupted`] once the flag is raised.
    pub fn check(&self) -> Result<()> {
        if self.is_raised() { Err(Error::Interrupted) } else { Ok(()) }
    }

    /// Sleeps for `time`, or ends early in [`Error::Interrupted`].
    pub fn sleep(&self, time: Duration) -> Result<()> {
        let end = Instant::now() + time;
        loop {
            self.check()?;
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(POLL));
        }
    }

    /// Asks `ready` again and again until it gives a value.
    pub(crate) fn until<T>(&self, mut ready: impl FnMut() -> Result<Option<T>>) -> Result<T> {
        // A day at a time: an endless limit would overflow the clock.
        const DAY: Duration = Duration::from_secs(86_400);
        loop {
            if let Some(value) = self.poll(DAY, &mut ready)? {
                return Ok(value);
            }
        }
    }

    /// Asks `ready` again and again until it gives a value; `Ok(None)` when `limit` has passed.
    /// The pauses grow from 1 ms to [`POLL`], so that short waits stay short and long ones cost nothing.
    pub(crate) fn poll<T>(
        &self,
        limit: Duration,
        mut ready: impl FnMut() -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let end = Instant::now() + limit;
        let mut pause = Duration::from_millis(1);
        loop {
            if let Some(value) = ready()? {
                return Ok(Some(value));
            }
            self.check()?;
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            std::thread::sleep(pause.min(left));
            pause = (pause * 2).min(POLL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_raised_flag_ends_every_wait() {
        let flag = Arc::new(AtomicBool::new(false));
        let cancel = Cancel::new(Arc::clone(&flag));
        cancel.sleep(Duration::from_millis(2)).unwrap();
        flag.store(true, Ordering::Relaxed);
        assert!(matches!(cancel.sleep(Duration::from_secs(3600)), Err(Error::Interrupted)));
        let waited = cancel.poll(Duration::from_secs(3600), || Ok(None::<()>));
        assert!(matches!(waited, Err(Error::Interrupted)));
        Cancel::never().check().unwrap();
    }

    #[test]
    fn a_value_wins_over_the_flag_and_the_limit() {
        let cancel = Cancel::new(Arc::new(AtomicBool::new(true)));
        assert_eq!(cancel.poll(Duration::ZERO, || Ok(Some(7))).unwrap(), Some(7));
        assert_eq!(Cancel::never().poll(Duration::ZERO, || Ok(None::<u8>)).unwrap(), None);
    }
}
