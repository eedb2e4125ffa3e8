//! From an open file to the call.
//!
//! Invariant: as in the hook, the page's state is looked at before and after, and with it what is known
//! of relations; if either moved, the hint is put right at once, so that the sweep of a switch and the
//! news of a catalog lose against nothing.

use std::os::fd::AsFd;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::io::Errno;
use shelflife_control::{Driver, State};
use shelflife_lifetime::{Error, Lifetime, get, set};

use crate::figures::Cause;
use crate::folder::Folder;
use crate::root::Facts;

/// A page that is switched more often than this during one call is being played with.
const TRIES: usize = 64;
/// A file that is older than this at an event was there before, seconds.
const OLD: i64 = 2;

/// Whether an open of `inside` can be passed over: nothing is to be done to such a file, unless it
/// carries a hint of old, which only a rename or a switch can bring, and these are seen to apart.
pub(crate) fn is_idle(driver: &Driver, folder: &Folder, inside: &[u8]) -> bool {
    let page = driver.page();
    let state = page.state();
    !acts(state) || folder.decide(page, state, inside).1.is_none()
}

/// Whether hints are given at all.
pub(crate) fn acts(state: State) -> bool {
    state.is_on() && !state.is_dry_run()
}

/// Gives `file`, which is called `inside` from the data folder, what the policy says.
pub(crate) fn treat(
    driver: &Driver,
    folder: &Folder,
    file: impl AsFd,
    facts: &Facts,
    inside: &[u8],
    cause: Cause,
) {
    let page = driver.page();
    let look = || (page.state(), folder.edition());
    let mut seen = look();
    for try_number in 0..TRIES {
        let state = seen.0;
        if try_number == 0 && !state.is_on() {
            return;
        }
        let (class, lifetime) = folder.decide(page, state, inside);
        if try_number == 0 && cause == Cause::Event {
            driver.counters().count(class, lifetime);
        }
        // Counting only: files are left as they are. Off: what was given here is taken back.
        if state.is_dry_run() {
            return;
        }
        let wanted = if state.is_on() { lifetime.unwrap_or_default() } else { Lifetime::NotSet };
        match get(&file) {
            Ok(now) if now == wanted => {}
            Ok(_) => match set(&file, wanted) {
                Ok(()) if wanted == Lifetime::NotSet => {
                    folder.figures.cleared.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                }
                Ok(()) => folder.figures.count_hint(class, wanted, cause, is_old(facts)),
                Err(error) => return refused(driver, folder, &error),
            },
            Err(error) => return refused(driver, folder, &error),
        }
        let now = look();
        if now == seen {
            return;
        }
        seen = now;
    }
}

fn is_old(facts: &Facts) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    facts.born.is_some_and(|born| now.cast_signed() - born > OLD)
}

fn refused(driver: &Driver, folder: &Folder, error: &Error) {
    let errno = match error {
        Error::Unsupported => Errno::INVAL,
        Error::NotOwner => Errno::PERM,
        Error::PathOnly => Errno::BADF,
        Error::Other(error) => Errno::from_io_error(error).unwrap_or(Errno::IO),
        _ => Errno::IO,
    };
    driver.counters().count_refused(errno.raw_os_error());
    folder.figures.count_refused(errno);
}
