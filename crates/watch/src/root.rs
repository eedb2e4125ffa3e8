//! One folder that the daemon may touch, pinned.
//!
//! Invariant: a file is opened only if it was reached below the pinned descriptor without a link,
//! without `..` and without crossing a mount, is a regular file, and belongs to the folder's owner;
//! all of that is known before it is opened, from a descriptor that opens nothing (`O_PATH`).

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::OnceLock;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, StatxFlags};
use rustix::io::Errno;
use rustix::path::DecInt;
use shelflife_layout::path::below;

/// `O_PATH` alone generates no event and cannot block.
const LOOK: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const ENTER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// A lease on the file (`EWOULDBLOCK`) must not hold the daemon up; the access time stays.
const OPEN: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::NOATIME)
    .union(OFlags::CLOEXEC);
const BELOW: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_XDEV);

/// What is to be known of a file before it is touched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    /// Device number, major and minor.
    pub(crate) device: (u32, u32),
    /// Inode number.
    pub(crate) inode: u64,
    /// The mount through which it was reached.
    pub(crate) mount: u64,
    /// Its owner.
    pub(crate) owner: u32,
    /// What it is.
    pub(crate) kind: FileType,
    /// When it was made, seconds since 1970, where the file system tells.
    pub(crate) born: Option<i64>,
}

/// Looks at an open file or folder.
pub(crate) fn facts(file: impl AsFd) -> Result<Facts, Errno> {
    let wanted = StatxFlags::BASIC_STATS.union(StatxFlags::MNT_ID).union(StatxFlags::BTIME);
    let flags = AtFlags::EMPTY_PATH.union(AtFlags::STATX_DONT_SYNC);
    let stat = rustix::fs::statx(file, c"", flags, wanted)?;
    let birth = StatxFlags::from_bits_retain(stat.stx_mask).contains(StatxFlags::BTIME);
    Ok(Facts {
        device: (stat.stx_dev_major, stat.stx_dev_minor),
        inode: stat.stx_ino,
        mount: stat.stx_mnt_id,
        owner: stat.stx_uid,
        kind: FileType::from_raw_mode(stat.stx_mode.into()),
        born: birth.then_some(stat.stx_btime.tv_sec),
    })
}

/// Why there is no file to hint.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Not {
    /// Gone meanwhile, or never a regular file: nothing to say.
    AFile,
    /// It belongs to someone else.
    Ours,
    /// It lies on another mount than the root, or behind a link.
    Inside,
    /// The kernel refused.
    Allowed(Errno),
}

impl Not {
    fn from_errno(errno: Errno) -> Not {
        match errno {
            Errno::NOENT | Errno::NOTDIR | Errno::STALE => Not::AFile,
            Errno::XDEV | Errno::LOOP => Not::Inside,
            errno => Not::Allowed(errno),
        }
    }
}

/// What a root is of its data folder.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Part {
    /// The data folder itself, or a plain folder.
    Base,
    /// A WAL folder that lies elsewhere: behind the link only what a server keeps there counts.
    Wal,
    /// A tablespace's folder of the server's own version.
    Tablespace,
}

/// A pinned folder.
#[derive(Debug)]
pub(crate) struct Root {
    fd: OwnedFd,
    /// As the kernel spells it.
    path: Vec<u8>,
    /// From the data folder: empty, `pg_wal`, `pg_tblspc/OID/PG_*`.
    called: Vec<u8>,
    part: Part,
    facts: Facts,
}

impl Root {
    /// Pins the folder at `path` (canonical) if it belongs to `owner` (whoever that is, if `None`).
    pub(crate) fn pin(
        path: &Path,
        called: Vec<u8>,
        part: Part,
        owner: Option<u32>,
    ) -> Result<Root, Not> {
        // Looked at first: a folder of someone else is not even opened.
        let look = rustix::fs::openat(CWD, path, LOOK, Mode::empty()).map_err(Not::from_errno)?;
        let facts = facts(&look).map_err(Not::Allowed)?;
        if facts.kind != FileType::Directory {
            return Err(Not::AFile);
        }
        if owner.is_some_and(|owner| owner != facts.owner) {
            return Err(Not::Ours);
        }
        let fd = rustix::fs::openat2(&look, c".", ENTER, Mode::empty(), BELOW)
            .map_err(Not::from_errno)?;
        Ok(Root { fd, path: path.as_os_str().as_bytes().to_vec(), called, part, facts })
    }

    pub(crate) fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    pub(crate) fn path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.path))
    }

    pub(crate) fn called(&self) -> &[u8] {
        &self.called
    }

    pub(crate) fn facts(&self) -> &Facts {
        &self.facts
    }

    pub(crate) fn is_same(&self, other: &Facts) -> bool {
        self.facts.device == other.device && self.facts.inode == other.inode
    }

    /// Whether the pinned folder has been removed.
    pub(crate) fn is_gone(&self) -> bool {
        rustix::fs::fstat(&self.fd).is_ok_and(|stat| stat.st_nlink == 0)
    }

    /// The path of a file below the data folder, from its path below this root.
    pub(crate) fn inside(&self, rest: &[u8]) -> Vec<u8> {
        match (self.called.is_empty(), rest.is_empty()) {
            (true, _) => rest.to_vec(),
            (false, true) => self.called.clone(),
            (false, false) => [&self.called, b"/".as_slice(), rest].concat(),
        }
    }

    /// The part below this root of a path as the kernel spells it, of a file that was reached
    /// through `mount`.
    pub(crate) fn rest_of<'p>(&self, path: &'p [u8], mount: u64) -> Option<&'p [u8]> {
        // Through another mount the same spelling may lead elsewhere.
        let rest = (mount == self.facts.mount).then(|| below(&self.path, path)).flatten()?;
        self.admits(rest).then_some(rest)
    }

    /// Whether a file at `rest` counts. A link `pg_wal` may be led anywhere by the server's user.
    pub(crate) fn admits(&self, rest: &[u8]) -> bool {
        match (self.part, rest.iter().position(|b| *b == b'/')) {
            (Part::Wal, Some(end)) => self.admits_folder(rest.get(..end).unwrap_or_default()),
            _ => true,
        }
    }

    /// Whether the folder `name` right below this root is entered.
    pub(crate) fn admits_folder(&self, name: &[u8]) -> bool {
        self.part != Part::Wal || matches!(name, b"archive_status" | b"summaries")
    }

    /// Opens the regular file at `rest` below this root, and only that.
    pub(crate) fn file(&self, rest: &[u8], owner: u32) -> Result<(OwnedFd, Facts), Not> {
        open_file(&self.fd, rest, owner)
    }

    /// Opens the folder at `rest` below this root (the root itself, if empty).
    pub(crate) fn folder(&self, rest: &[u8], owner: u32) -> Result<(OwnedFd, Facts), Not> {
        open_folder(&self.fd, if rest.is_empty() { b"." } else { rest }, owner)
    }
}

/// A descriptor of whatever is at `path` below `folder`, to be looked at before it is opened.
fn look(folder: impl AsFd, path: &[u8]) -> Result<OwnedFd, Not> {
    let path = OsStr::from_bytes(path);
    rustix::fs::openat2(folder, path, LOOK, Mode::empty(), BELOW).map_err(Not::from_errno)
}

/// Opens the regular file of `owner` at `path` below `folder`.
pub(crate) fn open_file(
    folder: impl AsFd,
    path: &[u8],
    owner: u32,
) -> Result<(OwnedFd, Facts), Not> {
    open_looked(&look(folder, path)?, owner)
}

/// Opens the folder of `owner` at `path` below `folder`, to list it.
pub(crate) fn open_folder(
    folder: impl AsFd,
    path: &[u8],
    owner: u32,
) -> Result<(OwnedFd, Facts), Not> {
    let look = look(folder, path)?;
    let facts = facts(&look).map_err(Not::Allowed)?;
    if facts.kind != FileType::Directory {
        return Err(Not::AFile);
    }
    if facts.owner != owner {
        return Err(Not::Ours);
    }
    let fd =
        rustix::fs::openat2(&look, c".", ENTER, Mode::empty(), BELOW).map_err(Not::from_errno)?;
    Ok((fd, facts))
}

/// Opens the file behind a descriptor that opened nothing, if it is a regular file of `owner`.
pub(crate) fn open_looked(look: &OwnedFd, owner: u32) -> Result<(OwnedFd, Facts), Not> {
    let facts = facts(look).map_err(Not::Allowed)?;
    if facts.kind != FileType::RegularFile {
        return Err(Not::AFile);
    }
    if facts.owner != owner {
        return Err(Not::Ours);
    }
    // The descriptor, not the name: the name may mean another file by now.
    let links = own_descriptors().map_err(Not::Allowed)?;
    let link = DecInt::from_fd(look);
    let file = rustix::fs::openat(links, link.as_c_str(), OPEN, Mode::empty());
    Ok((file.map_err(Not::from_errno)?, facts))
}

/// The folder of this process's own descriptors, as links: found once, as the way there is longer than all
/// the rest of an open.
fn own_descriptors() -> Result<&'static OwnedFd, Errno> {
    static FOLDER: OnceLock<OwnedFd> = OnceLock::new();
    if let Some(folder) = FOLDER.get() {
        return Ok(folder);
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::openat(CWD, c"/proc/self/fd", flags, Mode::empty())?;
    Ok(FOLDER.get_or_init(|| folder))
}

/// Looks at what another process has open as `fd`, without opening it.
pub(crate) fn look_at_held(pid: u32, fd: u32) -> Option<OwnedFd> {
    let path = format!("/proc/{pid}/fd/{fd}");
    // The link itself is to be followed here: it is the kernel's.
    let flags = LOOK.difference(OFlags::NOFOLLOW);
    rustix::fs::openat(CWD, path.as_str(), flags, Mode::empty()).ok()
}

/// How the kernel spells the path of an open file, without the note that it was unlinked.
pub(crate) fn path_of(file: impl AsFd, buffer: &mut Vec<u8>) -> Option<Vec<u8>> {
    let link = DecInt::from_fd(file);
    let links = own_descriptors().ok()?;
    let path = rustix::fs::readlinkat(links, link.as_c_str(), std::mem::take(buffer)).ok()?;
    let mut path = path.into_bytes();
    if path.ends_with(b" (deleted)") {
        path.truncate(path.len() - b" (deleted)".len());
    }
    (path.first() == Some(&b'/')).then_some(path)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn me() -> u32 {
        rustix::process::geteuid().as_raw()
    }

    fn root_of(dir: &Path) -> Root {
        let path = dir.canonicalize().expect("canonical");
        Root::pin(&path, Vec::new(), Part::Base, None).expect("pinned")
    }

    #[test]
    fn nothing_is_reached_through_links_or_upwards() {
        let dir = tempfile::tempdir().expect("a folder");
        let (inside, outside) = (dir.path().join("in"), dir.path().join("out"));
        fs::create_dir_all(inside.join("sub")).expect("folders");
        fs::create_dir(&outside).expect("a folder");
        fs::write(outside.join("f"), "").expect("a file");
        fs::write(inside.join("sub/f"), "").expect("a file");
        symlink(&outside, inside.join("link")).expect("a link");
        symlink(outside.join("f"), inside.join("file")).expect("a link");
        let root = root_of(&inside);
        root.file(b"sub/f", me()).expect("a plain file");
        for path in [&b"link/f"[..], b"../out/f", b"sub/../../out/f", b"/etc/passwd"] {
            let no = root.file(path, me()).expect_err("outside");
            assert_eq!(no, Not::Inside, "{}", String::from_utf8_lossy(path));
        }
        // O_PATH of a link is the link, which is no regular file
        assert!(matches!(root.file(b"file", me()), Err(Not::AFile | Not::Inside)));
        assert_eq!(root.file(b"sub", me()).expect_err("a folder"), Not::AFile);
        assert_eq!(root.file(b"gone", me()).expect_err("nothing"), Not::AFile);
        assert_eq!(root.file(b"sub/f", me() + 1).expect_err("not theirs"), Not::Ours);
        assert_eq!(root.folder(b"link", me()).expect_err("a link"), Not::AFile);
        root.folder(b"", me()).expect("itself");
    }

    #[test]
    fn a_root_stays_the_folder_that_it_was() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("d");
        fs::create_dir(&path).expect("a folder");
        let root = root_of(&path);
        fs::rename(&path, dir.path().join("elsewhere")).expect("renamed");
        fs::create_dir(&path).expect("another");
        fs::write(path.join("f"), "").expect("a file");
        assert_eq!(root.file(b"f", me()).expect_err("of the other folder"), Not::AFile);
        assert!(!root.is_gone());
        fs::remove_dir(dir.path().join("elsewhere")).expect("removed");
        assert!(root.is_gone());
    }

    #[test]
    fn behind_a_wal_link_only_what_a_server_keeps_there_counts() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().canonicalize().expect("canonical");
        let root = Root::pin(&path, b"pg_wal".to_vec(), Part::Wal, None).expect("pinned");
        let spelled = |rest: &str| [path.as_os_str().as_bytes(), rest.as_bytes()].concat();
        let mount = root.facts().mount;
        let inside = |rest: &str| root.rest_of(&spelled(rest), mount).map(|r| root.inside(r));
        assert_eq!(inside("/0001"), Some(b"pg_wal/0001".to_vec()));
        assert_eq!(inside("/archive_status/x"), Some(b"pg_wal/archive_status/x".to_vec()));
        assert_eq!(inside("/home/x"), None);
        assert_eq!(inside("other/x"), None);
        assert_eq!(root.rest_of(&spelled("/0001"), mount + 1), None);
    }
}
