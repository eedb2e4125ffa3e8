//! The clairvoyants: what placement could do if the future were known.
//!
//! Invariant: they know when data die, and nothing else of the drive; they have the drive's streams,
//! no more. Both read the workload once beforehand; their memory (4 bytes per page written for the
//! first) comes on top of the simulator's.
//!
//! - By death time: each page goes to the stream of its remaining lifetime, at relocation too, as
//!   SepBIT's FK does (Wang et al., FAST '22, §2.3).
//! - By file: each file has one stream, chosen from its pages' true lifetimes: what hints per inode
//!   could reach at most.

use std::collections::HashMap;

use crate::Error;
use crate::ftl::Run;
use crate::workload::{Kind, Op, Workload};

/// Who chooses the stream of a page.
#[derive(Clone, Debug, Default)]
pub enum Placing {
    /// The lifetime it carries, by the configuration's transport.
    #[default]
    Hints,
    /// The clairvoyant by death time.
    Deaths(Deaths),
    /// The clairvoyant by file.
    Files(FileStreams),
}

/// A time of death that never comes.
const NEVER: u32 = u32::MAX;

/// When each page written will die, on the clock of host pages.
#[derive(Clone, Debug)]
pub struct Deaths {
    /// By page: ordinal of the first write or trim.
    initial: Vec<u32>,
    /// By ordinal of the page write.
    deaths: Vec<u32>,
    /// Host pages written before the workload begins.
    offset: u64,
}

/// Reads a workload page by page, for at most `pages` page writes; `each` gets the operation, the
/// page and the number of page writes before it. Returns the number of page writes.
fn scan(
    workload: &mut dyn Workload,
    pages: Option<u64>,
    mut each: impl FnMut(&Op, u32, u64) -> Result<(), Error>,
) -> Result<u64, Error> {
    let (mut ops, mut host) = (Vec::new(), 0_u64);
    let limit = pages.unwrap_or(u64::MAX);
    loop {
        ops.clear();
        workload.read(&mut ops)?;
        if ops.is_empty() {
            return Ok(host);
        }
        for op in &ops {
            for page in (op.page..).take(op.pages as usize) {
                if host == limit {
                    return Ok(host);
                }
                each(op, page, host)?;
                host += u64::from(op.kind == Kind::Write);
            }
        }
    }
}

fn entry(map: &mut [u32], page: u32, operation: u64) -> Result<&mut u32, Error> {
    let logical_pages = map.len() as u64;
    let end = u64::from(page) + 1;
    map.get_mut(page as usize).ok_or(Error::OutOfRange { operation, page, end, logical_pages })
}

impl Deaths {
    /// Reads a workload to its end, or for `pages` page writes (needed if it is endless).
    ///
    /// # Errors
    ///
    /// What the workload says, or [`Error::OutOfRange`] (with the ordinal of the page write).
    pub fn scan(
        workload: &mut dyn Workload,
        logical_pages: u64,
        pages: Option<u64>,
    ) -> Result<Deaths, Error> {
        let mut initial = vec![NEVER; logical_pages as usize];
        let mut last = vec![NEVER; logical_pages as usize];
        let mut deaths: Vec<u32> = Vec::new();
        scan(workload, pages, |op, page, host| {
            // Beyond 2^32 page writes a death counts as never.
            let now = u32::try_from(host).unwrap_or(NEVER);
            let birth = entry(&mut last, page, host)?;
            match deaths.get_mut(*birth as usize) {
                Some(death) => *death = now,
                None if initial[page as usize] == NEVER => initial[page as usize] = now,
                None => {}
            }
            *birth = NEVER;
            if op.kind == Kind::Write {
                *birth = now;
                deaths.push(NEVER);
            }
            Ok(())
        })?;
        Ok(Deaths { initial, deaths, offset: 0 })
    }

    pub(crate) fn begin_at(&mut self, offset: u64) {
        self.offset = offset;
    }

    /// Bounds of remaining lifetime between `streams` streams, in host pages: each takes the same
    /// number of the workload's page writes, the last also what never dies.
    pub(crate) fn horizons(&self, streams: u32) -> Vec<u64> {
        let births = self.deaths.iter().zip(0_u64..);
        let mut lifetimes: Vec<u64> = births
            .filter(|&(&death, _)| death != NEVER)
            .map(|(&death, birth)| u64::from(death) - birth)
            .collect();
        lifetimes.sort_unstable();
        let (n, streams) = (lifetimes.len(), streams as usize);
        (1..streams).map(|i| lifetimes.get(n * i / streams).copied().unwrap_or(u64::MAX)).collect()
    }

    /// Puts each page of a batch that begins at ordinal `host` on the stream of its lifetime.
    pub(crate) fn place(
        &self,
        host: u64,
        batch: &[u32],
        runs: &mut Vec<Run>,
        deaths: &mut Vec<u32>,
        stream_for: impl Fn(u32, u64) -> usize,
    ) {
        let labelled = std::mem::take(runs);
        let mut at = 0;
        for run in labelled {
            for &page in &batch[at..run.end] {
                let now = host + at as u64;
                let death = match now.checked_sub(self.offset) {
                    None => self.initial.get(page as usize),
                    Some(ordinal) => self.deaths.get(ordinal as usize),
                };
                let death = death.copied().unwrap_or(NEVER);
                let death = match u32::try_from(u64::from(death) + self.offset) {
                    Ok(absolute) if death != NEVER => absolute,
                    _ => NEVER,
                };
                let stream = stream_for(death, now) as u8;
                deaths.push(death);
                at += 1;
                match runs.last_mut() {
                    Some(last) if (last.stream, last.tag) == (stream, run.tag) => last.end = at,
                    _ => runs.push(Run { end: at, stream, tag: run.tag }),
                }
            }
        }
    }
}

/// A stream for each file.
#[derive(Clone, Debug)]
pub struct FileStreams {
    streams: HashMap<u32, u8>,
    /// Of the files that live longest.
    last: u8,
}

/// Lifetimes are compared in eighths of an octave of host pages.
const STEPS: f64 = 8.0;
const BINS: usize = 64 * STEPS as usize + 1;

impl FileStreams {
    /// Reads a workload to its end, or for `pages` page writes (needed if it is endless), and groups its files into `streams`
    /// (1 to 128) groups of like median lifetime: the grouping with the least squared deviation of
    /// log lifetimes, weighted by page writes.
    ///
    /// # Errors
    ///
    /// What the workload says, or [`Error::OutOfRange`] (with the ordinal of the page write).
    pub fn scan(
        workload: &mut dyn Workload,
        logical_pages: u64,
        pages: Option<u64>,
        streams: u32,
    ) -> Result<FileStreams, Error> {
        let nobody = u32::MAX;
        let mut births = vec![0_u64; logical_pages as usize];
        let mut owners = vec![nobody; logical_pages as usize];
        let mut files: HashMap<u32, Vec<u32>> = HashMap::new();
        let mut born: HashMap<u32, u64> = HashMap::new();
        let total = scan(workload, pages, |op, page, host| {
            let owner = entry(&mut owners, page, host)?;
            if *owner != nobody {
                let lifetime = host - births[page as usize];
                let bins = files.entry(*owner).or_insert_with(|| vec![0; BINS]);
                bins[bin(lifetime)] += 1;
            }
            *owner = nobody;
            if op.kind == Kind::Write {
                *owner = op.file;
                births[page as usize] = host;
                *born.entry(op.file).or_default() += 1;
            }
            Ok(())
        })?;
        let mut weights = vec![0.0; BINS];
        let mut places: Vec<(u32, usize)> = Vec::new();
        for (&file, &written) in &born {
            // What is alive at the end lived at least that long: it counts as longer than all.
            let half = written.div_ceil(2);
            let bins = files.get(&file);
            let mut dead = 0;
            let median = bins.and_then(|bins| {
                bins.iter().position(|&n| {
                    dead += u64::from(n);
                    dead >= half
                })
            });
            let place = median.unwrap_or(bin(total.max(1)));
            weights[place] += written as f64;
            places.push((file, place));
        }
        let groups = partition(&weights, streams as usize);
        let last = groups.iter().copied().max().unwrap_or(0);
        let streams = places.into_iter().map(|(file, place)| (file, groups[place])).collect();
        Ok(FileStreams { streams, last })
    }

    /// The stream of a file. A file never seen is never written again: it joins those that live
    /// longest (what was on the drive before is of this kind).
    pub fn stream(&self, file: u32) -> u8 {
        self.streams.get(&file).copied().unwrap_or(self.last)
    }
}

fn bin(lifetime: u64) -> usize {
    ((lifetime.max(1) as f64).log2() * STEPS) as usize
}

/// The contiguous grouping of weighted bins into at most `groups` with the least squared deviation
/// from the group means (dynamic programming).
fn partition(weights: &[f64], groups: usize) -> Vec<u8> {
    let used: Vec<usize> = (0..weights.len()).filter(|&bin| weights[bin] > 0.0).collect();
    let n = used.len();
    let groups = groups.min(n).max(1);
    let mut sums = vec![(0.0, 0.0, 0.0)];
    for &bin in &used {
        let (w, x) = (weights[bin], bin as f64);
        let (a, b, c) = sums[sums.len() - 1];
        sums.push((a + w, b + w * x, c + w * x * x));
    }
    let cost = |from: usize, to: usize| {
        let (a, b, c) =
            (sums[to].0 - sums[from].0, sums[to].1 - sums[from].1, sums[to].2 - sums[from].2);
        c - b * b / a
    };
    let mut best = vec![vec![f64::INFINITY; n + 1]; groups + 1];
    let mut cut = vec![vec![0; n + 1]; groups + 1];
    best[0][0] = 0.0;
    for g in 1..=groups {
        for to in g..=n {
            for from in g - 1..to {
                let total = best[g - 1][from] + cost(from, to);
                if total < best[g][to] {
                    best[g][to] = total;
                    cut[g][to] = from;
                }
            }
        }
    }
    let mut group_of = vec![0_u8; weights.len()];
    let mut to = n;
    for g in (1..=groups).rev() {
        let from = cut[g][to];
        for &bin in &used[from..to] {
            group_of[bin] = (g - 1) as u8;
        }
        to = from;
    }
    group_of
}
