//! How long the data of a trace live, by what wrote them.
//!
//! Invariant: every page write is followed until it is overwritten or discarded, or is alive at the
//! end; nothing is left out but by a sample that says so. One pass.

mod groups;
mod pages;

use serde::Serialize;
use shelflife_trace::{Batch, Event, Op, Trace};

use crate::Error;
use crate::histogram::Histogram;
use crate::survival::{Point, Survival};
use groups::Naming;
use pages::{Birth, Page, Pages};

/// The largest divisor of a sample.
const MOST_ONE_IN: u32 = 1 << 20;
/// File systems that write a block's new content elsewhere: an address is then not a page of a file.
const COPY_ON_WRITE: [&str; 4] = ["btrfs", "f2fs", "zfs", "bcachefs"];

/// By what lifetimes are told apart.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// Class of file.
    #[default]
    Class,
    /// Relation, where a catalog named it; else class.
    Relation,
    /// File.
    File,
    /// The process that issued the write; of buffered writes mostly the kernel's.
    Process,
}

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub struct LifetimeOptions {
    /// By what.
    pub by: By,
    /// Follow one page in so many, chosen by a hash of its address: 1 to 2²⁰.
    pub one_in: u32,
    /// Bytes of memory that pages may take, if there is a limit.
    pub memory_bytes: Option<u64>,
}

impl Default for LifetimeOptions {
    fn default() -> LifetimeOptions {
        LifetimeOptions { by: By::Class, one_in: 1, memory_bytes: None }
    }
}

/// The answer.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Lifetimes {
    /// By what.
    pub by: By,
    /// One page in so many was followed.
    pub one_in: u32,
    /// Bytes of a page.
    pub page_bytes: u32,
    /// What lives and dies: `page`, or `address` on a file system that writes new content elsewhere.
    pub unit: &'static str,
    /// Nanoseconds from the first event to the last.
    pub span_ns: u64,
    /// What one should know of the trace.
    pub notes: Vec<String>,
    /// All of it.
    pub total: Row,
    /// By group; most bytes first.
    pub rows: Vec<Row>,
}

/// One group.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Row {
    /// Class, relation, file or process.
    pub name: String,
    /// Bytes written.
    pub bytes: u64,
    /// Pages touched by writes, each as often as it was.
    pub page_writes: u64,
    /// Of these, followed: all, or the sample.
    pub followed: u64,
    /// Of the followed, overwritten or discarded.
    pub died: u64,
    /// Of the followed, alive at the end.
    pub alive: u64,
    /// `alive` / `followed`, 0 to 1.
    pub share_alive: f64,
    /// Of a sample: the quantiles of share p are exact ones of a share between p − this and p + this
    /// (two standard errors).
    pub rank_error: Option<f64>,
    /// In bytes that the host wrote to the device meanwhile.
    pub host_bytes: Spread,
    /// In nanoseconds.
    pub time_ns: Spread,
}

/// How lifetimes spread.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Spread {
    /// What a tenth of the data does not survive; `None` if more than the rest was alive at the end.
    pub p10: Option<u64>,
    /// The same for half.
    pub median: Option<u64>,
    /// The same for nine tenths.
    pub p90: Option<u64>,
    /// The longest that was seen, of dead or living data.
    pub longest: u64,
    /// Share alive after so much, in steps of half a percent or more.
    pub curve: Vec<Point>,
}

impl Spread {
    fn new(died: &Histogram, alive: &Histogram) -> Spread {
        let survival = Survival::new(died, alive);
        Spread {
            p10: survival.quantile(0.1),
            median: survival.quantile(0.5),
            p90: survival.quantile(0.9),
            longest: survival.longest(),
            curve: survival.curve(),
        }
    }
}

/// What is counted of a group.
#[derive(Clone, Default)]
struct Group {
    bytes: u64,
    page_writes: u64,
    followed: u64,
    died: u64,
    /// By host bytes and by time.
    deaths: [Histogram; 2],
    living: [Histogram; 2],
    /// Of a sample: pages, their writes, and the sum of their squares.
    sample: (f64, f64),
}

impl Group {
    fn merge(&mut self, other: &Group) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.page_writes = self.page_writes.saturating_add(other.page_writes);
        self.followed += other.followed;
        self.died += other.died;
        for clock in 0..2 {
            self.deaths[clock].merge(&other.deaths[clock]);
            self.living[clock].merge(&other.living[clock]);
        }
        self.sample.0 += other.sample.0;
        self.sample.1 += other.sample.1;
    }

    fn finish(&self, name: String, sampled: bool) -> Row {
        let alive = self.followed - self.died;
        let share_alive = if self.followed > 0 { alive as f64 / self.followed as f64 } else { 0.0 };
        // Writes to one page are alike, so that there are as many independent ones as pages, fewer
        // where some pages are written much more often (Kish's effective size).
        let (writes, squares) = self.sample;
        let independent = if squares > 0.0 { writes * writes / squares } else { 0.0 };
        Row {
            name,
            bytes: self.bytes,
            page_writes: self.page_writes,
            followed: self.followed,
            died: self.died,
            alive,
            share_alive,
            rank_error: sampled.then(|| 1.0_f64.min(1.0 / independent.sqrt())),
            host_bytes: Spread::new(&self.deaths[0], &self.living[0]),
            time_ns: Spread::new(&self.deaths[1], &self.living[1]),
        }
    }
}

/// Reads all of `trace`. `progress` is told how many events there were so far; when it answers
/// `false`, this ends with an error.
///
/// # Errors
///
/// No writes, too many pages for the memory given, a sample that is none, or the trace cannot be
/// read.
pub fn lifetimes(
    trace: &Trace,
    options: &LifetimeOptions,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<Lifetimes, Error> {
    if !(1..=MOST_ONE_IN).contains(&options.one_in) {
        return Err(Error::Sample(options.one_in));
    }
    let mut events = match options.by {
        By::Process => trace.events(),
        _ => trace.events().without_processes(),
    };
    let mut naming = Naming::new(options.by, trace.files());
    let mut following = Following {
        size: u64::from(trace.meta().page_size.max(1)),
        pages: Pages::new(options.one_in),
        groups: Vec::new(),
        written: vec![0; trace.meta().devices.len()],
        first: u64::MAX,
        last: 0,
    };
    let (mut batch, mut seen) = (Batch::default(), 0);
    while events.read(&mut batch)? {
        for event in batch.iter() {
            following.take(&event, &naming);
        }
        seen += batch.len() as u64;
        if let Some(limit) = options.memory_bytes
            && following.pages.memory() > limit
        {
            return Err(Error::Memory {
                limit_mib: limit >> 20,
                page_bytes: size_of::<Birth>() + if options.one_in == 1 { 1 } else { 24 },
            });
        }
        if !progress(seen) {
            return Err(shelflife_trace::Error::Stopped.into());
        }
    }
    following.end();
    let page_writes: u64 = following.groups.iter().map(|group| group.page_writes).sum();
    if page_writes == 0 {
        return Err(Error::NoWrites { trace: trace.folder().display().to_string() });
    }
    naming.learn_processes(&events, following.groups.len());
    Ok(following.finish(trace, options, &naming))
}

/// Everything while events come in.
struct Following {
    size: u64,
    pages: Pages,
    groups: Vec<Group>,
    /// Bytes written so far, by device.
    written: Vec<u64>,
    first: u64,
    last: u64,
}

impl Following {
    #[inline]
    fn take(&mut self, event: &Event, naming: &Naming) {
        // a reader gives no event of a device that is not in the table
        let Some(clock) = self.written.get(usize::from(event.device)).copied() else { return };
        self.first = self.first.min(event.time);
        self.last = self.last.max(event.time);
        let groups = &mut self.groups;
        let died = |birth: Birth, pages: u64| {
            // every birth made room for its group
            let Some(group) = groups.get_mut(birth.group as usize) else { return };
            group.died += pages;
            group.deaths[0].add(clock.saturating_sub(birth.clock), pages);
            group.deaths[1].add(event.time.saturating_sub(birth.time), pages);
        };
        let page = |number| Page { device: event.device, number };
        if event.op != Op::Write {
            let (first, end) = (event.offset.div_ceil(self.size), event.end() / self.size);
            if first < end {
                self.pages.discard(page(first), end - first, died);
            }
            return;
        }
        let number = naming.group(event);
        let (first, count) = event.pages(self.size);
        let birth = Birth { clock, time: event.time, group: number, writes: 0 };
        let followed = self.pages.write(page(first), count, birth, died);
        let number = number as usize;
        if self.groups.len() <= number {
            self.groups.resize_with(number + 1, Group::default);
        }
        let group = &mut self.groups[number];
        group.bytes = group.bytes.saturating_add(event.length);
        group.page_writes = group.page_writes.saturating_add(count);
        group.followed += followed;
        let written = &mut self.written[usize::from(event.device)];
        *written = written.saturating_add(event.length);
    }

    /// What is alive has lived until now at least.
    fn end(&mut self) {
        for (device, birth) in self.pages.alive() {
            let clock = self.written.get(usize::from(device)).copied().unwrap_or_default();
            let Some(group) = self.groups.get_mut(birth.group as usize) else { continue };
            group.living[0].add(clock.saturating_sub(birth.clock), 1);
            group.living[1].add(self.last.saturating_sub(birth.time), 1);
        }
        for (group, writes) in self.pages.writes() {
            if let Some(group) = self.groups.get_mut(group as usize) {
                group.sample.0 += f64::from(writes);
                group.sample.1 += f64::from(writes) * f64::from(writes);
            }
        }
    }

    fn finish(self, trace: &Trace, options: &LifetimeOptions, naming: &Naming) -> Lifetimes {
        let sampled = options.one_in > 1;
        let mut total = Group::default();
        self.groups.iter().for_each(|group| total.merge(group));
        let named = self.groups.iter().enumerate().filter(|(_, group)| group.page_writes > 0);
        let mut rows: Vec<Row> =
            named.map(|(at, group)| group.finish(naming.name(at), sampled)).collect();
        rows.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.name.cmp(&b.name)));
        let meta = trace.meta();
        let on = meta.file_system.as_deref().filter(|name| COPY_ON_WRITE.contains(name));
        let mut notes: Vec<String> = trace.notes().iter().map(ToString::to_string).collect();
        if let Some(name) = on {
            notes.push(format!(
                "{name} writes new content elsewhere: these are lifetimes of addresses, as the \
                 drive sees them, not of pages of a file"
            ));
        }
        if meta.counts.lost > 0 {
            notes.push(format!(
                "the recorder lost {} events: some lifetimes are too long",
                meta.counts.lost
            ));
        }
        Lifetimes {
            by: options.by,
            one_in: options.one_in,
            page_bytes: meta.page_size,
            unit: if on.is_some() { "address" } else { "page" },
            span_ns: self.last.saturating_sub(self.first),
            notes,
            total: total.finish("all".to_owned(), sampled),
            rows,
        }
    }
}
