//! Alibaba 2020: `device_id,opcode,offset,length,timestamp`, e.g.
//! `0,R,126703644672,4096,1577808000000626`. Opcode `R` or `W`, bytes, bytes, microseconds since
//! 1970 (github.com/alibaba/block-traces).

use crate::import::field::{Bad, Parsed, commas, is_blank, number};
use crate::import::sink::basic;

const LINE: &str = "device_id,opcode,offset,length,timestamp";

#[inline]
pub(crate) fn parse(line: &[u8]) -> Result<Parsed<'_>, Bad> {
    if is_blank(line) || line == LINE.as_bytes() {
        return Ok(Parsed::Nothing);
    }
    let [device, opcode, offset, length, time] = commas(line).ok_or(Bad::Expected(LINE))?;
    number(device, "a number of a device in field 1")?;
    let write = match opcode {
        b"W" => true,
        b"R" => false,
        _ => return Err(Bad::Expected("`R` or `W` in field 2")),
    };
    let offset = number(offset, "an offset in bytes in field 3")?;
    let length = number(length, "a length in bytes in field 4")?;
    let time = number(time, "microseconds since 1970 in field 5")?;
    let time = time.checked_mul(1000).ok_or(Bad::Overflow("time"))?;
    Ok(basic(time, offset, length, write, device))
}
