//! The file of a page.
//!
//! Invariant: it is written aside and renamed, so that a reader sees the old page or the new one.

use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use shelflife_report::html::Page;
use tempfile::NamedTempFile;

/// A page cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the page {}", path.display())]
pub struct Error {
    path: PathBuf,
    source: io::Error,
}

/// Whether a page can be written there: asked before anything that takes long.
///
/// # Errors
///
/// The path is a folder, or no file can be made beside it.
pub fn check(path: &Path) -> Result<(), Error> {
    let tried = match target(path) {
        Target::File(file) => aside(&file).map(drop),
        Target::Other(other) if other.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        // a pipe that is opened and closed again would have ended
        Target::Other(_) => Ok(()),
    };
    tried.map_err(|source| Error { path: path.to_owned(), source })
}

/// Writes a page; an older one is replaced.
///
/// # Errors
///
/// The file cannot be made, written or renamed.
pub fn write(page: &Page, path: &Path) -> Result<(), Error> {
    write_text(&page.to_string(), path).map_err(|source| Error { path: path.to_owned(), source })
}

fn write_text(text: &str, path: &Path) -> io::Result<()> {
    let path = match target(path) {
        Target::File(path) => path,
        Target::Other(path) => {
            return fs::OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes());
        }
    };
    let mut aside = aside(&path)?;
    aside.write_all(text.as_bytes())?;
    aside.as_file().sync_all()?;
    aside.persist(&path)?;
    Ok(())
}

/// What a path stands for. A link is followed.
enum Target {
    /// A file, or nothing yet.
    File(PathBuf),
    /// What cannot be replaced by a file: a pipe, a terminal, a folder.
    Other(PathBuf),
}

fn target(path: &Path) -> Target {
    match fs::canonicalize(path) {
        Ok(there) if there.is_file() => Target::File(there),
        Ok(other) => Target::Other(other),
        Err(_) => Target::File(path.to_owned()),
    }
}

/// A file beside `path` that goes with the value.
fn aside(path: &Path) -> io::Result<NamedTempFile> {
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    tempfile::Builder::new()
        .prefix(".page-")
        // less the umask, as of any file
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder.unwrap_or(Path::new(".")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_whole_and_replaces_the_one_before() {
        let place = tempfile::tempdir().unwrap();
        let (path, link) = (place.path().join("a.html"), place.path().join("link.html"));
        std::os::unix::fs::symlink(&path, &link).unwrap();
        for text in ["one", "two"] {
            write_text(text, &path).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        write_text("three", &link).unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read_to_string(&path).unwrap(), "three");
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 2, "nothing else is left");
        assert_ne!(fs::metadata(&path).unwrap().permissions().mode() & 0o040, 0, "readable");
    }

    #[test]
    fn what_is_no_file_is_not_replaced() {
        write_text("gone", Path::new("/dev/null")).unwrap();
        assert!(!Path::new("/dev/null").is_file());
        let place = tempfile::tempdir().unwrap();
        assert!(write_text("x", place.path()).is_err());
        let said = check(place.path()).unwrap_err().to_string();
        assert!(said.contains(&*place.path().to_string_lossy()), "{said}");
        assert!(check(&place.path().join("no/page.html")).is_err());
        check(&place.path().join("page.html")).unwrap();
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0, "nothing is left");
        check(Path::new("/dev/null")).unwrap();
        // nobody makes files there, not even root
        assert!(check(Path::new("/proc/self/page.html")).is_err());
        check(Path::new("page.html")).unwrap();
    }
}
