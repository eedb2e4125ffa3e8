//! Text of `blkparse` in its default form: `maj,min cpu sequence seconds.ns pid action rwbs
//! sector + sectors [process]`. One request appears several times; read are the lines where it was
//! issued to the device (action `D`), or, in a text without any, where it was completed (`C`).
//!
//! `rwbs` is that of `blk_fill_rwbs` (`kernel/trace/blktrace.c`): a first `F` is a flush before the
//! data, then `W`, `D` or `R`, then `F` for FUA, `S` for sync and `M` for metadata.

use crate::event::{Flags, Op};
use crate::import::field::{Bad, Kind, Parsed, Record, blanks, decimal, is_blank, sectors};

const LINE: &str = "`maj,min cpu seq time pid action rwbs sector + sectors [process]`";

#[derive(Debug)]
pub(crate) struct State {
    action: &'static [u8],
    /// The summary at the end has begun.
    ended: bool,
}

/// Whether the beginning of a text has completions but nothing issued.
pub(crate) fn only_completions(head: &[u8]) -> bool {
    let mut completed = false;
    for line in head.split(|byte| *byte == b'\n') {
        match blanks(line).nth(5) {
            Some(b"D") => return false,
            Some(b"C") => completed = true,
            _ => {}
        }
    }
    completed
}

impl State {
    pub(crate) fn new(completions: bool) -> State {
        State { action: if completions { b"C" } else { b"D" }, ended: false }
    }

    #[inline]
    pub(crate) fn parse<'l>(&mut self, line: &'l [u8]) -> Result<Parsed<'l>, Bad> {
        if self.ended || is_blank(line) {
            return Ok(Parsed::Nothing);
        }
        if line.starts_with(b"CPU") || line.starts_with(b"Total") {
            self.ended = true;
            return Ok(Parsed::Nothing);
        }
        let mut fields = blanks(line);
        let mut next = || fields.next().ok_or(Bad::Expected(LINE));
        let device = next()?;
        let mut numbers = device.split(|byte| *byte == b',');
        let is_number = |part: Option<&[u8]>| {
            part.is_some_and(|p| !p.is_empty() && p.iter().all(u8::is_ascii_digit))
        };
        if !(is_number(numbers.next()) && is_number(numbers.next()) && numbers.next().is_none()) {
            return Err(Bad::Expected(LINE));
        }
        let (_cpu, _sequence, time, _pid, action) = (next()?, next()?, next()?, next()?, next()?);
        if action != self.action {
            return Ok(Parsed::Other);
        }
        let (kind, flags) = match rwbs(next()?)? {
            Some(kind) => kind,
            None => return Ok(Parsed::Other),
        };
        let time = decimal(time, 1_000_000_000, "seconds with nine decimals in field 4")?;
        let mut record = Record { time, kind, flags, device, ..Record::default() };
        if kind == Kind::Flush {
            return Ok(Parsed::Record(record));
        }
        record.offset = sectors(next()?, "a sector in field 8")?;
        if next()? != b"+" {
            return Err(Bad::Expected(LINE));
        }
        record.length = sectors(next()?, "a number of sectors in field 10")?;
        if self.action == b"D" {
            // a completion names whoever was interrupted
            record.process = bracketed(line);
        }
        Ok(Parsed::Record(record))
    }
}

/// What stands between the last brackets.
fn bracketed(line: &[u8]) -> &[u8] {
    let line = line.trim_ascii_end();
    let Some(line) = line.strip_suffix(b"]") else { return b"" };
    match memchr::memchr(b'[', line) {
        Some(at) => &line[at + 1..],
        None => b"",
    }
}

/// What the letters mean; `None` for what is neither read nor write nor flush.
fn rwbs(letters: &[u8]) -> Result<Option<(Kind, Flags)>, Bad> {
    let (preflush, rest) = match letters {
        [b'F', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let (kind, rest) = match rest {
        [b'W', b'Z', rest @ ..] => (Kind::Do(Op::WriteZeroes), rest),
        [b'W', rest @ ..] => (Kind::Do(Op::Write), rest),
        [b'D', rest @ ..] => (Kind::Do(Op::Discard), rest),
        [b'R', rest @ ..] => (Kind::Read, rest),
        [] | [b'F' | b'N' | b'S', ..] if preflush => return Ok(Some((Kind::Flush, Flags::NONE))),
        _ if letters.iter().all(u8::is_ascii_uppercase) && !letters.is_empty() => return Ok(None),
        _ => return Err(Bad::Expected("letters such as WS, WSM or R in field 7")),
    };
    let mut flags = Flags::NONE;
    for letter in rest {
        match letter {
            b'F' => flags = flags.with(Flags::FUA),
            b'S' => flags = flags.with(Flags::SYNC),
            b'M' => flags = flags.with(Flags::META),
            // read-ahead, erase, atomic, barrier
            b'A'..=b'Z' => {}
            _ => return Err(Bad::Expected("letters such as WS, WSM or R in field 7")),
        }
    }
    Ok(Some((kind, flags)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_mean_what_the_kernel_says() {
        let write = Kind::Do(Op::Write);
        for (letters, expected) in [
            (&b"W"[..], Some((write, Flags::NONE))),
            (b"WS", Some((write, Flags::SYNC))),
            (b"WSM", Some((write, Flags::SYNC.with(Flags::META)))),
            (b"FWFS", Some((write, Flags::FUA.with(Flags::SYNC)))),
            (b"WFSM", Some((write, Flags::FUA.with(Flags::SYNC).with(Flags::META)))),
            (b"D", Some((Kind::Do(Op::Discard), Flags::NONE))),
            (b"RA", Some((Kind::Read, Flags::NONE))),
            (b"FN", Some((Kind::Flush, Flags::NONE))),
            (b"F", Some((Kind::Flush, Flags::NONE))),
            (b"FF", Some((Kind::Flush, Flags::NONE))),
            (b"N", None),
        ] {
            assert_eq!(rwbs(letters), Ok(expected), "{}", letters.escape_ascii());
        }
        assert!(rwbs(b"w").is_err());
        assert!(rwbs(b"W+").is_err());
    }
}
