//! Paths as the hook sees them: bytes that a program passed to `open`.
//!
//! Invariant: nothing here resolves a link or asks the kernel; a path with a `..` component is
//! never taken for one inside a folder.

/// The components of a path, without empty ones and `.`.
pub fn components(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|&b| b == b'/').filter(|c| !c.is_empty() && *c != b".")
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
