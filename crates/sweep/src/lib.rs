//! Putting hints on files that exist already, or taking them away.
//!
//! The hook hints what is opened; a switch must also reach what is open: the descriptors of the
//! server's processes first (unlinked files too, which no tree shows), then the tree, again and
//! again until a pass changes nothing.
//!
//! Invariants: nothing outside the folders of [`Territory`] is opened, and no symbolic link is
//! followed below them but `pg_wal` and `pg_tblspc/*`; files of another owner are left alone; no
//! byte of a file is read and no access time changed.

#![warn(missing_docs)]

mod descriptors;
mod raw;
mod small;
mod territory;
mod tree;

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};

use serde::Serialize;
use shelflife_layout::{Class, Layout, Table, Text, postgres};
use shelflife_lifetime::Lifetime;

pub use descriptors::{OpenFile, open_for_writing, processes_in};
pub use raw::{Action, Answer, RawError, raw};
pub use small::read_small;
pub use territory::{Error, Root, Territory};
pub use tree::entry_kind;

/// A sweep ends after so many passes, changed or not: then something works against it.
const MAX_PASSES: u32 = 50;

/// What the files are to carry afterwards.
#[derive(Clone, Copy, Debug)]
pub enum Wish<'t> {
    /// What this policy says; a file that it says nothing of carries no hint.
    Policy(&'t Table),
    /// No hint.
    Clear,
}

/// What a sweep did.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Tally {
    /// Passes over descriptors and tree.
    pub passes: u32,
    /// Files in the tree, as of the last pass.
    pub files: u64,
    /// Different files behind open descriptors, as of the last pass.
    pub open_files: u64,
    /// Hints set to a lifetime.
    pub set: u64,
    /// Hints set back to `not-set`.
    pub cleared: u64,
    /// Files of another owner, left alone, as of the last pass.
    pub foreign: u64,
    /// Calls and opens that were refused, by errno, as of the last pass.
    pub refused: BTreeMap<i32, u64>,
    /// Whether the last pass found nothing to change.
    pub settled: bool,
}

impl Tally {
    fn changed(&self) -> u64 {
        self.set + self.cleared
    }
}

/// Sweeps `territory` until a pass changes nothing. `progress` is called now and then with the
/// tally so far; when it gives `false` the sweep ends early, unsettled.
///
/// Processes whose working directory is one of the territory's data folders are looked through
/// for descriptors, as far as this user may.
///
/// # Errors
///
/// [`Error`] if a root of the territory is not there any more; what happens to a single file is
/// counted, not an error.
pub fn sweep(
    territory: &Territory,
    wish: Wish<'_>,
    mut progress: impl FnMut(&Tally) -> bool,
) -> Result<Tally, Error> {
    let mut tally = Tally::default();
    for pass in 1..=MAX_PASSES {
        let before = tally.changed();
        tally.passes = pass;
        (tally.files, tally.open_files, tally.foreign) = (0, 0, 0);
        tally.refused.clear();
        let mut visit = |tally: &mut Tally, file: &OwnedFd, place: &Place<'_>| {
            treat(tally, file, wish.lifetime(place));
        };
        let goes_on = descriptors::pass(territory, &mut tally, &mut visit, &mut progress)
            && tree::pass(territory, &mut tally, &mut visit, &mut progress)?;
        if !goes_on {
            return Ok(tally);
        }
        if tally.changed() == before {
            tally.settled = true;
            break;
        }
    }
    Ok(tally)
}

/// Where a file of the territory lies.
#[derive(Clone, Copy, Debug)]
struct Place<'p> {
    /// The data folder, or the folder that was given.
    base: &'p [u8],
    /// The path relative to it.
    inside: &'p [u8],
}

impl Wish<'_> {
    fn lifetime(self, place: &Place<'_>) -> Lifetime {
        match self {
            Wish::Clear => Lifetime::NotSet,
            Wish::Policy(table) => wanted(table, place.base, place.inside).1,
        }
    }
}

/// The class of the file `inside` (relative to the data folder `base`), and the hint that `table`
/// gives it, if any.
pub fn decide(table: &Table, base: &[u8], inside: &[u8]) -> (Class, Option<Lifetime>) {
    let class = match table.layout() {
        Some(Layout::Postgres) => postgres::classify(inside),
        _ => Class::Outside,
    };
    (class, table.lookup(class, Some(inside), Some(Text::joined(base, inside))))
}

/// The same, with the hint that a file is to carry afterwards.
fn wanted(table: &Table, base: &[u8], inside: &[u8]) -> (Class, Lifetime) {
    let (class, lifetime) = decide(table, base, inside);
    (class, lifetime.unwrap_or(Lifetime::NotSet))
}

fn treat(tally: &mut Tally, file: impl AsFd, wanted: Lifetime) {
    use shelflife_lifetime::{Error, get, set};
    let result = match get(&file) {
        Ok(now) if now == wanted => return,
        Ok(_) => set(&file, wanted),
        Err(error) => Err(error),
    };
    match result {
        Ok(()) if wanted == Lifetime::NotSet => tally.cleared += 1,
        Ok(()) => tally.set += 1,
        Err(error) => {
            let errno = match error {
                Error::Unsupported => rustix::io::Errno::INVAL,
                Error::NotOwner => rustix::io::Errno::PERM,
                Error::Other(ref e) => {
                    rustix::io::Errno::from_io_error(e).unwrap_or(rustix::io::Errno::IO)
                }
                _ => rustix::io::Errno::BADF,
            };
            refuse(tally, errno);
        }
    }
}

fn refuse(tally: &mut Tally, errno: rustix::io::Errno) {
    *tally.refused.entry(errno.raw_os_error()).or_default() += 1;
}
