//! Lines of a reader, without copying those that lie whole in the buffer.
//!
//! Invariant: a line without end takes no more memory than the buffer.

use std::io::{ErrorKind, Read};

const BUFFER: usize = 256 << 10;
/// The longest line that is looked at.
pub(crate) const LONGEST: usize = 64 << 10;

/// A line's number, and its bytes if it is not too long.
pub(crate) type Line<'b> = (u64, Option<&'b [u8]>);

pub(crate) struct Lines<R> {
    reader: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    number: u64,
    ended: bool,
}

impl<R: Read> Lines<R> {
    pub(crate) fn new(reader: R) -> Lines<R> {
        Lines { reader, buffer: vec![0; BUFFER], start: 0, end: 0, number: 0, ended: false }
    }

    /// The next line's number, from 1, and the line without its end (`\n` or `\r\n`); no line for
    /// one that is too long.
    pub(crate) fn next(&mut self) -> std::io::Result<Option<Line<'_>>> {
        let mut searched = 0;
        loop {
            let held = &self.buffer[self.start..self.end];
            if let Some(at) = memchr::memchr(b'\n', &held[searched..]) {
                let line = self.start..self.start + searched + at;
                self.start = line.end + 1;
                self.number += 1;
                return Ok(Some((self.number, trimmed(&self.buffer[line]))));
            }
            searched = held.len();
            if self.ended {
                if held.is_empty() {
                    return Ok(None);
                }
                let line = self.start..self.end;
                self.start = self.end;
                self.number += 1;
                return Ok(Some((self.number, trimmed(&self.buffer[line]))));
            }
            if searched > LONGEST {
                self.pass_over()?;
                return Ok(Some((self.number, None)));
            }
            self.fill()?;
        }
    }

    fn fill(&mut self) -> std::io::Result<()> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        let read = loop {
            match self.reader.read(&mut self.buffer[self.end..]) {
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        self.ended = read == 0;
        self.end += read;
        Ok(())
    }

    /// To the end of a line that is too long.
    fn pass_over(&mut self) -> std::io::Result<()> {
        loop {
            match memchr::memchr(b'\n', &self.buffer[self.start..self.end]) {
                Some(at) => {
                    self.start += at + 1;
                    break;
                }
                None => {
                    self.start = self.end;
                    if self.ended {
                        break;
                    }
                    self.fill()?;
                }
            }
        }
        self.number += 1;
        Ok(())
    }
}

fn trimmed(line: &[u8]) -> Option<&[u8]> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    (line.len() <= LONGEST).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8]) -> Vec<Option<Vec<u8>>> {
        let mut lines = Lines::new(bytes);
        let mut found = Vec::new();
        while let Some((number, line)) = lines.next().unwrap() {
            found.push(line.map(<[u8]>::to_vec));
            assert_eq!(number, found.len() as u64);
        }
        found
    }

    #[test]
    fn ends_of_lines_and_of_the_input() {
        let lines = |bytes: &[u8]| -> Vec<Vec<u8>> { all(bytes).into_iter().flatten().collect() };
        assert_eq!(lines(b"a\nb\r\n\nc"), [&b"a"[..], b"b", b"", b"c"]);
        assert!(lines(b"").is_empty());
        assert_eq!(lines(b"\n"), [b""]);
    }

    #[test]
    fn a_line_without_end_is_passed_over() {
        let mut bytes = vec![b'x'; 3 * BUFFER];
        bytes.extend_from_slice(b"\nafter\n");
        assert_eq!(all(&bytes), [None, Some(b"after".to_vec())]);
        assert_eq!(all(&vec![b'x'; BUFFER]), [None]);
    }

    #[test]
    fn lines_across_the_buffer_are_whole() {
        let line = [b'y'; 1000];
        let bytes: Vec<u8> = (0..1000).flat_map(|_| line.iter().copied().chain([b'\n'])).collect();
        let found = all(&bytes);
        assert_eq!(found.len(), 1000);
        assert!(found.iter().all(|l| l.as_deref() == Some(&line[..])));
    }
}
