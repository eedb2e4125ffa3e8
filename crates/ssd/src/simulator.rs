//! The simulator: operations in, an outcome out.
//!
//! Invariant: what a batch or a call boundary is cannot change a result; only the order of
//! operations can. Every operation is checked against the drive before it touches a map.

use crate::Error;
use crate::buffer::Buffer;
use crate::clairvoyant::Placing;
use crate::config::Config;
use crate::ftl::{Collected, Ftl, Run, UNMAPPED};
use crate::outcome::{Outcome, Placement, Share, Window};
use crate::steady;
use crate::workload::{Kind, Op};
use shelflife_lifetime::Lifetime;

/// Pages collected before they are written: long enough to look ahead, short enough for the first
/// cache.
const BATCH_PAGES: usize = 2048;

/// Tolerance of steadiness: half a percent, the accuracy the simulator is held to.
pub const STEADY_TOLERANCE: f64 = 0.005;

/// Class of what preconditioning wrote.
pub const PRECONDITION_CLASS: u16 = u16::MAX;

/// How far [`Simulator::feed`] came.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Cursor {
    pub op: usize,
    pub pages: u32,
}

/// A drive in use.
pub struct Simulator {
    config: Config,
    ftl: Ftl,
    buffer: Option<Buffer>,
    placing: Placing,
    stream_of: [u8; 6],
    batch: Vec<u32>,
    runs: Vec<Run>,
    batch_deaths: Vec<u32>,
    tags: Vec<(u16, u8)>,
    last: Option<Last>,
    operations: u64,
    host: u64,
    trimmed: u64,
    host_by_tag: Vec<u64>,
    host_by_stream: Vec<u64>,
    window_pages: u64,
    window_start: (u64, u64),
    windows: Vec<Window>,
    base: Base,
}

/// The label of the operation before: most are followed by another of its kind.
#[derive(Clone, Copy)]
struct Last {
    class: u16,
    lifetime: u8,
    /// Only where files choose the stream.
    file: Option<u32>,
    stream: u8,
    tag: u8,
}

impl Last {
    fn is_for(&self, op: &Op) -> bool {
        (self.class, self.lifetime) == (op.class, op.lifetime)
            && self.file.is_none_or(|file| file == op.file)
    }
}

/// Counters when counting began.
#[derive(Clone, Default)]
struct Base {
    host: u64,
    flash_host: u64,
    trimmed: u64,
    absorbed: u64,
    collected: Collected,
    host_by_tag: Vec<u64>,
    host_by_stream: Vec<u64>,
    moved_out: Vec<u64>,
}

impl Simulator {
    /// A new drive, all of it erased.
    ///
    /// # Errors
    ///
    /// Whatever contradicts itself in the configuration.
    pub fn new(config: &Config) -> Result<Simulator, Error> {
        Simulator::placed(config, Placing::Hints)
    }

    /// A new drive, with a choice of who chooses the streams. A clairvoyant by death time has no
    /// write buffer: what is absorbed is not placed.
    ///
    /// # Errors
    ///
    /// As [`Simulator::new`].
    pub fn placed(config: &Config, placing: Placing) -> Result<Simulator, Error> {
        let logical = config.geometry.logical_pages;
        if u64::from(config.buffer_pages) >= logical.max(1) && config.buffer_pages > 0 {
            return Err(Error::Buffer {
                buffer_pages: config.buffer_pages.into(),
                logical_pages: logical,
            });
        }
        let streams = config.geometry.streams;
        let horizons = match &placing {
            Placing::Deaths(deaths) => Some(deaths.horizons(streams)),
            _ => None,
        };
        let horizons_none = horizons.is_none();
        let ftl = Ftl::new(config, horizons)?;
        if u64::from(ftl.beyond()) + u64::from(config.buffer_pages) >= u64::from(UNMAPPED) {
            return Err(Error::Buffer {
                buffer_pages: config.buffer_pages.into(),
                logical_pages: logical,
            });
        }
        let has_buffer = config.buffer_pages > 0 && horizons_none;
        let stream_of = Lifetime::ALL.map(|l| config.transport.stream(l, streams) as u8);
        let mut simulator = Simulator {
            ftl,
            buffer: has_buffer.then(|| Buffer::new(config.buffer_pages)),
            placing,
            stream_of,
            batch: Vec::with_capacity(BATCH_PAGES),
            runs: Vec::new(),
            batch_deaths: Vec::new(),
            tags: Vec::new(),
            last: None,
            operations: 0,
            host: 0,
            trimmed: 0,
            host_by_tag: Vec::new(),
            host_by_stream: vec![0; streams as usize],
            window_pages: logical,
            window_start: (0, 0),
            windows: Vec::new(),
            base: Base::default(),
            config: config.clone(),
        };
        simulator.begin(logical);
        Ok(simulator)
    }

    /// The configuration it was made with.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Host pages written since the drive was new.
    pub fn host_pages(&self) -> u64 {
        self.host
    }

    /// Complete windows since counting began.
    pub fn windows(&self) -> &[Window] {
        &self.windows
    }

    /// Where a page's data are: (RU, offset in it), or nowhere on flash.
    pub fn location(&self, page: u32) -> Option<(u32, u32)> {
        let address = *self.ftl.l2p.get(page as usize)?;
        let shift = self.ftl.layout.shift;
        (address < self.ftl.beyond()).then(|| (address >> shift, address & ((1 << shift) - 1)))
    }

    /// Bytes of the maps and tables: what a simulation costs in memory.
    pub fn memory_bytes(&self) -> u64 {
        self.ftl.memory_bytes()
            + self.buffer.as_ref().map_or(0, |_| u64::from(self.config.buffer_pages) * 8)
    }

    /// Begins to count anew, in windows of `window_pages` host pages.
    pub fn begin(&mut self, window_pages: u64) {
        self.window_pages = window_pages.max(1);
        self.windows.clear();
        self.window_start = (self.host, self.flash());
        self.base = Base {
            host: self.host,
            flash_host: self.ftl.host,
            trimmed: self.trimmed,
            absorbed: self.absorbed(),
            collected: self.ftl.collected.clone(),
            host_by_tag: self.host_by_tag.clone(),
            host_by_stream: self.host_by_stream.clone(),
            moved_out: self.ftl.flows.iter().map(|flow| flow.moved_out).collect(),
        };
    }

    /// Applies operations.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`], [`Error::Lifetime`] or [`Error::TooManyTags`]; operations before the
    /// faulty one have been applied.
    pub fn feed(&mut self, ops: &[Op]) -> Result<(), Error> {
        self.feed_until(ops, &mut Cursor::default(), u64::MAX)
    }

    /// Applies operations from `cursor` on until `stop` host pages have been written.
    pub(crate) fn feed_until(
        &mut self,
        ops: &[Op],
        cursor: &mut Cursor,
        stop: u64,
    ) -> Result<(), Error> {
        let mut limit = self.limit(stop);
        while limit > 0 {
            if cursor.pages == 0 {
                cursor.op += self.take_alike(&ops[cursor.op.min(ops.len())..], limit);
                if self.batch.len() == limit {
                    self.flush()?;
                    limit = self.limit(stop);
                    continue;
                }
            }
            let Some(op) = ops.get(cursor.op) else { break };
            if cursor.pages == 0
                && let Err(error) = self.check(op)
            {
                self.flush()?;
                return Err(error);
            }
            if op.kind != Kind::Write {
                self.flush()?;
                self.trim(op);
                limit = self.limit(stop);
                cursor.op += 1;
                continue;
            }
            let (stream, tag) = match self.last {
                Some(last) if last.is_for(op) => (last.stream, last.tag),
                _ => self.label(op)?,
            };
            let n = ((op.pages - cursor.pages) as usize).min(limit - self.batch.len());
            if n == 1 {
                self.batch.push(op.page + cursor.pages);
            } else {
                let first = op.page + cursor.pages;
                self.batch.extend(first..first + n as u32);
            }
            self.extend_run(stream, tag);
            cursor.pages += n as u32;
            if cursor.pages == op.pages {
                *cursor = Cursor { op: cursor.op + 1, pages: 0 };
            }
            if self.batch.len() == limit {
                self.flush()?;
                limit = self.limit(stop);
            }
        }
        self.flush()
    }

    /// Takes single-page writes that carry the last label: the bulk of most workloads, and a loop
    /// short enough not to be felt. Returns how many.
    fn take_alike(&mut self, ops: &[Op], limit: usize) -> usize {
        let Some(last) = self.last.filter(|last| last.file.is_none()) else { return 0 };
        let logical_pages = self.ftl.layout.logical_pages;
        let before = self.batch.len();
        for op in &ops[..ops.len().min(limit - before)] {
            let alike = op.kind == Kind::Write
                && op.pages == 1
                && (op.class, op.lifetime) == (last.class, last.lifetime)
                && u64::from(op.page) < logical_pages;
            if !alike {
                break;
            }
            self.batch.push(op.page);
        }
        let n = self.batch.len() - before;
        if n > 0 {
            self.operations += n as u64;
            self.extend_run(last.stream, last.tag);
        }
        n
    }

    /// The batch grew by pages for `stream` with `tag`.
    fn extend_run(&mut self, stream: u8, tag: u8) {
        let end = self.batch.len();
        match self.runs.last_mut() {
            Some(run) if (run.stream, run.tag) == (stream, tag) => run.end = end,
            _ => self.runs.push(Run { end, stream, tag }),
        }
    }

    /// Pages that may be collected before something has to be looked at.
    fn limit(&self, stop: u64) -> usize {
        let window = self.window_start.0.saturating_add(self.window_pages) - self.host;
        let room = window.min(stop.saturating_sub(self.host));
        (BATCH_PAGES as u64).min(room) as usize
    }

    fn check(&mut self, op: &Op) -> Result<(), Error> {
        let operation = self.operations;
        self.operations += 1;
        let end = u64::from(op.page) + u64::from(op.pages);
        let logical_pages = self.ftl.layout.logical_pages;
        if end > logical_pages {
            return Err(Error::OutOfRange { operation, page: op.page, end, logical_pages });
        }
        if op.lifetime > 5 {
            return Err(Error::Lifetime { operation, lifetime: op.lifetime });
        }
        Ok(())
    }

    /// Stream and tag of an operation that differs from the one before.
    fn label(&mut self, op: &Op) -> Result<(u8, u8), Error> {
        let stream = match &self.placing {
            Placing::Files(files) => {
                files.stream(op.file).min((self.config.geometry.streams - 1) as u8)
            }
            _ => self.stream_of[usize::from(op.lifetime)],
        };
        let tag = if self.config.by_class {
            let pair = (op.class, stream);
            match self.tags.iter().position(|&known| known == pair) {
                Some(tag) => tag,
                None if self.tags.len() == 256 => {
                    self.flush()?;
                    return Err(Error::TooManyTags);
                }
                None => {
                    self.tags.push(pair);
                    self.host_by_tag.push(0);
                    if self.tags.len() == 2 {
                        self.ftl.keep_tags();
                    }
                    self.tags.len() - 1
                }
            }
        } else {
            0
        };
        let file = matches!(self.placing, Placing::Files(_)).then_some(op.file);
        let tag_byte = tag as u8;
        self.last =
            Some(Last { class: op.class, lifetime: op.lifetime, file, stream, tag: tag_byte });
        Ok((stream, tag_byte))
    }

    /// Writes what was collected.
    fn flush(&mut self) -> Result<(), Error> {
        if self.batch.is_empty() {
            return Ok(());
        }
        if let Placing::Deaths(deaths) = &self.placing {
            let (runs, out) = (&mut self.runs, &mut self.batch_deaths);
            let ftl = &self.ftl;
            deaths.place(self.host, &self.batch, runs, out, |d, now| ftl.stream_for(d, now));
            self.ftl.clock = self.host;
        }
        let mut at = 0;
        for run in &self.runs {
            let n = (run.end - at) as u64;
            self.host_by_stream[usize::from(run.stream)] += n;
            if let Some(count) = self.host_by_tag.get_mut(usize::from(run.tag)) {
                *count += n;
            }
            at = run.end;
        }
        if let Some(buffer) = &mut self.buffer {
            let mut at = 0;
            for run in &self.runs {
                for &page in &self.batch[at..run.end] {
                    buffer.write(&mut self.ftl, page, run.stream, run.tag)?;
                }
                at = run.end;
            }
        } else {
            self.ftl.write(&self.batch, &self.runs, &self.batch_deaths)?;
        }
        self.host += self.batch.len() as u64;
        self.batch.clear();
        self.runs.clear();
        self.batch_deaths.clear();
        if self.host - self.window_start.0 == self.window_pages {
            let flash = self.flash();
            self.windows.push(Window {
                host_pages: self.window_pages,
                flash_pages: flash - self.window_start.1,
            });
            self.window_start = (self.host, flash);
        }
        Ok(())
    }

    fn trim(&mut self, op: &Op) {
        for page in op.page..op.page + op.pages {
            let entry = self.ftl.unmap(page, UNMAPPED);
            if let Some(buffer) = &mut self.buffer {
                buffer.trimmed(&self.ftl, entry);
            }
        }
        self.trimmed += u64::from(op.pages);
    }

    fn flash(&self) -> u64 {
        self.ftl.host + self.ftl.collected.copied
    }

    fn absorbed(&self) -> u64 {
        self.buffer.as_ref().map_or(0, |buffer| buffer.absorbed)
    }

    /// What was found since [`Simulator::begin`].
    ///
    /// # Errors
    ///
    /// [`Error::Nothing`] if no page was written since.
    pub fn outcome(&self) -> Result<Outcome, Error> {
        let base = &self.base;
        let host_pages = self.host - base.host;
        if host_pages == 0 {
            return Err(Error::Nothing);
        }
        let (now, then) = (&self.ftl.collected, &base.collected);
        let copied_pages = now.copied - then.copied;
        let flash_pages = self.ftl.host - base.flash_host + copied_pages;
        let erases = now.erases - then.erases;
        let mut bins = now.ratio_bins;
        for (bin, before) in bins.iter_mut().zip(then.ratio_bins) {
            *bin -= before;
        }
        let geometry = &self.config.geometry;
        let transport = self.config.transport;
        let mut notes = Vec::new();
        if transport.is_f2fs() && !self.config.recorded_on_f2fs {
            notes.push("model: f2fs placement applied to data not recorded on f2fs".to_owned());
        }
        if self.config.buffer_pages > 0 {
            notes.push(format!("write buffer of {} pages", self.config.buffer_pages));
        }
        let placement = match self.placing {
            Placing::Hints => Placement::Hint,
            Placing::Deaths(_) => Placement::DeathTime,
            Placing::Files(_) => Placement::File,
        };
        Ok(Outcome {
            source: "simulated",
            waf: flash_pages as f64 / host_pages as f64,
            host_pages,
            flash_pages,
            copied_pages,
            absorbed_pages: self.absorbed() - base.absorbed,
            trimmed_pages: self.trimmed - base.trimmed,
            erases,
            victim_valid_ratio: (now.ratio_sum - then.ratio_sum) / (erases.max(1)) as f64,
            victims_by_valid_ratio: bins,
            windows: self.windows.clone(),
            steady: steady::judge(&self.windows, STEADY_TOLERANCE),
            per_stream: self.per_stream(),
            per_class: self.per_class(),
            sizes: self.ftl.layout.sizes(),
            page_bytes: geometry.page_bytes,
            victim: self.config.victim,
            isolation: geometry.isolation,
            frontier: geometry.frontier,
            transport,
            streams: geometry.streams,
            buffer_pages: self.config.buffer_pages,
            placement,
            notes,
        })
    }

    /// Host and copied pages of each tag since counting began.
    fn by_tag(&self) -> impl Iterator<Item = ((u16, u8), u64, u64)> + '_ {
        let copied = |collected: &Collected, tag: usize| match collected.copied_by_tag.get(tag) {
            Some(&copied) => copied,
            None if tag == 0 => collected.copied,
            None => 0,
        };
        self.tags.iter().enumerate().map(move |(tag, &pair)| {
            let host = self.host_by_tag[tag] - self.base.host_by_tag.get(tag).unwrap_or(&0);
            let moved = copied(&self.ftl.collected, tag) - copied(&self.base.collected, tag);
            (pair, host, moved)
        })
    }

    fn per_stream(&self) -> Vec<Share> {
        let persistent = self.config.geometry.isolation == crate::geometry::Isolation::Persistent;
        let moves = matches!(self.placing, Placing::Deaths(_));
        let streams = self.host_by_stream.iter().zip(&self.base.host_by_stream).enumerate();
        streams
            .map(|(stream, (now, then))| {
                let copied_pages = if persistent && !moves {
                    let moved = self.ftl.flows[stream].moved_out;
                    Some(moved - self.base.moved_out[stream])
                } else if self.config.by_class && !moves {
                    let own = self.by_tag().filter(|(tag, ..)| usize::from(tag.1) == stream);
                    Some(own.map(|(_, _, moved)| moved).sum())
                } else {
                    None
                };
                Share { id: stream as u32, host_pages: now - then, copied_pages }
            })
            .collect()
    }

    fn per_class(&self) -> Vec<Share> {
        let mut classes: Vec<Share> = Vec::new();
        for ((class, _), host, moved) in self.by_tag() {
            let id = u32::from(class);
            let at = classes.iter().position(|share| share.id == id).unwrap_or_else(|| {
                classes.push(Share { id, host_pages: 0, copied_pages: Some(0) });
                classes.len() - 1
            });
            let share = &mut classes[at];
            share.host_pages += host;
            share.copied_pages = share.copied_pages.map(|copied| copied + moved);
        }
        classes.sort_by_key(|share| share.id);
        classes
    }
}
