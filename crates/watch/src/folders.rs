//! The marked folders: from a handle in an event to the place that it is.
//!
//! Invariant: an entry says where a folder *was*; what is done on its word is done by a path below a
//! pinned root, so that a wrong entry can lead to another file of the same root, under its true
//! name, or to none.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use crate::fanotify::Handle;
use crate::folder::Folder;
use crate::root::Root;

/// Where a marked folder is.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) folder: Arc<Folder>,
    pub(crate) root: Arc<Root>,
    /// The path below the root, empty for the root itself.
    pub(crate) rest: Arc<[u8]>,
}

impl Place {
    /// The path below the root of the entry `name`.
    pub(crate) fn entry(&self, name: &[u8]) -> Vec<u8> {
        if self.rest.is_empty() {
            name.to_vec()
        } else {
            [&self.rest, b"/".as_slice(), name].concat()
        }
    }

    /// Whether new tablespaces appear here.
    pub(crate) fn is_pg_tblspc(&self) -> bool {
        self.root.called().is_empty() && &*self.rest == b"pg_tblspc"
    }
}

/// All marked folders.
#[derive(Debug, Default)]
pub(crate) struct Folders(RwLock<HashMap<Handle, Place>>);

impl Folders {
    /// Remembers a folder.
    pub(crate) fn insert(&self, handle: Handle, place: Place) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(handle, place);
    }

    pub(crate) fn find(&self, handle: &Handle) -> Option<Place> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(handle).cloned()
    }

    /// Forgets a folder that was removed.
    pub(crate) fn remove(&self, handle: &Handle) -> Option<Place> {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(handle)
    }

    /// Forgets what lies at `rest` below `root`, and deeper.
    pub(crate) fn remove_below(&self, root: &Arc<Root>, rest: &[u8]) {
        self.retain(|place| {
            let below = place.rest.strip_prefix(rest);
            !(Arc::ptr_eq(&place.root, root)
                && below.is_some_and(|b| b.is_empty() || b.first() == Some(&b'/')))
        });
    }

    /// Forgets the folders of roots that `folder` has no longer.
    pub(crate) fn remove_stale(&self, folder: &Arc<Folder>) {
        let roots = folder.roots();
        self.retain(|place| {
            !Arc::ptr_eq(&place.folder, folder)
                || roots.iter().any(|root| Arc::ptr_eq(root, &place.root))
        });
    }

    fn retain(&self, keep: impl Fn(&Place) -> bool) {
        let mut places = self.0.write().unwrap_or_else(PoisonError::into_inner);
        places.retain(|_, place| keep(place));
    }

    /// How many folders of `folder` are marked.
    pub(crate) fn count(&self, folder: &Arc<Folder>) -> usize {
        let places = self.0.read().unwrap_or_else(PoisonError::into_inner);
        places.values().filter(|place| Arc::ptr_eq(&place.folder, folder)).count()
    }
}
