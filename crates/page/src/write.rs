//! The file of a page.
//!
//! Invariant: it is written aside and renamed, so that a reader sees the old page or the new one.

use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use shelflife_report::html::Page;

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
/// The path is a folder or lies in none.
pub fn check(path: &Path) -> Result<(), Error> {
    let failed = |source| Error { path: path.to_owned(), source };
    if path.is_dir() {
        return Err(failed(io::ErrorKind::IsADirectory.into()));
    }
    let folder = folder(path);
    match fs::metadata(folder).map_err(failed)?.is_dir() {
        true => Ok(()),
        false => Err(failed(io::ErrorKind::NotADirectory.into())),
    }
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
    // a link is followed, and what is no file (a pipe, a terminal) cannot be replaced by one
    let path = match fs::canonicalize(path) {
        Ok(there) if there.is_file() => there,
        Ok(other) => {
            return fs::OpenOptions::new().write(true).open(other)?.write_all(text.as_bytes());
        }
        Err(_) => path.to_owned(),
    };
    let mut aside = tempfile::Builder::new()
        .prefix(".page-")
        // less the umask, as of any file
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder(&path))?;
    aside.write_all(text.as_bytes())?;
    aside.as_file().sync_all()?;
    aside.persist(&path)?;
    Ok(())
}

fn folder(path: &Path) -> &Path {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
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
        check(Path::new("page.html")).unwrap();
    }
}
