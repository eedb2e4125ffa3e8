//! CSV whose first line names the columns, in any order (`docs/import.md`): `offset` and `length`
//! must be there; exactly one time may be; a column of another name is an error, so that no spelling
//! mistake loses data in silence.
//!
//! Fields may stand in double quotes (RFC 4180); a quoted field holds no line break.

use shelflife_lifetime::Lifetime;

use crate::class::FileClass;
use crate::event::{Flags, Op};
use crate::import::field::{Bad, Kind, Parsed, Record, decimal, is_blank, number};
use crate::import::sink::Epoch;

/// What a column means.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Column {
    Time { ns: u64, unix: bool },
    Op,
    Offset,
    Length,
    Hint,
    Stream,
    Flags,
    Device,
    Process,
    Class,
    Path,
}

const COLUMNS: [(&str, Column); 16] = [
    ("time_ns", Column::Time { ns: 1, unix: false }),
    ("time_us", Column::Time { ns: 1_000, unix: false }),
    ("time_ms", Column::Time { ns: 1_000_000, unix: false }),
    ("time_s", Column::Time { ns: 1_000_000_000, unix: false }),
    ("unix_ns", Column::Time { ns: 1, unix: true }),
    ("unix_us", Column::Time { ns: 1_000, unix: true }),
    ("unix_s", Column::Time { ns: 1_000_000_000, unix: true }),
    ("op", Column::Op),
    ("offset", Column::Offset),
    ("length", Column::Length),
    ("hint", Column::Hint),
    ("stream", Column::Stream),
    ("flags", Column::Flags),
    ("device", Column::Device),
    ("process", Column::Process),
    ("class", Column::Class),
];

fn header(line: &[u8]) -> Result<Vec<Column>, String> {
    let text = std::str::from_utf8(line).map_err(|_| "expected a header of column names")?;
    let mut columns = Vec::new();
    for name in text.trim().split(',') {
        let name = name.trim().trim_matches('"');
        let known = COLUMNS.into_iter().chain([("path", Column::Path)]).find(|(n, _)| *n == name);
        let Some((_, column)) = known else {
            let all: Vec<&str> = COLUMNS.iter().map(|(n, _)| *n).chain(["path"]).collect();
            return Err(format!("no column is called `{name}`; there are {}", all.join(", ")));
        };
        let kind = std::mem::discriminant(&column);
        if columns.iter().any(|c| std::mem::discriminant(c) == kind) {
            return Err(format!("column `{name}` (or another time) is there twice"));
        }
        columns.push(column);
    }
    if !columns.contains(&Column::Offset) || !columns.contains(&Column::Length) {
        return Err("a header of column names must have `offset` and `length`".to_owned());
    }
    Ok(columns)
}

/// Whether a line is a header of this format.
pub(crate) fn is_header(line: &[u8]) -> bool {
    header(line).is_ok()
}

/// What the times of a file that begins with `head` are counted from.
pub(crate) fn epoch(head: &[u8]) -> Epoch {
    let first = head.split(|byte| *byte == b'\n').find(|line| !is_blank(line));
    let columns = first.and_then(|line| header(line).ok()).unwrap_or_default();
    match columns.iter().find(|column| matches!(column, Column::Time { .. })) {
        Some(Column::Time { unix: true, .. }) => Epoch::Unix,
        _ => Epoch::Own,
    }
}

#[derive(Debug, Default)]
pub(crate) struct State {
    columns: Vec<Column>,
    /// Unquoted fields of the line.
    unquoted: Vec<Vec<u8>>,
}

impl State {
    #[inline]
    pub(crate) fn parse<'l>(&'l mut self, line: &'l [u8]) -> Result<Parsed<'l>, Bad> {
        if is_blank(line) {
            return Ok(Parsed::Nothing);
        }
        if self.columns.is_empty() {
            self.columns = header(line).map_err(Bad::Header)?;
            return Ok(Parsed::Nothing);
        }
        let quoted = memchr::memchr(b'"', line).is_some();
        if quoted {
            unquote(line, &mut self.unquoted)?;
            let fields = self.unquoted.iter().map(Vec::as_slice);
            return record(&self.columns, fields);
        }
        record(&self.columns, line.split(|byte| *byte == b','))
    }
}

fn record<'l>(
    columns: &[Column],
    mut fields: impl Iterator<Item = &'l [u8]>,
) -> Result<Parsed<'l>, Bad> {
    let mut record = Record { kind: Kind::Do(Op::Write), ..Record::default() };
    let (mut class, mut path) = (FileClass::Unknown, &b""[..]);
    for column in columns {
        let field = fields.next().ok_or(Bad::Expected("as many fields as the header has"))?;
        let field = field.trim_ascii();
        let text = || std::str::from_utf8(field).unwrap_or("\u{fffd}");
        match column {
            Column::Time { ns, .. } => record.time = decimal(field, *ns, "a time")?,
            Column::Op => {
                record.kind = match field {
                    b"write" | b"W" | b"w" => Kind::Do(Op::Write),
                    b"discard" | b"D" | b"trim" => Kind::Do(Op::Discard),
                    b"write-zeroes" => Kind::Do(Op::WriteZeroes),
                    b"read" | b"R" | b"r" => Kind::Read,
                    b"flush" => Kind::Flush,
                    _ => {
                        return Err(Bad::Expected(
                            "write, discard, write-zeroes, read or flush in column `op`",
                        ));
                    }
                }
            }
            Column::Offset => record.offset = number(field, "bytes in column `offset`")?,
            Column::Length => record.length = number(field, "bytes in column `length`")?,
            Column::Hint => {
                let number = match field {
                    [digit @ b'0'..=b'5'] => Lifetime::from_raw(u64::from(digit - b'0')),
                    b"" => Some(Lifetime::NotSet),
                    _ => text().parse().ok(),
                };
                record.hint = number
                    .ok_or(Bad::Expected("a lifetime (short, …) or 0 to 5 in column `hint`"))?;
            }
            Column::Stream => {
                const STREAM: &str = "0 to 255 in column `stream`";
                let stream = if field.is_empty() { 0 } else { number(field, STREAM)? };
                record.stream = u8::try_from(stream).map_err(|_| Bad::Expected(STREAM))?;
            }
            Column::Flags => {
                let flags = text().parse::<Flags>();
                record.flags = flags
                    .map_err(|_| Bad::Expected("sync, meta and fua, joined by +, in `flags`"))?;
            }
            Column::Device => record.device = field,
            Column::Process => record.process = field,
            Column::Class => {
                if !field.is_empty() {
                    let known = text().parse::<FileClass>();
                    class =
                        known.map_err(|_| Bad::Expected("a class of files in column `class`"))?;
                }
            }
            Column::Path => path = field,
        }
    }
    if fields.next().is_some() {
        return Err(Bad::Expected("as many fields as the header has"));
    }
    record.file = Some((class, path));
    Ok(Parsed::Record(record))
}

fn unquote(line: &[u8], fields: &mut Vec<Vec<u8>>) -> Result<(), Bad> {
    const QUOTES: &str = "a closing quote, then a comma";
    fields.clear();
    let mut rest = line;
    loop {
        let mut field = Vec::new();
        if let Some(inner) = rest.strip_prefix(b"\"") {
            rest = inner;
            loop {
                let quote = memchr::memchr(b'"', rest).ok_or(Bad::Expected(QUOTES))?;
                field.extend_from_slice(&rest[..quote]);
                rest = &rest[quote + 1..];
                match rest.strip_prefix(b"\"") {
                    // two quotes are one
                    Some(after) => {
                        field.push(b'"');
                        rest = after;
                    }
                    None => break,
                }
            }
        } else {
            let end = memchr::memchr(b',', rest).unwrap_or(rest.len());
            field.extend_from_slice(&rest[..end]);
            rest = &rest[end..];
        }
        fields.push(field);
        match rest {
            [] => return Ok(()),
            [b',', after @ ..] => rest = after,
            _ => return Err(Bad::Expected(QUOTES)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_say_what_is_wrong() {
        assert_eq!(header(b"offset,length").unwrap().len(), 2);
        for (bad, said) in [
            (&b"offset"[..], "must have"),
            (b"offset,length,size", "called `size`"),
            (b"offset,length,offset", "twice"),
            (b"time_ns,unix_ns,offset,length", "twice"),
        ] {
            let error = header(bad).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn quotes_follow_rfc_4180() {
        let mut fields = Vec::new();
        unquote(br#"1,"a,""b""",c"#, &mut fields).unwrap();
        assert_eq!(fields, [&b"1"[..], br#"a,"b""#, b"c"]);
        assert!(unquote(br#""a"#, &mut fields).is_err());
        assert!(unquote(br#""a"b"#, &mut fields).is_err());
    }
}
