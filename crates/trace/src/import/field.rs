//! What a line says, and the pieces it is read from.
//!
//! Invariant: a number that does not fit is an error, never another number.

use std::fmt;
use std::str::FromStr;

use shelflife_lifetime::Lifetime;

use crate::class::FileClass;
use crate::event::{Flags, Op};

/// What is wrong with a line.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Bad {
    /// Not what the format has; what was expected.
    Expected(&'static str),
    /// A first line without which nothing can be read.
    Header(String),
    /// A number or a range beyond 64 (or our 63) bits.
    Overflow(&'static str),
    /// No bytes.
    ZeroLength,
    /// More than one request of the block layer writes.
    TooMuch(u64),
    /// Not at a sector.
    Unaligned(&'static str, u64),
    /// Earlier than the one before.
    Backwards { before: u64, now: u64 },
    /// Before the first byte, because of the shift.
    BeforeStart,
    /// Beyond the stated end.
    PastEnd { end: u64, device: u64 },
    /// No line has so many bytes.
    TooLong,
    /// A binary file ends inside a record.
    Truncated(usize),
}

impl Bad {
    /// For counting.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Bad::Expected(_) | Bad::Header(_) => "malformed",
            Bad::Overflow(_) | Bad::TooMuch(_) => "overflow",
            Bad::ZeroLength => "zero length",
            Bad::Unaligned(..) => "not 512-aligned",
            Bad::Backwards { .. } => "time going backwards",
            Bad::BeforeStart => "before the device's start",
            Bad::PastEnd { .. } => "past the device's end",
            Bad::TooLong => "too long",
            Bad::Truncated(_) => "cut off",
        }
    }
}

impl fmt::Display for Bad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bad::Expected(what) => write!(f, "expected {what}"),
            Bad::Header(what) => f.write_str(what),
            Bad::Overflow(what) => write!(f, "{what} does not fit into 63 bits"),
            Bad::TooMuch(length) => {
                write!(f, "a write of {length} bytes, expected at most 4 GiB - 512")
            }
            Bad::ZeroLength => f.write_str("zero length, expected at least one sector"),
            Bad::Unaligned(what, value) => {
                write!(f, "{what} {value} is no multiple of 512 bytes")
            }
            Bad::Backwards { before, now } => write!(
                f,
                "time goes backwards by {} ns; sort the file by time, or skip such lines",
                before - now
            ),
            Bad::BeforeStart => f.write_str("the shift puts it before the device's first byte"),
            Bad::PastEnd { end, device } => {
                write!(f, "it ends at byte {end}, past the device's {device} bytes")
            }
            Bad::TooLong => write!(f, "expected at most {} bytes a line", super::lines::LONGEST),
            Bad::Truncated(size) => {
                write!(f, "the file ends inside a record, expected {size} bytes")
            }
        }
    }
}

/// What a line asks for.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Kind {
    #[default]
    Read,
    Flush,
    Do(Op),
}

/// A request in the words of its format, already in nanoseconds and bytes.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Record<'l> {
    /// Nanoseconds since the format's epoch.
    pub(crate) time: u64,
    pub(crate) offset: u64,
    pub(crate) length: u64,
    pub(crate) kind: Kind,
    pub(crate) hint: Lifetime,
    pub(crate) stream: u8,
    pub(crate) flags: Flags,
    /// What the format calls the device; one that was seen before costs no allocation.
    pub(crate) device: &'l [u8],
    pub(crate) process: &'l [u8],
    pub(crate) file: Option<(FileClass, &'l [u8])>,
}

/// A line.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Parsed<'l> {
    /// Empty, a comment, a header.
    Nothing,
    /// Something that is no request for data.
    Other,
    /// A request.
    Record(Record<'l>),
}

/// A decimal number without sign.
#[inline]
pub(crate) fn number(text: &[u8], what: &'static str) -> Result<u64, Bad> {
    // 19 digits fit whatever they are
    if text.is_empty() || text.len() > 19 {
        return long_number(text, what);
    }
    let mut value = 0u64;
    for byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return Err(Bad::Expected(what));
        }
        value = value * 10 + u64::from(digit);
    }
    Ok(value)
}

#[cold]
fn long_number(text: &[u8], what: &'static str) -> Result<u64, Bad> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return Err(Bad::Expected(what));
    }
    let mut digits = text.iter().map(|byte| u64::from(byte - b'0'));
    let value = digits.try_fold(0u64, |value, digit| value.checked_mul(10)?.checked_add(digit));
    value.ok_or(Bad::Overflow(what))
}

/// A number of sectors, in bytes.
#[inline]
pub(crate) fn sectors(text: &[u8], what: &'static str) -> Result<u64, Bad> {
    number(text, what)?.checked_mul(512).ok_or(Bad::Overflow(what))
}

/// A number, perhaps with a fraction, in units of `ns` nanoseconds. What is below a nanosecond must
/// be zero.
pub(crate) fn decimal(text: &[u8], ns: u64, what: &'static str) -> Result<u64, Bad> {
    let (whole, fraction) = match memchr::memchr(b'.', text) {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, &b""[..]),
    };
    let whole = number(whole, what)?.checked_mul(ns).ok_or(Bad::Overflow(what))?;
    let (mut value, mut unit) = (0u64, ns);
    for byte in fraction {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return Err(Bad::Expected(what));
        }
        unit /= 10;
        value += unit * u64::from(digit);
    }
    whole.checked_add(value).ok_or(Bad::Overflow(what))
}

/// Fields separated by commas; exactly `N`.
#[inline]
pub(crate) fn commas<const N: usize>(line: &[u8]) -> Option<[&[u8]; N]> {
    let mut fields = [&b""[..]; N];
    let mut rest = line;
    for (at, field) in fields.iter_mut().enumerate() {
        match memchr::memchr(b',', rest) {
            Some(comma) if at + 1 < N => {
                *field = &rest[..comma];
                rest = &rest[comma + 1..];
            }
            None if at + 1 == N => *field = rest,
            _ => return None,
        }
    }
    Some(fields)
}

/// Fields separated by blanks.
#[inline]
pub(crate) fn blanks(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| matches!(byte, b' ' | b'\t')).filter(|field| !field.is_empty())
}

/// Whether a line has nothing to say.
#[inline]
pub(crate) fn is_blank(line: &[u8]) -> bool {
    matches!(line.first(), None | Some(b'#')) || line.iter().all(u8::is_ascii_whitespace)
}

/// The unit of a time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TimeUnit {
    /// Picoseconds; what is below a nanosecond is cut off.
    Picoseconds,
    /// Nanoseconds.
    Nanoseconds,
    /// Microseconds.
    Microseconds,
    /// Milliseconds.
    Milliseconds,
    /// Seconds.
    Seconds,
}

impl TimeUnit {
    /// Nanoseconds of one; `None` for picoseconds.
    pub(crate) fn ns(self) -> Option<u64> {
        match self {
            TimeUnit::Picoseconds => None,
            TimeUnit::Nanoseconds => Some(1),
            TimeUnit::Microseconds => Some(1_000),
            TimeUnit::Milliseconds => Some(1_000_000),
            TimeUnit::Seconds => Some(1_000_000_000),
        }
    }
}

impl FromStr for TimeUnit {
    type Err = String;

    fn from_str(text: &str) -> Result<TimeUnit, String> {
        match text {
            "ps" => Ok(TimeUnit::Picoseconds),
            "ns" => Ok(TimeUnit::Nanoseconds),
            "us" => Ok(TimeUnit::Microseconds),
            "ms" => Ok(TimeUnit::Milliseconds),
            "s" => Ok(TimeUnit::Seconds),
            _ => Err("not a unit of time; expected ps, ns, us, ms or s".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_fit_or_are_errors() {
        assert_eq!(number(b"18446744073709551615", "x"), Ok(u64::MAX));
        assert_eq!(number(b"18446744073709551616", "x"), Err(Bad::Overflow("x")));
        assert_eq!(number(b"0000000000000000000000001", "x"), Ok(1));
        for bad in [&b""[..], b"-1", b"+1", b" 1", b"1.5", b"0x1", b"1e3"] {
            assert_eq!(number(bad, "x"), Err(Bad::Expected("x")));
        }
        assert_eq!(sectors(b"36028797018963968", "x"), Err(Bad::Overflow("x")));
    }

    #[test]
    fn fractions_are_exact() {
        assert_eq!(decimal(b"1.5", 1_000_000, "t"), Ok(1_500_000));
        assert_eq!(decimal(b"0.000001", 1_000_000_000, "t"), Ok(1_000));
        assert_eq!(decimal(b"7", 1, "t"), Ok(7));
        assert_eq!(decimal(b"1.x", 1, "t"), Err(Bad::Expected("t")));
        assert_eq!(decimal(b"18446744073709551615.9", 10, "t"), Err(Bad::Overflow("t")));
    }

    #[test]
    fn fields_are_counted() {
        assert_eq!(commas::<2>(b"a,b"), Some([&b"a"[..], b"b"]));
        assert_eq!(commas::<2>(b"a"), None);
        assert_eq!(commas::<2>(b"a,b,c"), None);
        assert_eq!(commas::<2>(b","), Some([&b""[..], b""]));
        assert_eq!(blanks(b" a \t b").collect::<Vec<_>>(), [b"a", b"b"]);
    }
}
