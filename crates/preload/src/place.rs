//! Where a path lies: in the server's data folder, or outside.
//!
//! A data folder is one that the page names, or, in a process that *is* a PostgreSQL server, the
//! folder that it works in, if that holds `PG_VERSION`. A relative path counts as inside only
//! while the working directory is a data folder; that is asked of the kernel once and again after
//! every `chdir`, since it would cost more than the hint at every `open`.
//!
//! Invariant: a wrong answer is possible only as "outside".

use core::ffi::{CStr, c_char, c_int};
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU64};

use shelflife_control::{Dir, MAX_PATH, Page};
use shelflife_layout::Text;

/// Programs that are PostgreSQL servers.
const SERVERS: [&[u8]; 2] = [b"postgres", b"postmaster"];

static IS_SERVER: AtomicBool = AtomicBool::new(false);
/// The process that loaded the program, as opposed to one forked from it.
static LOADED_BY: AtomicI32 = AtomicI32::new(0);
/// The data folder of this server process and its children by fork.
static SERVER_ROOT: Dir = Dir::new();
/// Counts `chdir`s.
static MOVES: AtomicU64 = AtomicU64::new(1);
/// What is known of the working directory: `MOVES` when it was looked at << 1 | is it inside.
static WORKING: AtomicU64 = AtomicU64::new(0);

/// A path, judged.
pub(crate) struct Place<'p> {
    /// The path relative to the data folder, if it lies in one.
    pub(crate) inside: Option<&'p [u8]>,
    /// The absolute path, if it is known.
    pub(crate) absolute: Option<Text<'p>>,
}

/// Remembers what program this is; called once, when the library is loaded.
pub(crate) fn remember_process() {
    // SAFETY: getauxval takes a number; AT_EXECFN is a C string that lives as long as the process.
    let name = unsafe { libc::getauxval(libc::AT_EXECFN) as *const c_char };
    if !name.is_null() {
        // SAFETY: as above.
        let name = unsafe { CStr::from_ptr(name) }.to_bytes();
        let base = name.rsplit(|&b| b == b'/').next().unwrap_or(name);
        IS_SERVER.store(SERVERS.contains(&base), Relaxed);
    }
    // SAFETY: takes nothing.
    LOADED_BY.store(unsafe { libc::getpid() }, Relaxed);
}

/// The working directory is about to change, or may just have changed: called before and after,
/// so that what another thread finds in between is not kept.
pub(crate) fn moved() {
    MOVES.fetch_add(1, Release);
}

/// The part of `path`, as given to `open`, that is relative to a data folder it lies in.
#[inline]
pub(crate) fn inside<'p>(page: &Page, path: &'p [u8]) -> Option<&'p [u8]> {
    if path.first() == Some(&b'/') {
        let server = SERVER_ROOT.below(path);
        server.or_else(|| page.roots().find_map(|root| root.below(path)))
    } else {
        // One that climbs is outside all the same: its class will be.
        working_inside(page).then_some(path)
    }
}

/// Judges `path` as given to `openat` with `dirfd`, and makes it absolute.
///
/// `folder` is room for the working directory or the folder behind `dirfd`.
pub(crate) fn place<'p>(
    page: &Page,
    dirfd: c_int,
    path: &'p [u8],
    folder: &'p mut [u8; MAX_PATH],
) -> Place<'p> {
    if shelflife_layout::path::climbs(path) {
        return Place { inside: None, absolute: None };
    }
    if path.first() == Some(&b'/') {
        return Place { inside: inside(page, path), absolute: Some(Text::whole(path)) };
    }
    if dirfd != libc::AT_FDCWD {
        return at_folder(page, dirfd, path, folder);
    }
    let inside = inside(page, path);
    let absolute = working_directory(folder).map(|folder| Text::joined(folder, path));
    Place { inside, absolute }
}

/// Relative to a folder that is open: PostgreSQL does not do this, other programs do.
fn at_folder<'p>(
    page: &Page,
    dirfd: c_int,
    path: &'p [u8],
    folder: &'p mut [u8; MAX_PATH],
) -> Place<'p> {
    let Some(folder) = link_of(dirfd, folder) else {
        return Place { inside: None, absolute: None };
    };
    let is_root = SERVER_ROOT.is(folder) || page.roots().any(|root| root.is(folder));
    Place { inside: is_root.then_some(path), absolute: Some(Text::joined(folder, path)) }
}

/// Whether the working directory is a data folder.
#[inline]
fn working_inside(page: &Page) -> bool {
    let moves = MOVES.load(Acquire);
    let known = WORKING.load(Relaxed);
    if known >> 1 == moves { known & 1 != 0 } else { look_at_working(page, moves) }
}

#[cold]
fn look_at_working(page: &Page, moves: u64) -> bool {
    let mut buffer = [0u8; MAX_PATH];
    let Some(folder) = working_directory(&mut buffer) else { return false };
    let mut inside = SERVER_ROOT.is(folder) || page.roots().any(|root| root.is(folder));
    // SAFETY: takes nothing.
    let own_memory = unsafe { libc::getpid() } == LOADED_BY.load(Relaxed);
    // A server has one data folder: the first that it works in.
    if !inside && IS_SERVER.load(Relaxed) && SERVER_ROOT.is_empty() && holds_version() {
        inside = true;
        if own_memory {
            SERVER_ROOT.write(folder);
        }
    }
    // A child of vfork writes into its parent's memory but has a working directory of its own:
    // what a child finds is not kept. A child of fork that never moves has its parent's answer.
    if own_memory {
        WORKING.store(moves << 1 | u64::from(inside), Relaxed);
    }
    inside
}

fn holds_version() -> bool {
    // SAFETY: a C string; access changes nothing.
    unsafe { libc::access(c"PG_VERSION".as_ptr(), libc::F_OK) == 0 }
}

/// The working directory as the kernel spells it; `None` if it is too long or unreachable.
fn working_directory(buffer: &mut [u8; MAX_PATH]) -> Option<&[u8]> {
    // The system call: glibc's getcwd allocates when the path is long.
    // SAFETY: the buffer is valid for its length.
    let filled = unsafe { libc::syscall(libc::SYS_getcwd, buffer.as_mut_ptr(), buffer.len()) };
    // the length counts the NUL; a path that does not begin with / is "(unreachable)"
    let path = buffer.get(..usize::try_from(filled).ok()?.checked_sub(1)?)?;
    (path.first() == Some(&b'/')).then_some(path)
}

/// The path of an open folder.
fn link_of(fd: c_int, buffer: &mut [u8; MAX_PATH]) -> Option<&[u8]> {
    let mut link = *b"/proc/self/fd/\0\0\0\0\0\0\0\0\0\0\0\0";
    let mut digits = [0u8; 10];
    let (mut rest, mut count) = (u32::try_from(fd).ok()?, 0);
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
        count += 1;
        if rest == 0 {
            break;
        }
    }
    let number = digits.get(digits.len() - count..)?;
    for (to, from) in link.iter_mut().skip(14).zip(number) {
        *to = *from;
    }
    let room = buffer.len();
    // SAFETY: the link is NUL-terminated, the buffer valid for its length.
    let filled =
        unsafe { libc::readlink(link.as_ptr().cast(), buffer.as_mut_ptr().cast::<c_char>(), room) };
    let filled = usize::try_from(filled).ok().filter(|n| *n < room)?;
    buffer.get(..filled).filter(|path| path.first() == Some(&b'/'))
}
