//! Synthetic workloads, endless, with known classes.
//!
//! Invariant: every operation writes one page below the number of pages given; class 0 is the hot
//! or log class, class 1 the rest (workloads of one class have class 0 only).

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};
use shelflife_lifetime::Lifetime;

use super::zipf::Zipf;
use super::{BATCH, Kind, Op, Workload};
use crate::Error;

/// What the hint says of the class (workloads of two classes).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Hints {
    /// Class 0 is SHORT, class 1 EXTREME.
    Exact,
    /// All is NOT_SET.
    Off,
    /// As exact, but each write says the other class's lifetime with this probability, 0 to 1.
    Flip(f64),
}

/// A synthetic workload.
#[derive(Clone, Debug)]
pub struct Synthetic {
    shape: Shape,
    pages: u32,
    flip: Option<u32>,
    rng: Pcg64Mcg,
    /// Next page of the first pass; none once it is over.
    filling: Option<u32>,
}

#[derive(Clone, Debug)]
enum Shape {
    Uniform,
    Zipf(Zipf),
    /// Hot pages, and the chance of a hot write out of 2^32.
    HotCold {
        hot: u32,
        traffic: u32,
    },
    Sequential {
        at: u32,
    },
    /// Log pages, the chance of a log write out of 2^32, and the log's head.
    LogRandom {
        log: u32,
        share: u32,
        at: u32,
    },
}

impl Synthetic {
    /// Parses `uniform`, `zipf:S`, `hotcold:SPACE/TRAFFIC`, `sequential` or `log+random:SHARE/SPACE`.
    ///
    /// SPACE, TRAFFIC and SHARE are fractions between 0 and 1, or percentages when above 1:
    /// `hotcold:20/80` puts 80 % of writes on 20 % of pages; `log+random:50/2` makes half of the
    /// writes a log that goes round in 2 % of pages.
    ///
    /// # Errors
    ///
    /// [`Error::Workload`] with what to change.
    pub fn parse(text: &str, pages: u32, hints: Hints, seed: u64) -> Result<Synthetic, Error> {
        let wrong = |reason: &str| Error::Workload { workload: text.into(), reason: reason.into() };
        if pages == 0 {
            return Err(wrong("it needs at least one page"));
        }
        let (name, argument) = match text.split_once(':') {
            Some((name, argument)) => (name, Some(argument)),
            None => (text, None),
        };
        let shape = match (name, argument) {
            ("uniform", None) => Shape::Uniform,
            ("sequential", None) => Shape::Sequential { at: 0 },
            ("zipf", Some(s)) => {
                let s: f64 = s.parse().map_err(|_| wrong("the exponent is not a number"))?;
                if !(0.0..=10.0).contains(&s) {
                    return Err(wrong("the exponent must lie between 0 and 10"));
                }
                Shape::Zipf(Zipf::new(pages, s))
            }
            ("hotcold" | "log+random", Some(pair)) => {
                let (first, second) = pair
                    .split_once('/')
                    .and_then(|(a, b)| Some((fraction(a)?, fraction(b)?)))
                    .ok_or_else(|| wrong("give two shares, such as 20/80 or 0.2/0.8"))?;
                let (space, traffic) =
                    if name == "hotcold" { (first, second) } else { (second, first) };
                let some = (f64::from(pages) * space).round() as u32;
                if some == 0 || some >= pages {
                    return Err(wrong("both classes need at least one page: use more pages"));
                }
                let share = (traffic * 4_294_967_296.0) as u32;
                if name == "hotcold" {
                    Shape::HotCold { hot: some, traffic: share }
                } else {
                    Shape::LogRandom { log: some, share, at: 0 }
                }
            }
            _ => {
                return Err(wrong(
                    "choose uniform, zipf:S, hotcold:SPACE/TRAFFIC, sequential or \
                     log+random:SHARE/SPACE",
                ));
            }
        };
        let flip = match hints {
            Hints::Off => None,
            Hints::Exact => Some(0),
            Hints::Flip(chance) if (0.0..=1.0).contains(&chance) => {
                Some((chance * 4_294_967_295.0) as u32)
            }
            Hints::Flip(_) => return Err(wrong("the flip probability must lie between 0 and 1")),
        };
        Ok(Synthetic { shape, pages, flip, rng: Pcg64Mcg::seed_from_u64(seed), filling: None })
    }

    /// Uniform random writes over `pages` pages (at least one is assumed).
    pub fn uniform(pages: u32, seed: u64) -> Synthetic {
        let rng = Pcg64Mcg::seed_from_u64(seed);
        Synthetic { shape: Shape::Uniform, pages: pages.max(1), flip: None, rng, filling: None }
    }

    /// Begins with one pass over all pages, in order, each with the class and hint of its later
    /// writes: data that was written under the same policy.
    pub fn with_first_pass(mut self) -> Synthetic {
        self.filling = Some(0);
        self
    }

    /// Pages of class 0.
    fn first_class(&self) -> u32 {
        match self.shape {
            Shape::HotCold { hot: pages, .. } | Shape::LogRandom { log: pages, .. } => pages,
            _ => self.pages,
        }
    }
}

impl Workload for Synthetic {
    fn read(&mut self, ops: &mut Vec<Op>) -> Result<(), Error> {
        if let Some(from) = self.filling {
            let to = self.pages.min(from.saturating_add(BATCH as u32));
            let first = self.first_class();
            for page in from..to {
                let bits =
                    if matches!(self.flip, None | Some(0)) { 0 } else { self.rng.next_u64() };
                ops.push(labelled(page, page >= first, self.flip, bits as u32));
            }
            self.filling = (to < self.pages).then_some(to);
            return Ok(());
        }
        let (rng, pages, flip) = (&mut self.rng, self.pages, self.flip);
        let one = |page| Op::write(page, 1);
        match &mut self.shape {
            Shape::Uniform => ops.extend((0..BATCH).map(|_| one(below(rng.next_u64(), pages)))),
            Shape::Zipf(zipf) => ops.extend((0..BATCH).map(|_| one(zipf.page(rng.next_u64())))),
            Shape::Sequential { at } => ops.extend((0..BATCH).map(|_| {
                let page = *at;
                *at = if page + 1 == pages { 0 } else { page + 1 };
                one(page)
            })),
            &mut Shape::HotCold { hot, traffic } => ops.extend((0..BATCH).map(|_| {
                let bits = rng.next_u64();
                let is_cold = bits as u32 >= traffic;
                // One draw for class and page: the page uses the high bits, the class the low.
                let page = if is_cold {
                    hot + below(rng.next_u64(), pages - hot)
                } else {
                    below(rng.next_u64(), hot)
                };
                labelled(page, is_cold, flip, (bits >> 32) as u32)
            })),
            Shape::LogRandom { log, share, at } => ops.extend((0..BATCH).map(|_| {
                let bits = rng.next_u64();
                let is_random = bits as u32 >= *share;
                let page = if is_random {
                    *log + below(rng.next_u64(), pages - *log)
                } else {
                    let page = *at;
                    *at = if page + 1 == *log { 0 } else { page + 1 };
                    page
                };
                labelled(page, is_random, flip, (bits >> 32) as u32)
            })),
        }
        Ok(())
    }
}

/// A number below `bound`. Without rejection: the bias is below bound / 2^64.
#[inline(always)]
fn below(bits: u64, bound: u32) -> u32 {
    ((u128::from(bits) * u128::from(bound)) >> 64) as u32
}

#[inline(always)]
fn labelled(page: u32, second: bool, flip: Option<u32>, bits: u32) -> Op {
    let lifetime = match flip {
        None => Lifetime::NotSet,
        Some(chance) if second != (bits < chance) => Lifetime::Extreme,
        Some(_) => Lifetime::Short,
    };
    Op {
        class: u16::from(second),
        lifetime: lifetime as u8,
        ..Op { kind: Kind::Write, ..Op::write(page, 1) }
    }
}

fn fraction(text: &str) -> Option<f64> {
    let number: f64 = text.trim_end_matches('%').parse().ok()?;
    let number = if number > 1.0 || text.ends_with('%') { number / 100.0 } else { number };
    (number > 0.0 && number < 1.0).then_some(number)
}
