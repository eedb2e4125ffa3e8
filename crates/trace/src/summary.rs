//! What a trace is like: the modern form of reading strace by eye.
//!
//! Invariant: memory is bounded by [`PAGES_BYTES`] and the file table. As long as the sets of pages
//! fit into it, figures are exact; beyond, distinct pages are estimates and [`Summary::exact`] says so.

use std::collections::HashMap;

use serde::Serialize;

use crate::error::Error;
use crate::event::{Batch, Event, Op, ProcessId};
use crate::files::FileTable;
use crate::pages::Pages;
use crate::trace::Trace;
use crate::volume::{Volume, Volumes};

/// The most memory that sets of pages take.
pub const PAGES_BYTES: usize = 512 << 20;
/// How many ends of writes are remembered to find sequential ones.
const ENDS: usize = 64;

/// One line of a summary.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Row {
    /// The class, relation, hint or process.
    pub name: String,
    /// Writes.
    pub writes: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Bytes of a write, on the average.
    pub mean_bytes: f64,
    /// Share of the writes (0 to 1) that begin where one of the 64 writes before on the same device
    /// ended.
    pub sequential: f64,
    /// Pages touched by writes, each as often as it was.
    pub page_writes: u64,
    /// Different pages touched by writes.
    pub distinct_pages: u64,
    /// Share of the page writes (0 to 1) that hit a page which the same line had written before.
    pub overwrites: f64,
    /// Bytes discarded.
    pub discarded_bytes: u64,
    /// Bytes zeroed.
    pub zeroed_bytes: u64,
}

/// What a trace is like. Lists are ordered by bytes.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// All of it.
    pub total: Row,
    /// Nanoseconds from the first event to the last.
    pub span_ns: u64,
    /// Bytes of a page.
    pub page_size: u32,
    /// Whether distinct pages and overwrites are exact; else they are estimates (1.6 %).
    pub exact: bool,
    /// By class of file.
    pub classes: Vec<Row>,
    /// By relation, where a catalog named them.
    pub relations: Vec<Row>,
    /// By hint.
    pub hints: Vec<Row>,
    /// By class and hint: whether a policy arrived.
    pub class_hints: Vec<Volume>,
    /// By process, where it was recorded.
    pub processes: Vec<Row>,
    /// By device, if there are several.
    pub devices: Vec<Row>,
}

#[derive(Default)]
struct Group {
    row: Row,
    sequential: u64,
    pages: Pages,
}

impl Group {
    fn named(name: impl Into<String>) -> Group {
        Group { row: Row { name: name.into(), ..Row::default() }, ..Group::default() }
    }

    /// How much memory it took.
    fn add(&mut self, event: &Event, pages: (u64, u64), sequential: bool) -> usize {
        let row = &mut self.row;
        match event.op {
            Op::Discard => row.discarded_bytes = row.discarded_bytes.saturating_add(event.length),
            Op::WriteZeroes => row.zeroed_bytes = row.zeroed_bytes.saturating_add(event.length),
            Op::Write => {
                row.writes += 1;
                row.bytes = row.bytes.saturating_add(event.length);
                row.page_writes = row.page_writes.saturating_add(pages.1);
                self.sequential += u64::from(sequential);
                return self.pages.add(event.device, pages.0, pages.1);
            }
        }
        0
    }

    fn finish(mut self) -> Row {
        let row = &mut self.row;
        row.distinct_pages = self.pages.len();
        if row.writes > 0 {
            row.mean_bytes = row.bytes as f64 / row.writes as f64;
            row.sequential = self.sequential as f64 / row.writes as f64;
        }
        if row.page_writes > 0 {
            let distinct = row.distinct_pages.min(row.page_writes);
            row.overwrites = 1.0 - distinct as f64 / row.page_writes as f64;
        }
        self.row
    }
}

/// The last ends of writes on one device.
#[derive(Clone)]
struct Ends {
    ends: [u64; ENDS],
    next: usize,
}

impl Ends {
    fn is_sequential(&mut self, event: &Event) -> bool {
        // no write ends at 0, so a place that is still empty fits no write but one at 0
        let found = event.offset > 0 && self.ends.contains(&event.offset);
        self.ends[self.next] = event.end();
        self.next = (self.next + 1) % ENDS;
        found
    }
}

/// The line of a file's class and of its relation.
type Lines = (usize, Option<usize>);

/// Everything of a summary while events come in.
struct Groups {
    total: Group,
    classes: Vec<Group>,
    relations: Vec<Group>,
    hints: Vec<Group>,
    processes: Vec<Group>,
    devices: Vec<Group>,
    /// Line of `classes` and of `relations` by file.
    lines: Vec<Lines>,
    volumes: Volumes,
    memory: usize,
    exact: bool,
}

impl Groups {
    fn new(trace: &Trace) -> Groups {
        let (classes, relations, lines) = by_file(trace.files());
        let hints = shelflife_lifetime::Lifetime::ALL.map(|hint| Group::named(hint.name()));
        let devices = trace.meta().devices.iter().map(|d| Group::named(d.name.clone()));
        Groups {
            total: Group::named("all"),
            classes,
            relations,
            hints: hints.into(),
            processes: Vec::new(),
            devices: if trace.meta().devices.len() > 1 { devices.collect() } else { Vec::new() },
            lines,
            volumes: Volumes::default(),
            memory: 0,
            exact: true,
        }
    }

    fn add(&mut self, event: &Event, pages: (u64, u64), sequential: bool) {
        let (class, relation) = self.lines.get(event.file.0 as usize).copied().unwrap_or((0, None));
        let process = usize::from(event.process.0);
        if self.processes.len() <= process {
            self.processes.resize_with(process + 1, Group::default);
        }
        if event.op == Op::Write {
            self.volumes.add(event.file, event.hint, event.length);
        }
        let mut memory = self.total.add(event, pages, sequential);
        let groups = [
            self.classes.get_mut(class),
            relation.and_then(|at| self.relations.get_mut(at)),
            self.hints.get_mut(event.hint.raw() as usize),
            self.processes.get_mut(process),
            self.devices.get_mut(usize::from(event.device)),
        ];
        for group in groups.into_iter().flatten() {
            memory += group.add(event, pages, sequential);
        }
        self.memory += memory;
        if self.memory > PAGES_BYTES && self.exact {
            self.exact = false;
            let lists = [
                &mut self.classes,
                &mut self.relations,
                &mut self.hints,
                &mut self.processes,
                &mut self.devices,
            ];
            lists.into_iter().flatten().chain([&mut self.total]).for_each(|g| g.pages.estimate());
        }
    }
}

/// Lines by class and by relation, and which each file belongs to.
fn by_file(files: &FileTable) -> (Vec<Group>, Vec<Group>, Vec<Lines>) {
    let (mut classes, mut relations, mut lines) = (Vec::new(), Vec::new(), Vec::new());
    let (mut class_lines, mut relation_lines) = (HashMap::new(), HashMap::new());
    for (_, file) in files.iter() {
        let class = *class_lines.entry(file.class).or_insert_with(|| {
            classes.push(Group::named(file.class.name()));
            classes.len() - 1
        });
        let relation = file.relation.as_ref().map(|relation| {
            let name = match &file.database {
                Some(database) => format!("{database}.{relation}"),
                None => relation.clone(),
            };
            *relation_lines.entry(name.clone()).or_insert_with(|| {
                relations.push(Group::named(name));
                relations.len() - 1
            })
        });
        lines.push((class, relation));
    }
    (classes, relations, lines)
}

/// Reads all of `trace`. `progress` is told how many events there were so far; when it answers
/// `false`, this ends with an error.
///
/// # Errors
///
/// The trace cannot be read.
pub fn summarize(trace: &Trace, progress: &mut dyn FnMut(u64) -> bool) -> Result<Summary, Error> {
    let mut groups = Groups::new(trace);
    let none = Ends { ends: [0; ENDS], next: 0 };
    let mut ends = vec![none; trace.meta().devices.len()];
    let page_size = trace.meta().page_size;
    let mut events = trace.events();
    let (mut batch, mut seen) = (Batch::default(), 0);
    let (mut first, mut last) = (u64::MAX, 0);
    while events.read(&mut batch)? {
        for event in batch.iter() {
            let pages = event.pages(u64::from(page_size));
            let sequential = match ends.get_mut(usize::from(event.device)) {
                Some(ends) if event.op == Op::Write => ends.is_sequential(&event),
                _ => false,
            };
            groups.add(&event, pages, sequential);
            first = first.min(event.time);
            last = last.max(event.time);
        }
        seen += batch.len() as u64;
        if !progress(seen) {
            return Err(Error::Stopped);
        }
    }
    let mut number = 0;
    for group in &mut groups.processes {
        let name = events.process(ProcessId(number)).unwrap_or("unknown");
        group.row.name = name.to_owned();
        number = number.saturating_add(1);
    }
    // a trace without names of processes has no such list
    let processes = if groups.processes.len() > 1 { groups.processes } else { Vec::new() };
    Ok(Summary {
        total: groups.total.finish(),
        span_ns: last.saturating_sub(first),
        page_size,
        exact: groups.exact,
        classes: rows(groups.classes),
        relations: rows(groups.relations),
        hints: rows(groups.hints),
        class_hints: groups.volumes.finish(trace, |file| file.class),
        processes: rows(processes),
        devices: rows(groups.devices),
    })
}

fn rows(groups: Vec<Group>) -> Vec<Row> {
    let any = |row: &Row| row.writes + row.discarded_bytes + row.zeroed_bytes > 0;
    let mut rows: Vec<Row> = groups.into_iter().map(Group::finish).filter(any).collect();
    rows.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.name.cmp(&b.name)));
    rows
}
