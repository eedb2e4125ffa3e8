//! The folders of a throwaway cluster, and their removal.
//!
//! Invariant: nothing is removed but what this module made: a folder that existed before stays, empty as it
//! was. Nobody but the server's user may enter the socket's folder, since the server trusts whoever connects.

use std::fs;
use std::fs::DirBuilder;
use std::fs::Permissions;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::path::PathBuf;

use tempfile::TempDir;

use super::PORT;
use crate::error::Error;
use crate::error::Result;
use crate::programs::Programs;
use crate::user::ServerUser;

/// Name of the data folder in the cluster's folder.
pub(super) const DATA: &str = "data";
const LOG: &str = "server.log";
const SOCKET: &str = "socket";

/// The longest path in a `sockaddr_un`, without its final zero byte (unix(7)).
const SUN_PATH_MAX: usize = 107;

/// The cluster's folder; removes itself when dropped, unless kept.
#[derive(Debug)]
pub(super) struct Home {
    folder: PathBuf,
    /// Whether `folder` itself was made here, or only its contents.
    made: bool,
    keep: bool,
    socket: Socket,
}

#[derive(Debug)]
enum Socket {
    Inside(PathBuf),
    /// The cluster's path is too long for a socket: a short folder elsewhere, which goes with the cluster
    /// even if that is kept.
    Apart(TempDir),
}

impl Home {
    /// Makes `folder`, or takes it if it is empty, and in it the data folder and the socket's folder.
    pub(super) fn create(
        folder: &Path,
        user: &ServerUser,
        programs: &Programs,
        keep: bool,
    ) -> Result<Self> {
        // It stays this process's own: what root writes there, the server's user cannot replace by a link.
        let made = match DirBuilder::new().mode(0o755).create(folder) {
            Ok(()) => true,
            Err(source) if source.kind() == io::ErrorKind::AlreadyExists => {
                if !is_empty(folder)? {
                    return Err(Error::NotEmpty { path: folder.to_owned() });
                }
                false
            }
            Err(source) => return Err(Error::io("cannot make", folder, source)),
        };
        // From here on a failure must undo it.
        let guard = Made { folder, made };
        let absolute = canonical(folder)?;
        user.check_reach(&absolute, &programs.postgres())?;
        make_private(&absolute.join(DATA), user)?;
        let socket = Socket::make(&absolute, user, programs)?;
        std::mem::forget(guard);
        Ok(Home { folder: absolute, made, keep, socket })
    }

    /// Takes over a folder made before.
    pub(super) fn open(
        folder: &Path,
        user: &ServerUser,
        programs: &Programs,
        keep: bool,
    ) -> Result<Self> {
        let folder = canonical(folder)?;
        user.check_reach(&folder, &programs.postgres())?;
        let socket = Socket::make(&folder, user, programs)?;
        Ok(Home { folder, made: true, keep, socket })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn data(&self) -> PathBuf {
        self.folder.join(DATA)
    }

    pub(super) fn log(&self) -> PathBuf {
        self.folder.join(LOG)
    }

    pub(super) fn socket(&self) -> &Path {
        match &self.socket {
            Socket::Inside(path) => path,
            Socket::Apart(folder) => folder.path(),
        }
    }

    pub(super) fn keep(&mut self, keep: bool) {
        self.keep = keep;
    }

    /// Removes the folder now, unless it is kept.
    pub(super) fn remove(&mut self) -> Result<()> {
        if self.keep {
            return Ok(());
        }
        self.keep = true;
        remove(&self.folder, self.made)
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = self.remove();
    }
}

/// Undoes a creation that failed half-way.
struct Made<'a> {
    folder: &'a Path,
    made: bool,
}

impl Drop for Made<'_> {
    fn drop(&mut self) {
        let _ = remove(self.folder, self.made);
    }
}

/// Removes what was made in `folder`, and the folder itself if it was `made` and nothing else is in it.
pub(super) fn remove(folder: &Path, made: bool) -> Result<()> {
    let failed = |source| Error::io("cannot remove", folder, source);
    for name in [DATA, SOCKET] {
        gone(fs::remove_dir_all(folder.join(name))).map_err(failed)?;
    }
    gone(fs::remove_file(folder.join(LOG))).map_err(failed)?;
    match if made { fs::remove_dir(folder) } else { Ok(()) } {
        // Somebody else has put something there.
        Err(source) if source.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
        other => gone(other).map_err(failed),
    }
}

fn gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn is_empty(path: &Path) -> Result<bool> {
    let mut entries =
        fs::read_dir(path).map_err(|source| Error::io("cannot list", path, source))?;
    Ok(entries.next().is_none())
}

fn canonical(folder: &Path) -> Result<PathBuf> {
    folder.canonicalize().map_err(|source| Error::io("cannot follow", folder, source))
}

fn make_private(folder: &Path, user: &ServerUser) -> Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(source) if source.kind() != io::ErrorKind::AlreadyExists => {
            Err(Error::io("cannot make", folder, source))
        }
        _ => user.own(folder),
    }
}

impl Socket {
    fn make(folder: &Path, user: &ServerUser, programs: &Programs) -> Result<Self> {
        let inside = folder.join(SOCKET);
        if fits(&inside) {
            make_private(&inside, user)?;
            return Ok(Socket::Inside(inside));
        }
        let own = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let mut last = Err(Error::SocketPath { path: inside });
        for parent in own.into_iter().chain(["/run".into(), "/tmp".into()]) {
            last = Self::apart(&parent, user, programs);
            if last.is_ok() {
                break;
            }
        }
        last
    }

    fn apart(parent: &Path, user: &ServerUser, programs: &Programs) -> Result<Self> {
        let made = tempfile::Builder::new()
            .prefix("shelflife-")
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(parent);
        let folder = made.map_err(|source| Error::io("cannot make a folder in", parent, source))?;
        if !fits(folder.path()) {
            return Err(Error::SocketPath { path: folder.path().to_owned() });
        }
        user.own(folder.path())?;
        user.check_reach(folder.path(), &programs.postgres())?;
        Ok(Socket::Apart(folder))
    }
}

/// Whether the socket's name fits, also into the server's list of folders: that one is split at commas
/// and takes quotes and surrounding spaces for its own.
fn fits(folder: &Path) -> bool {
    let name = format!("/.s.PGSQL.{PORT}");
    let bytes = folder.as_os_str().as_bytes();
    let is_plain = bytes.iter().all(|b| b.is_ascii_alphanumeric() || b"/._-+:~".contains(b));
    bytes.len() + name.len() <= SUN_PATH_MAX && is_plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn socket_names_have_their_limit() {
        let name = format!("/.s.PGSQL.{PORT}").len();
        assert!(fits(Path::new(&format!("/{}", "x".repeat(SUN_PATH_MAX - name - 1)))));
        assert!(!fits(Path::new(&format!("/{}", "x".repeat(SUN_PATH_MAX - name)))));
        assert!(!fits(Path::new("/a,b")));
        assert!(!fits(Path::new("/a b")));
    }
}
