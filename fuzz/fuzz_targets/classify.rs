//! Any path, and any glob against it. The first byte says where the two part.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shelflife_layout::{Class, Text, check_glob, matches, path, postgres};

fuzz_target!(|data: &[u8]| {
    let Some((at, rest)) = data.split_first() else { return };
    let (glob, text) = rest.split_at(usize::from(*at).min(rest.len()));
    let class = postgres::classify(text);
    assert!(!class.needs_catalog());
    if path::climbs(text) || text.first() == Some(&b'/') {
        assert_eq!(class, Class::Outside);
    }
    let _ = check_glob(glob);
    let pattern = |i: usize| glob.get(i).copied();
    for anywhere in [false, true] {
        let whole = matches(pattern, Text::whole(text), anywhere);
        // cut at a slash, the two pieces are the same text
        if let Some(cut) = text.iter().position(|b| *b == b'/').filter(|cut| *cut > 0) {
            let pieces = Text::joined(&text[..cut], &text[cut + 1..]);
            assert_eq!(matches(pattern, pieces, anywhere), whole);
        }
    }
});
