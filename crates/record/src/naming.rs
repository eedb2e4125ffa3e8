//! What a file's path says about it: the class, and for callers who know more, names.
//!
//! Invariant: a class needs a data folder that is there (PG_VERSION and `global`), or a
//! tablespace's folder by its unmistakable name; everything else is `outside`.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use shelflife_layout::{Class, postgres};
use shelflife_sweep::Territory;
use shelflife_trace::{FileEntry, FileId, FileTable};

use crate::raw::FileKey;

/// A file whose name came.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Named<'n> {
    /// Which file.
    pub key: FileKey,
    /// Its path on this machine.
    pub path: &'n Path,
    /// What it is called from its data folder (`base/5/16384`, `pg_tblspc/16400/PG_15_…/5/16385`),
    /// if it is in one.
    pub inside: Option<&'n [u8]>,
    /// That data folder; `None` also for a tablespace whose data folder is not known.
    pub data_folder: Option<&'n Path>,
}

/// Somebody who knows more about files than their paths say, such as a database's catalog.
pub trait Naming: Send {
    /// A file was seen for the first time, or was renamed. `entry`, its row, has class, path, inode
    /// and generation; anything in it may be changed, now or later.
    fn name(&mut self, row: FileId, file: &Named<'_>, entry: &mut FileEntry);

    /// Called before a segment is closed, and with `last` before the trace is: what was learnt
    /// since may go into any row.
    fn settle(&mut self, files: &mut FileTable, last: bool);
}

/// Classes by data folders, found as paths come.
#[derive(Debug, Default)]
pub(crate) struct DataFolders {
    known: Vec<Territory>,
}

/// What a path is called from which data folder.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Inside {
    pub called: Option<Vec<u8>>,
    pub data_folder: Option<PathBuf>,
}

impl DataFolders {
    /// With the data folders at or around these paths.
    pub fn new<'p>(paths: impl IntoIterator<Item = &'p Path>) -> DataFolders {
        let mut folders = DataFolders::default();
        for path in paths {
            // around a file that need not be there: the folder itself, or one above it
            folders.known.extend(Territory::around(&path.join("PG_VERSION")));
        }
        folders
    }

    /// What `path` is called.
    pub fn inside(&mut self, path: &Path) -> Inside {
        let bytes = path.as_os_str().as_bytes();
        let known = self.known.iter().find_map(|folder| Some((folder, folder.inside(bytes)?)));
        if let Some((folder, called)) = known {
            return Inside { called: Some(called), data_folder: Some(folder.base().to_owned()) };
        }
        if let Some(folder) = Territory::around(path)
            && let Some(called) = folder.inside(bytes)
        {
            let data_folder = Some(folder.base().to_owned());
            self.known.push(folder);
            return Inside { called: Some(called), data_folder };
        }
        Inside { called: in_tablespace(bytes), data_folder: None }
    }
}

/// The class of a file that is called so from its data folder.
pub(crate) fn class(inside: &Inside) -> Class {
    match &inside.called {
        Some(called) => postgres::classify(called),
        None => Class::Outside,
    }
}

/// `…/PG_15_202209061/5/16384`, whose data folder is not known.
fn in_tablespace(path: &[u8]) -> Option<Vec<u8>> {
    let mut at = 0;
    for component in path.split(|byte| *byte == b'/') {
        if is_version(component) {
            return Some([b"pg_tblspc/0/", path.get(at..)?].concat());
        }
        at += component.len() + 1;
    }
    None
}

/// `PG_15_202209061`: major version and catalog version (`GetDatabasePath` in relpath.c).
fn is_version(component: &[u8]) -> bool {
    let digits = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    let Some(rest) = component.strip_prefix(b"PG_") else { return false };
    let mut parts = rest.split(|byte| *byte == b'_');
    let (major, catalog) = (parts.next(), parts.next());
    parts.next().is_none()
        && major.is_some_and(digits)
        && catalog.is_some_and(|catalog| catalog.len() == 9 && digits(catalog))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_data_folder_is_found_when_its_first_file_comes() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let mut folders = DataFolders::new([root.as_path()]);
        let file = root.join("pg/base/5/16384");
        assert_eq!(class(&folders.inside(&file)), Class::Outside);
        fs::create_dir_all(root.join("pg/global")).unwrap();
        fs::write(root.join("pg/PG_VERSION"), "15\n").unwrap();
        let inside = folders.inside(&file);
        assert_eq!(inside.data_folder, Some(root.join("pg")));
        assert_eq!(class(&inside), Class::Relation);
        assert_eq!(class(&folders.inside(&root.join("pg/pg_wal/xlogtemp.12"))), Class::WalNew);
        assert_eq!(class(&folders.inside(&root.join("pg2/base/5/16384"))), Class::Outside);
    }

    #[test]
    fn a_tablespace_is_known_by_its_folder() {
        let mut folders = DataFolders::default();
        let mut class_of = |path: &str| class(&folders.inside(Path::new(path)));
        assert_eq!(class_of("/ts/PG_15_202209061/5/16385"), Class::Relation);
        assert_eq!(class_of("/ts/PG_15_202209061/5/16385_vm"), Class::Vm);
        assert_eq!(class_of("/ts/PG_15_202209061/pgsql_tmp/pgsql_tmp1.0"), Class::Temp);
        assert_eq!(class_of("/ts/PG_15/5/16385"), Class::Outside);
        assert_eq!(class_of("/ts/PG_15_2022_1/5/16385"), Class::Outside);
    }
}
