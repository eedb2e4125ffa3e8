//! A power-protected write buffer: a page overwritten or trimmed while in it never reaches flash.
//!
//! Invariant: a page in the buffer has the map entry `beyond + slot`, an address that no RU has, and
//! its older copy on flash is dead. The buffer is first in, first out; an overwrite stays in its
//! slot, since a drive that destages in order does not reward it.

use crate::Error;
use crate::ftl::{Ftl, UNMAPPED};

/// What waits in a slot.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// The page, or [`UNMAPPED`] if it was trimmed meanwhile.
    page: u32,
    stream: u8,
    tag: u8,
}

#[derive(Clone, Debug)]
pub(crate) struct Buffer {
    slots: Vec<Slot>,
    capacity: usize,
    /// The oldest slot, once all are in use.
    oldest: usize,
    /// Page writes that ended in the buffer because a later one replaced them.
    pub absorbed: u64,
}

impl Buffer {
    pub fn new(pages: u32) -> Buffer {
        let capacity = pages as usize;
        Buffer { slots: Vec::with_capacity(capacity), capacity, oldest: 0, absorbed: 0 }
    }

    /// Takes a page write; the oldest page goes to flash if there is no room.
    pub fn write(&mut self, ftl: &mut Ftl, page: u32, stream: u8, tag: u8) -> Result<(), Error> {
        let new = Slot { page, stream, tag };
        let entry = ftl.l2p[page as usize];
        let beyond = ftl.beyond();
        if entry != UNMAPPED && entry >= beyond {
            self.slots[(entry - beyond) as usize] = new;
            self.absorbed += 1;
            return Ok(());
        }
        let slot = if self.slots.len() < self.capacity {
            self.slots.push(new);
            self.slots.len() - 1
        } else {
            let slot = self.oldest;
            self.oldest = if slot + 1 == self.capacity { 0 } else { slot + 1 };
            let old = std::mem::replace(&mut self.slots[slot], new);
            if old.page != UNMAPPED {
                let run = crate::ftl::Run { end: 1, stream: old.stream, tag: old.tag };
                ftl.write(&[old.page], &[run], &[])?;
            }
            slot
        };
        ftl.unmap(page, beyond + slot as u32);
        Ok(())
    }

    /// The map entry of a trimmed page was `entry`: forget the slot if it was one.
    pub fn trimmed(&mut self, ftl: &Ftl, entry: u32) {
        if entry != UNMAPPED && entry >= ftl.beyond() {
            self.slots[(entry - ftl.beyond()) as usize].page = UNMAPPED;
        }
    }
}
