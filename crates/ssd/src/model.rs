//! A slow model of the drive that is obviously right, and the proof that the fast one agrees with it
//! page for page, whatever the operations.
//!
//! Invariant: the model keeps no count and no bitmap; it looks at every page whenever it wants to
//! know something. It shares with the fast one the numbers of the quota rule's optimum
//! (`quota::shares`, tested against the closed form) and nothing else.

use proptest::prelude::*;

use crate::geometry::{Frontier, Geometry, Isolation, Layout, Space};
use crate::victim::shares;
use crate::{Config, Kind, Op, Simulator, Transport, Victim};

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Free,
    Open,
    Closed { at: u64, order: u64 },
}

#[derive(Clone, Debug)]
struct Unit {
    state: State,
    frontier: usize,
    written: Vec<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    Nowhere,
    Buffer,
    Flash(usize, usize),
}

/// Per pool: what came in and went out, and what was erased.
#[derive(Clone, Copy, Default)]
struct Flow {
    came: u64,
    gone: u64,
    erased: u64,
}

#[derive(Clone, Copy)]
struct Pool {
    live: u64,
    flow: Flow,
    rate: Option<f64>,
    most_held: u64,
    share: f64,
}

struct Model {
    config: Config,
    layout: Layout,
    units: Vec<Unit>,
    /// In the order of use.
    free: Vec<usize>,
    frontiers: Vec<Option<usize>>,
    places: Vec<Place>,
    buffer: Vec<(Option<u32>, usize)>,
    host: u64,
    closings: u64,
    copied: u64,
    erases: u64,
    absorbed: u64,
    flows: Vec<Flow>,
    pools: Vec<Pool>,
    asked_at: u64,
    due: u64,
}

impl Model {
    fn new(config: &Config) -> Model {
        let layout = config.geometry.layout().unwrap();
        let unit = Unit { state: State::Free, frontier: 0, written: Vec::new() };
        Model {
            units: vec![unit; layout.rus as usize],
            free: (0..layout.rus as usize).collect(),
            frontiers: vec![None; layout.frontiers as usize],
            places: vec![Place::Nowhere; layout.logical_pages as usize],
            buffer: Vec::new(),
            host: 0,
            closings: 0,
            copied: 0,
            erases: 0,
            absorbed: 0,
            flows: vec![Flow::default(); 3 * config.geometry.streams as usize],
            pools: Vec::new(),
            asked_at: 0,
            due: 0,
            layout,
            config: config.clone(),
        }
    }

    fn size(&self) -> usize {
        self.layout.ru_pages as usize
    }

    /// Pages written and not erased.
    fn written(&self) -> usize {
        self.units.iter().map(|unit| unit.written.len()).sum()
    }

    fn valid(&self, unit: usize) -> usize {
        let alive =
            |(at, &page): (usize, &u32)| self.places[page as usize] == Place::Flash(unit, at);
        self.units[unit].written.iter().enumerate().filter(|&entry| alive(entry)).count()
    }

    fn closed(&self) -> Vec<usize> {
        let is_closed = |&u: &usize| matches!(self.units[u].state, State::Closed { .. });
        (0..self.units.len()).filter(is_closed).collect()
    }

    fn pool(&self, frontier: usize) -> usize {
        match self.config.geometry.isolation {
            Isolation::Initial => frontier,
            Isolation::Persistent => frontier % self.config.geometry.streams as usize,
        }
    }

    /// The fewest valid pages among units with something dead, the first among equals.
    fn emptiest(&self, among: &[usize]) -> Option<usize> {
        let dead = among.iter().copied().filter(|&unit| self.valid(unit) < self.size());
        dead.min_by_key(|&unit| self.valid(unit))
    }

    fn pick(&mut self) -> usize {
        let closed = self.closed();
        let at = |unit: usize| match self.units[unit].state {
            State::Closed { at, order } => (at, order),
            _ => unreachable!(),
        };
        match self.config.victim {
            Victim::Greedy => self.emptiest(&closed).unwrap(),
            Victim::Fifo => closed.into_iter().min_by_key(|&unit| at(unit).1).unwrap(),
            Victim::CostBenefit => {
                let fraction = |unit: usize| {
                    let (v, s) = (self.valid(unit) as u128, self.size() as u128);
                    ((s - v) * u128::from(self.host - at(unit).0 + 1), s + v)
                };
                let mut best = closed[0];
                for &unit in &closed {
                    let ((a, b), (c, d)) = (fraction(unit), fraction(best));
                    if a * d > c * b {
                        best = unit;
                    }
                }
                best
            }
            Victim::Quota => self.pick_by_quota(&closed),
        }
    }

    fn pick_by_quota(&mut self, closed: &[usize]) -> usize {
        let emptiest = self.emptiest(closed).unwrap();
        if self.valid(emptiest) == 0 {
            return emptiest;
        }
        let streams = self.config.geometry.streams as usize;
        let geometry = &self.config.geometry;
        let relocated_apart =
            geometry.isolation == Isolation::Initial && geometry.frontier == Frontier::Separate;
        let pools = streams + usize::from(relocated_apart);
        let of = |unit: usize| self.pool(self.units[unit].frontier);
        if self.pools.is_empty() || self.host >= self.due {
            let first = self.pools.is_empty();
            let none =
                Pool { live: 0, flow: Flow::default(), rate: None, most_held: 0, share: 0.0 };
            let mut next = self.pools.clone();
            next.resize(pools, none);
            let mut classes = Vec::new();
            let mut emptying = Vec::new();
            for (i, pool) in next.iter_mut().enumerate() {
                let used = (0..self.units.len())
                    .filter(|&u| self.units[u].state != State::Free && of(u) == i);
                let live: u64 = used.map(|u| self.valid(u) as u64).sum();
                let flow = self.flows[i];
                let deaths =
                    pool.live + (flow.came - pool.flow.came) - live - (flow.gone - pool.flow.gone);
                let hosts = self.host - self.asked_at;
                if !first && hosts > 0 {
                    let rate = deaths as f64 / hosts as f64;
                    pool.rate = Some(pool.rate.map_or(rate, |old| 0.75 * old + 0.25 * rate));
                }
                emptying.push(flow.erased > pool.flow.erased && flow.gone == pool.flow.gone);
                (pool.live, pool.flow) = (live, flow);
                let mine = closed.iter().filter(|&&u| of(u) == i);
                let live: u64 = mine.map(|&u| self.valid(u) as u64).sum();
                classes.push((live as f64, pool.rate.unwrap_or(0.0)));
            }
            let total = self.layout.net_pages as f64;
            for (pool, share) in next.iter_mut().zip(shares(&classes, total)) {
                pool.share = share;
            }
            let mut rest = total;
            for (i, pool) in next.iter_mut().enumerate() {
                let need = (pool.most_held + 2 * u64::from(self.layout.ru_pages)) as f64;
                if emptying[i] && need < pool.share {
                    pool.share = need;
                    rest -= need;
                    classes[i] = (0.0, 0.0);
                }
                pool.most_held = 0;
            }
            if rest < total {
                for (i, share) in shares(&classes, rest).into_iter().enumerate() {
                    if classes[i].0 > 0.0 {
                        next[i].share = share;
                    }
                }
            }
            self.asked_at = self.host;
            self.due = self.host + (self.layout.logical_pages / 32).max(1);
            self.pools = next;
        }
        let mut chosen = emptiest;
        let mut most = f64::NEG_INFINITY;
        for i in 0..pools {
            let mine: Vec<usize> = closed
                .iter()
                .copied()
                .filter(|&u| self.pool(self.units[u].frontier) == i)
                .collect();
            let held = mine.len() * self.size();
            self.pools[i].most_held = self.pools[i].most_held.max(held as u64);
            let Some(unit) = self.emptiest(&mine) else { continue };
            let over = held as f64 - self.pools[i].share;
            if over > most {
                (most, chosen) = (over, unit);
            }
        }
        chosen
    }

    fn has_room(&self, frontier: usize) -> bool {
        self.frontiers[frontier].is_some()
    }

    fn open(&mut self, frontier: usize) {
        let unit = self.free.remove(0);
        assert_eq!(self.units[unit].state, State::Free);
        self.units[unit] = Unit { state: State::Open, frontier, written: Vec::new() };
        self.frontiers[frontier] = Some(unit);
    }

    /// Puts a page onto a frontier that has room.
    fn put(&mut self, frontier: usize, page: u32) {
        let unit = self.frontiers[frontier].unwrap();
        self.places[page as usize] = Place::Flash(unit, self.units[unit].written.len());
        self.units[unit].written.push(page);
    }

    /// Closes the frontier's unit if it is full.
    fn close_if_full(&mut self, frontier: usize) {
        let unit = self.frontiers[frontier].unwrap();
        if self.units[unit].written.len() == self.size() {
            self.closings += 1;
            self.units[unit].state = State::Closed { at: self.host, order: self.closings };
            self.frontiers[frontier] = None;
        }
    }

    fn collect(&mut self) {
        let victim = self.pick();
        let from = self.units[victim].frontier;
        let streams = self.config.geometry.streams as usize;
        let to = match (self.config.geometry.isolation, self.config.geometry.frontier) {
            (Isolation::Initial, Frontier::Separate) => streams,
            (Isolation::Initial, Frontier::Single) => 0,
            (Isolation::Persistent, Frontier::Separate) => streams + from % streams,
            (Isolation::Persistent, Frontier::Single) => from,
        };
        let written = self.units[victim].written.clone();
        for (at, &page) in written.iter().enumerate() {
            if self.places[page as usize] == Place::Flash(victim, at) {
                if !self.has_room(to) {
                    self.open(to);
                }
                self.put(to, page);
                self.close_if_full(to);
                self.copied += 1;
                let (i, o) = (self.pool(to), self.pool(from));
                self.flows[i].came += 1;
                self.flows[o].gone += 1;
            }
        }
        let pool = self.pool(from);
        self.flows[pool].erased += 1;
        self.erases += 1;
        self.units[victim] = Unit { state: State::Free, frontier: 0, written: Vec::new() };
        self.free.push(victim);
    }

    fn is_full(&self) -> bool {
        let several = self.layout.frontiers > 1;
        let pages = if several { self.closed().len() * self.size() } else { self.written() };
        pages as u64 >= self.layout.net_pages
    }

    fn destage(&mut self, page: u32, stream: usize) {
        if self.layout.frontiers == 1 || !self.has_room(stream) {
            while self.is_full() && self.emptiest(&self.closed()).is_some() {
                self.collect();
            }
        }
        if !self.has_room(stream) {
            self.open(stream);
        }
        self.put(stream, page);
        self.host += 1;
        let pool = self.pool(stream);
        self.flows[pool].came += 1;
        self.close_if_full(stream);
    }

    fn write(&mut self, page: u32, stream: usize) {
        let capacity = self.config.buffer_pages as usize;
        if capacity == 0 {
            return self.destage(page, stream);
        }
        if self.places[page as usize] == Place::Buffer {
            let slot = self.buffer.iter_mut().find(|slot| slot.0 == Some(page)).unwrap();
            slot.1 = stream;
            self.absorbed += 1;
            return;
        }
        if self.buffer.len() == capacity
            && let (Some(old), stream) = self.buffer.remove(0)
        {
            self.destage(old, stream);
        }
        self.places[page as usize] = Place::Buffer;
        self.buffer.push((Some(page), stream));
    }

    fn trim(&mut self, page: u32) {
        if let Some(slot) = self.buffer.iter_mut().find(|slot| slot.0 == Some(page)) {
            slot.0 = None;
        }
        self.places[page as usize] = Place::Nowhere;
    }

    fn apply(&mut self, op: &Op) {
        for page in op.page..op.page + op.pages {
            match op.kind {
                Kind::Write => {
                    let lifetime = shelflife_lifetime::Lifetime::ALL[usize::from(op.lifetime)];
                    let streams = self.config.geometry.streams;
                    self.write(page, self.config.transport.stream(lifetime, streams) as usize);
                }
                Kind::Trim | Kind::WriteZeroes => self.trim(page),
            }
        }
    }
}

const PAGES: u32 = 300;

fn operations() -> impl Strategy<Value = Vec<Op>> {
    let kind = prop_oneof![
        12 => Just(Kind::Write),
        1 => Just(Kind::Trim),
        1 => Just(Kind::WriteZeroes),
    ];
    // Half of the writes go to a tenth of the pages; a few are long.
    let first = prop_oneof![0..PAGES, 0..PAGES / 10];
    let length = prop_oneof![8 => 1_u32..3, 1 => 1_u32..60];
    let op = (first, length, kind, 0_u8..6, 0_u16..4).prop_map(
        |(page, length, kind, lifetime, class)| Op {
            page,
            pages: length.min(PAGES - page),
            file: 0,
            class,
            kind,
            lifetime,
        },
    );
    prop::collection::vec(op, 1..1500)
}

fn configurations() -> impl Strategy<Value = Config> {
    let victim = prop::sample::select(&Victim::ALL[..]);
    let isolation = prop::sample::select(&[Isolation::Initial, Isolation::Persistent][..]);
    let frontier = prop::sample::select(&[Frontier::Separate, Frontier::Single][..]);
    let transport = prop::sample::select(&Transport::ALL[..]);
    let ru_pages = prop_oneof![1_u32..40, Just(16), Just(64), Just(70)];
    let buffer = prop_oneof![3 => Just(0), 1 => 1_u32..20];
    (victim, isolation, frontier, transport, 1_u32..7, ru_pages, 1_u64..200, buffer, any::<bool>())
        .prop_map(
            |(victim, isolation, frontier, transport, streams, ru, spare, buffer, by_class)| {
                // With several frontiers T is rounded to units.
                let one = streams == 1 && frontier == Frontier::Single;
                let margin = if one { 0 } else { u64::from(ru) };
                let pages = u64::from(PAGES) + spare + margin;
                let space = Space::Net { pages };
                let unhinted = Geometry::unhinted(PAGES.into(), ru, space);
                Config {
                    geometry: Geometry { streams, isolation, frontier, ..unhinted },
                    victim,
                    transport,
                    recorded_on_f2fs: false,
                    buffer_pages: buffer,
                    by_class,
                }
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn fast_and_slow_agree_page_for_page(config in configurations(), ops in operations(), cut in 1_usize..700) {
        let mut model = Model::new(&config);
        let mut fast = Simulator::new(&config).unwrap();
        for part in ops.chunks(cut) {
            fast.feed(part).unwrap();
            part.iter().for_each(|op| model.apply(op));
            for page in 0..PAGES {
                let place = match model.places[page as usize] {
                    Place::Flash(unit, at) => Some((unit as u32, at as u32)),
                    _ => None,
                };
                prop_assert_eq!(fast.location(page), place, "page {}", page);
            }
        }
        if let Ok(outcome) = fast.outcome() {
            prop_assert_eq!(outcome.copied_pages, model.copied);
            prop_assert_eq!(outcome.flash_pages, model.copied + model.host);
            prop_assert_eq!(outcome.erases, model.erases);
            prop_assert_eq!(outcome.absorbed_pages, model.absorbed);
            let streams: u64 = outcome.per_stream.iter().map(|s| s.host_pages).sum();
            prop_assert_eq!(streams, outcome.host_pages);
            if config.by_class {
                let copied: u64 = outcome.per_class.iter().filter_map(|c| c.copied_pages).sum();
                prop_assert_eq!(copied, model.copied);
                let copied: u64 = outcome.per_stream.iter().filter_map(|c| c.copied_pages).sum();
                prop_assert_eq!(copied, model.copied);
            }
        }
    }
}
