//! Any text: the parser, the checks, and that explaining agrees with the compiled table.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shelflife_layout::{Class, Layout};
use shelflife_policy::{Policy, check_text};

fuzz_target!(|text: &[u8]| {
    let findings = check_text(text, "fuzz");
    let Ok(policy) = Policy::parse(text, "fuzz") else {
        assert!(findings.iter().any(|f| f.fails()), "an error that check does not see");
        return;
    };
    let table = policy.compile();
    for class in Class::ALL {
        let paths = policy.layout() == Layout::Paths;
        if paths != (*class == Class::Outside) {
            continue;
        }
        let explained = policy.explain(*class, Some(b"base/5/16384"), None).lifetime;
        assert_eq!(explained, table.lookup(*class, Some(b"base/5/16384"), None));
    }
});
