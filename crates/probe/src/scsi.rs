//! Replies of SCSI and UFS drives, decoded as `drivers/scsi/sd.c` does it.
//!
//! Invariant: pure functions over bytes; any bytes end in a value or in [`Malformed`]. Pages are
//! those of SBC-5.

use crate::bytes::{Malformed, Reply};

/// VPD page B7h, Block Limits Extension: whether byte 5 bit 0 (RSCS, reduced stream control) is set.
///
/// # Errors
///
/// [`Malformed`] if the page is shorter than six bytes.
pub fn reduced_stream_control(page: &[u8]) -> Result<bool, Malformed> {
    Ok(Reply::new("VPD page B7h (block limits extension)", page).u8(5)? & 1 == 1)
}

/// Mode page 0Ah/05h, I/O Advice Hints Grouping, with the header of MODE SENSE(10): whether each
/// stream's descriptor is enabled (ST_ENBLE), in the order of stream identifiers.
///
/// # Errors
///
/// [`Malformed`] if the header is cut. Descriptors that the header promises and the reply lacks are
/// left out, as the kernel does.
pub fn advice_groups(reply: &[u8]) -> Result<Vec<bool>, Malformed> {
    let reply = Reply::new("mode page 0Ah/05h (I/O advice hints grouping)", reply);
    // MODE DATA LENGTH does not count itself; then 6 more bytes of header, then block descriptors.
    let length = (usize::from(reply.be16(0)?) + 2).min(reply.len());
    let descriptors = usize::from(reply.be16(6)?);
    let first = 8 + descriptors + 16;
    let mut found = Vec::new();
    let mut at = first;
    while at + 16 <= length {
        found.push(reply.u8(at)? >> 2 & 1 == 1);
        at += 16;
    }
    Ok(found)
}

/// Log page 19h, subpage `group` (1 to 31), Group Statistics and Performance (SPC-5): write commands of
/// that group; `None` if the reply is another page.
///
/// # Errors
///
/// [`Malformed`] if it is cut.
pub fn group_writes(page: &[u8], group: u8) -> Result<Option<u64>, Malformed> {
    let reply = Reply::new("log page 19h (group statistics)", page);
    let other = reply.u8(0)? & 0x3f != 0x19 || reply.u8(1)? != group || reply.be16(4)? != 1;
    if other { Ok(None) } else { reply.take(4 + 12).map(u64::from_be_bytes).map(Some) }
}

/// GET STREAM STATUS for one stream: whether its first descriptor has PERM set.
///
/// # Errors
///
/// [`Malformed`] if the reply is cut inside what its length promises.
pub fn is_permanent(reply: &[u8]) -> Result<bool, Malformed> {
    let reply = Reply::new("GET STREAM STATUS", reply);
    if reply.be32(0)? < 8 {
        return Ok(false);
    }
    Ok(reply.u8(8)? >> 7 == 1)
}
