//! VMware's vscsiStats traces, little-endian records without a header.
//!
//! Version 1, 32 bytes: u32 number, u32 bytes, u32 segments, u16 command, u16 version (high byte 1),
//! u64 block of 512 bytes, u64 microseconds. Version 2, 40 bytes: u16 command, u16 version (high
//! byte 2), u32 number, u32 bytes, u32 segments, u64 block, u64 microseconds, u64 response time.
//! Commands are SCSI operation codes.

use std::io::Read;

use crate::error::Error;
use crate::event::Op;
use crate::import::Format;
use crate::import::field::{Bad, Kind, Parsed, Record};
use crate::import::sink::Sink;

/// Records read at once.
const AT_ONCE: usize = 8192;

pub(crate) const fn record_bytes(format: Format) -> usize {
    if matches!(format, Format::Vscsi2) { 40 } else { 32 }
}

pub(crate) fn read(
    mut reader: impl Read,
    format: Format,
    sink: &mut Sink<'_, '_>,
) -> Result<(), Error> {
    let size = record_bytes(format);
    let mut buffer = Vec::with_capacity(size * AT_ONCE);
    sink.line = 0;
    loop {
        buffer.clear();
        let full = (size * AT_ONCE) as u64;
        reader.by_ref().take(full).read_to_end(&mut buffer).map_err(|source| Error::Stream {
            action: "read",
            file: sink.file.clone(),
            source,
        })?;
        let records = buffer.chunks_exact(size);
        let rest = records.remainder();
        for record in records {
            sink.line += 1;
            sink.tick()?;
            if let Err(bad) = parse(record, format).and_then(|parsed| sink.accept(parsed)) {
                sink.bad(bad, record)?;
            }
            sink.settle()?;
        }
        if !rest.is_empty() {
            sink.line += 1;
            return sink.bad(Bad::Truncated(size), rest);
        }
        if buffer.is_empty() {
            return Ok(());
        }
    }
}

fn u16_at(record: &[u8], at: usize) -> u16 {
    record.get(at..at + 2).and_then(|b| b.try_into().ok()).map_or(0, u16::from_le_bytes)
}

fn u32_at(record: &[u8], at: usize) -> u32 {
    record.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_le_bytes)
}

fn u64_at(record: &[u8], at: usize) -> u64 {
    record.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes)
}

/// Whether a record says that it is of this version, and its command is one of SCSI's for disks.
pub(crate) fn plausible(record: &[u8], format: Format) -> bool {
    parse(record, format).is_ok_and(|parsed| matches!(parsed, Parsed::Record(_)))
}

#[inline]
pub(crate) fn parse(record: &[u8], format: Format) -> Result<Parsed<'static>, Bad> {
    let (command, version, expected, length, block, time) = match format {
        Format::Vscsi2 => {
            (0, u16_at(record, 2), 2, u32_at(record, 8), u64_at(record, 16), u64_at(record, 24))
        }
        _ => (12, u16_at(record, 14), 1, u32_at(record, 4), u64_at(record, 16), u64_at(record, 24)),
    };
    if version >> 8 != expected {
        return Err(Bad::Expected("the format's version in each record"));
    }
    let kind = match u16_at(record, command) {
        0x08 | 0x28 | 0x88 | 0xa8 => Kind::Read,
        0x0a | 0x2a | 0x8a | 0xaa => Kind::Do(Op::Write),
        // WRITE AND VERIFY writes as well
        0x2e | 0x8e | 0xae => Kind::Do(Op::Write),
        0x35 | 0x91 => Kind::Flush,
        _ => return Ok(Parsed::Other),
    };
    Ok(Parsed::Record(Record {
        time: time.checked_mul(1000).ok_or(Bad::Overflow("time"))?,
        offset: block.checked_mul(512).ok_or(Bad::Overflow("the block"))?,
        length: u64::from(length),
        kind,
        ..Record::default()
    }))
}
