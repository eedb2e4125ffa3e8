//! Quota: every pool (stream, or the relocated data of all) is entitled to a share of the spare
//! space; the emptiest RU of the pool that holds most above its share is collected. RUs without a
//! valid page cost nothing and go first, whosever they are.
//!
//! Invariant: shares sum to the spare there is. They seek the optimum for random deaths inside each
//! pool: with s_i the pool's valid pages and p_i its deaths per host write, Σ p_i A(α_i) is least
//! where (p_i / s_i) / g(x_i) is the same for all pools, x the valid ratio at collection,
//! α = −ln x / (1 − x) and g(x) = 1/x − 1 + ln x (from the closed form for P → ∞; derivation:
//! `docs/design/simulator.md`). A pool that dies in order (a log) does not use its share, because
//! its RUs are dead before it is exceeded: it keeps what it holds, and the others share the rest.

use super::{Flow, VictimRule, View};
use crate::valid::{FREE, OPEN};

/// How many times per device write the shares are computed anew.
const PER_DEVICE_WRITE: u64 = 32;

#[derive(Default)]
pub(super) struct Quota {
    pools: Vec<Pool>,
    /// Closed RUs by pool; grows as pools appear.
    closed: Vec<u32>,
    due: u64,
    last_at: u64,
}

#[derive(Clone, Copy, Default)]
struct Pool {
    /// Valid pages when the shares were last computed, open RUs included.
    live: u64,
    flow: Flow,
    /// Deaths per host page written, averaged over recent intervals; none yet if negative.
    rate: f64,
    /// Whether, of late, its RUs were erased only when dead.
    empties_itself: bool,
    /// The most pages of closed RUs it held since the shares were last computed.
    most_held: u64,
    /// T_i: pages of closed RUs the pool is entitled to.
    share: f64,
}

impl VictimRule for Quota {
    fn pick(&mut self, view: &View<'_>) -> Option<u32> {
        let victim = self.choose(view)?;
        self.closed[usize::from(view.pool[victim as usize])] -= 1;
        Some(victim)
    }

    fn closed(&mut self, _: u32, pool: u8) {
        let pool = usize::from(pool);
        if self.closed.len() <= pool {
            self.closed.resize(pool + 1, 0);
        }
        self.closed[pool] += 1;
    }
}

impl Quota {
    fn choose(&mut self, view: &View<'_>) -> Option<u32> {
        let emptiest = view.valid.emptiest()?;
        if emptiest.1 == 0 {
            return Some(emptiest.0);
        }
        if self.pools.is_empty() || view.now >= self.due {
            self.closed.resize(view.flows.len(), 0);
            self.seek(view);
        }
        let unit = u64::from(view.layout.ru_pages);
        for (pool, &closed) in self.pools.iter_mut().zip(&self.closed) {
            pool.most_held = pool.most_held.max(u64::from(closed) * unit);
        }
        // The pool most above its share that has a dead page, the first among equals.
        let mut last = (f64::INFINITY, 0);
        loop {
            let mut next: Option<(f64, usize)> = None;
            for (i, (pool, &closed)) in self.pools.iter().zip(&self.closed).enumerate() {
                let over = (u64::from(closed) * unit) as f64 - pool.share;
                let is_later = over < last.0 || (over == last.0 && i > last.1);
                if is_later && next.is_none_or(|(most, _)| over > most) {
                    next = Some((over, i));
                }
            }
            // Some pool has a dead page: that of the emptiest RU.
            let Some((over, pool)) = next else { return Some(emptiest.0) };
            if let Some((ru, valid)) = emptiest_of(view, pool as u8)
                && valid < view.layout.ru_pages
            {
                return Some(ru);
            }
            last = (over, pool);
        }
    }

    /// Measures live pages and death rates, and computes the shares from them.
    fn seek(&mut self, view: &View<'_>) {
        let first = self.pools.is_empty();
        self.pools.resize(view.flows.len(), Pool { rate: -1.0, ..Pool::default() });
        let mut live = vec![0_u64; view.flows.len()];
        let mut closed_live = vec![0_u64; view.flows.len()];
        for (ru, (&key, &pool)) in view.valid.keys().iter().zip(view.pool).enumerate() {
            if key != FREE {
                let count = u64::from(view.valid.count(ru as u32));
                live[usize::from(pool)] += count;
                if key < OPEN {
                    closed_live[usize::from(pool)] += count;
                }
            }
        }
        // An open RU counts what is not yet written as valid.
        for open in view.frontiers.iter().filter(|open| open.room() > 0) {
            live[usize::from(view.pool[open.ru as usize])] -= open.room() as u64;
        }
        let hosts = view.now - self.last_at;
        for (i, pool) in self.pools.iter_mut().enumerate() {
            let flow = view.flows[i];
            let came = flow.host - pool.flow.host + flow.moved_in - pool.flow.moved_in;
            let gone = flow.moved_out - pool.flow.moved_out;
            let deaths = pool.live + came - live[i] - gone;
            if !first && hosts > 0 {
                let rate = deaths as f64 / hosts as f64;
                pool.rate = if pool.rate < 0.0 { rate } else { 0.75 * pool.rate + 0.25 * rate };
            }
            let erased = flow.erased - pool.flow.erased;
            pool.empties_itself = erased > 0 && gone == 0;
            pool.live = live[i];
            pool.flow = flow;
        }
        self.last_at = view.now;
        self.due = view.now + (view.layout.logical_pages / PER_DEVICE_WRITE).max(1);
        let total = view.layout.net_pages as f64;
        let class = |pool: &Pool, live: u64| (live as f64, pool.rate.max(0.0));
        let mut classes: Vec<(f64, f64)> =
            self.pools.iter().zip(&closed_live).map(|(pool, &live)| class(pool, live)).collect();
        for (pool, share) in self.pools.iter_mut().zip(shares(&classes, total)) {
            pool.share = share;
        }
        let mut rest = total;
        for (pool, class) in self.pools.iter_mut().zip(&mut classes) {
            // Two RUs of slack: a pool at its bound must not lose an RU about to die. Unused, they
            // cost nothing, since the others are then over their shares by as much.
            let need = (pool.most_held + 2 * u64::from(view.layout.ru_pages)) as f64;
            if pool.empties_itself && need < pool.share {
                pool.share = need;
                rest -= need;
                *class = (0.0, 0.0);
            }
            pool.most_held = 0;
        }
        if rest < total {
            for (i, share) in shares(&classes, rest).into_iter().enumerate() {
                if classes[i].0 > 0.0 {
                    self.pools[i].share = share;
                }
            }
        }
    }
}

/// The closed RU of a pool with the fewest valid pages, the lowest-numbered among equals.
fn emptiest_of(view: &View<'_>, pool: u8) -> Option<(u32, u32)> {
    let keys = view.valid.keys();
    // Without a branch on the pool, so that it can be done many at a time.
    let of_pool = |(&key, &owner): (&u32, &u8)| if owner == pool { key } else { FREE };
    let least = keys.iter().zip(view.pool).map(of_pool).fold(FREE, u32::min);
    if least >= OPEN {
        return None;
    }
    let at = keys.iter().zip(view.pool).position(|entry| of_pool(entry) == least)?;
    Some((at as u32, least))
}

/// The split of `total` pages among classes of (valid pages, deaths per host write) for which
/// Σ p·A(α) is least.
pub(crate) fn shares(classes: &[(f64, f64)], total: f64) -> Vec<f64> {
    let taken = |lambda: f64| -> Vec<f64> {
        classes
            .iter()
            .map(|&(live, rate)| {
                if live <= 0.0 {
                    return 0.0;
                }
                if rate <= 0.0 {
                    return live;
                }
                live * alpha(ratio_at(rate / live / lambda))
            })
            .collect()
    };
    // λ is the gain per page of spare: the larger it must be, the less each class takes.
    let (mut low, mut high) = (1e-30_f64, 1e6_f64);
    for _ in 0..80 {
        let middle = (low * high).sqrt();
        if taken(middle).iter().sum::<f64>() > total { low = middle } else { high = middle }
    }
    taken((low * high).sqrt())
}

/// x with g(x) = 1/x − 1 + ln x = `gain`; g falls from ∞ to 0 on (0, 1].
fn ratio_at(gain: f64) -> f64 {
    // In y = −ln x: g = e^y − 1 − y, which is convex; Newton from above converges at every scale.
    let mut y = if gain < 1.0 { (2.0 * gain).sqrt() } else { (gain + 1.0).ln() + 1.0 };
    for _ in 0..30 {
        let slope = y.exp_m1();
        if slope <= 0.0 {
            break;
        }
        y = (y - (slope - y - gain) / slope).max(f64::MIN_POSITIVE);
    }
    (-y).exp()
}

/// α = −ln x / (1 − x).
fn alpha(x: f64) -> f64 {
    if x >= 1.0 { 1.0 } else { -x.ln() / (1.0 - x) }
}
