//! Pages are looked at before the Parquet library decodes them.
//!
//! Invariant: no page reaches a decoder with sizes that contradict each other. The library
//! (parquet 60.1) panics in `DeltaBitPackDecoder::get` on a page that has values while its encoded
//! header counts none, in `join_streams_const` on a page of split bytes that is shorter than its
//! values, and in `PlainDecoder` on texts that are cut off or fewer than the levels say; all found
//! by `any_byte_of_a_segment_may_be_wrong`.

use std::ops::Range;

use parquet::basic::Encoding;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};

/// The largest page, decompressed, that is decoded: ours have at most a megabyte.
const MAX_PAGE: usize = 256 << 20;
/// The largest block of differences; writers use 128 or 256.
const MAX_BLOCK: u64 = 1 << 16;

/// A page reader that lets only sound pages through.
pub(crate) struct Guarded {
    pub(crate) inner: Box<dyn PageReader>,
    /// Whether the column's values may be null.
    pub(crate) nullable: bool,
    /// Bytes of a value of the column; 0 for text.
    pub(crate) width: usize,
    /// Whether the dictionary came by, which must be once and first.
    pub(crate) dictionary: bool,
}

impl Guarded {
    fn check(&mut self, page: &Page) -> Result<()> {
        let (buf, values, encoding, levels) = match page {
            Page::DictionaryPage { buf, num_values, .. } => {
                if std::mem::replace(&mut self.dictionary, true) {
                    return Err(bad("a column has two dictionaries"));
                }
                let values = *num_values as usize;
                let whole = match self.width {
                    0 => plain_texts(buf) == Some(values),
                    width => values.checked_mul(width).is_some_and(|bytes| bytes <= buf.len()),
                };
                return match whole && buf.len() <= MAX_PAGE {
                    true => Ok(()),
                    false => Err(bad("a dictionary has not the values that it states")),
                };
            }
            Page::DataPage { buf, num_values, encoding, .. } => {
                let levels = if self.nullable { level_bytes(buf) } else { Some(0..0) };
                let levels = levels.ok_or_else(|| bad("the levels of a page are cut off"))?;
                (buf, *num_values, *encoding, levels)
            }
            Page::DataPageV2 {
                buf,
                num_values,
                num_nulls,
                encoding,
                def_levels_byte_len,
                rep_levels_byte_len,
                ..
            } => {
                if *rep_levels_byte_len != 0 || (*def_levels_byte_len != 0 && !self.nullable) {
                    return Err(bad("a flat column has levels"));
                }
                if num_nulls > num_values {
                    return Err(bad("a page states more nulls than values"));
                }
                (buf, *num_values, *encoding, 0..*def_levels_byte_len as usize)
            }
        };
        if buf.len() > MAX_PAGE {
            return Err(bad("a page has more than 256 MiB"));
        }
        let (Some(data), Some(levels)) = (buf.get(levels.end..), buf.get(levels)) else {
            return Err(bad("the levels of a page are longer than the page"));
        };
        match encoding {
            Encoding::PLAIN if self.width == 0 => {
                let there = match self.nullable {
                    true => set_levels(levels, values as usize),
                    false => Some(values as usize),
                };
                match there.is_some() && plain_texts(data) == there {
                    true => Ok(()),
                    false => Err(bad("a page of texts has not the values that it states")),
                }
            }
            Encoding::PLAIN => Ok(()),
            Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY => match self.dictionary {
                true => Ok(()),
                false => Err(bad("a page needs a dictionary that is not there")),
            },
            Encoding::BYTE_STREAM_SPLIT if !self.nullable && self.width > 0 => {
                match (values as usize).checked_mul(self.width) == Some(data.len()) {
                    true => Ok(()),
                    false => Err(bad("a page of split bytes has not the length of its values")),
                }
            }
            Encoding::DELTA_BINARY_PACKED if !self.nullable => {
                let stated = delta_header(data);
                match stated {
                    Some((block, count)) if block <= MAX_BLOCK && count == u64::from(values) => {
                        Ok(())
                    }
                    _ => Err(bad("a page of differences contradicts its header")),
                }
            }
            other => Err(bad(&format!("encoding {other:?} is not read in this column"))),
        }
    }
}

fn bad(reason: &str) -> ParquetError {
    ParquetError::General(reason.to_owned())
}

/// Where the levels of a page of version 1 lie: behind their length.
fn level_bytes(buf: &[u8]) -> Option<Range<usize>> {
    let length = u32::from_le_bytes(*buf.first_chunk()?) as usize;
    let end = length.checked_add(4)?;
    (end <= buf.len()).then_some(4..end)
}

/// How many texts, each behind its length, are there; `None` if the last is cut off.
fn plain_texts(mut data: &[u8]) -> Option<usize> {
    let mut count = 0;
    while !data.is_empty() {
        let length = u32::from_le_bytes(*data.first_chunk()?) as usize;
        data = data.get(length.checked_add(4)?..)?;
        count += 1;
    }
    Some(count)
}

/// How many of `values` levels of one bit are set; `None` if they are cut off.
fn set_levels(mut levels: &[u8], values: usize) -> Option<usize> {
    let (mut left, mut set) = (values, 0);
    while left > 0 {
        let header = varint(&mut levels)?;
        if header & 1 == 1 {
            // groups of eight bits
            for _ in 0..header >> 1 {
                let (byte, after) = levels.split_first()?;
                levels = after;
                let many = left.min(8);
                let mask = ((1u16 << many) - 1) as u8;
                set += (byte & mask).count_ones() as usize;
                left -= many;
            }
        } else {
            let (value, after) = levels.split_first()?;
            levels = after;
            let run = left.min(usize::try_from(header >> 1).ok()?);
            if run == 0 {
                return None;
            }
            set += if *value == 1 { run } else { 0 };
            left -= run;
        }
    }
    Some(set)
}

/// Values of a block and of the page, as the encoded header states them.
fn delta_header(data: &[u8]) -> Option<(u64, u64)> {
    let mut rest = data;
    let block = varint(&mut rest)?;
    let _blocks = varint(&mut rest)?;
    Some((block, varint(&mut rest)?))
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..63).step_by(7) {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

impl Iterator for Guarded {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Result<Page>> {
        self.get_next_page().transpose()
    }
}

impl PageReader for Guarded {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.inner.get_next_page()?;
        if let Some(page) = &page {
            self.check(page)?;
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.inner.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.inner.skip_next_page()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_levels_are_counted() {
        // a run of 5 ones, a group of 8 with 3 ones, a run of 2 zeroes
        let levels = [5 << 1, 1, 1 << 1 | 1, 0b0010_0101, 2 << 1, 0];
        assert_eq!(set_levels(&levels, 15), Some(8));
        assert_eq!(set_levels(&levels, 6), Some(6));
        assert_eq!(set_levels(&levels, 16), None);
        assert_eq!(set_levels(&[0, 1], 1), None);
        assert_eq!(set_levels(&[], 0), Some(0));
    }

    #[test]
    fn texts_are_counted_to_the_last_byte() {
        assert_eq!(plain_texts(b"\x01\0\0\0a\0\0\0\0"), Some(2));
        assert_eq!(plain_texts(b"\x02\0\0\0a"), None);
        assert_eq!(plain_texts(b"\xff\xff\xff\xff"), None);
        assert_eq!(plain_texts(b"\0\0\0"), None);
    }
}
