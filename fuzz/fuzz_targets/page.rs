//! Any bytes as control page, counters and page file: nothing that is in shared memory may make a
//! reader panic or run on.
#![no_main]

use std::alloc::{Layout, alloc_zeroed, dealloc};

use libfuzzer_sys::fuzz_target;
use shelflife_control::{Counters, Page, RunLine, Shared};
use shelflife_layout::{Class, Text};

/// A `T` made of `bytes`, repeated.
fn with<T: Shared>(bytes: &[u8], look: impl FnOnce(&T)) {
    let layout = Layout::new::<T>();
    // SAFETY: the layout is not of size zero.
    let at = unsafe { alloc_zeroed(layout) };
    for i in 0..if bytes.is_empty() { 0 } else { layout.size() } {
        // SAFETY: within the allocation.
        unsafe { at.add(i).write(bytes[i % bytes.len()]) };
    }
    // SAFETY: aligned, of the right size, and any bytes are a valid `Shared`.
    look(unsafe { &*at.cast::<T>() });
    // SAFETY: allocated above with this layout.
    unsafe { dealloc(at, layout) };
}

fuzz_target!(|data: &[u8]| {
    let line = RunLine::parse(data);
    if let Some(line) = line {
        assert_eq!(RunLine::parse(line.to_string().as_bytes()), Some(line));
    }
    with::<Page>(data, |page| {
        let _ = page.validate(7);
        let state = page.state();
        let _ = page.policy_name(state, &mut [0; 64]);
        let table = page.table(state);
        let _ = (table.layout(), table.has_absolute_rules());
        for class in [Class::Outside, Class::Wal, Class::Unlogged] {
            let text = Some(Text::whole(b"/data/pg_wal/000000010000000000000001"));
            let _ = table.lookup(class, Some(b"pg_wal/000000010000000000000001"), text);
        }
        for root in page.roots() {
            let _ = (root.is(b"/data"), root.below(b"/data/base/5/16384"));
        }
    });
    with::<Counters>(data, |counters| {
        let _ = counters.validate(7);
        let _ = counters.refused().count();
        let _ = Class::ALL.iter().map(|c| u128::from(counters.opens(*c, 2))).sum::<u128>();
    });
});
