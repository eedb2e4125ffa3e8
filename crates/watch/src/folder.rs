//! A folder that is watched, with the roots that belong to it.
//!
//! Invariant: every root belongs to the owner of the data folder, and none is another server's data
//! folder. Links are followed in two places only, `pg_wal` and `pg_tblspc/OID`; what they lead to is
//! pinned once and not followed again.

use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, PoisonError, RwLock};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use shelflife_control::{Page, State};
use shelflife_layout::Class;
use shelflife_lifetime::Lifetime;
use shelflife_sweep::{decide, read_small};

use crate::Error;
use crate::figures::Figures;
use crate::relations::Relations;
use crate::root::{Facts, Not, Part, Root};

/// A watched folder.
#[derive(Debug)]
pub(crate) struct Folder {
    /// Canonical, as it was found at the start.
    base: PathBuf,
    owner: u32,
    group: u32,
    postgres: bool,
    roots: RwLock<Arc<[Arc<Root>]>>,
    /// Whether a sweep is asked for and has not begun.
    pub(crate) is_asked: AtomicBool,
    pub(crate) figures: Figures,
    relations: Option<Relations>,
}

impl Folder {
    /// Finds and pins the folder at `path`: as a PostgreSQL data folder, or as it is.
    pub(crate) fn open(path: &Path, postgres: bool) -> Result<Folder, Error> {
        let io = |what| move |source| Error::Io { what, path: path.to_owned(), source };
        let base = fs::canonicalize(path).map_err(io("no such folder, or not allowed"))?;
        let metadata = fs::metadata(&base).map_err(io("cannot look at it"))?;
        if !metadata.is_dir() {
            return Err(Error::NotAFolder { path: base });
        }
        use std::os::unix::fs::MetadataExt;
        let (owner, me) = (metadata.uid(), rustix::process::geteuid());
        if !me.is_root() && me.as_raw() != owner {
            return Err(Error::NotOwner { path: base, owner, me: me.as_raw() });
        }
        let folder = Folder {
            base,
            owner,
            group: metadata.gid(),
            postgres,
            roots: RwLock::new(Arc::new([])),
            is_asked: AtomicBool::new(false),
            figures: Figures::default(),
            relations: None,
        };
        if postgres && folder.version().is_none() {
            return Err(Error::NotADataFolder { path: folder.base });
        }
        folder.pin_base()?;
        Ok(folder)
    }

    pub(crate) fn base(&self) -> &Path {
        &self.base
    }

    /// Has its files told apart by catalogs from now on.
    pub(crate) fn with_relations(self, relations: Relations) -> Folder {
        Folder { relations: Some(relations), ..self }
    }

    pub(crate) fn relations(&self) -> Option<&Relations> {
        self.relations.as_ref()
    }

    /// The class of the file `inside`, from the data folder, and what the policy gives it, if
    /// anything.
    pub(crate) fn decide(
        &self,
        page: &Page,
        state: State,
        inside: &[u8],
    ) -> (Class, Option<Lifetime>) {
        let base = self.base.as_os_str().as_bytes();
        match &self.relations {
            Some(relations) => relations.decide(page, state, base, inside),
            None => decide(page.table(state), base, inside),
        }
    }

    /// Changes when what [`Folder::decide`] says may have changed under the same state of the page.
    pub(crate) fn edition(&self) -> u64 {
        self.relations.as_ref().map_or(0, Relations::edition)
    }

    pub(crate) fn owner(&self) -> u32 {
        self.owner
    }

    pub(crate) fn group(&self) -> u32 {
        self.group
    }

    /// The roots as they are now; the data folder first; empty while it is gone.
    pub(crate) fn roots(&self) -> Arc<[Arc<Root>]> {
        Arc::clone(&self.roots.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The root that `called` (from the data folder) lies in, and the path below it.
    pub(crate) fn root_of(&self, spelled: &[u8], mount: u64) -> Option<(Arc<Root>, usize)> {
        let roots = self.roots();
        let found = roots
            .iter()
            .filter_map(|root| Some((root, root.rest_of(spelled, mount)?.len())))
            .min_by_key(|(_, rest)| *rest)?;
        Some((Arc::clone(found.0), spelled.len() - found.1))
    }

    /// Whether a root of this folder is the folder of `facts`.
    pub(crate) fn is_root(&self, facts: &Facts) -> bool {
        self.roots().iter().any(|root| root.is_same(facts))
    }

    fn version(&self) -> Option<String> {
        let version = read_small(&self.base.join("PG_VERSION")).ok()?;
        Some(format!("PG_{}_", version.trim()))
    }

    /// Pins the data folder, and holds it against other daemons as long as it is pinned.
    fn pin_base(&self) -> Result<(), Error> {
        let gone = |not| match not {
            Not::Allowed(errno) => {
                Error::Io { what: "cannot open it", path: self.base.clone(), source: errno.into() }
            }
            _ => Error::NotAFolder { path: self.base.clone() },
        };
        let root = Root::pin(&self.base, Vec::new(), Part::Base, Some(self.owner)).map_err(gone)?;
        match flock(root.fd(), FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                let by = holder_of(root.facts());
                return Err(Error::Watched { path: self.base.clone(), by });
            }
            // a file system without locks: two daemons there are found in the registry only
            Err(_) => {}
        }
        self.set_roots(vec![Arc::new(root)]);
        Ok(())
    }

    fn set_roots(&self, roots: Vec<Arc<Root>>) {
        *self.roots.write().unwrap_or_else(PoisonError::into_inner) = roots.into();
    }

    /// Looks again which roots there are; whether any came or went. What is pinned already and is
    /// still the same folder stays pinned.
    pub(crate) fn renew_roots(&self) -> Result<bool, Error> {
        let before = self.roots();
        let kept = before.first().filter(|base| !base.is_gone() && self.is_in_place(base));
        let Some(base) = kept else {
            self.set_roots(Vec::new());
            // The lock goes with the last descriptor.
            drop(before);
            self.pin_base()?;
            self.renew_roots()?;
            return Ok(true);
        };
        let mut roots = vec![Arc::clone(base)];
        if self.postgres
            && let Some(version) = self.version()
        {
            for (path, called, part) in self.elsewhere(&version) {
                let Ok(root) = Root::pin(&path, called, part, Some(self.owner)) else {
                    self.figures.count_foreign();
                    continue;
                };
                if roots.iter().any(|known| known.is_same(root.facts())) {
                    continue;
                }
                let known = before.iter().find(|b| {
                    b.is_same(root.facts()) && b.called() == root.called() && b.path() == path
                });
                roots.push(known.map_or_else(|| Arc::new(root), Arc::clone));
            }
        }
        let changed = roots.len() != before.len()
            || roots.iter().zip(before.iter()).any(|(new, old)| !Arc::ptr_eq(new, old));
        self.set_roots(roots);
        Ok(changed)
    }

    /// Whether the folder's path still leads to what is pinned.
    fn is_in_place(&self, base: &Root) -> bool {
        use std::os::unix::fs::MetadataExt;
        fs::symlink_metadata(&self.base).is_ok_and(|at| at.ino() == base.facts().inode)
    }

    /// Folders outside the data folder's own tree: behind links, or mounted into it.
    fn elsewhere(&self, version: &str) -> Vec<(PathBuf, Vec<u8>, Part)> {
        let mut found = Vec::new();
        let wal = self.base.join("pg_wal");
        if let Some(path) = self.leads_elsewhere(&wal) {
            found.push((path, b"pg_wal".to_vec(), Part::Wal));
        }
        let Ok(entries) = fs::read_dir(self.base.join("pg_tblspc")) else { return found };
        for entry in entries.flatten() {
            let name = entry.file_name();
            if !name.as_bytes().iter().all(u8::is_ascii_digit) {
                continue;
            }
            let Some(location) = self.leads_elsewhere(&entry.path()) else { continue };
            let Ok(versions) = fs::read_dir(&location) else { continue };
            for own in versions.flatten() {
                let own = own.file_name();
                if own.as_bytes().starts_with(version.as_bytes()) {
                    let called = Path::new("pg_tblspc").join(&name).join(&own);
                    let called = called.into_os_string().into_vec();
                    found.push((location.join(&own), called, Part::Tablespace));
                }
            }
        }
        found
    }

    /// Where a link leads, or where something is mounted; `None` for a folder of the tree itself,
    /// for what leads nowhere, and for another server's data folder.
    fn leads_elsewhere(&self, at: &Path) -> Option<PathBuf> {
        let base = self.roots().first().map(|root| root.facts().mount)?;
        let path = fs::canonicalize(at).ok()?;
        let is_link = fs::symlink_metadata(at).is_ok_and(|m| m.is_symlink());
        let is_elsewhere = is_link || {
            let look = fs::File::open(&path).ok()?;
            crate::root::facts(&look).is_ok_and(|facts| facts.mount != base)
        };
        (is_elsewhere && path.is_dir() && !path.join("PG_VERSION").exists()).then_some(path)
    }
}

/// The process that holds a lock (`flock`) on a file, from `/proc/locks`.
fn holder_of(facts: &Facts) -> Option<u32> {
    let locks = fs::read_to_string("/proc/locks").ok()?;
    let (major, minor) = facts.device;
    let file = format!("{major:02x}:{minor:02x}:{}", facts.inode);
    locks.lines().find_map(|line| {
        // `1: FLOCK  ADVISORY  WRITE 3568 fd:00:2531452 0 EOF` (proc_locks(5)); with `->` it waits
        let fields: Vec<&str> = line.split_whitespace().collect();
        match fields.as_slice() {
            [_, "FLOCK", _, _, pid, at, ..] if *at == file => pid.parse().ok(),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A data folder whose WAL and one tablespace lie elsewhere.
    fn data_folder(dir: &Path) -> PathBuf {
        let data = dir.join("data");
        for folder in ["data/base/5", "data/pg_tblspc", "wal", "space/PG_15_1/5", "space/PG_14_1/5"]
        {
            fs::create_dir_all(dir.join(folder)).expect("a folder");
        }
        fs::write(data.join("PG_VERSION"), "15\n").expect("a file");
        symlink(dir.join("wal"), data.join("pg_wal")).expect("a link");
        symlink(dir.join("space"), data.join("pg_tblspc/16400")).expect("a link");
        data
    }

    fn called(folder: &Folder) -> Vec<String> {
        folder.roots().iter().map(|r| String::from_utf8_lossy(r.called()).into_owned()).collect()
    }

    #[test]
    fn roots_are_the_folder_its_wal_and_its_own_tablespaces() {
        let dir = tempfile::tempdir().expect("a folder");
        let data = data_folder(dir.path());
        let folder = Folder::open(&data, true).expect("a data folder");
        assert!(folder.renew_roots().expect("there"));
        assert_eq!(called(&folder), ["", "pg_wal", "pg_tblspc/16400/PG_15_1"]);
        assert!(!folder.renew_roots().expect("there"), "nothing changed");
        fs::create_dir_all(dir.path().join("more/PG_15_1")).expect("a folder");
        symlink(dir.path().join("more"), data.join("pg_tblspc/16401")).expect("a link");
        assert!(folder.renew_roots().expect("there"));
        assert_eq!(folder.roots().len(), 4);
        fs::remove_file(data.join("pg_tblspc/16400")).expect("dropped");
        assert!(folder.renew_roots().expect("there"));
        assert_eq!(called(&folder), ["", "pg_wal", "pg_tblspc/16401/PG_15_1"]);
    }

    #[test]
    fn a_link_to_another_server_or_into_the_folder_itself_is_no_root() {
        let dir = tempfile::tempdir().expect("a folder");
        let data = data_folder(dir.path());
        let other = dir.path().join("other");
        fs::create_dir_all(other.join("PG_15_1")).expect("a folder");
        fs::write(other.join("PG_VERSION"), "15\n").expect("a file");
        symlink(&other, data.join("pg_tblspc/1")).expect("a link");
        symlink(&data, data.join("pg_tblspc/2")).expect("a link");
        symlink("/", data.join("pg_tblspc/3")).expect("a link");
        symlink("nowhere", data.join("pg_tblspc/4")).expect("a link");
        let folder = Folder::open(&data, true).expect("a data folder");
        folder.renew_roots().expect("there");
        assert_eq!(called(&folder), ["", "pg_wal", "pg_tblspc/16400/PG_15_1"]);
    }

    #[test]
    fn one_folder_has_one_daemon_and_the_other_is_named() {
        let dir = tempfile::tempdir().expect("a folder");
        let data = data_folder(dir.path());
        let first = Folder::open(&data, true).expect("the first");
        match Folder::open(&data, true) {
            Err(Error::Watched { by, .. }) => assert_eq!(by, Some(std::process::id())),
            other => panic!("{other:?}"),
        }
        drop(first);
        Folder::open(&data, true).expect("free again");
    }

    #[test]
    fn a_folder_that_was_removed_and_made_anew_is_pinned_anew() {
        let dir = tempfile::tempdir().expect("a folder");
        let data = data_folder(dir.path());
        let folder = Folder::open(&data, true).expect("a data folder");
        fs::remove_dir_all(&data).expect("removed");
        folder.renew_roots().expect_err("gone");
        assert!(folder.roots().is_empty());
        fs::create_dir(&data).expect("made anew");
        fs::write(data.join("PG_VERSION"), "15\n").expect("a file");
        assert!(folder.renew_roots().expect("there"));
        assert_eq!(called(&folder), [""]);
    }
}
