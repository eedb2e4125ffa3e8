//! When one glob matches whatever another one does.
//!
//! Invariant: a yes is right; a no may be a yes that these few rules do not see.

use shelflife_layout::{Text, matches};

/// Whether every file that the path rule `later` matches is one that `earlier` matches too.
pub(crate) fn covers(earlier: &str, later: &str) -> bool {
    match (earlier.starts_with('/'), later.starts_with('/')) {
        (true, true) => covers_from_here(earlier, later),
        // the tail after any `/` of the glob is what a relative rule would be held against
        (false, false) => {
            covers_all(earlier)
                || tails(later).any(|tail| covers_from_here(strip_globstars(earlier), tail))
        }
        // a relative rule sees no file outside, and an absolute path is not always known
        _ => false,
    }
}

/// Whether a relative glob matches every file inside.
pub(crate) fn covers_all(glob: &str) -> bool {
    matches!(strip_globstars(glob), "*" | "**")
}

/// The glob without the `**/` in front, which a relative rule has anyway.
fn strip_globstars(mut glob: &str) -> &str {
    while let Some(rest) = glob.strip_prefix("**/") {
        glob = rest;
    }
    glob
}

fn tails(glob: &str) -> impl Iterator<Item = &str> {
    let after_slash = glob.match_indices('/').map(|(at, _)| &glob[at + 1..]);
    std::iter::once(glob).chain(after_slash)
}

/// The same globs, or `FOLDER/**` and something in FOLDER, or a glob and a path without wildcards
/// that it matches.
fn covers_from_here(earlier: &str, later: &str) -> bool {
    earlier == later
        || earlier.strip_suffix("/**").is_some_and(|folder| {
            let below = later.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/'));
            below.is_some_and(|rest| !rest.is_empty())
        })
        || (!later.is_empty() && !later.contains(['*', '?', '[', '\\']) && {
            let pattern = |at: usize| earlier.as_bytes().get(at).copied();
            matches(pattern, Text::whole(later.as_bytes()), false)
        })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use shelflife_layout::check_glob;

    use super::*;

    #[test]
    fn the_cases_that_people_write() {
        for (earlier, later) in [
            ("**", "pg_wal/*"),
            ("*", "pg_wal/*"),
            ("**/*", "a"),
            ("pg_wal/**", "pg_wal/0*"),
            ("**/pg_wal/**", "pg_wal/0*"),
            ("*.log", "wal/*.log"),
            ("*.log", "wal/000.log"),
            ("wal/**", "db/wal/*.log"),
            ("/srv/**", "/srv/db/x"),
            ("/srv/*", "/srv/x"),
        ] {
            assert!(covers(earlier, later), "{earlier} {later}");
        }
        for (earlier, later) in [
            ("wal/*.log", "*.log"),
            ("/srv/**", "**"),
            ("**", "/srv/x"),
            ("/srv/**", "/srv2/x"),
            ("/srv/*", "/srv/a/x"),
            ("a?", "a*"),
        ] {
            assert!(!covers(earlier, later), "{earlier} {later}");
        }
    }

    fn glob() -> impl Strategy<Value = String> {
        "/?(\\*\\*/|[ab]/|\\*/){0,3}(\\*\\*|[ab*?]{1,2}|\\\\\\*)"
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]
        #[test]
        fn what_is_covered_is_matched(
            globs in proptest::collection::vec(glob(), 6),
            paths in proptest::collection::vec("/?([ab*]{1,2}/){0,3}[ab*]{1,2}", 20),
        ) {
            let hit = |glob: &str, path: &str| {
                let pattern = |at: usize| glob.as_bytes().get(at).copied();
                matches(pattern, Text::whole(path.as_bytes()), !glob.starts_with('/'))
            };
            let good: Vec<_> = globs.iter().filter(|g| check_glob(g.as_bytes()).is_ok()).collect();
            for (earlier, later) in good.iter().flat_map(|e| good.iter().map(move |l| (e, l))) {
                if covers(earlier, later) {
                    for path in paths.iter().filter(|path| hit(later, path)) {
                        prop_assert!(hit(earlier, path), "{} {} {}", earlier, later, path);
                    }
                }
            }
        }
    }
}
