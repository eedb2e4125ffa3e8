//! The table of a device-mapper device, decoded from the ioctl's buffer.
//!
//! Invariant: any bytes end in a value or in [`Malformed`].

use crate::bytes::{Malformed, Reply};

/// Names of the targets of a table: the answer of `DM_TABLE_STATUS` (`include/uapi/linux/dm-ioctl.h`)
/// from its first byte. That of `raid` comes with its level: `raid raid1`.
///
/// # Errors
///
/// [`Malformed`] if a target lies outside the buffer.
pub fn targets(buffer: &[u8]) -> Result<Vec<String>, Malformed> {
    let reply = Reply::new("device-mapper table", buffer);
    let start = reply.le32(16)? as usize;
    // The count is the kernel's word; each turn moves on or ends.
    let count = reply.le32(20)?;
    let (mut at, mut found) = (start, Vec::new());
    for _ in 0..count {
        let mut target = reply.text(at.saturating_add(24), 16)?;
        let arguments = at.saturating_add(40);
        if target == "raid" && arguments < reply.len() {
            let arguments = reply.text(arguments, (reply.len() - arguments).min(32))?;
            let level = arguments.split(' ').next().unwrap_or("");
            // raid5_ls, raid6_zr: the layout does not matter here.
            target = format!("raid {}", level.split('_').next().unwrap_or(""));
        }
        found.push(target);
        let next = start.saturating_add(reply.le32(at.saturating_add(20))? as usize);
        if next <= at {
            break;
        }
        at = next;
    }
    Ok(found)
}
