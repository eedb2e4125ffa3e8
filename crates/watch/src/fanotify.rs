//! Groups of fanotify(7): who opened, made or moved what.
//!
//! Two kinds. [`Group::names`] needs no rights (Linux 5.13) and says folder and name; its marks lie
//! on single folders. [`Group::files`] needs CAP_SYS_ADMIN when it is made and marked, not later; its
//! events carry a descriptor of the very file, and its marks cover whole file systems.
//!
//! Invariant: notification only. No flag for permission events stands in this file, so that no
//! server ever waits for a daemon.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use rustix::io::Errno;

/// What happened, as bits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Mask(u64);

impl Mask {
    /// The queue was full: events are lost.
    pub const OVERFLOW: Mask = Mask(libc::FAN_Q_OVERFLOW);
    /// A file was opened.
    pub const OPEN: Mask = Mask(libc::FAN_OPEN);
    /// A file, folder or link was made.
    pub const CREATE: Mask = Mask(libc::FAN_CREATE);
    /// Something was given this name by a rename.
    pub const MOVED_TO: Mask = Mask(libc::FAN_MOVED_TO);
    /// Something lost this name by a rename.
    pub const MOVED_FROM: Mask = Mask(libc::FAN_MOVED_FROM);
    /// The marked folder itself is gone.
    pub const DELETE_SELF: Mask = Mask(libc::FAN_DELETE_SELF);
    /// It is about a folder.
    pub const FOLDER: Mask = Mask(libc::FAN_ONDIR);

    /// Whether any bit of `other` is set.
    pub const fn has(self, other: Mask) -> bool {
        self.0 & other.0 != 0
    }

    /// The bits of both.
    pub const fn and(self, other: Mask) -> Mask {
        Mask(self.0 | other.0)
    }
}

/// A folder as the kernel numbers it: file system and file handle.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Handle(Box<[u8]>);

/// The longest file handle (`MAX_HANDLE_SZ`, `include/linux/exportfs.h`), in bytes.
const MAX_HANDLE: usize = 128;
/// `struct file_handle` without its bytes.
const HANDLE_HEADER: usize = 8;
/// `fsid`, two 32-bit words.
const FSID: usize = 8;

#[repr(C)]
struct Room {
    bytes: u32,
    kind: i32,
    handle: [u8; MAX_HANDLE],
}

impl Handle {
    /// The handle of an open folder.
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP` on file systems without handles; those of `fstatfs(2)`.
    pub fn of(folder: impl AsFd) -> io::Result<Handle> {
        let fd = folder.as_fd().as_raw_fd();
        let mut room = Room { bytes: MAX_HANDLE as u32, kind: 0, handle: [0; MAX_HANDLE] };
        let mut mount = 0;
        // SAFETY: `folder` lives until this function returns, so `fd` is open. The path is a C
        // string. `Room` is repr(C) with the fields of `struct file_handle` (`handle_bytes`,
        // `handle_type`, `f_handle`), and the kernel writes no more than the `handle_bytes` that it
        // is told, which is the length of `Room::handle`. `mount` is one int. All three live here.
        let rc = unsafe {
            libc::name_to_handle_at(
                fd,
                c"".as_ptr(),
                (&raw mut room).cast(),
                &raw mut mount,
                libc::AT_EMPTY_PATH,
            )
        };
        if rc == -1 {
            return Err(io::Error::last_os_error());
        }
        let mut stat = std::mem::MaybeUninit::<libc::statfs>::zeroed();
        // SAFETY: `fd` is open, as above; fstatfs writes one `struct statfs` through the pointer,
        // and `stat` has room for one.
        if unsafe { libc::fstatfs(fd, stat.as_mut_ptr()) } == -1 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: every byte of `stat` was set to zero, and `struct statfs` is integers only, for
        // which any bits are valid.
        let fsid = unsafe { stat.assume_init() }.f_fsid;
        // SAFETY: `fsid_t` is an array of two ints (`__kernel_fsid_t`; the crate keeps the field
        // private), so it has no padding, all its bytes are set, and any are valid as `u8`;
        // transmute compiles only if the sizes are equal.
        let fsid: [u8; FSID] = unsafe { std::mem::transmute(fsid) };
        let length = (room.bytes as usize).min(MAX_HANDLE);
        let bytes = room.handle.get(..length).unwrap_or_default();
        Ok(Handle::from_parts(&fsid, room.bytes, room.kind, bytes))
    }

    fn from_parts(fsid: &[u8], length: u32, kind: i32, bytes: &[u8]) -> Handle {
        Handle([fsid, &length.to_ne_bytes(), &kind.to_ne_bytes(), bytes].concat().into())
    }
}

/// One event.
#[derive(Debug)]
pub struct Event<'b> {
    /// What happened.
    pub mask: Mask,
    /// The process that did it; 0 if a group without rights may not know.
    pub pid: i32,
    /// The file, from a group of [`Group::files`].
    pub file: Option<OwnedFd>,
    /// The folder, and the name in it (empty if it is about the folder itself), from a group of
    /// [`Group::names`].
    pub place: Option<(Handle, &'b [u8])>,
}

/// A queue of events.
#[derive(Debug)]
pub struct Group {
    fd: OwnedFd,
}

impl AsFd for Group {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Group {
    /// Events with folder and name, for marks on folders.
    ///
    /// # Errors
    ///
    /// `EPERM` before Linux 5.13 and in sandboxes that forbid it, `ENOSYS`, `EMFILE`.
    pub fn names() -> io::Result<Group> {
        Group::new(libc::FAN_REPORT_DFID_NAME)
    }

    /// Events with a descriptor of the file, for marks on file systems.
    ///
    /// # Errors
    ///
    /// `EPERM` without CAP_SYS_ADMIN.
    pub fn files() -> io::Result<Group> {
        Group::new(0)
    }

    fn new(report: u32) -> io::Result<Group> {
        let flags = libc::FAN_CLASS_NOTIF | libc::FAN_CLOEXEC | libc::FAN_NONBLOCK | report;
        let file = libc::O_RDONLY | libc::O_LARGEFILE | libc::O_CLOEXEC | libc::O_NOATIME;
        // SAFETY: the call takes two numbers and no pointer, and closes nothing.
        let fd = unsafe { libc::fanotify_init(flags, file.cast_unsigned()) };
        if fd == -1 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: fanotify_init did not fail, so `fd` is a descriptor that it has just made, and
        // nothing else in this process has its number.
        Ok(Group { fd: unsafe { OwnedFd::from_raw_fd(fd) } })
    }

    /// Watches the entries of `folder` (opened for reading, not `O_PATH`). Again is no error.
    ///
    /// # Errors
    ///
    /// `ENOSPC` at the limit `fs.fanotify.max_user_marks`; `EOPNOTSUPP` or `ENODEV` on file systems
    /// that cannot be watched by handle.
    pub fn mark_folder(&self, folder: impl AsFd, mask: Mask) -> io::Result<()> {
        let mask = mask.0 | libc::FAN_ONDIR | libc::FAN_EVENT_ON_CHILD;
        self.mark(libc::FAN_MARK_ADD | libc::FAN_MARK_ONLYDIR, mask, folder)
    }

    /// Watches every open on the file system of `folder`.
    ///
    /// # Errors
    ///
    /// `EPERM` without CAP_SYS_ADMIN.
    pub fn mark_file_system(&self, folder: impl AsFd) -> io::Result<()> {
        self.mark(libc::FAN_MARK_ADD | libc::FAN_MARK_FILESYSTEM, libc::FAN_OPEN, folder)
    }

    fn mark(&self, flags: u32, mask: u64, folder: impl AsFd) -> io::Result<()> {
        let folder = folder.as_fd().as_raw_fd();
        // SAFETY: `self` and the caller's `folder` (the name is taken, the value lives to the end of
        // this function) keep both descriptors open through the call. The path may be null: the
        // mark is on what the second one is then (fanotify_mark(2)), and nothing is read.
        let rc = unsafe {
            libc::fanotify_mark(self.fd.as_raw_fd(), flags, mask, folder, std::ptr::null())
        };
        if rc == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Reads what there is and hands over each event; how many there were, 0 if none waited.
    ///
    /// # Errors
    ///
    /// Those of `read(2)` but `EAGAIN` and `EINTR`.
    pub fn read(&self, buffer: &mut [u8], each: &mut dyn FnMut(Event<'_>)) -> io::Result<usize> {
        match rustix::io::read(&self.fd, &mut *buffer) {
            Ok(length) => {
                Ok(parse(buffer.get(..length).unwrap_or_default(), &mut |mut event, fd| {
                    // SAFETY: `fd` is that of an event in the bytes that this read has filled, at the
                    // place where the version that `event_at` has checked has it: the kernel
                    // opened it in this process for the reader of the event (fanotify(7)), to own
                    // and to close. A read takes events off the queue, and `parse` hands over each
                    // once, so that there is no second owner.
                    event.file = (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd) });
                    each(event);
                }))
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            Err(errno) => Err(errno.into()),
        }
    }
}

/// `struct fanotify_event_metadata`: length u32, version u8, reserved u8, metadata length u16, mask
/// u64, descriptor i32, process i32 (`include/uapi/linux/fanotify.h`).
const METADATA: usize = 24;
/// Of a kernel with another layout nothing is believed.
const VERSION: u8 = libc::FANOTIFY_METADATA_VERSION;
/// `FAN_EVENT_INFO_TYPE_DFID_NAME`.
const DFID_NAME: u8 = 2;

/// Hands over each event, still without file, with the number of its descriptor; negative for none.
fn parse(mut bytes: &[u8], each: &mut dyn FnMut(Event<'_>, RawFd)) -> usize {
    let mut count = 0;
    while let Some((event, fd)) = event_at(&mut bytes) {
        count += 1;
        each(event, fd);
    }
    count
}

fn event_at<'b>(bytes: &mut &'b [u8]) -> Option<(Event<'b>, RawFd)> {
    let length = u32_at(bytes, 0)? as usize;
    let (event, rest) = bytes.split_at_checked(length)?;
    let (metadata, infos) = event.split_at_checked(METADATA)?;
    if *metadata.get(4)? != VERSION {
        return None;
    }
    *bytes = rest;
    let mask = u64::from_ne_bytes(metadata.get(8..16)?.try_into().ok()?);
    let fd = u32_at(metadata, 16)?.cast_signed();
    let pid = u32_at(metadata, 20)?.cast_signed();
    Some((Event { mask: Mask(mask), pid, file: None, place: place_in(infos) }, fd))
}

/// The record with folder and name among those that follow an event.
fn place_in(mut infos: &[u8]) -> Option<(Handle, &[u8])> {
    loop {
        let (kind, length) = (*infos.first()?, u16_at(infos, 2)? as usize);
        let (info, rest) = infos.split_at_checked(length.max(4))?;
        infos = rest;
        if kind != DFID_NAME {
            continue;
        }
        let fsid = info.get(4..4 + FSID)?;
        let handle = info.get(4 + FSID..)?;
        let (bytes, kind) = (u32_at(handle, 0)?, u32_at(handle, 4)?.cast_signed());
        let (header_and_bytes, name) = handle.split_at_checked(HANDLE_HEADER + bytes as usize)?;
        let name = name.split(|b| *b == 0).next().unwrap_or_default();
        let name = if name == b"." { b"" } else { name };
        let handle = Handle::from_parts(fsid, bytes, kind, header_and_bytes.get(HANDLE_HEADER..)?);
        return Some((handle, name));
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;

    type Seen = (Mask, i32, Option<(Handle, Vec<u8>)>);

    fn all(group: &Group) -> Vec<Seen> {
        let mut buffer = vec![0; 65536];
        let mut found = Vec::new();
        while group
            .read(&mut buffer, &mut |e| {
                found.push((e.mask, e.pid, e.place.map(|(h, n)| (h, n.to_vec()))));
            })
            .expect("readable")
            > 0
        {}
        found
    }

    #[test]
    fn an_event_names_the_folder_by_the_handle_that_the_folder_has() {
        let dir = tempfile::tempdir().expect("a folder");
        let Ok(group) = Group::names() else {
            eprintln!("skipped: an_event_names_the_folder: fanotify is not to be had here");
            return;
        };
        let folder = File::open(dir.path()).expect("opened");
        group.mark_folder(&folder, Mask::CREATE.and(Mask::OPEN)).expect("marked");
        let handle = Handle::of(&folder).expect("a handle");
        fs::write(dir.path().join("a file"), "").expect("a file");
        fs::create_dir(dir.path().join("below")).expect("a folder");
        let me = std::process::id().cast_signed();
        let events = all(&group);
        let file = events.iter().find(|e| e.2 == Some((handle.clone(), b"a file".to_vec())));
        let (mask, pid, _) = file.expect("the file's event");
        assert!(mask.has(Mask::CREATE) && mask.has(Mask::OPEN) && !mask.has(Mask::FOLDER));
        assert_eq!(*pid, me);
        let below = events.iter().find(|e| e.2 == Some((handle.clone(), b"below".to_vec())));
        assert!(below.expect("the folder's event").0.has(Mask::FOLDER));
    }

    #[test]
    fn torn_and_nonsensical_bytes_end() {
        let mut event = [0u8; METADATA + 4];
        event[..4].copy_from_slice(&28u32.to_ne_bytes());
        event[4] = VERSION;
        event[16..20].copy_from_slice(&(-1i32).to_ne_bytes());
        event[24] = DFID_NAME;
        event[26..28].copy_from_slice(&400u16.to_ne_bytes());
        for length in 0..=event.len() {
            let mut seen = 0;
            parse(&event[..length], &mut |e, fd| {
                seen += 1;
                assert!(e.place.is_none() && fd == -1);
            });
            assert_eq!(seen, usize::from(length == event.len()));
        }
        assert_eq!(parse(&[0; 64], &mut |_, _| ()), 0, "a length of 0 is no event");
        event[4] = VERSION + 1;
        assert_eq!(parse(&event, &mut |_, _| ()), 0, "where its descriptor lies is not known");
    }
}
