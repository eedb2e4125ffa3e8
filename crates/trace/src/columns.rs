//! The columns of the Parquet files: how they are written, and what is believed of one that is
//! read.
//!
//! Invariant: sizes that a file states are compared with what it can hold before memory is taken
//! for them, and a column of another type is an error with its name. Columns that this version does
//! not know are passed over.
//!
//! Encodings were chosen by measurement (`docs/trace-format.md`, "Encodings").

use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type, ZstdLevel};
use parquet::column::reader::{ColumnReaderImpl, get_column_reader, get_typed_column_reader};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::file::reader::{ChunkReader, FileReader, SerializedFileReader};
use parquet::schema::types::{ColumnPath, Type as SchemaType, TypePtr};

use crate::error::Error;
use crate::guard::Guarded;
use crate::meta::VERSION;

/// The most rows of one Parquet file that are read.
const MAX_ROWS: u64 = 1 << 28;
/// The most row groups.
const MAX_ROW_GROUPS: u64 = 1 << 16;
/// The longest footer that is read: ours have some kilobytes.
const MAX_FOOTER: u64 = 64 << 20;
/// Key of the version in a file's metadata.
const VERSION_KEY: &str = "shelflife-trace.version";

/// What a column holds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Holds {
    /// `INT64`, never negative.
    Int64,
    /// `INT32` that is an unsigned number of so many bits.
    Unsigned(i8),
    /// UTF-8, may be null.
    Text,
    /// UTF-8, never null.
    TextAlways,
    /// `INT64` unsigned, may be null.
    MaybeUnsigned64,
    /// `INT32` unsigned, may be null.
    MaybeUnsigned32,
}

impl Holds {
    fn physical(self) -> Type {
        match self {
            Holds::Int64 | Holds::MaybeUnsigned64 => Type::INT64,
            Holds::Unsigned(_) | Holds::MaybeUnsigned32 => Type::INT32,
            Holds::Text | Holds::TextAlways => Type::BYTE_ARRAY,
        }
    }

    fn nullable(self) -> bool {
        matches!(self, Holds::Text | Holds::MaybeUnsigned64 | Holds::MaybeUnsigned32)
    }

    fn logical(self) -> Option<LogicalType> {
        let unsigned = |bit_width| Some(LogicalType::integer(bit_width, false));
        match self {
            Holds::Int64 => None,
            Holds::Unsigned(bits) => unsigned(bits),
            Holds::MaybeUnsigned64 => unsigned(64),
            Holds::MaybeUnsigned32 => unsigned(32),
            Holds::Text | Holds::TextAlways => Some(LogicalType::String),
        }
    }

    fn in_words(self) -> &'static str {
        match self {
            Holds::Int64 => "a required INT64",
            Holds::Unsigned(_) => "a required INT32",
            Holds::Text => "a BYTE_ARRAY",
            Holds::TextAlways => "a required BYTE_ARRAY",
            Holds::MaybeUnsigned64 => "an INT64",
            Holds::MaybeUnsigned32 => "an INT32",
        }
    }
}

/// How a column is written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Coded {
    /// A dictionary per row group and run lengths.
    Dictionary,
    /// Differences, bit-packed.
    Delta,
    /// The first bytes of all values, then the second bytes, …
    Split,
}

/// One column.
pub(crate) type Column = (&'static str, Holds, Coded);

/// The columns of a segment.
pub(crate) const EVENTS: [Column; 10] = [
    ("time", Holds::Int64, Coded::Delta),
    ("offset", Holds::Int64, Coded::Split),
    ("length", Holds::Int64, Coded::Split),
    ("op", Holds::Unsigned(8), Coded::Split),
    ("hint", Holds::Unsigned(8), Coded::Split),
    ("stream", Holds::Unsigned(8), Coded::Split),
    ("flags", Holds::Unsigned(8), Coded::Split),
    ("device", Holds::Unsigned(16), Coded::Split),
    ("file", Holds::Unsigned(32), Coded::Split),
    ("process", Holds::Text, Coded::Dictionary),
];

/// The columns of the file table.
pub(crate) const FILES: [Column; 10] = [
    ("file", Holds::Unsigned(32), Coded::Split),
    ("class", Holds::TextAlways, Coded::Dictionary),
    ("path", Holds::Text, Coded::Dictionary),
    ("database", Holds::Text, Coded::Dictionary),
    ("relation", Holds::Text, Coded::Dictionary),
    ("kind", Holds::Text, Coded::Dictionary),
    ("fork", Holds::Text, Coded::Dictionary),
    ("tablespace", Holds::Text, Coded::Dictionary),
    ("inode", Holds::MaybeUnsigned64, Coded::Dictionary),
    ("generation", Holds::MaybeUnsigned32, Coded::Dictionary),
];

/// The schema of a file with these columns.
pub(crate) fn schema(columns: &[Column]) -> Result<TypePtr, ParquetError> {
    let fields = columns.iter().map(|(name, holds, _)| {
        let repetition = if holds.nullable() { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        SchemaType::primitive_type_builder(name, holds.physical())
            .with_repetition(repetition)
            .with_logical_type(holds.logical())
            .build()
            .map(Arc::new)
    });
    let fields = fields.collect::<Result<Vec<_>, _>>()?;
    SchemaType::group_type_builder("schema").with_fields(fields).build().map(Arc::new)
}

/// How a file with these columns is written. Statistics (least and greatest of a row group) stand
/// where somebody looks for ranges: time and offset.
pub(crate) fn properties(columns: &[Column]) -> Result<WriterProperties, ParquetError> {
    let mut properties = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_2_0)
        .set_created_by(concat!("shelflife ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true)
        // the values come in whole row groups; the library's pieces of 1024 cost a third more time
        .set_write_batch_size(16_384)
        .set_key_value_metadata(Some(vec![KeyValue::new(
            VERSION_KEY.to_owned(),
            VERSION.to_string(),
        )]));
    for (name, _, coded) in columns {
        let column = || ColumnPath::from(*name);
        properties =
            properties.set_column_dictionary_enabled(column(), *coded == Coded::Dictionary);
        properties = match coded {
            Coded::Dictionary => properties,
            Coded::Delta => properties.set_column_encoding(column(), Encoding::DELTA_BINARY_PACKED),
            Coded::Split => properties.set_column_encoding(column(), Encoding::BYTE_STREAM_SPLIT),
        };
        if matches!(*name, "time" | "offset") {
            properties =
                properties.set_column_statistics_enabled(column(), EnabledStatistics::Chunk);
        }
    }
    Ok(properties.build())
}

/// An opened file whose schema and sizes were checked, with the place of each of our columns.
pub(crate) struct Opened<R: ChunkReader + 'static> {
    pub(crate) file: SerializedFileReader<R>,
    /// Rows of all row groups.
    pub(crate) rows: u64,
    places: Vec<usize>,
}

impl<R: ChunkReader + 'static> Opened<R> {
    /// Opens a file that must have `columns`; `path` is for messages.
    pub(crate) fn new(reader: R, columns: &[Column], path: &Path) -> Result<Opened<R>, Error> {
        let size = reader.len();
        check_footer(&reader, path)?;
        let file = SerializedFileReader::new(reader).map_err(Error::parquet(path))?;
        check_version(&file, path)?;
        let too_large =
            |what, found, limit| Error::TooLarge { path: path.to_owned(), what, found, limit };
        let meta = file.metadata();
        let groups = meta.num_row_groups() as u64;
        if groups > MAX_ROW_GROUPS {
            return Err(too_large("the number of row groups", groups, MAX_ROW_GROUPS));
        }
        let mut rows = 0u64;
        for group in meta.row_groups() {
            let own = u64::try_from(group.num_rows()).map_err(|_| Error::NotATrace {
                path: path.to_owned(),
                reason: format!("a row group states {} rows", group.num_rows()),
            })?;
            rows = rows.saturating_add(own);
        }
        if rows > MAX_ROWS {
            return Err(too_large("the number of rows", rows, MAX_ROWS));
        }
        let places = columns
            .iter()
            .map(|column| place(&file, *column, size, path))
            .collect::<Result<_, _>>()?;
        Ok(Opened { file, rows, places })
    }

    /// The values of the column at position `at` of the list that [`Opened::new`] got, in one row
    /// group.
    pub(crate) fn column<T: DataType>(
        &self,
        group: usize,
        at: usize,
        path: &Path,
    ) -> Result<ColumnReaderImpl<T>, Error> {
        let group = self.file.get_row_group(group).map_err(Error::parquet(path))?;
        let place = self.places[at];
        let inner = group.get_column_page_reader(place).map_err(Error::parquet(path))?;
        let column = self.file.metadata().file_metadata().schema_descr().column(place);
        let width = match column.physical_type() {
            Type::INT64 => 8,
            Type::INT32 => 4,
            _ => 0,
        };
        let nullable = column.max_def_level() > 0;
        let guarded = Guarded { inner, nullable, width, dictionary: false };
        Ok(get_typed_column_reader(get_column_reader(column, Box::new(guarded))))
    }
}

/// Where a column stands in the file; an error if it is of another type.
fn place<R: ChunkReader + 'static>(
    file: &SerializedFileReader<R>,
    (name, holds, _): Column,
    size: u64,
    path: &Path,
) -> Result<usize, Error> {
    let schema = file.metadata().file_metadata().schema_descr();
    let bad = |found: String| Error::Schema {
        path: path.to_owned(),
        column: name,
        expected: holds.in_words(),
        found,
    };
    let at = schema.columns().iter().position(|c| c.path().parts() == [name.to_owned()]);
    let at = at.ok_or_else(|| bad("no such column".to_owned()))?;
    let column = schema.column(at);
    let flat = column.max_rep_level() == 0 && column.max_def_level() <= 1;
    if column.physical_type() != holds.physical() || !flat {
        return Err(bad(format!(
            "{} (repetition {:?})",
            column.physical_type(),
            column.self_type().get_basic_info().repetition()
        )));
    }
    if !holds.nullable() && column.max_def_level() != 0 {
        return Err(bad("a nullable one".to_owned()));
    }
    if holds.nullable() && column.max_def_level() != 1 {
        return Err(bad("a required one".to_owned()));
    }
    // A column chunk must lie within the file and be of the column's type.
    for group in file.metadata().row_groups() {
        let chunk =
            group.columns().get(at).ok_or_else(|| bad("a row group without it".to_owned()))?;
        if chunk.column_type() != holds.physical() {
            return Err(bad(format!("{} in a row group", chunk.column_type())));
        }
        let start = chunk.dictionary_page_offset().unwrap_or_else(|| chunk.data_page_offset());
        let length = u64::try_from(chunk.compressed_size()).ok();
        let end = length.and_then(|length| u64::try_from(start).ok()?.checked_add(length));
        if end.is_none_or(|end| end > size) || chunk.data_page_offset() < 0 {
            return Err(bad("a place outside the file".to_owned()));
        }
    }
    Ok(at)
}

/// The last eight bytes: length of the footer and the magic number.
fn check_footer<R: ChunkReader>(reader: &R, path: &Path) -> Result<(), Error> {
    let size = reader.len();
    let torn = |reason: &str| Error::NotATrace { path: path.to_owned(), reason: reason.to_owned() };
    if size < 12 {
        return Err(torn("it is too short for a Parquet file, was it cut off?"));
    }
    let tail = reader.get_bytes(size - 8, 8).map_err(Error::parquet(path))?;
    let [a, b, c, d, magic @ ..] = tail.as_ref() else {
        return Err(torn("its end cannot be read"));
    };
    if magic != b"PAR1" {
        return Err(torn("it does not end as a Parquet file does, was it cut off?"));
    }
    let footer = u64::from(u32::from_le_bytes([*a, *b, *c, *d]));
    if footer > (size - 12).min(MAX_FOOTER) {
        return Err(Error::TooLarge {
            path: path.to_owned(),
            what: "its footer's length",
            found: footer,
            limit: (size - 12).min(MAX_FOOTER),
        });
    }
    Ok(())
}

fn check_version<R: ChunkReader + 'static>(
    file: &SerializedFileReader<R>,
    path: &Path,
) -> Result<(), Error> {
    let pairs = file.metadata().file_metadata().key_value_metadata();
    let stated = pairs.and_then(|pairs| pairs.iter().find(|pair| pair.key == VERSION_KEY));
    // A file that another tool wrote again has lost the pair; its columns are checked anyway.
    let Some(value) = stated.and_then(|pair| pair.value.as_deref()) else { return Ok(()) };
    match value.parse::<u64>() {
        Ok(found) if found > u64::from(VERSION) => {
            Err(Error::TooNew { path: path.to_owned(), found, known: VERSION })
        }
        Ok(1..) => Ok(()),
        _ => Err(Error::NotATrace {
            path: path.to_owned(),
            reason: format!("its `{VERSION_KEY}` is no version"),
        }),
    }
}
