//! What each encoding of each column costs: the table in `docs/trace-format.md`.
//!
//! `cargo run --release -p shelflife-trace --example encodings`: bytes on disk and nanoseconds of
//! processor time per event, of a stream like pgbench's.

#[path = "../tests/it/stream.rs"]
#[allow(dead_code, reason = "the writer is for the test and the benchmark")]
mod stream;

use std::sync::Arc;

use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use rustix::time::{ClockId, clock_gettime};
use shelflife_trace::Event;
use stream::pgbench_like;

const EVENTS: usize = 1 << 20;
const ROW_GROUP: usize = 1 << 17;

fn main() -> Result<(), ParquetError> {
    let events = pgbench_like(EVENTS);
    let wide = |field: fn(&Event) -> u64| -> Vec<i64> {
        events.iter().map(|event| field(event) as i64).collect()
    };
    let narrow = |field: fn(&Event) -> u32| -> Vec<i32> {
        events.iter().map(|event| field(event) as i32).collect()
    };
    for (name, values) in [
        ("time", wide(|e| e.time)),
        ("offset", wide(|e| e.offset)),
        ("length", wide(|e| e.length)),
        ("offset in pages", wide(|e| e.offset / 4096)),
    ] {
        row::<Int64Type>(name, "int64", &values)?;
    }
    for (name, values) in [
        ("hint", narrow(|e| e.hint.raw() as u32)),
        ("flags", narrow(|e| u32::from(e.flags.bits()))),
        ("file", narrow(|e| e.file.0)),
        ("stream", narrow(|e| u32::from(e.stream))),
    ] {
        row::<Int32Type>(name, "int32", &values)?;
    }
    let names = ["", "postgres", "kworker/u4:2-flush", "jbd2/vdb-8"].map(ByteArray::from);
    let values: Vec<ByteArray> =
        events.iter().map(|e| names[usize::from(e.process.0)].clone()).collect();
    println!("{:16} {}", "process", cost::<ByteArrayType>("binary", &values, None)?);
    Ok(())
}

fn row<T: DataType>(name: &str, kind: &str, values: &[T::T]) -> Result<(), ParquetError> {
    let mut cells = vec![cost::<T>(kind, values, None)?];
    for encoding in [Encoding::DELTA_BINARY_PACKED, Encoding::BYTE_STREAM_SPLIT, Encoding::PLAIN] {
        cells.push(cost::<T>(kind, values, Some(encoding))?);
    }
    println!("{name:16} {}", cells.join("   "));
    Ok(())
}

/// The least of three; no encoding stands for a dictionary.
fn cost<T: DataType>(
    kind: &str,
    values: &[T::T],
    encoding: Option<Encoding>,
) -> Result<String, ParquetError> {
    let schema = Arc::new(parse_message_type(&format!("message m {{ required {kind} v; }}"))?);
    let mut properties = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_2_0)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        .set_dictionary_enabled(encoding.is_none());
    if let Some(encoding) = encoding {
        properties = properties.set_encoding(encoding);
    }
    let properties = Arc::new(properties.build());
    let (mut least, mut bytes) = (f64::INFINITY, 0);
    for _ in 0..3 {
        let begun = cpu();
        let (schema, properties) = (Arc::clone(&schema), Arc::clone(&properties));
        let mut file = SerializedFileWriter::new(Vec::new(), schema, properties)?;
        for part in values.chunks(ROW_GROUP) {
            let mut group = file.next_row_group()?;
            if let Some(mut column) = group.next_column()? {
                column.typed::<T>().write_batch(part, None, None)?;
                column.close()?;
            }
            group.close()?;
        }
        bytes = file.into_inner()?.len();
        least = least.min(cpu() - begun);
    }
    let each = |total: f64| total / values.len() as f64;
    Ok(format!("{:5.2} B {:4.0} ns", each(bytes as f64), each(least * 1e9)))
}

fn cpu() -> f64 {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}
