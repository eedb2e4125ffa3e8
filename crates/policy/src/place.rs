//! Where in the text something stands.
//!
//! Invariant: lines and columns count from 1, columns in characters, so that an editor goes to
//! the same spot; asking for a place is cheap even when the whole text is one line.

use std::ops::Range;

use serde::Serialize;

/// A line and a column of a policy's text.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Place {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

/// Bytes between two marks of [`Places::characters`].
const STEP: usize = 1024;

/// Turns byte offsets of one text into places. The text need not be UTF-8: a byte that begins no
/// character counts for none.
pub(crate) struct Places<'t> {
    text: &'t [u8],
    line_begins: Vec<usize>,
    /// Characters before each multiple of [`STEP`] bytes.
    characters: Vec<usize>,
}

impl<'t> Places<'t> {
    pub(crate) fn new(text: &'t [u8]) -> Places<'t> {
        let newlines = text.iter().enumerate().filter(|(_, b)| **b == b'\n');
        let line_begins = std::iter::once(0).chain(newlines.map(|(at, _)| at + 1)).collect();
        let mut characters = vec![0];
        for block in text.chunks(STEP) {
            let before = characters.last().copied().unwrap_or(0);
            characters.push(before + count(block));
        }
        Places { text, line_begins, characters }
    }

    /// The place of byte `offset`; the end of the text for an offset beyond it.
    pub(crate) fn at(&self, offset: usize) -> Place {
        let offset = offset.min(self.text.len());
        let line = self.line_begins.partition_point(|&begin| begin <= offset);
        let begin = self.line_begins[line - 1];
        Place { line, column: self.characters_before(offset) - self.characters_before(begin) + 1 }
    }

    fn characters_before(&self, offset: usize) -> usize {
        let block = offset / STEP;
        self.characters[block] + count(&self.text[block * STEP..offset])
    }
}

fn count(bytes: &[u8]) -> usize {
    // all but UTF-8 continuation bytes
    bytes.iter().filter(|&&b| b & 0xc0 != 0x80).count()
}

/// Where byte `at` of the string `value` stands, if the TOML literal at `span` of `text` denotes
/// `value`; the literal's first byte where escapes make that a guess.
pub(crate) fn inside_string(text: &str, span: Range<usize>, value: &str, at: usize) -> usize {
    let begin = span.start;
    let Some(literal) = text.get(span) else { return begin };
    let opening = if literal.starts_with("\"\"\"") || literal.starts_with("'''") {
        // a newline right after the opening quotes is not part of the value
        let newline = literal[3..].starts_with("\r\n").then_some(2);
        3 + newline.unwrap_or(usize::from(literal[3..].starts_with('\n')))
    } else {
        1
    };
    let Some(body) = literal.get(opening..) else { return begin };
    if body.starts_with(value) {
        return begin + opening + at;
    }
    let (mut raw, mut decoded) = (0, 0);
    while decoded < at {
        let Some(rest) = body.get(raw..) else { return begin };
        let mut characters = rest.chars();
        let (Some(first), second) = (characters.next(), characters.next()) else { return begin };
        let Some(denoted) = value.get(decoded..).and_then(|v| v.chars().next()) else {
            return begin;
        };
        raw += match (first, second) {
            ('\\', Some('x')) => 4,
            ('\\', Some('u')) => 6,
            ('\\', Some('U')) => 10,
            ('\\', Some('\n' | '\r' | ' ' | '\t')) => return begin,
            ('\\', Some(_)) => 2,
            _ => first.len_utf8(),
        };
        decoded += denoted.len_utf8();
    }
    begin + opening + raw
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn columns_count_characters() {
        let places = Places::new("ä = 1\nb".as_bytes());
        assert_eq!(places.at(0), Place { line: 1, column: 1 });
        assert_eq!(places.at(2), Place { line: 1, column: 2 });
        assert_eq!(places.at(7), Place { line: 2, column: 1 });
        assert_eq!(places.at(99), Place { line: 2, column: 2 });
    }

    #[test]
    fn bytes_of_a_string_are_found_behind_escapes() {
        let find = |literal: &str, value: &str, at| {
            let text = format!("p = {literal}");
            inside_string(&text, 4..text.len(), value, at)
        };
        assert_eq!(find("'a[b'", "a[b", 1), 6);
        assert_eq!(find(r#""\\\\[b""#, r"\\[b", 2), 9);
        assert_eq!(find(r#""\u0061ä[""#, "aä[", 3), 13);
        assert_eq!(find("'''\na[b'''", "a[b", 1), 9);
        assert_eq!(find("\"\"\"a\\\n  [\"\"\"", "a[", 1), 8);
    }

    proptest! {
        #[test]
        fn a_place_is_what_counting_gives(text in "[aä\n]{0,3000}", at in 0usize..4000) {
            let mut at = at.min(text.len());
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            let before = &text[..at];
            let last = before.rsplit('\n').next().unwrap_or("");
            let counted = Place {
                line: before.matches('\n').count() + 1,
                column: last.chars().count() + 1,
            };
            prop_assert_eq!(Places::new(text.as_bytes()).at(at), counted);
        }
    }
}
