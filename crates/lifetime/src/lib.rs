//! The vocabulary of Linux write lifetime hints, and the raw call.
//!
//! ```
//! use shelflife_lifetime::{Lifetime, get, set};
//!
//! let file = tempfile::tempfile()?;
//! set(&file, Lifetime::Short)?;
//! assert_eq!(get(&file)?, Lifetime::Short);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Invariant: a [`Lifetime`] is one of the six values that the kernel accepts; numbers from
//! outside become one only through [`Lifetime::from_raw`].
//!
//! A hint is one byte of the *in-memory* inode (`i_write_hint`, `include/linux/fs.h`). It is read
//! when a page is written back, survives rename, and is lost when the inode is evicted: never
//! treat it as a property of the file. That the call succeeds says nothing about its effect.

#![cfg_attr(not(feature = "std"), no_std)]
#![warn(missing_docs)]

use core::fmt;
use core::str::FromStr;

#[cfg(feature = "std")]
mod call;
#[cfg(feature = "std")]
pub use call::{Error, get, set};

/// `F_GET_RW_HINT`: `F_LINUX_SPECIFIC_BASE` (1024) + 11, `include/uapi/linux/fcntl.h`.
pub const F_GET_RW_HINT: i32 = 1035;
/// `F_SET_RW_HINT`: `F_LINUX_SPECIFIC_BASE` (1024) + 12, `include/uapi/linux/fcntl.h`.
pub const F_SET_RW_HINT: i32 = 1036;

/// How long data will live, relative to other data on the same drive.
///
/// The numbers are the kernel's `RWH_WRITE_LIFE_*` (`include/uapi/linux/fcntl.h`); the order is
/// that of expected lifetime. `NotSet` and `None` both say nothing, but they are different values:
/// a raw NVMe device maps `None` to a stream of its own.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[repr(u8)]
pub enum Lifetime {
    /// `RWH_WRITE_LIFE_NOT_SET`: no hint was ever given (the state of every new inode).
    #[default]
    NotSet = 0,
    /// `RWH_WRITE_LIFE_NONE`: the program says that it does not know.
    None = 1,
    /// `RWH_WRITE_LIFE_SHORT`.
    Short = 2,
    /// `RWH_WRITE_LIFE_MEDIUM`.
    Medium = 3,
    /// `RWH_WRITE_LIFE_LONG`.
    Long = 4,
    /// `RWH_WRITE_LIFE_EXTREME`.
    Extreme = 5,
}

impl Lifetime {
    /// All six, in the kernel's order.
    pub const ALL: [Lifetime; 6] = [
        Lifetime::NotSet,
        Lifetime::None,
        Lifetime::Short,
        Lifetime::Medium,
        Lifetime::Long,
        Lifetime::Extreme,
    ];

    /// The kernel's number, 0 to 5.
    pub const fn raw(self) -> u64 {
        self as u64
    }

    /// The lifetime with the kernel's number `raw`; `None` if there is none.
    pub const fn from_raw(raw: u64) -> Option<Lifetime> {
        match raw {
            0 => Some(Lifetime::NotSet),
            1 => Some(Lifetime::None),
            2 => Some(Lifetime::Short),
            3 => Some(Lifetime::Medium),
            4 => Some(Lifetime::Long),
            5 => Some(Lifetime::Extreme),
            _ => None,
        }
    }

    /// The name used in policies and on the command line: `not-set`, `none`, `short`, `medium`,
    /// `long`, `extreme`.
    pub const fn name(self) -> &'static str {
        match self {
            Lifetime::NotSet => "not-set",
            Lifetime::None => "none",
            Lifetime::Short => "short",
            Lifetime::Medium => "medium",
            Lifetime::Long => "long",
            Lifetime::Extreme => "extreme",
        }
    }
}

impl fmt::Display for Lifetime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The text was not the name of a lifetime.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct UnknownLifetime;

impl fmt::Display for UnknownLifetime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a lifetime; expected not-set, none, short, medium, long or extreme")
    }
}

impl core::error::Error for UnknownLifetime {}

impl FromStr for Lifetime {
    type Err = UnknownLifetime;

    fn from_str(text: &str) -> Result<Lifetime, UnknownLifetime> {
        Lifetime::ALL.into_iter().find(|l| l.name() == text).ok_or(UnknownLifetime)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_return_to_the_same_lifetime() {
        for lifetime in Lifetime::ALL {
            assert_eq!(lifetime.name().parse(), Ok(lifetime));
            assert_eq!(Lifetime::from_raw(lifetime.raw()), Some(lifetime));
        }
        assert_eq!(Lifetime::from_raw(6), None);
        assert_eq!(Lifetime::from_raw(1 << 32), None);
        assert_eq!("SHORT".parse::<Lifetime>(), Err(UnknownLifetime));
        assert_eq!("off".parse::<Lifetime>(), Err(UnknownLifetime));
    }
}
