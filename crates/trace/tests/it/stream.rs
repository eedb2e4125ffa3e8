//! A synthetic stream, shared by the test of its size on disk and the benchmark.

use std::path::Path;

use rand::{RngExt, SeedableRng};
use shelflife_layout::Class;
use shelflife_lifetime::Lifetime;
use shelflife_trace::{
    Device, Event, FileClass, FileEntry, FileId, Flags, Meta, ProcessId, TraceWriter,
};

/// Writes like those of pgbench on ext4: WAL in commits, dirty pages of six relation files in runs
/// by checkpoints and the kernel, the journal now and then; exponential gaps.
pub fn pgbench_like(count: usize) -> Vec<Event> {
    let mut random = rand_pcg::Pcg64Mcg::seed_from_u64(7);
    let segments: Vec<u64> = (0..64).map(|_| random.random_range(0..6000u64) << 20).collect();
    let (mut time, mut wal, mut journal) = (0u64, 0u64, 0u64);
    let (mut events, mut dirty) = (Vec::with_capacity(count + 16), Vec::new());
    while events.len() < count {
        let gap = -(1.0 - random.random::<f64>()).ln() * 60_000.0;
        time += gap as u64 + 4_000;
        match random.random_range(0..100) {
            0..62 => {
                let start = wal & !8191;
                wal += random.random_range(200..20_000u64);
                let (end, segment) = ((wal + 8191) & !8191, (start >> 24) as usize % 64);
                events.push(Event {
                    time,
                    offset: segments[segment] + (start & 0xff_ffff),
                    length: end - start,
                    hint: Lifetime::Short,
                    flags: Flags::from_bits(1 + 4 * random.random_range(0..2u8)).unwrap(),
                    process: ProcessId(1),
                    file: FileId(1 + segment as u32),
                    ..Event::default()
                });
            }
            62..97 => {
                if dirty.is_empty() {
                    for file in (0..6u32).rev() {
                        let mut blocks: Vec<u64> =
                            (0..4000).map(|_| random.random_range(0..40_000)).collect();
                        blocks.sort_unstable_by(|a, b| b.cmp(a));
                        blocks.dedup();
                        dirty.extend(blocks.into_iter().map(|block| (file, block)));
                    }
                }
                for _ in 0..random.random_range(1..17) {
                    let Some((file, block)) = dirty.pop() else { break };
                    time += random.random_range(2_000..8_000u64);
                    events.push(Event {
                        time,
                        offset: (8 << 30) + u64::from(file) * (512 << 20) + block * 8192,
                        length: 8192,
                        hint: Lifetime::Extreme,
                        process: ProcessId(2),
                        file: FileId(100 + file),
                        ..Event::default()
                    });
                }
            }
            _ => {
                journal = (journal + 12_288) % (128 << 20);
                events.push(Event {
                    time,
                    offset: (1 << 30) + journal,
                    length: 4096 * random.random_range(1..9u64),
                    flags: Flags::SYNC.with(Flags::META),
                    process: ProcessId(3),
                    file: FileId(106),
                    ..Event::default()
                });
            }
        }
    }
    events.truncate(count);
    events
}

/// A writer with the tables that the stream refers to.
pub fn writer(place: &Path) -> TraceWriter {
    let meta = Meta::new("record", vec![Device::new("/dev/vdb", Some(64 << 30))]);
    let mut writer = TraceWriter::create(place, meta).unwrap();
    for number in 0..106 {
        let class = if number < 64 { Class::Wal } else { Class::Relation };
        let file = FileEntry::new(FileClass::File(class)).at(format!("base/5/{}", 16_384 + number));
        writer.files_mut().push(file).unwrap();
    }
    for name in ["postgres", "kworker/u4:2-flush", "jbd2/vdb-8"] {
        writer.process(name.as_bytes()).unwrap();
    }
    writer
}
