//! From an opened descriptor to the call.
//!
//! Invariant: errno is as the program's own call left it; a switch that comes between looking at
//! the page and the call is seen afterwards, and the hint put right.

use core::ffi::{CStr, c_char, c_int};

use libc::AT_FDCWD;
use shelflife_control::{MAX_PATH, Page, State};
use shelflife_layout::{Class, Layout, Table, postgres};
use shelflife_lifetime::{F_SET_RW_HINT, Lifetime};

use crate::attach;
use crate::place::{self, Place};

/// A page that is switched more often than this during one `open` is being played with.
const TRIES: usize = 64;

/// Hints the file behind `fd`, which was just opened with `flags` as `path` (relative to
/// `dirfd`).
///
/// # Safety
///
/// `path` is null or a C string.
#[inline]
pub(crate) unsafe fn opened(fd: c_int, dirfd: c_int, path: *const c_char, flags: c_int) {
    let writes = flags & libc::O_ACCMODE != libc::O_RDONLY && flags & libc::O_PATH == 0;
    if fd < 0 || !writes || path.is_null() {
        return;
    }
    let Some(page) = attach::page() else { return };
    let state = page.state();
    if !state.is_on() {
        return;
    }
    // SAFETY: by contract a C string, since it is not null.
    let path = unsafe { CStr::from_ptr(path) }.to_bytes();
    let temporary = flags & libc::O_TMPFILE == libc::O_TMPFILE;
    // SAFETY: always a valid pointer to this thread's errno.
    let errno = unsafe { *libc::__errno_location() };
    hint(page, state, fd, dirfd, path, temporary);
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

fn hint(page: &Page, first: State, fd: c_int, dirfd: c_int, path: &[u8], temporary: bool) {
    let mut given = None;
    let mut state = first;
    for _ in 0..TRIES {
        let wanted = if state.is_on() {
            wanted(page, state, fd, dirfd, path, temporary)
        } else {
            // switched off after this call had given a hint: the sweep may have passed already
            given.map(|_| Lifetime::NotSet)
        };
        if let Some(lifetime) = wanted
            && wanted != given
        {
            set(fd, lifetime);
            given = wanted;
        }
        let now = page.state();
        if now == state {
            return;
        }
        state = now;
    }
}

/// What the policy wants for this file; also counts it.
#[inline]
fn wanted(
    page: &Page,
    state: State,
    fd: c_int,
    dirfd: c_int,
    path: &[u8],
    temporary: bool,
) -> Option<Lifetime> {
    let table = page.table(state);
    let plain = dirfd == AT_FDCWD || path.first() == Some(&b'/');
    let lifetime = if plain && !table.has_absolute_rules() {
        let inside = place::inside(page, path);
        decide(table, fd, path, &Place { inside, absolute: None }, temporary)
    } else {
        decide_slowly(page, table, fd, dirfd, path, temporary)
    };
    lifetime.filter(|_| !state.is_dry_run())
}

/// Where the path must be made absolute, which takes a system call and room.
#[cold]
#[inline(never)]
fn decide_slowly(
    page: &Page,
    table: &Table,
    fd: c_int,
    dirfd: c_int,
    path: &[u8],
    temporary: bool,
) -> Option<Lifetime> {
    let mut folder = [0u8; MAX_PATH];
    let place = place::place(page, dirfd, path, &mut folder);
    decide(table, fd, path, &place, temporary)
}

#[inline]
fn decide(
    table: &Table,
    fd: c_int,
    path: &[u8],
    place: &Place<'_>,
    temporary: bool,
) -> Option<Lifetime> {
    let (class, inside) = match (table.layout()?, place.inside) {
        (Layout::Paths, _) => (Class::Outside, Some(path)),
        (Layout::Postgres, Some(inside)) => match class_of(inside, temporary) {
            // the path climbs: rules for the data folder are not for it
            Class::Outside => (Class::Outside, None),
            class => (class, Some(inside)),
        },
        (Layout::Postgres, None) => (Class::Outside, None),
    };
    let lifetime = table.lookup(class, inside, place.absolute);
    // The classes of numbered files need no look: the server makes none but regular ones there,
    // and it would cost more than the hint. Elsewhere a path may name a device or a pipe.
    let sure = !matches!(class, Class::Outside | Class::Other | Class::Config | Class::ServerLog);
    if lifetime.is_some() && !sure && !is_regular(fd) {
        return None;
    }
    if let Some(counters) = attach::counters() {
        counters.count(class, lifetime);
    }
    lifetime
}

/// The class of a path; a nameless file (`O_TMPFILE`) is of the class of a file in the folder
/// that is called by no known name.
#[inline]
fn class_of(inside: &[u8], temporary: bool) -> Class {
    let class = postgres::classify(inside);
    let unnamed = !matches!(class, Class::Outside | Class::Temp);
    if temporary && unnamed { Class::Other } else { class }
}

fn is_regular(fd: c_int) -> bool {
    // SAFETY: stat is plain numbers, for which all zero is valid.
    let mut stat: libc::stat = unsafe { core::mem::zeroed() };
    // SAFETY: fstat writes one stat through the pointer.
    let rc = unsafe { libc::fstat(fd, &raw mut stat) };
    rc == 0 && stat.st_mode & libc::S_IFMT == libc::S_IFREG
}

fn set(fd: c_int, lifetime: Lifetime) {
    let raw = lifetime.raw();
    // SAFETY: F_SET_RW_HINT reads one u64 through the pointer. That the descriptor may have been
    // closed meanwhile by another thread is the program's own race; then the call fails.
    let rc = unsafe { libc::fcntl(fd, F_SET_RW_HINT, &raw const raw) };
    if rc == -1
        && let Some(counters) = attach::counters()
    {
        // SAFETY: always a valid pointer to this thread's errno.
        counters.count_refused(unsafe { *libc::__errno_location() });
    }
}
