//! Globs over the bytes of a path.
//!
//! `*` and `?` stop at `/`, `**` does not, `[a-z]` and `[!a-z]` are sets, `\` takes the next byte
//! literally. Invariant: a match takes at most O(pattern × text²) steps and no memory. (`globset`
//! compiles to an automaton, which needs an allocator, and the hook must not disagree with the
//! command line about what a rule means.)

use core::fmt;

/// A path in up to two pieces, matched as if joined by `/`: the hook knows the data folder and
/// the rest and has no room to join them.
#[derive(Clone, Copy, Debug)]
pub struct Text<'t> {
    head: &'t [u8],
    tail: &'t [u8],
}

impl<'t> Text<'t> {
    /// A path in one piece.
    pub const fn whole(path: &'t [u8]) -> Text<'t> {
        Text { head: b"", tail: path }
    }

    /// `folder`, a slash, and `rest`; an empty `folder` stands for no folder at all.
    pub const fn joined(folder: &'t [u8], rest: &'t [u8]) -> Text<'t> {
        Text { head: folder, tail: rest }
    }

    fn len(&self) -> usize {
        if self.head.is_empty() { self.tail.len() } else { self.head.len() + 1 + self.tail.len() }
    }

    fn at(&self, index: usize) -> Option<u8> {
        if self.head.is_empty() {
            return self.tail.get(index).copied();
        }
        match index.checked_sub(self.head.len()) {
            None => self.head.get(index).copied(),
            Some(0) => Some(b'/'),
            Some(beyond) => self.tail.get(beyond - 1).copied(),
        }
    }
}

/// What is wrong with a glob, and at which byte of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct GlobError {
    /// Byte offset into the pattern.
    pub at: usize,
    /// What was wrong there.
    pub what: &'static str,
}

impl fmt::Display for GlobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {} of the glob", self.what, self.at + 1)
    }
}

impl core::error::Error for GlobError {}

/// Checks a glob, as [`matches()`] will read it.
///
/// # Errors
///
/// Empty, with a NUL, `..` component, unclosed `[`, empty or reversed set, or trailing `\`.
pub fn check_glob(pattern: &[u8]) -> Result<(), GlobError> {
    if pattern.is_empty() {
        return Err(GlobError { at: 0, what: "an empty glob matches nothing" });
    }
    if let Some(at) = pattern.iter().position(|&b| b == 0) {
        return Err(GlobError { at, what: "a path has no NUL byte" });
    }
    if crate::path::climbs(pattern) {
        return Err(GlobError { at: 0, what: "a glob with a `..` component matches nothing" });
    }
    let mut at = 0;
    while at < pattern.len() {
        let token = Token::read(&|i| pattern.get(i).copied(), at);
        match token {
            Some((Token::Bad(what), _)) => return Err(GlobError { at, what }),
            Some((_, next)) => at = next,
            None => break,
        }
    }
    Ok(())
}

enum Token {
    Byte(u8),
    Any,
    Star,
    Globstar,
    /// A set: where its members begin and end, and whether it is inverted.
    Set(usize, usize, bool),
    Bad(&'static str),
}

impl Token {
    /// The token at `at` and where the next one begins; `None` at the end of the pattern.
    fn read(pattern: &impl Fn(usize) -> Option<u8>, at: usize) -> Option<(Token, usize)> {
        Some(match pattern(at)? {
            b'*' if pattern(at + 1) == Some(b'*') => {
                // "**/" also matches no folder at all: the slash belongs to the token.
                let opens = at == 0 || pattern(at - 1) == Some(b'/');
                if opens && pattern(at + 2) == Some(b'/') {
                    (Token::Globstar, at + 3)
                } else if opens && pattern(at + 2).is_none() {
                    (Token::Globstar, at + 2)
                } else {
                    (Token::Bad("`**` must be a whole component"), at + 2)
                }
            }
            b'*' => (Token::Star, at + 1),
            b'?' => (Token::Any, at + 1),
            b'\\' => match pattern(at + 1) {
                Some(byte) => (Token::Byte(byte), at + 2),
                None => (Token::Bad("nothing follows the `\\`"), at + 1),
            },
            b'[' => {
                let inverted = pattern(at + 1) == Some(b'!');
                let begin = at + 1 + usize::from(inverted);
                let mut end = begin;
                loop {
                    match pattern(end) {
                        None | Some(b'/') => return Some((Token::Bad("`[` is not closed"), end)),
                        Some(b']') if end > begin => break,
                        Some(b']') => return Some((Token::Bad("the set is empty"), end + 1)),
                        Some(low) => match (pattern(end + 1), pattern(end + 2)) {
                            (Some(b'-'), Some(high)) if high != b']' => {
                                if high < low {
                                    return Some((Token::Bad("the range runs backwards"), end + 3));
                                }
                                end += 3;
                            }
                            _ => end += 1,
                        },
                    }
                }
                (Token::Set(begin, end, inverted), end + 1)
            }
            byte => (Token::Byte(byte), at + 1),
        })
    }
}

fn in_set(pattern: &impl Fn(usize) -> Option<u8>, begin: usize, end: usize, byte: u8) -> bool {
    let mut at = begin;
    while at < end {
        let Some(low) = pattern(at) else { return false };
        match (pattern(at + 1), pattern(at + 2)) {
            (Some(b'-'), Some(high)) if at + 2 < end => {
                if (low..=high).contains(&byte) {
                    return true;
                }
                at += 3;
            }
            _ => {
                if low == byte {
                    return true;
                }
                at += 1;
            }
        }
    }
    false
}

/// Whether the glob `pattern`, a function from index to byte, matches all of `text`.
///
/// With `anywhere`, a match may begin at any component, as if `**/` stood before the pattern.
/// A malformed pattern matches nothing.
pub fn matches(pattern: impl Fn(usize) -> Option<u8>, text: Text<'_>, anywhere: bool) -> bool {
    let end = text.len();
    let (mut p, mut t) = (0, 0);
    // Where to go on after a mismatch: (pattern after the star, text that the star may still
    // take). The last star of a component and the last globstar suffice: what stands before
    // them has matched, and they can take whatever an earlier one could have given up.
    let mut star: Option<(usize, usize)> = None;
    let mut globstar: Option<(usize, usize)> = anywhere.then_some((0, 0));
    loop {
        let token = Token::read(&pattern, p);
        let byte = text.at(t);
        let step = match token {
            None if t == end => return true,
            Some((Token::Star, next)) => {
                star = Some((next, t));
                p = next;
                continue;
            }
            Some((Token::Globstar, next)) => {
                if pattern(next).is_none() && pattern(next - 1) == Some(b'*') {
                    // a trailing globstar wants at least one component
                    return t < end;
                }
                globstar = Some((next, t));
                star = None;
                p = next;
                continue;
            }
            None | Some((Token::Bad(_), _)) => None,
            Some((Token::Byte(want), next)) => (byte == Some(want)).then_some(next),
            Some((Token::Any, next)) => byte.is_some_and(|b| b != b'/').then_some(next),
            Some((Token::Set(begin, close, inverted), next)) => byte
                .is_some_and(|b| b != b'/' && in_set(&pattern, begin, close, b) != inverted)
                .then_some(next),
        };
        if let Some(next) = step {
            (p, t) = (next, t + 1);
            continue;
        }
        if let Some((after, from)) = star
            && text.at(from).is_some_and(|b| b != b'/')
        {
            star = Some((after, from + 1));
            (p, t) = (after, from + 1);
            continue;
        }
        star = None;
        if let Some((after, from)) = globstar {
            // on to the next component
            let mut next = from;
            while next < end && text.at(next) != Some(b'/') {
                next += 1;
            }
            if next < end {
                globstar = Some((after, next + 1));
                (p, t) = (after, next + 1);
                continue;
            }
        }
        return false;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn glob(pattern: &str, text: &str) -> bool {
        check_glob(pattern.as_bytes()).expect("a good glob");
        matches(|i| pattern.as_bytes().get(i).copied(), Text::whole(text.as_bytes()), false)
    }

    #[test]
    fn stars_stop_at_slashes_and_globstars_do_not() {
        assert!(glob("*.log", "x.log"));
        assert!(!glob("*.log", "a/x.log"));
        assert!(glob("**/*.log", "x.log"));
        assert!(glob("**/*.log", "a/b/x.log"));
        assert!(glob("/srv/**", "/srv/a/b"));
        assert!(!glob("/srv/**", "/srv"));
        assert!(glob("/srv/**/x", "/srv/x"));
        assert!(glob("/srv/**/x", "/srv/a/b/x"));
        assert!(!glob("/srv/**/x", "/srv/a/b/xy"));
        assert!(glob("a*b*c", "aXXbYYbZc"));
        assert!(glob("**/a*/b?c", "z/axx/q/a1/bXc"));
        assert!(glob("[0-9][!0-9]", "7x"));
        assert!(!glob("[!a]", "/"));
        assert!(glob("a\\*b", "a*b"));
        assert!(!glob("a\\*b", "axb"));
    }

    #[test]
    fn anywhere_begins_at_any_component() {
        let at =
            |text: &str| matches(|i| b"wal/*".get(i).copied(), Text::whole(text.as_bytes()), true);
        assert!(at("wal/1") && at("/x/wal/1"));
        assert!(!at("/x/mywal/1") && !at("/x/wal/1/2"));
    }

    #[test]
    fn two_pieces_match_as_one() {
        let text = Text::joined(b"/data", b"base/1/2");
        assert!(matches(|i| b"/data/base/*/2".get(i).copied(), text, false));
        assert!(!matches(|i| b"/database/*/2".get(i).copied(), text, false));
    }

    #[test]
    fn bad_globs_are_named() {
        for (bad, at) in [("", 0), ("a[", 1), ("a[]", 1), ("[z-a]", 0), ("a\\", 1), ("a**", 1)] {
            assert_eq!(check_glob(bad.as_bytes()).map_err(|e| e.at), Err(at), "{bad}");
        }
        assert!(check_glob(b"x/../y").is_err());
    }

    /// The obviously right matcher: every choice is tried.
    fn slow(pattern: &[u8], text: &[u8]) -> bool {
        match pattern {
            [] => text.is_empty(),
            [b'*', b'*', b'/', rest @ ..] => {
                slow(rest, text)
                    || (0..text.len()).any(|i| text[i] == b'/' && slow(rest, &text[i + 1..]))
            }
            [b'*', rest @ ..] => (0..=text.len())
                .take_while(|&i| i == 0 || text[i - 1] != b'/')
                .any(|i| slow(rest, &text[i..])),
            [b'?', rest @ ..] => !text.is_empty() && text[0] != b'/' && slow(rest, &text[1..]),
            [byte, rest @ ..] => text.first() == Some(byte) && slow(rest, &text[1..]),
        }
    }

    proptest! {
        #[test]
        fn the_fast_matcher_agrees_with_the_slow_one(
            pattern in "(\\*\\*/|[ab]|[ab]\\*?/|\\?){0,7}[ab*]?", text in "[ab/]{0,10}",
        ) {
            prop_assume!(check_glob(pattern.as_bytes()).is_ok());
            let fast = matches(
                |i| pattern.as_bytes().get(i).copied(), Text::whole(text.as_bytes()), false);
            prop_assert_eq!(fast, slow(pattern.as_bytes(), text.as_bytes()));
        }

        #[test]
        fn any_bytes_end(pattern in proptest::collection::vec(any::<u8>(), 0..40),
                         text in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = check_glob(&pattern);
            matches(|i| pattern.get(i).copied(), Text::whole(&text), true);
        }
    }
}
