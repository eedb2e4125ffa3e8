//! What was tried for the inner loop: the figures of `docs/design/simulator.md`.
//!
//! `cargo bench -p shelflife-ssd --bench variants [-- GIB]`; uniform random writes, greedy, one
//! frontier, units of 4096 pages. A drive of a hundred lines, nothing else, in variants that differ in
//! one thing each: how a collection knows what is valid (a bitmap kept up by the overwrite, or a look
//! at the map: `l2p[p2l[x]] == x`), whether map entries are prefetched, huge pages, and how the
//! emptiest unit is found (a scan of all counts, a minimum per group of 64, or a bucket queue).

use std::time::Instant;

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};
use shelflife_ssd::bare_loop::{huge_map, prefetch};

const SHIFT: u32 = 12;
const UNIT: usize = 1 << SHIFT;
const OPEN: u32 = 1 << 30;
const AHEAD: usize = 32;

#[derive(Clone, Copy, PartialEq)]
enum Find {
    Scan,
    Groups,
    Buckets,
}

struct Drive {
    l2p: Vec<u32>,
    p2l: Vec<u32>,
    live: Vec<u64>,
    count: Vec<u32>,
    low: Vec<u32>,
    /// Bucket queue: first unit by count, and neighbours of each unit.
    head: Vec<u32>,
    next: Vec<u32>,
    previous: Vec<u32>,
    least: usize,
    free: Vec<u32>,
    at: usize,
    end: usize,
    flash: u64,
    scratch: Vec<u32>,
}

const NONE: u32 = u32::MAX;

impl Drive {
    fn new(pages: usize, rho: f64, huge: bool) -> Drive {
        let units = (pages as f64 * (1.0 + rho) / UNIT as f64).round() as usize + 1;
        let map = |len| if huge { huge_map(len, NONE) } else { vec![NONE; len] };
        Drive {
            l2p: map(pages),
            p2l: map(units * UNIT),
            live: vec![0; units * UNIT / 64],
            count: vec![NONE; units],
            low: vec![NONE; units.div_ceil(64)],
            head: vec![NONE; UNIT + 1],
            next: vec![NONE; units],
            previous: vec![NONE; units],
            least: UNIT,
            free: (0..units as u32).rev().collect(),
            at: 0,
            end: 0,
            flash: 0,
            scratch: vec![0; UNIT + 1],
        }
    }

    fn link(&mut self, unit: u32) {
        let count = self.count[unit as usize] as usize;
        let head = self.head[count];
        self.next[unit as usize] = head;
        self.previous[unit as usize] = NONE;
        if head != NONE {
            self.previous[head as usize] = unit;
        }
        self.head[count] = unit;
        self.least = self.least.min(count);
    }

    fn unlink(&mut self, unit: u32) {
        let (next, previous) = (self.next[unit as usize], self.previous[unit as usize]);
        if previous == NONE {
            self.head[self.count[unit as usize] as usize] = next;
        } else {
            self.next[previous as usize] = next;
        }
        if next != NONE {
            self.previous[next as usize] = previous;
        }
    }

    fn pick(&mut self, find: Find) -> usize {
        let position = |keys: &[u32]| {
            let least = keys.iter().fold(NONE, |a, &b| a.min(b));
            keys.iter().position(|&key| key == least).unwrap_or(0)
        };
        match find {
            Find::Scan => position(&self.count),
            Find::Groups => {
                let start = position(&self.low) * 64;
                start + position(&self.count[start..self.count.len().min(start + 64)])
            }
            Find::Buckets => {
                while self.head[self.least] == NONE {
                    self.least += 1;
                }
                let unit = self.head[self.least];
                self.unlink(unit);
                unit as usize
            }
        }
    }

    fn open(&mut self) {
        let unit = self.free.pop().unwrap_or(0) as usize;
        self.count[unit] = OPEN + UNIT as u32;
        self.live[unit * UNIT / 64..(unit + 1) * UNIT / 64].fill(u64::MAX);
        self.at = unit * UNIT;
        self.end = self.at + UNIT;
    }

    fn close(&mut self, find: Find) {
        let unit = (self.end - 1) >> SHIFT;
        self.count[unit] -= OPEN;
        match find {
            Find::Scan => {}
            Find::Groups => self.low[unit / 64] = self.low[unit / 64].min(self.count[unit]),
            Find::Buckets => self.link(unit as u32),
        }
    }

    #[inline(never)]
    fn collect<const BITMAP: bool, const PREFETCH: bool>(&mut self, find: Find) {
        let victim = self.pick(find);
        self.open();
        let (start, mut n) = (victim * UNIT, 0);
        let pages = &self.p2l[start..start + UNIT];
        if BITMAP {
            let words = &self.live[start / 64..(start + UNIT) / 64];
            for (chunk, &word) in pages.chunks(64).zip(words) {
                for (i, &page) in chunk.iter().enumerate() {
                    self.scratch[n] = page;
                    n += (word >> i & 1) as usize;
                }
            }
        } else {
            for (i, &page) in pages.iter().enumerate() {
                if let (true, Some(&page)) = (PREFETCH, pages.get(i + AHEAD)) {
                    prefetch(&self.l2p, page as usize);
                }
                self.scratch[n] = page;
                n += usize::from(self.l2p[page as usize] == (start + i) as u32);
            }
        }
        let valid = &self.scratch[..n];
        self.p2l[self.at..self.at + n].copy_from_slice(valid);
        for (i, &page) in valid.iter().enumerate() {
            if let (true, Some(&page)) = (PREFETCH && BITMAP, valid.get(i + AHEAD)) {
                prefetch(&self.l2p, page as usize);
            }
            self.l2p[page as usize] = (self.at + i) as u32;
        }
        self.at += n;
        self.flash += n as u64;
        self.count[victim] = NONE;
        if find == Find::Groups {
            let group = victim / 64 * 64;
            let end = self.count.len().min(group + 64);
            self.low[victim / 64] = self.count[group..end].iter().fold(NONE, |a, &b| a.min(b));
        }
        self.free.push(victim as u32);
    }

    fn write<const BITMAP: bool, const PREFETCH: bool>(&mut self, pages: &[u32], find: Find) {
        let mut from = 0;
        while from < pages.len() {
            if self.at == self.end {
                if self.end > 0 {
                    self.close(find);
                }
                if self.free.len() < 2 {
                    self.collect::<BITMAP, PREFETCH>(find);
                } else {
                    self.open();
                }
            }
            let n = (self.end - self.at).min(pages.len() - from);
            self.segment::<BITMAP, PREFETCH>(&pages[from..from + n], find);
            from += n;
        }
    }

    #[inline(never)]
    fn segment<const BITMAP: bool, const PREFETCH: bool>(&mut self, pages: &[u32], find: Find) {
        self.p2l[self.at..self.at + pages.len()].copy_from_slice(pages);
        for (i, &page) in pages.iter().enumerate() {
            if let (true, Some(&page)) = (PREFETCH, pages.get(i + AHEAD)) {
                prefetch(&self.l2p, page as usize);
            }
            let old = std::mem::replace(&mut self.l2p[page as usize], (self.at + i) as u32);
            let unit = (old >> SHIFT) as usize;
            if unit >= self.count.len() {
                continue;
            }
            if find == Find::Buckets && self.count[unit] < OPEN {
                self.unlink(unit as u32);
                self.count[unit] -= 1;
                self.link(unit as u32);
            } else {
                self.count[unit] -= 1;
            }
            if find == Find::Groups {
                let low = &mut self.low[unit / 64];
                *low = self.count[unit].min(*low);
            }
            if BITMAP {
                self.live[(old >> 6) as usize] &= !(1 << (old & 63));
            }
        }
        self.at += pages.len();
        self.flash += pages.len() as u64;
    }
}

fn cpu_seconds(start: Instant) -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let cpu = text.split_whitespace().next().and_then(|field| field.parse::<f64>().ok());
    cpu.map_or_else(|| start.elapsed().as_secs_f64(), |nanoseconds| nanoseconds / 1e9)
}

/// Millions of host pages a second, median of five rounds, and WAF.
fn measure<const BITMAP: bool, const PREFETCH: bool>(
    pages: usize,
    rho: f64,
    huge: bool,
    find: Find,
) -> (f64, f64) {
    let mut drive = Drive::new(pages, rho, huge);
    let mut rng = Pcg64Mcg::seed_from_u64(1);
    let mut batch = vec![0_u32; 2048];
    for first in (0..pages as u32).step_by(batch.len()) {
        batch.iter_mut().zip(first..).for_each(|(slot, page)| *slot = page);
        drive.write::<BITMAP, PREFETCH>(&batch, find);
    }
    let mut go = |drive: &mut Drive, n: usize| {
        for _ in 0..n / batch.len() {
            for slot in &mut batch {
                *slot = ((u128::from(rng.next_u64()) * pages as u128) >> 64) as u32;
            }
            drive.write::<BITMAP, PREFETCH>(&batch, find);
        }
    };
    go(&mut drive, if pages > 1 << 24 { pages } else { 3 * pages });
    let (n, flash, origin) = (1 << 23, drive.flash, Instant::now());
    let mut seconds: Vec<f64> = (0..5)
        .map(|_| {
            let start = cpu_seconds(origin);
            go(&mut drive, n);
            cpu_seconds(origin) - start
        })
        .collect();
    seconds.sort_by(f64::total_cmp);
    (n as f64 / seconds[2] / 1e6, (drive.flash - flash) as f64 / (5 * n) as f64)
}

fn main() {
    let gib: usize = std::env::args().skip(1).find_map(|text| text.parse().ok()).unwrap_or(16);
    let pages = gib << 18;
    println!("{gib} GiB; M host pages/s (flash pages/s)     rho 28 %          rho 7 %");
    let line = |name: &str, run: &dyn Fn(f64) -> (f64, f64)| {
        print!("{name:40}");
        for rho in [0.28, 0.07] {
            let (host, waf) = run(rho);
            print!("  {host:5.1} ({:6.1})", host * waf);
        }
        println!();
    };
    use Find::{Buckets, Groups, Scan};
    line("map look-up, no prefetch", &|rho| measure::<false, false>(pages, rho, false, Scan));
    line("map look-up, prefetch", &|rho| measure::<false, true>(pages, rho, false, Scan));
    line("bitmap, no prefetch", &|rho| measure::<true, false>(pages, rho, false, Scan));
    line("bitmap, prefetch", &|rho| measure::<true, true>(pages, rho, false, Scan));
    line("  + huge pages", &|rho| measure::<true, true>(pages, rho, true, Scan));
    line("  + minimum per group (as shipped)", &|rho| {
        measure::<true, true>(pages, rho, true, Groups)
    });
    line("  + bucket queue instead", &|rho| measure::<true, true>(pages, rho, true, Buckets));
}
