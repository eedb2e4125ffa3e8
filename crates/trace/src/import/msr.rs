//! MSR Cambridge: `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`, e.g.
//! `128166372003061629,hm,0,Write,7014912,4096,26`. Time in Windows' FILETIME (100 ns since 1601),
//! offset and size in bytes (SNIA IOTTA trace set 388).

use crate::import::field::{Bad, Parsed, is_blank, number};
use crate::import::sink::basic;

const LINE: &str = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime";

#[inline]
pub(crate) fn parse(line: &[u8]) -> Result<Parsed<'_>, Bad> {
    if is_blank(line) || line == LINE.as_bytes() {
        return Ok(Parsed::Nothing);
    }
    // host and disk are one name, and adjacent
    let mut fields = line.split(|byte| *byte == b',');
    let mut next = || fields.next().ok_or(Bad::Expected(LINE));
    let (time, host, disk, kind, offset, size) =
        (next()?, next()?, next()?, next()?, next()?, next()?);
    next()?;
    if next().is_ok() {
        return Err(Bad::Expected(LINE));
    }
    let device = &line[time.len() + 1..time.len() + 2 + host.len() + disk.len()];
    let time = number(time, "a FILETIME (100 ns since 1601) in field 1")?;
    let time = time.checked_mul(100).ok_or(Bad::Overflow("time"))?;
    let offset = number(offset, "an offset in bytes in field 5")?;
    let size = number(size, "a size in bytes in field 6")?;
    let write = match kind {
        b"Write" => true,
        b"Read" => false,
        _ if kind.eq_ignore_ascii_case(b"write") => true,
        _ if kind.eq_ignore_ascii_case(b"read") => false,
        _ => return Err(Bad::Expected("`Read` or `Write` in field 4")),
    };
    Ok(basic(time, offset, size, write, device))
}
