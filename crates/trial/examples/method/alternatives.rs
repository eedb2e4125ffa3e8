//! What the method was chosen from: other intervals, orders and plannings.

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use shelflife_trial::stats::{
    Data, Fit, NoncentralT, PLANNED_EFFECT_PERCENT, Pair, Plan, TARGET_POWER, fit_pairs, median,
    plan_power, t_quantile,
};

type Interval = fn(&Data) -> (f64, f64);
type Orders = fn(usize, usize, u64) -> Vec<Vec<usize>>;
type Planning = fn(&Fit) -> usize;

/// Intervals for the log ratio of arm 1, the chosen one first.
pub const INTERVALS: [(&str, Interval); 5] = [
    ("paired, t, order as covariate (chosen)", regression),
    ("paired, t, order ignored", paired_t),
    ("not paired, Welch's t", welch),
    ("paired, inverted sign-flip test, order ignored", typical_values),
    ("paired, inverted Wilcoxon test, order taken out", wilcoxon),
];

/// Orders of the rounds, the chosen one first.
pub const ORDERS: [(&str, Orders); 4] = [
    ("equally often, shuffled over the run (chosen)", by_plan),
    ("a coin for every block", coin),
    ("ABBA or BAAB, by coin", abba),
    ("always AB", fixed),
];

/// Numbers of blocks from a pilot, the chosen one first.
pub const PLANNINGS: [(&str, Planning); 3] = [
    ("spread uncertain, excess kurtosis 2 (chosen)", |fit| {
        plan_power(fit, 0, 1).and_then(|power| power.blocks_needed).unwrap_or(u64::MAX) as usize
    }),
    ("spread uncertain, normal", |fit| by_degrees(fit, fit.df as f64)),
    ("spread taken for the truth", |fit| by_degrees(fit, 1e6)),
];

/// The chosen order.
pub fn by_plan(arms: usize, blocks: usize, seed: u64) -> Vec<Vec<usize>> {
    Plan::new(arms, blocks, seed).expect("a valid size").orders().to_vec()
}

fn coin(_: usize, blocks: usize, seed: u64) -> Vec<Vec<usize>> {
    let mut random = Pcg64::seed_from_u64(!seed);
    let mut order = || {
        let mut order = vec![0, 1];
        order.shuffle(&mut random);
        order
    };
    (0..blocks).map(|_| order()).collect()
}

fn abba(_: usize, blocks: usize, seed: u64) -> Vec<Vec<usize>> {
    let mut random = Pcg64::seed_from_u64(!seed);
    let groups = (0..blocks / 2).flat_map(|_| {
        let first = usize::from(random.random_bool(0.5));
        [vec![first, 1 - first], vec![1 - first, first]]
    });
    groups.collect()
}

fn fixed(_: usize, blocks: usize, _: u64) -> Vec<Vec<usize>> {
    vec![vec![0, 1]; blocks]
}

/// The chosen interval.
pub fn regression(data: &Data) -> (f64, f64) {
    let fit = fit_pairs(&pairs(data)).expect("no round is missing");
    let half = t_quantile(0.975, fit.df as f64) * fit.standard_error().expect("a spread");
    (fit.estimate - half, fit.estimate + half)
}

/// Complete pairs of arm 1 with arm 0.
pub fn pairs(data: &Data) -> Vec<Pair> {
    let blocks = data.blocks.iter().enumerate();
    blocks
        .filter_map(|(block, rounds)| {
            let (base, compared) = (rounds[0]?, rounds[1]?);
            let log_ratio = (compared.value / base.value).ln();
            let order = f64::from(compared.position) - f64::from(base.position);
            Some(Pair { block, log_ratio, order })
        })
        .collect()
}

fn paired_t(data: &Data) -> (f64, f64) {
    let ratios: Vec<f64> = pairs(data).iter().map(|pair| pair.log_ratio).collect();
    let (mean, variance) = moments(&ratios);
    let n = ratios.len() as f64;
    let half = t_quantile(0.975, n - 1.0) * (variance / n).sqrt();
    (mean - half, mean + half)
}

fn welch(data: &Data) -> (f64, f64) {
    let of_arm = |arm: usize| -> Vec<f64> {
        data.blocks.iter().filter_map(|rounds| Some(rounds[arm]?.value.ln())).collect()
    };
    let (base, compared) = (of_arm(0), of_arm(1));
    let ((mean_a, variance_a), (mean_b, variance_b)) = (moments(&base), moments(&compared));
    let (n_a, n_b) = (base.len() as f64, compared.len() as f64);
    let (a, b) = (variance_a / n_a, variance_b / n_b);
    let df = (a + b).powi(2) / (a * a / (n_a - 1.0) + b * b / (n_b - 1.0));
    let half = t_quantile(0.975, df) * (a + b).sqrt();
    (mean_b - mean_a - half, mean_b - mean_a + half)
}

/// Hartigan 1969: the 2ⁿ − 1 means of subsets cut the line into pieces of equal
/// confidence; for n = 8 the sixth from either end leaves 2 × 6/256.
fn typical_values(data: &Data) -> (f64, f64) {
    let ratios: Vec<f64> = pairs(data).iter().map(|pair| pair.log_ratio).collect();
    let mut means: Vec<f64> = (1_u32..1 << ratios.len())
        .map(|subset| {
            let chosen = ratios.iter().enumerate().filter(|(bit, _)| subset >> bit & 1 == 1);
            chosen.map(|(_, ratio)| ratio).sum::<f64>() / f64::from(subset.count_ones())
        })
        .collect();
    means.sort_by(f64::total_cmp);
    (means[5], means[means.len() - 6])
}

/// Hodges and Lehmann 1963: the fourth smallest and largest of the 36 Walsh
/// averages of 8 values hold the centre with 96.1 %.
fn wilcoxon(data: &Data) -> (f64, f64) {
    let pairs = pairs(data);
    // Half the difference of the two orders' medians: as robust as the rest.
    let of_order = |later: bool| -> Vec<f64> {
        let those = pairs.iter().filter(|pair| (pair.order > 0.0) == later);
        those.map(|pair| pair.log_ratio).collect()
    };
    let (later, earlier) = (median(&of_order(true)), median(&of_order(false)));
    let slope = later.zip(earlier).map_or(0.0, |(later, earlier)| (later - earlier) / 2.0);
    let ratios: Vec<f64> =
        pairs.iter().map(|pair| pair.log_ratio - slope * pair.order.signum()).collect();
    let mut walsh = Vec::new();
    for (index, a) in ratios.iter().enumerate() {
        walsh.extend(ratios[index..].iter().map(|b| (a + b) / 2.0));
    }
    walsh.sort_by(f64::total_cmp);
    (walsh[3], walsh[walsh.len() - 4])
}

fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (mean, values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0))
}

/// The formula of the chosen planning, with other degrees of freedom.
fn by_degrees(fit: &Fit, df: f64) -> usize {
    let spread = NoncentralT::new(df);
    let effect = (PLANNED_EFFECT_PERCENT / 100.0).ln_1p();
    let sd = fit.residual_sd.expect("a spread");
    let enough = |blocks: usize| {
        let reach = (blocks as f64).sqrt() * effect / sd;
        spread.cdf(reach, t_quantile(0.975, blocks as f64 - 2.0)) >= TARGET_POWER
    };
    (6..).find(|&blocks| enough(blocks)).expect("an unbounded range")
}
