//! `files.parquet`: what the file of each write is.
//!
//! Invariant: row N is file N, and row 0 is the file that nobody knows, so that every event of a
//! trace finds its row. A reused inode number is another file: the generation tells them apart.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, FileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use serde::Serialize;

use crate::class::FileClass;
use crate::columns::{FILES, Opened, properties, schema};
use crate::error::Error;
use crate::event::FileId;
use crate::meta::write_aside;

/// The name of the file.
pub(crate) const FILES_NAME: &str = "files.parquet";
/// The most files of a trace.
const MAX_FILES: u64 = 1 << 24;
/// The most bytes of all names together: a dictionary of one page may name each many times.
const MAX_TEXT: usize = 1 << 30;
/// Rows at once.
const PART: usize = 8192;

/// A file that was written to.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq, Serialize)]
#[non_exhaustive]
pub struct FileEntry {
    /// What it is.
    #[serde(serialize_with = "by_name")]
    pub class: FileClass,
    /// Its path; of a deleted file the last one.
    pub path: Option<String>,
    /// Name of the database.
    pub database: Option<String>,
    /// Name of the relation, with its schema.
    pub relation: Option<String>,
    /// Kind of the relation: `heap`, `index`, `toast`, `unlogged`, `sequence`, …
    pub kind: Option<String>,
    /// Fork: `main`, `fsm`, `vm`, `init`.
    pub fork: Option<String>,
    /// Name of the tablespace.
    pub tablespace: Option<String>,
    /// Number of the inode.
    pub inode: Option<u64>,
    /// Generation of the inode (`i_generation`).
    pub generation: Option<u32>,
}

fn by_name<S: serde::Serializer>(class: &FileClass, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_str(class.name())
}

impl FileEntry {
    /// A file of this class, and nothing more.
    pub fn new(class: FileClass) -> FileEntry {
        FileEntry { class, ..FileEntry::default() }
    }

    /// With its path.
    #[must_use]
    pub fn at(mut self, path: impl Into<String>) -> FileEntry {
        self.path = Some(path.into());
        self
    }
}

/// All files of a trace.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FileTable {
    rows: Vec<FileEntry>,
}

impl Default for FileTable {
    fn default() -> FileTable {
        FileTable { rows: vec![FileEntry::default()] }
    }
}

impl FileTable {
    /// A table with the unknown file only.
    pub fn new() -> FileTable {
        FileTable::default()
    }

    /// How many, the unknown one included.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Never: the unknown file is always there.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Adds a file.
    ///
    /// # Errors
    ///
    /// There are 2²⁴ already.
    pub fn push(&mut self, entry: FileEntry) -> Result<FileId, Error> {
        let id = self.rows.len() as u64;
        if id >= MAX_FILES {
            return Err(Error::TooMany {
                what: "files",
                limit: MAX_FILES as usize,
                advice: "make a shorter trace",
            });
        }
        self.rows.push(entry);
        Ok(FileId(id as u32))
    }

    /// The file `id`; `None` if there is none.
    pub fn get(&self, id: FileId) -> Option<&FileEntry> {
        self.rows.get(id.0 as usize)
    }

    /// The same to change it, as long as the trace is written: names come later than writes.
    pub fn get_mut(&mut self, id: FileId) -> Option<&mut FileEntry> {
        self.rows.get_mut(id.0 as usize).filter(|_| id != FileId::UNKNOWN)
    }

    /// All of them, from 0.
    pub fn iter(&self) -> impl Iterator<Item = (FileId, &FileEntry)> {
        (0..).map(FileId).zip(&self.rows)
    }

    /// Reads `folder/files.parquet`.
    pub(crate) fn read(folder: &Path) -> Result<FileTable, Error> {
        let path = folder.join(FILES_NAME);
        let file = File::open(&path).map_err(Error::io("read", &path))?;
        FileTable::read_from(file, &path)
    }

    /// The same from bytes; `path` is for messages.
    pub(crate) fn read_from<R: ChunkReader + 'static>(
        reader: R,
        path: &Path,
    ) -> Result<FileTable, Error> {
        let opened = Opened::new(reader, &FILES, path)?;
        if opened.rows > MAX_FILES {
            return Err(Error::TooLarge {
                path: path.to_owned(),
                what: "the number of files",
                found: opened.rows,
                limit: MAX_FILES,
            });
        }
        let mut reading = Reading { path: path.to_owned(), rows: Vec::new(), text: 0, first: 0 };
        for group in 0..opened.file.num_row_groups() {
            reading.group(&opened, group)?;
        }
        match reading.rows.first() {
            Some(entry) if entry.class == FileClass::Unknown => {}
            _ => return Err(reading.bad(0, 1, "", "must be `unknown` in the first row")),
        }
        Ok(FileTable { rows: reading.rows })
    }

    /// Writes `folder/files.parquet` aside and renames it.
    pub(crate) fn write(&self, folder: &Path) -> Result<(), Error> {
        let path = folder.join(FILES_NAME);
        write_aside(&path, |file| self.write_to(file).map_err(std::io::Error::other))
    }

    fn write_to<W: Write + Send>(&self, out: W) -> Result<(), ParquetError> {
        let mut file =
            SerializedFileWriter::new(out, schema(&FILES)?, Arc::new(properties(&FILES)?))?;
        let mut group = file.next_row_group()?;
        let numbers: Vec<i32> = (0..self.rows.len()).map(|at| at as i32).collect();
        let mut column = group.next_column()?.ok_or_else(missing)?;
        column.typed::<Int32Type>().write_batch(&numbers, None, None)?;
        column.close()?;
        let mut column = group.next_column()?.ok_or_else(missing)?;
        for rows in self.rows.chunks(PART) {
            let names: Vec<ByteArray> = rows.iter().map(|r| r.class.name().into()).collect();
            column.typed::<ByteArrayType>().write_batch(&names, None, None)?;
        }
        column.close()?;
        self.put_text(&mut group, |row| row.path.as_deref())?;
        self.put_text(&mut group, |row| row.database.as_deref())?;
        self.put_text(&mut group, |row| row.relation.as_deref())?;
        self.put_text(&mut group, |row| row.kind.as_deref())?;
        self.put_text(&mut group, |row| row.fork.as_deref())?;
        self.put_text(&mut group, |row| row.tablespace.as_deref())?;
        let mut column = group.next_column()?.ok_or_else(missing)?;
        let (levels, values) = split(&self.rows, |row| row.inode.map(u64::cast_signed));
        column.typed::<Int64Type>().write_batch(&values, Some(&levels), None)?;
        column.close()?;
        let mut column = group.next_column()?.ok_or_else(missing)?;
        let (levels, values) = split(&self.rows, |row| row.generation.map(u32::cast_signed));
        column.typed::<Int32Type>().write_batch(&values, Some(&levels), None)?;
        column.close()?;
        group.close()?;
        file.close()?;
        Ok(())
    }

    fn put_text<W: Write + Send>(
        &self,
        group: &mut SerializedRowGroupWriter<'_, W>,
        field: impl Fn(&FileEntry) -> Option<&str>,
    ) -> Result<(), ParquetError> {
        let mut column = group.next_column()?.ok_or_else(missing)?;
        for rows in self.rows.chunks(PART) {
            let (levels, values) = split(rows, |row| field(row).map(ByteArray::from));
            column.typed::<ByteArrayType>().write_batch(&values, Some(&levels), None)?;
        }
        column.close()
    }
}

fn missing() -> ParquetError {
    ParquetError::General("the schema has too few columns".to_owned())
}

/// Definition levels, and the values that are there.
fn split<T>(rows: &[FileEntry], field: impl Fn(&FileEntry) -> Option<T>) -> (Vec<i16>, Vec<T>) {
    let (mut levels, mut values) = (Vec::with_capacity(rows.len()), Vec::new());
    for row in rows {
        let value = field(row);
        levels.push(i16::from(value.is_some()));
        values.extend(value);
    }
    (levels, values)
}

/// A file table being read.
struct Reading {
    path: PathBuf,
    rows: Vec<FileEntry>,
    /// Bytes of all names so far.
    text: usize,
    /// First row of the row group.
    first: usize,
}

impl Reading {
    fn group<R: ChunkReader + 'static>(
        &mut self,
        opened: &Opened<R>,
        group: usize,
    ) -> Result<(), Error> {
        let rows = opened.file.metadata().row_group(group).num_rows();
        let rows = usize::try_from(rows).unwrap_or(0);
        self.first = self.rows.len();
        self.numbers(opened, group, rows)?;
        self.texts(opened, group, 1, |row, text| {
            text.parse().map(|class| row.class = class).is_ok()
        })?;
        type Field = fn(&mut FileEntry) -> &mut Option<String>;
        let fields: [Field; 6] = [
            |row| &mut row.path,
            |row| &mut row.database,
            |row| &mut row.relation,
            |row| &mut row.kind,
            |row| &mut row.fork,
            |row| &mut row.tablespace,
        ];
        for (at, field) in fields.into_iter().enumerate() {
            self.texts(opened, group, 2 + at, |row, text| {
                *field(row) = Some(text.to_owned());
                true
            })?;
        }
        self.inodes(opened, group)
    }

    fn numbers<R: ChunkReader + 'static>(
        &mut self,
        opened: &Opened<R>,
        group: usize,
        rows: usize,
    ) -> Result<(), Error> {
        let mut reader = opened.column::<Int32Type>(group, 0, &self.path)?;
        let mut values = Vec::new();
        let mut left = rows;
        while left > 0 {
            values.clear();
            let read = reader.read_records(left.min(PART), None, None, &mut values);
            if read.map_err(Error::parquet(&self.path))?.0 == 0 || values.is_empty() {
                return Err(self.short(0));
            }
            for value in &values {
                let row = self.rows.len();
                if u32::try_from(row).ok() != Some(value.cast_unsigned()) {
                    return Err(self.bad(row, 0, &value.to_string(), "must be the row's number"));
                }
                self.rows.push(FileEntry::default());
            }
            left = left.saturating_sub(values.len());
        }
        Ok(())
    }

    fn texts<R: ChunkReader + 'static>(
        &mut self,
        opened: &Opened<R>,
        group: usize,
        column: usize,
        set: impl Fn(&mut FileEntry, &str) -> bool,
    ) -> Result<(), Error> {
        let mut reader = opened.column::<ByteArrayType>(group, column, &self.path)?;
        let (mut levels, mut values, mut at) = (Vec::new(), Vec::new(), self.first);
        while at < self.rows.len() {
            levels.clear();
            values.clear();
            let want = (self.rows.len() - at).min(PART);
            let read = match column {
                1 => reader.read_records(want, None, None, &mut values),
                _ => reader.read_records(want, Some(&mut levels), None, &mut values),
            };
            let read = read.map_err(Error::parquet(&self.path))?.0;
            levels.resize(read, 1);
            let named = levels.iter().filter(|level| **level > 0).count();
            if read == 0 || read > want || named != values.len() {
                return Err(self.short(column));
            }
            let mut values = values.iter();
            for level in &levels {
                if *level > 0
                    && let Some(value) = values.next()
                {
                    self.text += value.len();
                    if self.text > MAX_TEXT {
                        return Err(Error::TooLarge {
                            path: self.path.clone(),
                            what: "the length of all names",
                            found: self.text as u64,
                            limit: MAX_TEXT as u64,
                        });
                    }
                    let text = std::str::from_utf8(value.data()).unwrap_or("\u{fffd}");
                    if !set(&mut self.rows[at], text) {
                        let reason = "is no class of files that this program knows";
                        return Err(self.bad(at, column, text, reason));
                    }
                }
                at += 1;
            }
        }
        Ok(())
    }

    fn inodes<R: ChunkReader + 'static>(
        &mut self,
        opened: &Opened<R>,
        group: usize,
    ) -> Result<(), Error> {
        let mut wide = opened.column::<Int64Type>(group, 8, &self.path)?;
        let mut narrow = opened.column::<Int32Type>(group, 9, &self.path)?;
        let (mut inodes, mut generations) = (Vec::new(), Vec::new());
        let (mut has_inode, mut has_generation) = (Vec::new(), Vec::new());
        let mut at = self.first;
        while at < self.rows.len() {
            let want = (self.rows.len() - at).min(PART);
            inodes.clear();
            generations.clear();
            has_inode.clear();
            has_generation.clear();
            let read = wide.read_records(want, Some(&mut has_inode), None, &mut inodes);
            if read.map_err(Error::parquet(&self.path))?.0 != want || has_inode.len() != want {
                return Err(self.short(8));
            }
            let read = narrow.read_records(want, Some(&mut has_generation), None, &mut generations);
            if read.map_err(Error::parquet(&self.path))?.0 != want || has_generation.len() != want {
                return Err(self.short(9));
            }
            let (mut inodes, mut generations) = (inodes.iter(), generations.iter());
            for row in 0..want {
                let entry = &mut self.rows[at + row];
                if has_inode[row] > 0 {
                    entry.inode = inodes.next().map(|v: &i64| v.cast_unsigned());
                }
                if has_generation[row] > 0 {
                    entry.generation = generations.next().map(|v: &i32| v.cast_unsigned());
                }
            }
            at += want;
        }
        Ok(())
    }

    fn short(&self, column: usize) -> Error {
        Error::NotATrace {
            path: self.path.clone(),
            reason: format!("column `{}` has fewer values than the file has rows", FILES[column].0),
        }
    }

    fn bad(&self, row: usize, column: usize, found: &str, reason: &'static str) -> Error {
        Error::Value {
            path: self.path.clone(),
            row: row as u64,
            column: FILES[column].0,
            found: found.chars().take(80).collect(),
            reason,
        }
    }
}
