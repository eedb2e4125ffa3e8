//! Paths as the hook sees them: bytes that a program passed to `open`.
//!
//! Invariant: nothing here resolves a link or asks the kernel; a path with a `..` component is
//! never taken for one inside a folder.

/// The components of a path, without empty ones and `.`.
pub fn components(path: &[u8]) -> Components<'_> {
    Components { rest: path, climbed: false }
}

/// Iterator over components, which also notices whether one was `..`. By hand and not by
/// `split` and `filter`: it runs at every `open`, and this takes half the time.
#[derive(Clone, Debug)]
pub struct Components<'p> {
    rest: &'p [u8],
    climbed: bool,
}

impl Components<'_> {
    /// Whether any component, of those taken and those left, is `..`.
    pub fn climbs(mut self) -> bool {
        while self.next().is_some() {}
        self.climbed
    }
}

impl<'p> Iterator for Components<'p> {
    type Item = &'p [u8];

    #[inline]
    fn next(&mut self) -> Option<&'p [u8]> {
        while !self.rest.is_empty() {
            let mut end = 0;
            while end < self.rest.len() && self.rest.get(end) != Some(&b'/') {
                end += 1;
            }
            let (part, rest) = self.rest.split_at_checked(end)?;
            self.rest = rest.get(1..).unwrap_or_default();
            match part {
                b"" | b"." => {}
                b".." => {
                    self.climbed = true;
                    return Some(part);
                }
                part => return Some(part),
            }
        }
        None
    }
}

/// Whether any component is `..`, which makes every textual judgement worthless.
pub fn climbs(path: &[u8]) -> bool {
    // Server paths hardly ever hold ".."; the cheap look comes first.
    path.windows(2).any(|w| w == b"..") && path.split(|&b| b == b'/').any(|c| c == b"..")
}

/// The part of the absolute `path` below the folder `root` (absolute, no slash at the end).
///
/// `None` if it is not below it. Textual: the caller gives `root` as the kernel spells it.
pub fn below<'p>(root: &[u8], path: &'p [u8]) -> Option<&'p [u8]> {
    if root.is_empty() || climbs(path) {
        return None;
    }
    match path.strip_prefix(root)? {
        [b'/', rest @ ..] => Some(rest),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn below_needs_a_whole_component() {
        assert_eq!(below(b"/data", b"/data/base/1/2"), Some(&b"base/1/2"[..]));
        assert_eq!(below(b"/data", b"/database/1/2"), None);
        assert_eq!(below(b"/data", b"/data"), None);
        assert_eq!(below(b"/data", b"/data/../etc/passwd"), None);
        assert_eq!(below(b"", b"/etc/passwd"), None);
    }

    #[test]
    fn only_a_whole_component_climbs() {
        assert!(climbs(b"../x"));
        assert!(climbs(b"a/.."));
        assert!(!climbs(b"a..b/c.."));
        assert!(!climbs(b"...")); // a legal name
    }
}
