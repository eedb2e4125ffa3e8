//! Where the hook is.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::Error;

/// The hook's file name.
pub(crate) const NAME: &str = "libshelflife_preload.so";

/// A hook that can be preloaded.
#[derive(Clone, Debug)]
pub struct Hook {
    path: PathBuf,
}

impl Hook {
    /// `$SHELFLIFE_HOOK`, else beside this program: `../lib/shelflife` (installed), `../hook`
    /// (a build tree).
    ///
    /// # Errors
    ///
    /// [`Error::NoHook`] with the places, [`Error::HookPath`].
    pub fn find() -> Result<Hook, Error> {
        if let Some(path) = std::env::var_os("SHELFLIFE_HOOK").filter(|v| !v.is_empty()) {
            return Hook::at(Path::new(&path));
        }
        let exe = std::env::current_exe().unwrap_or_default();
        let above = exe.parent().and_then(Path::parent).unwrap_or(Path::new("/"));
        let places = [above.join("lib/shelflife").join(NAME), above.join("hook").join(NAME)];
        match places.iter().find(|p| p.is_file()) {
            Some(path) => Hook::at(path),
            None => {
                Err(Error::NoHook { tried: places.map(|p| p.display().to_string()).join(", ") })
            }
        }
    }

    /// The hook at `path`.
    ///
    /// # Errors
    ///
    /// As [`Hook::find`].
    pub fn at(path: &Path) -> Result<Hook, Error> {
        let path = path
            .canonicalize()
            .map_err(|e| Error::NoHook { tried: format!("{}: {e}", path.display()) })?;
        if path.as_os_str().as_encoded_bytes().iter().any(|b| b" :\t".contains(b)) {
            return Err(Error::HookPath(path));
        }
        Ok(Hook { path })
    }

    /// Its canonical path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// The first folder on the way to `path`, or `path` itself, that other users may not pass or
/// read. The loader of a server that runs as another user would leave the hook out, with one line
/// on standard error that nobody sees.
pub fn hidden_from_others(path: &Path) -> Option<PathBuf> {
    let denied = |p: &&Path| {
        let needed = if *p == path { 0o004 } else { 0o001 };
        p.metadata().is_ok_and(|m| m.mode() & needed == 0)
    };
    path.ancestors().filter(denied).last().map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_that_hides_the_hook_is_named() {
        let dir = tempfile::tempdir().expect("a folder");
        let closed = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(dir.path(), closed).expect("closed");
        let path = dir.path().canonicalize().expect("canonical").join("hook.so");
        std::fs::write(&path, "").expect("a file");
        assert_eq!(hidden_from_others(&path).as_deref(), path.parent());
        assert_eq!(hidden_from_others(Path::new("/proc/self/maps")), None);
    }

    #[test]
    fn a_path_that_the_loader_would_split_is_refused() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("a b.so");
        std::fs::write(&path, "").expect("a file");
        assert!(matches!(Hook::at(&path), Err(Error::HookPath(_))));
        assert!(matches!(Hook::at(Path::new("/nonexistent")), Err(Error::NoHook { .. })));
    }
}
