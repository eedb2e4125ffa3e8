//! Which format is it?
//!
//! Invariant: a format is taken only if every line at the beginning of the file is one of it and
//! no other format fits as well; else the caller is asked.

use crate::error::Error;
use crate::import::field::{Parsed, is_blank};
use crate::import::{Format, Parser, blkparse, fio, generic, tencent, vscsi};

/// Lines that are looked at.
const LINES: usize = 50;

pub(crate) fn detect(head: &[u8], whole: bool, file: &str) -> Result<Format, Error> {
    let fits: Vec<Format> =
        Format::ALL.into_iter().filter(|format| fits(head, whole, *format)).collect();
    let reason = match fits.as_slice() {
        [format] => return Ok(*format),
        [] if head.is_empty() => "it is empty".to_owned(),
        [] if head.starts_with(b"fio version ") => "fio's log is read in version 2".to_owned(),
        [] if head.starts_with(b"PAR1") => {
            "it is a Parquet file; a trace of ours is a folder".to_owned()
        }
        [] => "no format fits its beginning".to_owned(),
        several => {
            let names: Vec<&str> = several.iter().map(|format| format.name()).collect();
            format!("its beginning fits {}", names.join(" and "))
        }
    };
    Err(Error::Format { file: file.to_owned(), reason })
}

fn fits(head: &[u8], whole: bool, format: Format) -> bool {
    if format.is_binary() {
        let records: Vec<&[u8]> =
            head.chunks_exact(vscsi::record_bytes(format)).take(LINES).collect();
        // a SCSI disk gets other commands now and then, but hardly at first
        let known = records.iter().filter(|record| vscsi::plausible(record, format)).count();
        let right = records.iter().all(|record| vscsi::parse(record, format).is_ok());
        return right && known > 0 && known * 4 >= records.len() * 3;
    }
    let end = match whole {
        true => head.len(),
        // the last line may be cut off
        false => memchr::memrchr(b'\n', head).unwrap_or(0),
    };
    let mut lines = head[..end]
        .split(|byte| *byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .filter(|line| !is_blank(line))
        .peekable();
    match format {
        Format::Csv => return lines.peek().is_some_and(|line| generic::is_header(line)),
        Format::Fio => return lines.peek().is_some_and(|l| l.trim_ascii_end() == fio::HEADER),
        _ => {}
    }
    let mut parser = match format {
        Format::Msr => Parser::Msr,
        Format::Alibaba => Parser::Alibaba,
        Format::Tencent => Parser::Tencent,
        Format::Blkparse => {
            Parser::Blkparse(blkparse::State::new(blkparse::only_completions(head)))
        }
        _ => Parser::Mqsim(None),
    };
    let (mut records, mut right) = (0, true);
    for line in lines.take(LINES) {
        match parser.parse(line) {
            Ok(Parsed::Record(_)) => records += 1,
            Ok(Parsed::Other) if format == Format::Blkparse => records += 1,
            Ok(_) => {}
            Err(_) => right = false,
        }
        let header = line.first().is_some_and(u8::is_ascii_alphabetic);
        right &= format != Format::Tencent || header || tencent::plausible(line);
    }
    right && records > 0
}
