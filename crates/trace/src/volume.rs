//! How much of which class was written with which hint: whether a policy arrived at the device.
//!
//! Invariant: the bytes of all lines are the bytes of all writes.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use shelflife_lifetime::Lifetime;

use crate::class::FileClass;
use crate::error::Error;
use crate::event::{Batch, FileId, Op};
use crate::files::FileEntry;
use crate::trace::Trace;

/// Writes of one class with one hint.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Volume {
    /// Name of the class of files.
    pub class: String,
    /// Name of the hint that the requests had.
    pub hint: String,
    /// Writes.
    pub writes: u64,
    /// Bytes written.
    pub bytes: u64,
}

/// Sums by class and hint while events come in.
#[derive(Debug, Default)]
pub(crate) struct Volumes {
    /// Writes and bytes by file: classes are looked up once, at the end.
    sums: HashMap<(FileId, Lifetime), (u64, u64)>,
}

impl Volumes {
    #[inline]
    pub(crate) fn add(&mut self, file: FileId, hint: Lifetime, bytes: u64) {
        let sum = self.sums.entry((file, hint)).or_default();
        sum.0 += 1;
        sum.1 = sum.1.saturating_add(bytes);
    }

    /// The most bytes first.
    pub(crate) fn finish(
        self,
        trace: &Trace,
        class_of: impl Fn(&FileEntry) -> FileClass,
    ) -> Vec<Volume> {
        let mut sums = BTreeMap::<(FileClass, Lifetime), (u64, u64)>::new();
        for ((file, hint), (writes, bytes)) in self.sums {
            let class = trace.files().get(file).map_or(FileClass::Unknown, &class_of);
            let sum = sums.entry((class, hint)).or_default();
            sum.0 += writes;
            sum.1 = sum.1.saturating_add(bytes);
        }
        let volume = |((class, hint), (writes, bytes)): ((FileClass, Lifetime), (u64, u64))| {
            Volume { class: class.name().to_owned(), hint: hint.name().to_owned(), writes, bytes }
        };
        let mut volumes: Vec<Volume> = sums.into_iter().map(volume).collect();
        volumes.sort_by_key(|volume| std::cmp::Reverse(volume.bytes));
        volumes
    }
}

/// How much of which class was written with which hint, the most first. `class_of` may judge a file
/// otherwise than its class says, for instance by its path.
///
/// # Errors
///
/// The trace cannot be read.
pub fn volumes(
    trace: &Trace,
    class_of: impl Fn(&FileEntry) -> FileClass,
) -> Result<Vec<Volume>, Error> {
    let mut volumes = Volumes::default();
    let (mut events, mut batch) = (trace.events(), Batch::default());
    while events.read(&mut batch)? {
        for event in batch.iter().filter(|event| event.op == Op::Write) {
            volumes.add(event.file, event.hint, event.length);
        }
    }
    Ok(volumes.finish(trace, class_of))
}

#[cfg(test)]
mod tests {
    use shelflife_layout::Class;

    use super::*;
    use crate::event::Event;
    use crate::meta::{Device, Meta};
    use crate::summary::summarize;
    use crate::writer::TraceWriter;

    #[test]
    fn every_byte_written_is_in_one_line() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("t");
        let meta = Meta::new("record", vec![Device::new("vda", None)]);
        let mut writer = TraceWriter::create(&place, meta).unwrap();
        let wal = writer.files_mut().push(FileEntry::new(Class::Wal.into())).unwrap();
        let more = writer.files_mut().push(FileEntry::new(Class::Wal.into())).unwrap();
        let write = |file, hint, length| Event { file, hint, length, ..Event::default() };
        for event in [
            write(wal, Lifetime::Short, 4096),
            write(more, Lifetime::Short, 8192),
            write(more, Lifetime::NotSet, 512),
            write(FileId::UNKNOWN, Lifetime::Long, 100),
            Event { op: Op::Discard, ..write(wal, Lifetime::Short, 1 << 30) },
        ] {
            writer.push(&event).unwrap();
        }
        writer.finish().unwrap();
        let trace = Trace::open(&place).unwrap();
        let found = volumes(&trace, |file| file.class).unwrap();
        let line = |class: &str, hint: &str, writes, bytes| Volume {
            class: class.to_owned(),
            hint: hint.to_owned(),
            writes,
            bytes,
        };
        let wanted = [
            line("wal", "short", 2, 12288),
            line("wal", "not-set", 1, 512),
            line("unknown", "long", 1, 100),
        ];
        assert_eq!(found, wanted);
        let own = volumes(&trace, |_| FileClass::Unknown).unwrap();
        assert_eq!(own.len(), 3, "one line a hint: {own:?}");
        assert_eq!(summarize(&trace, &mut |_| true).unwrap().class_hints, wanted);
    }
}
