//! From rounds to the result of a trial: every arm against the first.
//!
//! Invariant: rounds enter a comparison only together with the base's round of
//! the same block; a block that lacks one of the two is counted as missing for
//! that comparison, and for that one only.

use serde::{Deserialize, Serialize};

use super::data::{Data, Metric};
use super::drift::{Drift, drift};
use super::error::StatsError;
use super::fit::{Fit, Interval, OrderEffect, Pair, ROUNDING, fit_pairs};
use super::outlier::{MODIFIED_Z_LIMIT, OutlierBlock, OutlierRound, modified_z_scores};
use super::percent;
use super::permutation::{PValue, holm, sign_flip, smallest_p};
use super::power::{Power, fewest_blocks, plan_power};
use super::summary::{ArmSummary, median, summarise};
use super::verdict::{Facts, Verdict, sentence, verdict};

/// The result of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Analysis {
    /// What the values are.
    pub metric: Metric,
    /// Whether this was a quick look, without verdicts.
    pub quick: bool,
    /// Blocks, complete or not.
    pub blocks: usize,
    /// One row per arm.
    pub arms: Vec<ArmSummary>,
    /// Every arm but the first against the first.
    pub comparisons: Vec<Comparison>,
    /// The trend of the whole run, where it can be estimated.
    pub drift: Option<Drift>,
    /// Far-out rounds; all of them are in every figure.
    pub outliers: Vec<OutlierRound>,
}

/// One arm against the base.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The compared arm, from 1.
    pub arm: usize,
    /// Its name.
    pub name: String,
    /// Name of the base.
    pub base: String,
    /// Whether both arms are the same policy: an A/A check.
    pub same_policy: bool,
    /// Blocks with both rounds, the only ones used.
    pub blocks: usize,
    /// Blocks without one of the two.
    pub blocks_missing: usize,
    /// The effect; `None` without a usable block.
    pub estimate: Option<Estimate>,
    /// The p-value; `None` without a usable block.
    pub p: Option<PValue>,
    /// The smallest p-value that so many blocks can give, before Holm: 2/2ⁿ.
    pub smallest_p: f64,
    /// The fewest blocks with which this trial's comparisons can reach 0.05.
    pub fewest_blocks: usize,
    /// What so many blocks can find; `None` without a residual spread.
    pub power: Option<Power>,
    /// Far-out blocks; all of them are in every figure.
    pub outliers: Vec<OutlierBlock>,
    /// What may be said.
    pub verdict: Verdict,
    /// The same as one sentence, without a full stop.
    pub sentence: String,
}

/// The effect of one arm: changes of the metric against the base.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Natural logarithm of arm / base: the mean over blocks, order taken out.
    pub log_ratio: f64,
    /// The same in percent.
    pub percent: f64,
    /// Median over blocks (order taken out), in percent: where it is far from
    /// the mean a few blocks carry the result.
    pub median_percent: f64,
    /// The 95 % interval; `None` for one block or without any spread.
    pub interval: Option<Interval>,
    /// Residual standard deviation of one block's log ratio, times 100.
    pub residual_sd_percent: Option<f64>,
    /// Degrees of freedom of the interval.
    pub degrees_of_freedom: usize,
    /// The effect of running later in a block; `None` where it is not fitted
    /// (few blocks, or one order only).
    pub order: Option<OrderEffect>,
}

/// Analyses a trial.
///
/// # Errors
///
/// [`StatsError`] for data that are no trial: see [`Data::check`].
pub fn analyse(data: &Data) -> Result<Analysis, StatsError> {
    data.check()?;
    let base = &data.arms[0];
    let total = data.arms.len() - 1;
    let pairs: Vec<Vec<Pair>> = (1..=total).map(|arm| pairs(data, arm)).collect();
    let mut p: Vec<Option<PValue>> =
        pairs.iter().zip(1..).map(|(pairs, arm)| sign_flip(pairs, data.seed, arm)).collect();
    let found: Vec<f64> = p.iter().flatten().map(|p| p.value).collect();
    for (p, adjusted) in p.iter_mut().flatten().zip(holm(&found)) {
        p.holm = adjusted;
    }

    let comparisons = pairs
        .iter()
        .zip(p)
        .zip(1..)
        .map(|((pairs, p), arm)| {
            let name = &data.arms[arm];
            let shared = data.arms.iter().filter(|other| *other == name).count() > 1;
            let shown = if shared { format!("{name} (arm {arm})") } else { name.clone() };
            let fit = fit_pairs(pairs);
            let missing = data.blocks.len() - pairs.len();
            let power = fit.as_ref().and_then(|fit| plan_power(fit, missing, total));
            let facts = Facts {
                name: &shown,
                base,
                same_policy: name == base,
                metric: data.metric,
                reported: data.reported,
                quick: data.quick,
                blocks: pairs.len(),
                fewest_blocks: fewest_blocks(total),
                comparisons: total,
                estimate: fit.as_ref().map(|fit| estimate(fit, pairs)),
                p,
                power,
            };
            let verdict = verdict(&facts);
            Comparison {
                arm,
                name: name.clone(),
                base: base.clone(),
                same_policy: facts.same_policy,
                blocks: facts.blocks,
                blocks_missing: missing,
                estimate: facts.estimate,
                p,
                smallest_p: smallest_p(facts.blocks),
                fewest_blocks: facts.fewest_blocks,
                power,
                outliers: fit.as_ref().map_or_else(Vec::new, |fit| outlier_blocks(fit, pairs)),
                verdict,
                sentence: sentence(&facts, verdict),
            }
        })
        .collect();

    let drift = drift(data);
    Ok(Analysis {
        metric: data.metric,
        quick: data.quick,
        blocks: data.blocks.len(),
        arms: summaries(data),
        comparisons,
        outliers: outlier_rounds(data, drift),
        drift,
    })
}

/// The complete pairs of one arm with the base.
fn pairs(data: &Data, arm: usize) -> Vec<Pair> {
    let blocks = data.blocks.iter().enumerate();
    blocks
        .filter_map(|(block, rounds)| {
            let (base, compared) = (rounds[0]?, rounds[arm]?);
            let log_ratio = compared.value.ln() - base.value.ln();
            // Equal ratios must be equal: rounding is no spread.
            let log_ratio = if log_ratio.abs() <= ROUNDING { 0.0 } else { log_ratio };
            let order = f64::from(compared.position) - f64::from(base.position);
            Some(Pair { block, log_ratio, order })
        })
        .collect()
}

fn estimate(fit: &Fit, pairs: &[Pair]) -> Estimate {
    Estimate {
        log_ratio: fit.estimate,
        percent: percent(fit.estimate),
        median_percent: percent(median(&fit.without_order(pairs)).unwrap_or(fit.estimate)),
        interval: fit.interval(),
        residual_sd_percent: fit.residual_sd.map(|sd| sd * 100.0),
        degrees_of_freedom: fit.df,
        order: fit.order_effect(),
    }
}

fn outlier_blocks(fit: &Fit, pairs: &[Pair]) -> Vec<OutlierBlock> {
    let scores = modified_z_scores(&fit.without_order(pairs));
    let scored = pairs.iter().zip(scores);
    scored
        .filter(|(_, score)| score.abs() > MODIFIED_Z_LIMIT)
        .map(|(pair, score)| OutlierBlock {
            block: pair.block,
            percent: percent(pair.log_ratio),
            score,
        })
        .collect()
}

fn outlier_rounds(data: &Data, drift: Option<Drift>) -> Vec<OutlierRound> {
    let (slope, turn) = drift.map_or((0.0, 0.0), |drift| drift.line);
    let level = |round: super::Round| round.value.ln() - slope * (f64::from(round.position) - turn);
    let mut levels = vec![Vec::new(); data.arms.len()];
    for (_, arm, round) in data.measured() {
        levels[arm].push(level(round));
    }
    let middle: Vec<f64> = levels.iter().map(|levels| median(levels).unwrap_or(0.0)).collect();
    let rest: Vec<f64> =
        data.measured().map(|(_, arm, round)| level(round) - middle[arm]).collect();
    let scored = data.measured().zip(modified_z_scores(&rest));
    scored
        .filter(|(_, score)| score.abs() > MODIFIED_Z_LIMIT)
        .map(|((block, arm, round), score)| OutlierRound {
            block,
            arm,
            position: round.position,
            value: round.value,
            score,
        })
        .collect()
}

fn summaries(data: &Data) -> Vec<ArmSummary> {
    let mut values = vec![Vec::new(); data.arms.len()];
    for (_, arm, round) in data.measured() {
        values[arm].push(round.value);
    }
    let arms = values.iter().zip(&data.arms).enumerate();
    arms.map(|(arm, (values, name))| summarise(arm, name, values, data.blocks.len() - values.len()))
        .collect()
}
