//! The folders that a sweep may enter.
//!
//! Invariant: a root's path is as the kernel spells it, so that links of `/proc/PID/fd` can be
//! compared with it, and each root says what it is called from the data folder.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use shelflife_layout::path::below;

use crate::small::read_small;

/// Why a folder cannot be swept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Not there, not readable.
    #[error("{}: {what}", path.display())]
    Io {
        /// What was being done.
        what: &'static str,
        /// The folder.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// A policy for PostgreSQL needs a data folder.
    #[error(
        "{}: not a PostgreSQL data folder (it has no PG_VERSION); name the data folder, or use a \
         policy with layout = \"paths\"",
        path.display()
    )]
    NotADataFolder {
        /// The folder.
        path: PathBuf,
    },
}

/// One folder and what it is called from the data folder.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Root {
    /// Canonical path.
    pub path: PathBuf,
    /// Path from the data folder: empty, `pg_wal`, or `pg_tblspc/OID`.
    pub called: PathBuf,
}

/// A data folder with its WAL folder and tablespaces, or a plain folder.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Territory {
    base: PathBuf,
    owner: u32,
    roots: Vec<Root>,
    /// `PG_15_`: the start of the only folder of a tablespace that is this server's.
    version_prefix: Option<String>,
}

impl Territory {
    /// The data folder at `path`, its resolved `pg_wal`, and each resolved `pg_tblspc/OID`.
    ///
    /// # Errors
    ///
    /// [`Error`].
    pub fn data_folder(path: &Path) -> Result<Territory, Error> {
        let mut territory = Territory::folder(path)?;
        let version = read_small(&territory.base.join("PG_VERSION"))
            .map_err(|_| Error::NotADataFolder { path: territory.base.clone() })?;
        territory.version_prefix = Some(format!("PG_{}_", version.trim()));
        let mut links = vec![PathBuf::from("pg_wal")];
        if let Ok(entries) = fs::read_dir(territory.base.join("pg_tblspc")) {
            let names = entries.flatten().map(|e| Path::new("pg_tblspc").join(e.file_name()));
            links.extend(names);
        }
        for called in links {
            let at = territory.base.join(&called);
            // A link that leads nowhere (a tablespace being dropped) is no root, nor is one that
            // leads to a data folder: that would be another server's.
            if fs::symlink_metadata(&at).is_ok_and(|m| m.is_symlink())
                && let Ok(path) = fs::canonicalize(&at)
                && !path.join("PG_VERSION").exists()
            {
                territory.roots.push(Root { path, called });
            }
        }
        Ok(territory)
    }

    /// The folder at `path` and nothing else.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn folder(path: &Path) -> Result<Territory, Error> {
        let io = |what| move |source| Error::Io { what, path: path.to_owned(), source };
        let base = fs::canonicalize(path).map_err(io("no such folder, or not allowed"))?;
        let owner = fs::metadata(&base).map_err(io("cannot look at it"))?.uid();
        fs::read_dir(&base).map_err(io("cannot list it"))?;
        let roots = vec![Root { path: base.clone(), called: PathBuf::new() }];
        Ok(Territory { base, owner, roots, version_prefix: None })
    }

    /// The territory of the data folder that `path` lies in by its name: the nearest folder above
    /// it that holds a PG_VERSION and a `global`.
    pub fn around(path: &Path) -> Option<Territory> {
        let path = std::path::absolute(path).ok()?;
        let is_data = |dir: &&Path| dir.join("PG_VERSION").is_file() && dir.join("global").is_dir();
        Territory::data_folder(path.ancestors().skip(1).find(is_data)?).ok()
    }

    /// The data folder.
    pub fn base(&self) -> &Path {
        &self.base
    }

    /// The user whose files are hinted: the owner of the data folder.
    pub fn owner(&self) -> u32 {
        self.owner
    }

    /// All folders, the data folder first.
    pub fn roots(&self) -> &[Root] {
        &self.roots
    }

    /// Whether a tablespace's subfolder `name` is this server's.
    pub(crate) fn is_own_version(&self, name: &[u8]) -> bool {
        match &self.version_prefix {
            Some(prefix) => name.starts_with(prefix.as_bytes()),
            None => true,
        }
    }

    /// What the file at `path` (absolute) is called from the data folder; `None` if it is not in
    /// the territory.
    pub fn inside(&self, path: &[u8]) -> Option<Vec<u8>> {
        // The longest root wins: a tablespace may lie below the data folder's own parent.
        let found = self
            .roots
            .iter()
            .filter_map(|root| Some((root, below(root.path.as_os_str().as_bytes(), path)?)))
            .min_by_key(|(_, rest)| rest.len());
        let (root, rest) = found?;
        if root.called.as_os_str().is_empty() {
            return Some(rest.to_vec());
        }
        if root.called.starts_with("pg_tblspc") && !self.is_own_version(rest) {
            return None;
        }
        Some([root.called.as_os_str().as_bytes(), b"/", rest].concat())
    }
}
