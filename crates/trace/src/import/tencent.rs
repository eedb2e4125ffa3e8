//! Tencent CBS: `Timestamp,Offset,Size,IOType,VolumeID`, e.g. `1538323200,12910952,128,0,1063`.
//! Seconds since 1970, sectors of 512 bytes, sectors, 0 read and 1 write (SNIA IOTTA 27917).

use crate::import::field::{Bad, Parsed, commas, is_blank, number, sectors};
use crate::import::sink::basic;

const LINE: &str = "Timestamp,Offset,Size,IOType,VolumeID";
/// For detection: from 2001 to 2096.
const SECONDS: std::ops::Range<u64> = 1_000_000_000..4_000_000_000;

#[inline]
pub(crate) fn parse(line: &[u8]) -> Result<Parsed<'_>, Bad> {
    if is_blank(line) || line == LINE.as_bytes() {
        return Ok(Parsed::Nothing);
    }
    let [time, offset, size, kind, volume] = commas(line).ok_or(Bad::Expected(LINE))?;
    let time = number(time, "seconds since 1970 in field 1")?;
    let time = time.checked_mul(1_000_000_000).ok_or(Bad::Overflow("time"))?;
    let offset = sectors(offset, "an offset in sectors in field 2")?;
    let size = sectors(size, "a size in sectors in field 3")?;
    let write = match kind {
        b"1" => true,
        b"0" => false,
        _ => return Err(Bad::Expected("0 (read) or 1 (write) in field 4")),
    };
    number(volume, "a number of a volume in field 5")?;
    Ok(basic(time, offset, size, write, volume))
}

/// Whether the time is one of the years of such traces: five numbers alone say little.
pub(crate) fn plausible(line: &[u8]) -> bool {
    let time = commas::<5>(line).and_then(|fields| number(fields[0], "").ok());
    time.is_some_and(|time| SECONDS.contains(&time))
}
