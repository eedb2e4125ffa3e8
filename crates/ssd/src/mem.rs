//! The two things the maps need that safe Rust cannot say: prefetch a cache line, and ask for huge
//! pages.
//!
//! Invariant: neither function reads or writes a byte of the caller's memory, so neither can change
//! a result; both are hints, and both do nothing where the platform lacks them. This is the only
//! module of the crate that may contain `unsafe`. What each gains is measured in
//! `docs/design/simulator.md`.

#![expect(unsafe_code, reason = "the audited module: prefetch and madvise")]

/// Asks the processor to load the cache line of `map[index]`, to be read and written soon. An
/// index beyond the end is harmless.
#[inline(always)]
pub(crate) fn prefetch(map: &[u32], index: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: PREFETCHT0 is part of the x86-64 baseline, never faults and has no effect that a
        // program can see, whatever the address; `wrapping_add` makes the address without claiming
        // that it lies inside the slice.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(map.as_ptr().wrapping_add(index).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (map, index);
}

/// A map of `len` entries of `value`, on huge pages where the kernel grants them; `None` if there is
/// no memory for it.
///
/// The advice comes before the first touch: afterwards the kernel would only collapse the pages
/// when it finds time.
pub(crate) fn map(len: usize, value: u32) -> Option<Vec<u32>> {
    let mut map: Vec<u32> = Vec::new();
    map.try_reserve_exact(len).ok()?;
    advise_huge(map.spare_capacity_mut());
    map.resize(len, value);
    Some(map)
}

#[cfg(target_os = "linux")]
fn advise_huge(memory: &mut [core::mem::MaybeUninit<u32>]) {
    const HUGE: usize = 2 << 20;
    let range = memory.as_mut_ptr_range();
    let start = (range.start as usize).next_multiple_of(HUGE);
    let end = range.end as usize / HUGE * HUGE;
    if start < end {
        // SAFETY: [start, end) lies inside `memory`, which is borrowed mutably, and begins on a
        // page boundary (a multiple of 2 MiB). MADV_HUGEPAGE changes how the range is backed,
        // never its content. A refusal (EINVAL on a kernel without it) is of no consequence.
        unsafe {
            libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_HUGEPAGE);
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn advise_huge(_: &mut [core::mem::MaybeUninit<u32>]) {}
