//! One `events-NNNN.parquet`.
//!
//! Invariant: whatever the bytes of a segment, a reader gives events that keep their contract
//! (known op, hint and flags, a range that does not overflow, a device and a file that are in their
//! tables), or an error with the segment's name.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, FileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use shelflife_lifetime::Lifetime;

use crate::columns::{EVENTS, Opened, properties, schema};
use crate::error::Error;
use crate::event::{Batch, FileId, Flags, Op, ProcessId};

/// Rows of a row group: what a writer holds in memory before it is encoded.
pub(crate) const ROW_GROUP: usize = 1 << 17;
/// Rows that a reader decodes at once: its columns stay in the second-level cache.
pub(crate) const READ: usize = 8192;
/// A segment's offsets and times are `INT64`.
pub(crate) const MAX: u64 = i64::MAX as u64;
/// The longest write: a bio counts its bytes in 32 bits (`bi_size`). Discards may be longer.
pub(crate) const MAX_WRITE: u64 = u32::MAX as u64;
/// The longest name of a process that is read; the kernel's have 15 bytes.
const MAX_PROCESS: usize = 4096;

/// Names of processes and their numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Processes {
    /// Name of number N + 1.
    names: Vec<ByteArray>,
    numbers: HashMap<Vec<u8>, ProcessId>,
    last: Option<(ByteArray, ProcessId)>,
}

impl Processes {
    /// The number of `name`, a new one if need be.
    pub(crate) fn number(&mut self, name: &[u8]) -> Result<ProcessId, Error> {
        if let Some(number) = self.numbers.get(name) {
            return Ok(*number);
        }
        let number = u16::try_from(self.names.len() + 1).map_err(|_| Error::TooMany {
            what: "names of processes",
            limit: usize::from(u16::MAX),
            advice: "leave the column `process` out",
        })?;
        // parquet's UTF8 is checked by readers
        let text = String::from_utf8_lossy(name).into_owned();
        self.names.push(ByteArray::from(text.into_bytes()));
        self.numbers.insert(name.to_vec(), ProcessId(number));
        Ok(ProcessId(number))
    }

    /// The name of `number`; `None` for unknown ones.
    pub(crate) fn name(&self, number: ProcessId) -> Option<&str> {
        let at = usize::from(number.0).checked_sub(1)?;
        std::str::from_utf8(self.names.get(at)?.data()).ok()
    }

    fn value(&self, number: ProcessId) -> Option<&ByteArray> {
        self.names.get(usize::from(number.0).checked_sub(1)?)
    }

    /// As [`Processes::number`] for a value from a file: the same value again costs no hashing.
    fn number_of(&mut self, value: &ByteArray) -> Result<ProcessId, Error> {
        if let Some((last, number)) = &self.last
            && last.data() == value.data()
        {
            return Ok(*number);
        }
        let number = self.number(value.data())?;
        self.last = Some((value.clone(), number));
        Ok(number)
    }
}

/// A segment being written, under another name until it is closed.
pub(crate) struct SegmentWriter<W: Write + Send> {
    path: PathBuf,
    file: SerializedFileWriter<W>,
    scratch32: Vec<i32>,
    scratch64: Vec<i64>,
}

impl<W: Write + Send> SegmentWriter<W> {
    pub(crate) fn new(out: W, path: &Path) -> Result<SegmentWriter<W>, Error> {
        let made = schema(&EVENTS).and_then(|schema| {
            SerializedFileWriter::new(out, schema, Arc::new(properties(&EVENTS)?))
        });
        let file = made.map_err(Error::unwritten(path))?;
        Ok(SegmentWriter {
            path: path.to_owned(),
            file,
            scratch32: Vec::new(),
            scratch64: Vec::new(),
        })
    }

    /// Writes a row group.
    pub(crate) fn write(&mut self, batch: &Batch, processes: &Processes) -> Result<(), Error> {
        if batch.is_empty() {
            return Ok(());
        }
        self.write_group(batch, processes).map_err(Error::unwritten(&self.path))
    }

    fn write_group(&mut self, batch: &Batch, processes: &Processes) -> Result<(), ParquetError> {
        let (wide, narrow) = (&mut self.scratch64, &mut self.scratch32);
        let mut group = self.file.next_row_group()?;
        // the writer refused what does not fit into 63 bits
        for column in [&batch.time, &batch.offset, &batch.length] {
            wide.clear();
            wide.extend(column.iter().map(|v| *v as i64));
            put::<Int64Type, _>(&mut group, wide)?;
        }
        let mut put32 = |values: &mut dyn Iterator<Item = i32>| {
            narrow.clear();
            narrow.extend(values);
            put::<Int32Type, _>(&mut group, narrow)
        };
        put32(&mut batch.op.iter().map(|v| i32::from(v.number())))?;
        put32(&mut batch.hint.iter().map(|v| v.raw() as i32))?;
        put32(&mut batch.stream.iter().map(|v| i32::from(*v)))?;
        put32(&mut batch.flags.iter().map(|v| i32::from(v.bits())))?;
        put32(&mut batch.device.iter().map(|v| i32::from(*v)))?;
        put32(&mut batch.file.iter().map(|v| v.0.cast_signed()))?;
        put_processes(&mut group, &batch.process, processes)?;
        group.close()?;
        Ok(())
    }

    /// Writes the footer and gives back what was written to.
    pub(crate) fn finish(self) -> Result<W, Error> {
        let path = self.path;
        self.file.into_inner().map_err(Error::unwritten(&path))
    }
}

fn put<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &[T::T],
) -> Result<(), ParquetError> {
    let missing = || ParquetError::General("the schema has too few columns".to_owned());
    let mut column = group.next_column()?.ok_or_else(missing)?;
    column.typed::<T>().write_batch(values, None, None)?;
    column.close()
}

fn put_processes<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    numbers: &[ProcessId],
    processes: &Processes,
) -> Result<(), ParquetError> {
    let missing = || ParquetError::General("the schema has too few columns".to_owned());
    let mut column = group.next_column()?.ok_or_else(missing)?;
    let (mut levels, mut values) = (Vec::with_capacity(READ), Vec::with_capacity(READ));
    for part in numbers.chunks(READ) {
        levels.clear();
        values.clear();
        if part.iter().all(|number| *number == ProcessId::UNKNOWN) {
            levels.resize(part.len(), 0);
        } else {
            let names = part.iter().map(|number| processes.value(*number));
            for name in names {
                levels.push(i16::from(name.is_some()));
                values.extend(name.cloned());
            }
        }
        column.typed::<ByteArrayType>().write_batch(&values, Some(&levels), None)?;
    }
    column.close()
}

/// What the events of a segment may refer to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tables {
    pub(crate) devices: usize,
    pub(crate) files: usize,
}

/// A segment being read.
pub(crate) struct SegmentReader<R: ChunkReader + 'static> {
    path: PathBuf,
    opened: Opened<R>,
    tables: Tables,
    with_processes: bool,
    next_group: usize,
    columns: Option<Columns>,
    row: u64,
    scratch32: Vec<i32>,
    scratch64: Vec<i64>,
    names: Vec<ByteArray>,
    levels: Vec<i16>,
}

struct Columns {
    left: usize,
    wide: [ColumnReaderImpl<Int64Type>; 3],
    narrow: [ColumnReaderImpl<Int32Type>; 6],
    process: Option<ColumnReaderImpl<ByteArrayType>>,
}

impl SegmentReader<File> {
    pub(crate) fn open(path: &Path, tables: Tables) -> Result<SegmentReader<File>, Error> {
        let file = File::open(path).map_err(Error::io("read", path))?;
        SegmentReader::new(file, path, tables)
    }
}

impl<R: ChunkReader + 'static> SegmentReader<R> {
    pub(crate) fn new(reader: R, path: &Path, tables: Tables) -> Result<SegmentReader<R>, Error> {
        Ok(SegmentReader {
            path: path.to_owned(),
            opened: Opened::new(reader, &EVENTS, path)?,
            tables,
            with_processes: true,
            next_group: 0,
            columns: None,
            row: 0,
            scratch32: Vec::new(),
            scratch64: Vec::new(),
            names: Vec::new(),
            levels: Vec::new(),
        })
    }

    /// Leaves the names of processes out, which cost as much as all other columns together.
    pub(crate) fn skip_processes(&mut self) {
        self.with_processes = false;
    }

    /// Fills the empty `batch` with up to [`READ`] events; `false` at the end.
    pub(crate) fn read(
        &mut self,
        batch: &mut Batch,
        processes: &mut Processes,
    ) -> Result<bool, Error> {
        let mut columns = match self.columns.take() {
            Some(columns) => columns,
            None => match self.next_columns()? {
                Some(columns) => columns,
                None => return Ok(false),
            },
        };
        let want = columns.left.min(READ);
        self.read_wide(&mut columns, want, batch)?;
        self.read_narrow(&mut columns, want, batch)?;
        self.check_lengths(batch)?;
        self.read_processes(&mut columns, want, batch, processes)?;
        columns.left -= want;
        self.row += want as u64;
        self.columns = (columns.left > 0).then_some(columns);
        Ok(true)
    }

    fn next_columns(&mut self) -> Result<Option<Columns>, Error> {
        let groups = self.opened.file.metadata().row_groups();
        while let Some(group) = groups.get(self.next_group) {
            let (at, path) = (self.next_group, &self.path);
            self.next_group += 1;
            // not negative and not absurd: `Opened` looked
            let left = usize::try_from(group.num_rows()).unwrap_or(0);
            if left == 0 {
                continue;
            }
            let wide = |column| self.opened.column::<Int64Type>(at, column, path);
            let narrow = |column| self.opened.column::<Int32Type>(at, column, path);
            let process = match self.with_processes {
                true => Some(self.opened.column::<ByteArrayType>(at, 9, path)?),
                false => None,
            };
            return Ok(Some(Columns {
                left,
                wide: [wide(0)?, wide(1)?, wide(2)?],
                narrow: [narrow(3)?, narrow(4)?, narrow(5)?, narrow(6)?, narrow(7)?, narrow(8)?],
                process,
            }));
        }
        Ok(None)
    }

    fn read_wide(
        &mut self,
        columns: &mut Columns,
        want: usize,
        batch: &mut Batch,
    ) -> Result<(), Error> {
        for (at, reader) in columns.wide.iter_mut().enumerate() {
            let values = &mut self.scratch64;
            values.clear();
            let read = reader.read_records(want, None, None, values);
            let read = read.map_err(Error::parquet(&self.path))?.0;
            if read != want || values.len() != want {
                return Err(self.short(at));
            }
            if let Some(bad) = values.iter().position(|v| *v < 0) {
                return Err(self.bad(at, bad, self.scratch64[bad], "must not be negative"));
            }
            let column = [&mut batch.time, &mut batch.offset, &mut batch.length];
            for (place, column) in column.into_iter().enumerate() {
                if place == at {
                    column.extend(values.iter().map(|v| v.cast_unsigned()));
                }
            }
        }
        let ranges = batch.offset.iter().zip(&batch.length);
        let mut wrong = ranges.map(|(offset, length)| *length == 0 || offset + length > MAX);
        if let Some(bad) = wrong.position(|wrong| wrong) {
            let length = batch.length[bad] as i64;
            return Err(self.bad(2, bad, length, "must be from 1 and end below 2^63"));
        }
        Ok(())
    }

    fn read_narrow(
        &mut self,
        columns: &mut Columns,
        want: usize,
        batch: &mut Batch,
    ) -> Result<(), Error> {
        let devices = self.tables.devices.min(1 << 16);
        let files = self.tables.files;
        for (at, reader) in columns.narrow.iter_mut().enumerate() {
            let values = &mut self.scratch32;
            values.clear();
            let read = reader.read_records(want, None, None, values);
            let read = read.map_err(Error::parquet(&self.path))?.0;
            if read != want || values.len() != want {
                return Err(self.short(3 + at));
            }
            // every conversion keeps its row, so that a column that got shorter names the bad one
            let values = values.iter().map(|v| v.cast_unsigned());
            let byte = |v: u32| u8::try_from(v).ok();
            let (added, reason) = match at {
                0 => (
                    extend(&mut batch.op, values, |v| byte(v).and_then(Op::from_number)),
                    "must be 0 (write), 1 (discard) or 2 (write-zeroes)",
                ),
                1 => (
                    extend(&mut batch.hint, values, |v| Lifetime::from_raw(u64::from(v))),
                    "must be a lifetime, 0 to 5",
                ),
                2 => (extend(&mut batch.stream, values, byte), "must be a write stream, 0 to 255"),
                3 => (
                    extend(&mut batch.flags, values, |v| byte(v).and_then(Flags::from_bits)),
                    "must be flags, 0 to 7",
                ),
                4 => (
                    extend(&mut batch.device, values, |v| {
                        u16::try_from(v).ok().filter(|v| usize::from(*v) < devices)
                    }),
                    "must be the number of a device in meta.json",
                ),
                _ => (
                    extend(&mut batch.file, values, |v| {
                        ((v as usize) < files).then_some(FileId(v))
                    }),
                    "must be a row of files.parquet",
                ),
            };
            if added != want {
                let found = i64::from(self.scratch32[added].cast_unsigned());
                return Err(self.bad(3 + at, added, found, reason));
            }
        }
        Ok(())
    }

    fn check_lengths(&self, batch: &Batch) -> Result<(), Error> {
        let mut long = batch.length.iter().zip(&batch.op);
        match long.position(|(length, op)| *length > MAX_WRITE && *op == Op::Write) {
            Some(at) => {
                let found = batch.length[at] as i64;
                Err(self.bad(2, at, found, "is too long for a write, at most 4 GiB - 1"))
            }
            None => Ok(()),
        }
    }

    fn read_processes(
        &mut self,
        columns: &mut Columns,
        want: usize,
        batch: &mut Batch,
        processes: &mut Processes,
    ) -> Result<(), Error> {
        let Some(reader) = &mut columns.process else {
            batch.process.resize(batch.process.len() + want, ProcessId::UNKNOWN);
            return Ok(());
        };
        self.names.clear();
        self.levels.clear();
        let read = reader.read_records(want, Some(&mut self.levels), None, &mut self.names);
        let read = read.map_err(Error::parquet(&self.path))?.0;
        let named = self.levels.iter().filter(|level| **level > 0).count();
        if read != want || self.levels.len() != want || named != self.names.len() {
            return Err(self.short(9));
        }
        let mut names = self.names.iter();
        for (at, level) in self.levels.iter().enumerate() {
            let name = if *level > 0 { names.next() } else { None };
            let number = match name {
                Some(name) if name.len() > MAX_PROCESS => {
                    let found = name.len() as i64;
                    return Err(self.bad(9, at, found, "bytes are no name of a process"));
                }
                Some(name) => processes.number_of(name)?,
                None => ProcessId::UNKNOWN,
            };
            batch.process.push(number);
        }
        Ok(())
    }

    fn short(&self, column: usize) -> Error {
        Error::NotATrace {
            path: self.path.clone(),
            reason: format!(
                "column `{}` has fewer values than the file has rows",
                EVENTS[column].0
            ),
        }
    }

    fn bad(&self, column: usize, at: usize, found: i64, reason: &'static str) -> Error {
        Error::Value {
            path: self.path.clone(),
            row: self.row + at as u64,
            column: EVENTS[column].0,
            found: found.to_string(),
            reason,
        }
    }
}

/// Appends converted values up to the first that has no meaning; how many.
fn extend<T>(
    column: &mut Vec<T>,
    values: impl Iterator<Item = u32>,
    convert: impl Fn(u32) -> Option<T>,
) -> usize {
    let before = column.len();
    column.extend(values.map_while(convert));
    column.len() - before
}
