//! The functions of libc that are replaced.
//!
//! Invariant: each calls the next definition with the caller's arguments and gives back its
//! result; what is added comes after a successful call. `mode` is passed on only where the caller
//! had to give one. Variadic functions cannot be defined on stable Rust: `open` and its kin are
//! defined with the third argument fixed, which the calling conventions of x86-64 and AArch64
//! Linux read from the same register.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::{Acquire, Release};

use libc::{AT_FDCWD, FILE, mode_t};

use crate::{hint, place};

/// The next definition of a symbol, looked up when the library is loaded.
struct Next {
    name: &'static CStr,
    at: AtomicPtr<c_void>,
}

impl Next {
    const fn new(name: &'static CStr) -> Next {
        Next { name, at: AtomicPtr::new(null_mut()) }
    }

    /// Its address. Looked up here only when another library's constructor runs before ours.
    #[inline]
    fn address(&self) -> Option<*mut c_void> {
        let known = self.at.load(Acquire);
        if known.is_null() { self.resolve() } else { Some(known) }
    }

    #[cold]
    fn resolve(&self) -> Option<*mut c_void> {
        // SAFETY: a C string; dlsym may be called from constructors.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        self.at.store(found, Release);
        (!found.is_null()).then_some(found)
    }
}

fn not_there<T>(result: T) -> T {
    // SAFETY: always a valid pointer to this thread's errno.
    unsafe { *libc::__errno_location() = libc::ENOSYS };
    result
}

type OpenFn = unsafe extern "C" fn(*const c_char, c_int, ...) -> c_int;
type Open2Fn = unsafe extern "C" fn(*const c_char, c_int) -> c_int;
type OpenatFn = unsafe extern "C" fn(c_int, *const c_char, c_int, ...) -> c_int;
type Openat2Fn = unsafe extern "C" fn(c_int, *const c_char, c_int) -> c_int;
type CreatFn = unsafe extern "C" fn(*const c_char, mode_t) -> c_int;
type FopenFn = unsafe extern "C" fn(*const c_char, *const c_char) -> *mut FILE;
type FreopenFn = unsafe extern "C" fn(*const c_char, *const c_char, *mut FILE) -> *mut FILE;
type MkstempFn = unsafe extern "C" fn(*mut c_char) -> c_int;
type MkstempNumberFn = unsafe extern "C" fn(*mut c_char, c_int) -> c_int;
type MkostempsFn = unsafe extern "C" fn(*mut c_char, c_int, c_int) -> c_int;
type ChdirFn = unsafe extern "C" fn(*const c_char) -> c_int;
type FchdirFn = unsafe extern "C" fn(c_int) -> c_int;

/// Declares the table of replaced functions, and each function: its name, its arguments, the type
/// of the next definition, how that is called, and what is to be done afterwards.
macro_rules! replace {
    ($($static:ident: $name:ident($($arg:ident: $type:ty),*) -> $ret:ty, $fn:ty,
       fails $fail:expr, calls |$f:ident| $call:expr, then |$result:ident| $after:expr;)*) => {
        $(static $static: Next = Next::new(
            match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => c"",
            });)*

        /// Looks up all next definitions.
        pub(crate) fn resolve_all() {
            $($static.resolve();)*
        }

        $(
            #[doc = concat!("`", stringify!($name), "` of libc, then the hint.")]
            ///
            /// # Safety
            ///
            /// As the function of that name.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($arg: $type),*) -> $ret {
                let Some(next) = $static.address() else { return not_there($fail) };
                // SAFETY: the symbol of that name in libc has this type.
                let $f: $fn = unsafe { core::mem::transmute::<*mut c_void, $fn>(next) };
                // SAFETY: the caller's own arguments.
                let $result = unsafe { $call };
                // SAFETY: paths are C strings by the function's own contract.
                #[allow(unused_unsafe, reason = "chdir is followed by nothing unsafe")]
                unsafe {
                    $after
                };
                $result
            }
        )*
    };
}

/// Whether `open` takes a mode with these flags.
#[inline]
fn has_mode(flags: c_int) -> bool {
    flags & libc::O_CREAT != 0 || flags & libc::O_TMPFILE == libc::O_TMPFILE
}

const CREAT_FLAGS: c_int = libc::O_WRONLY;

replace! {
    OPEN: open(path: *const c_char, flags: c_int, mode: mode_t) -> c_int, OpenFn,
        fails -1,
        calls |f| if has_mode(flags) { f(path, flags, mode) } else { f(path, flags) },
        then |fd| hint::opened(fd, AT_FDCWD, path, flags);
    OPEN64: open64(path: *const c_char, flags: c_int, mode: mode_t) -> c_int, OpenFn,
        fails -1,
        calls |f| if has_mode(flags) { f(path, flags, mode) } else { f(path, flags) },
        then |fd| hint::opened(fd, AT_FDCWD, path, flags);
    OPENAT: openat(dir: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int, OpenatFn,
        fails -1,
        calls |f| if has_mode(flags) { f(dir, path, flags, mode) } else { f(dir, path, flags) },
        then |fd| hint::opened(fd, dir, path, flags);
    OPENAT64: openat64(dir: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int, OpenatFn,
        fails -1,
        calls |f| if has_mode(flags) { f(dir, path, flags, mode) } else { f(dir, path, flags) },
        then |fd| hint::opened(fd, dir, path, flags);
    CREAT: creat(path: *const c_char, mode: mode_t) -> c_int, CreatFn,
        fails -1, calls |f| f(path, mode), then |fd| hint::opened(fd, AT_FDCWD, path, CREAT_FLAGS);
    CREAT64: creat64(path: *const c_char, mode: mode_t) -> c_int, CreatFn,
        fails -1, calls |f| f(path, mode), then |fd| hint::opened(fd, AT_FDCWD, path, CREAT_FLAGS);
    OPEN_2: __open_2(path: *const c_char, flags: c_int) -> c_int, Open2Fn,
        fails -1, calls |f| f(path, flags), then |fd| hint::opened(fd, AT_FDCWD, path, flags);
    OPEN64_2: __open64_2(path: *const c_char, flags: c_int) -> c_int, Open2Fn,
        fails -1, calls |f| f(path, flags), then |fd| hint::opened(fd, AT_FDCWD, path, flags);
    OPENAT_2: __openat_2(dir: c_int, path: *const c_char, flags: c_int) -> c_int, Openat2Fn,
        fails -1, calls |f| f(dir, path, flags), then |fd| hint::opened(fd, dir, path, flags);
    OPENAT64_2: __openat64_2(dir: c_int, path: *const c_char, flags: c_int) -> c_int, Openat2Fn,
        fails -1, calls |f| f(dir, path, flags), then |fd| hint::opened(fd, dir, path, flags);
    FOPEN: fopen(path: *const c_char, mode: *const c_char) -> *mut FILE, FopenFn,
        fails null_mut(), calls |f| f(path, mode), then |file| stream(file, path, mode);
    FOPEN64: fopen64(path: *const c_char, mode: *const c_char) -> *mut FILE, FopenFn,
        fails null_mut(), calls |f| f(path, mode), then |file| stream(file, path, mode);
    FREOPEN: freopen(path: *const c_char, mode: *const c_char, old: *mut FILE) -> *mut FILE,
        FreopenFn,
        fails null_mut(), calls |f| f(path, mode, old), then |file| stream(file, path, mode);
    FREOPEN64: freopen64(path: *const c_char, mode: *const c_char, old: *mut FILE) -> *mut FILE,
        FreopenFn,
        fails null_mut(), calls |f| f(path, mode, old), then |file| stream(file, path, mode);
    MKSTEMP: mkstemp(path: *mut c_char) -> c_int, MkstempFn,
        fails -1, calls |f| f(path), then |fd| hint::opened(fd, AT_FDCWD, path, CREAT_FLAGS);
    MKSTEMP64: mkstemp64(path: *mut c_char) -> c_int, MkstempFn,
        fails -1, calls |f| f(path), then |fd| hint::opened(fd, AT_FDCWD, path, CREAT_FLAGS);
    MKOSTEMP: mkostemp(path: *mut c_char, flags: c_int) -> c_int, MkstempNumberFn,
        fails -1, calls |f| f(path, flags), then |fd| hint::opened(fd, AT_FDCWD, path, CREAT_FLAGS);
    MKOSTEMP64: mkostemp64(path: *mut c_char, flags: c_int) -> c_int, MkstempNumberFn,
        fails -1, calls |f| f(path, flags), then |fd| hint::opened(fd, AT_FDCWD, path, CREAT_FLAGS);
    MKSTEMPS: mkstemps(path: *mut c_char, tail: c_int) -> c_int, MkstempNumberFn,
        fails -1, calls |f| f(path, tail), then |fd| hint::opened(fd, AT_FDCWD, path, CREAT_FLAGS);
    MKSTEMPS64: mkstemps64(path: *mut c_char, tail: c_int) -> c_int, MkstempNumberFn,
        fails -1, calls |f| f(path, tail), then |fd| hint::opened(fd, AT_FDCWD, path, CREAT_FLAGS);
    MKOSTEMPS: mkostemps(path: *mut c_char, tail: c_int, flags: c_int) -> c_int, MkostempsFn,
        fails -1, calls |f| f(path, tail, flags),
        then |fd| hint::opened(fd, AT_FDCWD, path, CREAT_FLAGS);
    MKOSTEMPS64: mkostemps64(path: *mut c_char, tail: c_int, flags: c_int) -> c_int, MkostempsFn,
        fails -1, calls |f| f(path, tail, flags),
        then |fd| hint::opened(fd, AT_FDCWD, path, CREAT_FLAGS);
    CHDIR: chdir(path: *const c_char) -> c_int, ChdirFn,
        fails -1, calls |f| { place::moved(); f(path) }, then |_done| place::moved();
    FCHDIR: fchdir(dir: c_int) -> c_int, FchdirFn,
        fails -1, calls |f| { place::moved(); f(dir) }, then |_done| place::moved();
}

/// After `fopen`: a stream that can be written.
///
/// # Safety
///
/// `file` is null or an open stream, `path` null or a C string, `mode` a C string if `file` is
/// not null.
unsafe fn stream(file: *mut FILE, path: *const c_char, mode: *const c_char) {
    if file.is_null() || mode.is_null() {
        return;
    }
    // SAFETY: by contract a C string.
    let mode = unsafe { CStr::from_ptr(mode) }.to_bytes();
    // What follows a comma is a character set ("r,ccs=…").
    let mode = mode.split(|&b| b == b',').next().unwrap_or(mode);
    if mode.iter().any(|b| b"wa+".contains(b)) {
        // SAFETY: an open stream; the path is null or a C string.
        unsafe { hint::opened(libc::fileno(file), AT_FDCWD, path, libc::O_WRONLY) };
    }
}

/// The next `open`, for the library's own use; `None` if it fails. Opens nothing for writing.
pub(crate) fn real_open(path: *const c_char, flags: c_int) -> Option<c_int> {
    let next = OPEN.address()?;
    // SAFETY: the symbol of that name in libc has this type.
    let open: OpenFn = unsafe { core::mem::transmute::<*mut c_void, OpenFn>(next) };
    // SAFETY: the caller gives a C string and no flag that takes a mode.
    let fd = unsafe { open(path, flags) };
    (fd >= 0).then_some(fd)
}
