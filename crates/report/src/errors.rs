//! Errors as one line for people.
//!
//! Invariant: every cause is told, and none twice in a row.

use std::error::Error;

/// An error with its causes, in one line. A cause that the text before it ends with is not told
/// again.
///
/// ```
/// let error = std::io::Error::other("no room\n  left");
/// assert_eq!(shelflife_report::in_full(&error), "no room left");
/// ```
pub fn in_full(error: &dyn Error) -> String {
    let line =
        |error: &dyn Error| error.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
    let mut text = line(error);
    let mut source = error.source();
    while let Some(cause) = source {
        let told = line(cause);
        if !text.ends_with(&told) {
            text = format!("{text}: {told}");
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::fmt;
    use std::io;

    use super::*;

    #[derive(Debug)]
    struct Outer(&'static str, io::Error);

    impl fmt::Display for Outer {
        fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            out.write_str(self.0)
        }
    }

    impl Error for Outer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.1)
        }
    }

    #[test]
    fn causes_are_told_once() {
        let of = |text| in_full(&Outer(text, io::Error::other("no\nroom")));
        assert_eq!(of("cannot write x"), "cannot write x: no room");
        assert_eq!(of("cannot write x: no room"), "cannot write x: no room");
    }
}
