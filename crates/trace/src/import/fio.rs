//! fio's I/O log, version 2: a line `fio version 2 iolog`, then `FILE add|open|close` and
//! `FILE read|write|trim|sync|datasync|wait …`; reads, writes and trims have an offset and a length
//! in bytes. There are no times: all of a run up to a `wait` (microseconds) have the same.
//!
//! Each file has offsets of its own, hence is a device.

use crate::event::Op;
use crate::import::field::{Bad, Kind, Parsed, Record, blanks, is_blank, number};

/// The first line.
pub(crate) const HEADER: &[u8] = b"fio version 2 iolog";

#[derive(Debug, Default)]
pub(crate) struct State {
    begun: bool,
    time: u64,
}

impl State {
    pub(crate) fn parse<'l>(&mut self, line: &'l [u8]) -> Result<Parsed<'l>, Bad> {
        if !self.begun {
            if line.trim_ascii_end() != HEADER {
                return Err(Bad::Header("expected `fio version 2 iolog` as first line".to_owned()));
            }
            self.begun = true;
            return Ok(Parsed::Nothing);
        }
        if is_blank(line) {
            return Ok(Parsed::Nothing);
        }
        let mut fields = blanks(line);
        let mut next = |what| fields.next().ok_or(Bad::Expected(what));
        let file = next("`FILE ACTION`")?;
        let action = next("an action in field 2")?;
        let mut record = Record { device: file, time: self.time, ..Record::default() };
        match action {
            b"add" | b"open" | b"close" => return Ok(Parsed::Nothing),
            b"sync" | b"datasync" => {
                record.kind = Kind::Flush;
                return Ok(Parsed::Record(record));
            }
            b"wait" => {
                let wait = number(next("microseconds in field 3")?, "microseconds in field 3")?;
                let time = wait.checked_mul(1000).and_then(|wait| self.time.checked_add(wait));
                self.time = time.ok_or(Bad::Overflow("time"))?;
                return Ok(Parsed::Nothing);
            }
            b"read" => {}
            b"write" => record.kind = Kind::Do(Op::Write),
            b"trim" => record.kind = Kind::Do(Op::Discard),
            _ => {
                return Err(Bad::Expected(
                    "add, open, close, read, write, trim, sync, datasync or wait in field 2",
                ));
            }
        }
        const OFFSET: &str = "an offset in bytes in field 3";
        const LENGTH: &str = "a length in bytes in field 4";
        record.offset = number(next(OFFSET)?, OFFSET)?;
        record.length = number(next(LENGTH)?, LENGTH)?;
        if next("").is_ok() {
            return Err(Bad::Expected("`FILE ACTION OFFSET LENGTH`"));
        }
        Ok(Parsed::Record(record))
    }
}
