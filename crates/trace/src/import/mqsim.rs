//! ASCII of DiskSim and MQSim: `arrival device sector sectors type`, separated by blanks. Sectors of
//! 512 bytes; type 0 is a **write** and 1 a read. The unit of the arrival stands elsewhere (MQSim's
//! `<Time_Unit>`): nanoseconds unless said otherwise; with a decimal point, as DiskSim has it,
//! milliseconds.

use crate::import::field::{Bad, Parsed, TimeUnit, blanks, decimal, is_blank, number, sectors};
use crate::import::sink::basic;

const LINE: &str = "arrival device sector sectors type";

#[inline]
pub(crate) fn parse(line: &[u8], unit: Option<TimeUnit>) -> Result<Parsed<'_>, Bad> {
    if is_blank(line) {
        return Ok(Parsed::Nothing);
    }
    let mut fields = blanks(line);
    let mut next = || fields.next().ok_or(Bad::Expected(LINE));
    let (time, device, offset, size, kind) = (next()?, next()?, next()?, next()?, next()?);
    if next().is_ok() {
        return Err(Bad::Expected(LINE));
    }
    const TIME: &str = "a time of arrival in field 1";
    let unit = unit.unwrap_or(match time.contains(&b'.') {
        true => TimeUnit::Milliseconds,
        false => TimeUnit::Nanoseconds,
    });
    let time = match unit.ns() {
        Some(ns) => decimal(time, ns, TIME)?,
        None => number(time, TIME)? / 1000,
    };
    number(device, "a number of a device in field 2")?;
    let offset = sectors(offset, "a sector in field 3")?;
    let size = sectors(size, "a number of sectors in field 4")?;
    let write = match kind {
        b"0" => true,
        b"1" => false,
        _ => return Err(Bad::Expected("0 (write) or 1 (read) in field 5")),
    };
    Ok(basic(time, offset, size, write, device))
}
