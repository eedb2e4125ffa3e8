//! Finding the run's control page once, when the library is loaded.
//!
//! Invariant: whatever the environment, the page file or the segments hold, loading ends quickly
//! and leaves either a validated page or none.

use core::ffi::{c_char, c_int};
use core::ptr::null_mut;
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::{Acquire, Release};

use shelflife_control::{Access, Counters, Page, RUN_VARIABLE, RunLine, Segment, SegmentId};

use crate::{interpose, place};

static PAGE: AtomicPtr<Page> = AtomicPtr::new(null_mut());
static COUNTERS: AtomicPtr<Counters> = AtomicPtr::new(null_mut());

/// The longest folder of a run, in bytes.
const RUN_DIR_MAX: usize = 1000;

/// The page of the run, if there is one.
#[inline]
pub(crate) fn page() -> Option<&'static Page> {
    // SAFETY: null, or what `Segment::leak` gave, which is never detached.
    unsafe { PAGE.load(Acquire).as_ref() }
}

/// The counters of the run, if this user may add to them.
#[inline]
pub(crate) fn counters() -> Option<&'static Counters> {
    // SAFETY: null, or what `Segment::leak` gave, which is never detached.
    unsafe { COUNTERS.load(Acquire).as_ref() }
}

#[used]
#[unsafe(link_section = ".init_array")]
static LOAD: extern "C" fn(c_int, *const *const c_char, *const *const c_char) = load;

/// glibc calls this with the program's arguments and environment before `main`.
extern "C" fn load(_argc: c_int, _argv: *const *const c_char, envp: *const *const c_char) {
    // SAFETY: always a valid pointer to this thread's errno.
    let errno = unsafe { *libc::__errno_location() };
    interpose::resolve_all();
    place::remember_process();
    // SAFETY: glibc passes the environment: pointers to strings, ended by a null pointer.
    if let Some(dir) = unsafe { run_dir(envp) }
        && let Some(line) = read_line(dir)
    {
        attach(line);
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

/// The value of [`RUN_VARIABLE`]. Nothing of the environment is kept: PostgreSQL overwrites it.
///
/// # Safety
///
/// `envp` is null, or an array of pointers to C strings that ends with a null pointer.
unsafe fn run_dir<'e>(envp: *const *const c_char) -> Option<&'e [u8]> {
    let mut at = envp;
    if at.is_null() {
        return None;
    }
    loop {
        // SAFETY: by contract, up to and including the null pointer at the end.
        let entry = unsafe { *at };
        if entry.is_null() {
            return None;
        }
        // SAFETY: by contract a C string.
        let entry = unsafe { core::ffi::CStr::from_ptr(entry) }.to_bytes();
        if let Some([b'=', value @ ..]) = entry.strip_prefix(RUN_VARIABLE.as_bytes()) {
            return Some(value);
        }
        // SAFETY: not yet at the end.
        at = unsafe { at.add(1) };
    }
}

/// Reads the file `page` in the run's folder.
fn read_line(dir: &[u8]) -> Option<RunLine> {
    const NAME: &[u8] = b"/page\0";
    let mut path = [0u8; RUN_DIR_MAX + NAME.len()];
    if dir.len() > RUN_DIR_MAX {
        return None;
    }
    for (to, from) in path.iter_mut().zip(dir.iter().chain(NAME)) {
        *to = *from;
    }
    let flags = libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOCTTY;
    let fd = interpose::real_open(path.as_ptr().cast(), flags)?;
    let mut line = [0u8; 128];
    // SAFETY: the buffer is valid for its length; the descriptor was just opened.
    let read = unsafe { libc::read(fd, line.as_mut_ptr().cast(), line.len()) };
    // SAFETY: the descriptor was just opened and is closed once.
    unsafe { libc::close(fd) };
    RunLine::parse(line.get(..usize::try_from(read).ok()?)?)
}

fn attach(line: RunLine) {
    let Ok(page) = Segment::<Page>::attach(SegmentId(line.page), Access::ReadOnly) else { return };
    if page.validate(line.cookie).is_err() {
        return;
    }
    let counters = Segment::<Counters>::attach(SegmentId(line.counters), Access::ReadWrite);
    if let Ok(counters) = counters
        && counters.validate(line.cookie).is_ok()
    {
        COUNTERS.store(core::ptr::from_ref(counters.leak()).cast_mut(), Release);
    }
    PAGE.store(core::ptr::from_ref(page.leak()).cast_mut(), Release);
}
