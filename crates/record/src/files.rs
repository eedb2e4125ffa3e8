//! The file table of a recording: which row an event's file has.
//!
//! Invariants. A row stands for one inode with one generation, as long as its class is the same: a
//! file that is renamed keeps its row and takes its new path, but when the new name makes it
//! another kind of file (PostgreSQL writes a new WAL segment as `xlogtemp.PID` and renames it),
//! what is written from then on belongs to a new row, and what was written before keeps the class
//! it was written as. A file without a name is `unknown`, though its inode is told.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use shelflife_layout::Class;
use shelflife_mounts::{DevNumber, Mounts};
use shelflife_trace::{Error as TraceError, FileClass, FileEntry, FileId, FileTable};

use crate::device::System;
use crate::late::ByHint;
use crate::naming::{DataFolders, Named, Naming, class};
use crate::raw::{FileKey, Issue, Name, Whose};

/// How long a look at mountinfo is believed, where something is not found in it.
const MOUNTS_GOOD_FOR: Duration = Duration::from_secs(1);

/// Where an event goes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Row {
    /// To this file.
    File(FileId),
    /// It is the recorder's own writing.
    Own,
}

pub(crate) struct Files {
    rows: HashMap<FileKey, Row>,
    journal: Option<FileId>,
    metadata: Option<FileId>,
    /// Block devices written to: when it was last seen whether a file system is on it, the row.
    devices: HashMap<DevNumber, (Instant, FileId)>,
    /// Rows of those without a file system.
    raw: HashMap<DevNumber, FileId>,
    /// Bytes written by row.
    written: Vec<ByHint>,
    system: System,
    mounts: Mounts,
    looked: Instant,
    near: PathBuf,
    folders: DataFolders,
    naming: Option<Box<dyn Naming>>,
    own: PathBuf,
}

impl Files {
    /// For a recording under `near`, into the folder `own`.
    pub fn new(
        system: System,
        near: &Path,
        data_folders: &[PathBuf],
        own: &Path,
        naming: Option<Box<dyn Naming>>,
    ) -> Files {
        let around = data_folders.iter().map(PathBuf::as_path).chain([near]);
        Files {
            rows: HashMap::new(),
            journal: None,
            metadata: None,
            devices: HashMap::new(),
            raw: HashMap::new(),
            written: Vec::new(),
            mounts: system.mounts().unwrap_or_default(),
            system,
            looked: Instant::now(),
            near: near.to_owned(),
            folders: DataFolders::new(around),
            naming,
            own: own.to_owned(),
        }
    }

    /// The row of an event's file.
    pub fn row(&mut self, issue: &Issue, table: &mut FileTable) -> Result<Row, TraceError> {
        let row = match issue.whose {
            Whose::Unknown => Row::File(FileId::UNKNOWN),
            Whose::Buffered(key) | Whose::Direct(key) => match self.rows.get(&key) {
                Some(row) => *row,
                None => {
                    let id = table.push(entry(&key, FileClass::Unknown))?;
                    self.rows.insert(key, Row::File(id));
                    Row::File(id)
                }
            },
            Whose::Metadata => Row::File(single(&mut self.metadata, FileClass::FsMetadata, table)?),
            Whose::Journal => Row::File(single(&mut self.journal, FileClass::FsJournal, table)?),
            Whose::BlockDevice(device) => Row::File(self.block_device(device, issue, table)?),
            // the kernel tells that it was written raw, not through which device file
            Whose::Raw => Row::File(FileId::UNKNOWN),
        };
        if let Row::File(FileId(at)) = row
            && issue.op == shelflife_trace::Op::Write
        {
            let at = at as usize;
            if at >= self.written.len() {
                self.written.resize(at + 1, ByHint::default());
            }
            self.written[at][issue.hint.raw() as usize] += issue.length;
        }
        Ok(row)
    }

    /// A page of a block device: journal or metadata if a file system is on it, else the device is
    /// the file.
    fn block_device(
        &mut self,
        device: DevNumber,
        issue: &Issue,
        table: &mut FileTable,
    ) -> Result<FileId, TraceError> {
        // where the addresses of jbd2's functions are hidden, its thread still says it
        if issue.process.bytes().starts_with(b"jbd2/") {
            return single(&mut self.journal, FileClass::FsJournal, table);
        }
        if let Some((seen, id)) = self.devices.get(&device)
            && seen.elapsed() < MOUNTS_GOOD_FOR
        {
            return Ok(*id);
        }
        self.refresh();
        let id = match self.system.device_name(device) {
            Some(name) if !self.system.is_in_use(device, &name, &self.mounts) => {
                match self.raw.get(&device) {
                    Some(id) => *id,
                    None => {
                        let file = FileEntry::new(Class::Outside.into());
                        let id = table.push(file.at(format!("/dev/{name}")))?;
                        self.raw.insert(device, id);
                        id
                    }
                }
            }
            _ => single(&mut self.metadata, FileClass::FsMetadata, table)?,
        };
        self.devices.insert(device, (Instant::now(), id));
        Ok(id)
    }

    fn refresh(&mut self) {
        if let Ok(mounts) = self.system.mounts() {
            self.mounts.refresh(mounts);
        }
        self.looked = Instant::now();
    }

    /// Takes a name in.
    pub fn name(&mut self, name: &Name, table: &mut FileTable) -> Result<(), TraceError> {
        if !self.mounts.has(name.file_system) {
            self.refresh();
        }
        let place = self.mounts.place(name.file_system, &name.path, Some(&self.near));
        // mounted in another namespace, or not any more: no path of this machine, but a name
        let path = place.unwrap_or_else(|| {
            let device = self.system.device_name(name.file_system);
            let device = device.unwrap_or_else(|| name.file_system.to_string());
            let mut path = std::ffi::OsString::from(format!("[{device}]"));
            path.push(&name.path);
            path.into()
        });
        if path.starts_with(&self.own) {
            self.rows.insert(name.key, Row::Own);
            return Ok(());
        }
        let inside = self.folders.inside(&path);
        let class = FileClass::File(class(&inside));
        let fresh = entry(&name.key, class).at(path.to_string_lossy());
        let old = match self.rows.get(&name.key) {
            Some(Row::File(id)) => table.get_mut(*id).map(|old| (*id, old)),
            _ => None,
        };
        let id = match old {
            Some((id, old)) if old.path.is_none() || same_kind(old, &fresh) => {
                *old = fresh;
                id
            }
            _ => {
                let id = table.push(fresh)?;
                self.rows.insert(name.key, Row::File(id));
                id
            }
        };
        if let (Some(naming), Some(entry)) = (&mut self.naming, table.get_mut(id)) {
            let named = Named {
                key: name.key,
                path: &path,
                inside: inside.called.as_deref(),
                data_folder: inside.data_folder.as_deref(),
            };
            naming.name(id, &named, entry);
        }
        Ok(())
    }

    /// Lets the caller's namer change rows.
    pub fn settle(&mut self, table: &mut FileTable, last: bool) {
        if let Some(naming) = &mut self.naming {
            naming.settle(table, last);
        }
    }

    /// Bytes written by row and hint; rows beyond were not written to.
    pub fn written(&self) -> &[ByHint] {
        &self.written
    }

    /// Bytes of writes whose file, journal or metadata is known.
    pub fn attributed(&self, table: &FileTable) -> u64 {
        let known = table.iter().zip(&self.written);
        known
            .filter(|((_, entry), _)| entry.class != FileClass::Unknown)
            .map(|(_, bytes)| bytes.iter().sum::<u64>())
            .sum()
    }
}

fn entry(key: &FileKey, class: FileClass) -> FileEntry {
    let mut entry = FileEntry::new(class);
    entry.inode = Some(key.inode);
    entry.generation = Some(key.generation);
    entry
}

/// Classes that only a catalog tells are those of relations by their paths.
fn same_kind(old: &FileEntry, fresh: &FileEntry) -> bool {
    let plain = |class: FileClass| match class {
        FileClass::Uncommitted => FileClass::File(Class::Relation),
        FileClass::File(class) if class.needs_catalog() => FileClass::File(Class::Relation),
        class => class,
    };
    plain(old.class) == plain(fresh.class)
}

fn single(
    slot: &mut Option<FileId>,
    class: FileClass,
    table: &mut FileTable,
) -> Result<FileId, TraceError> {
    match slot {
        Some(id) => Ok(*id),
        None => {
            let id = table.push(FileEntry::new(class))?;
            *slot = Some(id);
            Ok(id)
        }
    }
}
