//! The verdict of one comparison, and the sentence that says it.
//!
//! Invariant: a verdict needs the p-value (after Holm) and the interval to
//! agree. Where they do not, or where the rounds cannot decide, the sentence
//! says so and claims nothing.

use serde::{Deserialize, Serialize};

use super::analysis::Estimate;
use super::data::{Metric, Reported};
use super::fit::Interval;
use super::permutation::PValue;
use super::power::Power;

/// The level of every interval.
pub const LEVEL: f64 = 0.95;

/// What the rounds of a comparison allow to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// p ≤ 0.05 after Holm, and the interval excludes zero.
    Difference,
    /// p > 0.05 after Holm, and the interval includes zero.
    NoDifference,
    /// p-value and interval disagree: on the border.
    Undecided,
    /// An interval only: the trial was a quick look.
    Quick,
    /// An interval only: so few blocks cannot reach p = 0.05.
    TooFewBlocks,
    /// No interval: all blocks gave the same ratio, which has no spread.
    NoSpread,
    /// No interval: one block.
    OneBlock,
    /// Nothing: no block has both rounds.
    NoData,
}

/// What [`verdict`] and [`sentence`] look at.
pub(super) struct Facts<'a> {
    /// Name of the compared arm, with its number if another has the same name.
    pub name: &'a str,
    /// Name of the base.
    pub base: &'a str,
    pub same_policy: bool,
    pub metric: Metric,
    pub reported: Option<Reported>,
    pub quick: bool,
    pub blocks: usize,
    pub fewest_blocks: usize,
    pub comparisons: usize,
    pub estimate: Option<Estimate>,
    pub p: Option<PValue>,
    pub power: Option<Power>,
}

/// Decides by the rules that [`Verdict`] states.
pub(super) fn verdict(facts: &Facts<'_>) -> Verdict {
    let (Some(estimate), Some(p)) = (facts.estimate, facts.p) else { return Verdict::NoData };
    if facts.blocks == 1 {
        return Verdict::OneBlock;
    }
    let Some(interval) = estimate.interval else { return Verdict::NoSpread };
    if facts.quick {
        return Verdict::Quick;
    }
    if facts.blocks < facts.fewest_blocks {
        return Verdict::TooFewBlocks;
    }
    match (p.holm <= 1.0 - LEVEL + 1e-12, interval.contains_zero()) {
        (true, false) => Verdict::Difference,
        (false, true) => Verdict::NoDifference,
        _ => Verdict::Undecided,
    }
}

/// One honest sentence.
pub(super) fn sentence(facts: &Facts<'_>, verdict: Verdict) -> String {
    let Facts { name, base, metric, blocks, .. } = *facts;
    let subject = if facts.same_policy {
        format!("A/A check, {name} against the same policy: ")
    } else {
        String::new()
    };
    let Some(estimate) = facts.estimate else {
        return format!(
            "{subject}no block has a round of both {base} and {name}, nothing to compare"
        );
    };
    let changed = direction(metric, estimate.percent);
    let Some(interval) = estimate.interval else {
        return match verdict {
            Verdict::OneBlock => format!(
                "{subject}in the only block {name} is {changed}; one block gives no interval"
            ),
            _ => format!(
                "{subject}{name} is {changed} in every one of {blocks} blocks; \
                 without any spread there is no interval (is the metric too coarse?)"
            ),
        };
    };
    let between = format!(
        "{name} lies between {} and {}",
        direction(metric, interval.low_percent),
        direction(metric, interval.high_percent)
    );
    let p = facts.p.map_or_else(String::new, |p| p_text(p.holm));
    let holm = match facts.comparisons {
        0 | 1 => String::new(),
        several => format!(" after Holm over {several} comparisons"),
    };
    let reach = interval.reach_percent();
    match verdict {
        Verdict::Quick => format!(
            "{subject}an interval only, a quick run gives no verdict: \
             {between} (95 % interval of {blocks} blocks)"
        ),
        Verdict::TooFewBlocks => format!(
            "{subject}an interval only: {between} (95 % interval of {blocks} blocks; \
             fewer than {} blocks cannot reach p = 0.05{holm})",
            facts.fewest_blocks
        ),
        Verdict::Undecided => format!(
            "{subject}undecided: {between} (95 % interval), but {p}{holm}; \
             more blocks would tell"
        ),
        Verdict::Difference if facts.same_policy => format!(
            "{subject}an alarm, the same policy differs from itself, {changed} \
             ({}, {p}{holm}); chance does this once in twenty trials, \
             if it comes again trust no verdict from this machine",
            interval_text(metric, estimate.percent, interval)
        ),
        Verdict::Difference => format!(
            "{name} is {changed} ({}, {p}{holm})",
            interval_text(metric, estimate.percent, interval)
        ),
        Verdict::NoDifference if facts.same_policy => format!(
            "{subject}no alarm, no difference larger than {} is visible ({p}{holm}); \
             smaller ones would be noise here",
            either_side(reach)
        ),
        _ => format!(
            "{name}: no difference larger than {} is visible ({p}{holm}){}",
            either_side(reach),
            facts.reported.map_or_else(String::new, |reported| elsewhere(facts, reported, reach))
        ),
    }
}

/// Whether what others report would have shown.
fn elsewhere(facts: &Facts<'_>, reported: Reported, reach: f64) -> String {
    let Reported { low_percent, high_percent } = reported;
    let range = if low_percent == high_percent {
        figure(low_percent)
    } else {
        format!("{}–{}", figure(low_percent), figure(high_percent))
    };
    let smallest = facts.power.and_then(|power| power.smallest_effect_percent);
    let ending = if reach >= low_percent {
        "is not excluded"
    } else if smallest.is_some_and(|smallest| smallest <= low_percent) {
        "would have been seen"
    } else {
        "lies outside the interval"
    };
    format!("; the {range} % reported elsewhere {ending}")
}

/// "2.3 % slower", from a change of the metric in percent.
fn direction(metric: Metric, percent: f64) -> String {
    let (more, less) = match metric {
        Metric::Throughput => ("faster", "slower"),
        Metric::Time => ("slower", "faster"),
        Metric::Amount => ("higher", "lower"),
    };
    if percent > 1000.0 {
        // Percentages of this size are read as factors.
        let factor = percent / 100.0 + 1.0;
        let factor = if factor > 1e6 { "over a million".into() } else { format!("{factor:.0}") };
        return format!("{factor} times {more}");
    }
    format!("{} % {}", figure(percent.abs()), if percent < 0.0 { less } else { more })
}

/// "95 % interval 0.8 to 3.9 %", counted in the direction of the estimate.
fn interval_text(metric: Metric, percent: f64, interval: Interval) -> String {
    let Interval { low_percent: low, high_percent: high } = interval;
    if low < -1000.0 || high > 1000.0 || low < 0.0 && high > 0.0 {
        return format!("95 % interval {} to {}", direction(metric, low), direction(metric, high));
    }
    let (near, far) = if percent < 0.0 { (-high, -low) } else { (low, high) };
    format!("95 % interval {} to {} %", figure(near), figure(far))
}

fn either_side(percent: f64) -> String {
    if percent > 1000.0 { "a factor of ten".to_owned() } else { format!("±{} %", figure(percent)) }
}

/// One decimal below 100, two below 0.1, none above.
fn figure(percent: f64) -> String {
    let decimals = match percent.abs() {
        small if small > 0.0 && small < 0.095 => 2,
        usual if usual < 99.95 => 1,
        _ => 0,
    };
    let text = format!("{percent:.decimals$}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// A p-value with as many digits as tell it from 0.05.
fn p_text(p: f64) -> String {
    match p {
        tiny if tiny < 0.001 => "p < 0.001".to_owned(),
        border if (0.045..0.055).contains(&border) => format!("p = {border:.4}"),
        small if small < 0.1 => format!("p = {small:.3}"),
        _ => format!("p = {p:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(percent: f64, low: f64, high: f64, p: f64) -> Facts<'static> {
        let interval = Some(Interval { low_percent: low, high_percent: high });
        Facts {
            name: "temp-vs-rest",
            base: "off",
            same_policy: false,
            metric: Metric::Throughput,
            reported: Some(Reported { low_percent: 5.0, high_percent: 8.0 }),
            quick: false,
            blocks: 12,
            fewest_blocks: 6,
            comparisons: 1,
            estimate: Some(Estimate {
                log_ratio: (percent / 100.0).ln_1p(),
                percent,
                median_percent: percent,
                interval,
                residual_sd_percent: Some(3.0),
                degrees_of_freedom: 10,
                order: None,
            }),
            p: Some(PValue { value: p, holm: p, exact: true }),
            power: Some(Power {
                smallest_effect_percent: Some(2.9),
                planned_effect_percent: 3.0,
                blocks_needed: Some(12),
            }),
        }
    }

    fn said(facts: &Facts<'_>) -> (Verdict, String) {
        let verdict = verdict(facts);
        (verdict, sentence(facts, verdict))
    }

    #[test]
    fn a_difference_is_said_in_its_own_direction() {
        let slower = facts(-2.3, -3.9, -0.8, 0.004);
        assert_eq!(
            said(&slower),
            (
                Verdict::Difference,
                "temp-vs-rest is 2.3 % slower (95 % interval 0.8 to 3.9 %, p = 0.004)".to_owned()
            )
        );
        let latency = Facts { metric: Metric::Time, ..facts(-2.3, -3.9, -0.8, 0.0004) };
        assert_eq!(
            said(&latency).1,
            "temp-vs-rest is 2.3 % faster (95 % interval 0.8 to 3.9 %, p < 0.001)"
        );
        let bytes =
            Facts { metric: Metric::Amount, comparisons: 2, ..facts(14.0, 9.96, 17.0, 0.0469) };
        assert_eq!(
            said(&bytes).1,
            "temp-vs-rest is 14 % higher (95 % interval 10 to 17 %, p = 0.0469 after Holm over 2 \
             comparisons)"
        );
    }

    #[test]
    fn no_difference_is_measured_against_what_others_report() {
        let calm = facts(0.3, -1.1, 1.8, 0.52);
        assert_eq!(
            said(&calm),
            (
                Verdict::NoDifference,
                "temp-vs-rest: no difference larger than ±1.8 % is visible (p = 0.52); the 5–8 % \
                 reported elsewhere would have been seen"
                    .to_owned()
            )
        );
        let wide = facts(0.3, -6.1, 7.0, 0.52);
        assert!(
            said(&wide).1.ends_with(
                "±7 % is visible (p = 0.52); the 5–8 % reported elsewhere is not excluded"
            )
        );
        let mut weak = facts(0.3, -4.1, 4.8, 0.52);
        weak.power = Some(Power { smallest_effect_percent: Some(7.0), ..weak.power.unwrap() });
        assert!(said(&weak).1.ends_with("lies outside the interval"));
        let silent = Facts { reported: None, ..facts(0.3, -1.1, 1.8, 0.52) };
        assert!(said(&silent).1.ends_with("±1.8 % is visible (p = 0.52)"));
    }

    #[test]
    fn without_a_verdict_the_sentence_says_why() {
        let quick = Facts { quick: true, ..facts(-2.3, -3.9, -0.8, 0.004) };
        assert_eq!(
            said(&quick),
            (
                Verdict::Quick,
                "an interval only, a quick run gives no verdict: temp-vs-rest lies between 3.9 % \
                 slower and 0.8 % slower (95 % interval of 12 blocks)"
                    .to_owned()
            )
        );
        let few = Facts { blocks: 4, ..facts(1.0, -3.1, 5.2, 0.25) };
        assert_eq!(
            said(&few),
            (
                Verdict::TooFewBlocks,
                "an interval only: temp-vs-rest lies between 3.1 % slower and 5.2 % faster (95 % \
                 interval of 4 blocks; fewer than 6 blocks cannot reach p = 0.05)"
                    .to_owned()
            )
        );
        let border = facts(-2.3, -4.6, -0.02, 0.0508);
        assert_eq!(
            said(&border),
            (
                Verdict::Undecided,
                "undecided: temp-vs-rest lies between 4.6 % slower and 0.02 % slower (95 % \
                 interval), but p = 0.0508; more blocks would tell"
                    .to_owned()
            )
        );
        let mut one = Facts { blocks: 1, ..facts(-2.1, 0.0, 0.0, 1.0) };
        let estimate = one.estimate.unwrap();
        one.estimate = Some(Estimate { interval: None, ..estimate });
        assert_eq!(
            said(&one).1,
            "in the only block temp-vs-rest is 2.1 % slower; one block gives no interval"
        );
        let same = Facts { blocks: 8, ..one };
        assert_eq!(said(&same).0, Verdict::NoSpread);
        let none = Facts { estimate: None, p: None, blocks: 0, ..facts(0., 0., 0., 1.) };
        assert_eq!(
            said(&none).1,
            "no block has a round of both off and temp-vs-rest, nothing to compare"
        );
    }

    #[test]
    fn an_a_a_check_is_called_one() {
        let calm = Facts { name: "off (arm 1)", same_policy: true, ..facts(0.3, -1.1, 1.8, 0.5) };
        assert_eq!(
            said(&calm).1,
            "A/A check, off (arm 1) against the same policy: no alarm, no difference larger than \
             ±1.8 % is visible (p = 0.50); smaller ones would be noise here"
        );
        let alarm = Facts { same_policy: true, ..facts(-2.3, -3.9, -0.8, 0.004) };
        let (verdict, text) = said(&alarm);
        assert_eq!(verdict, Verdict::Difference);
        assert!(text.contains("an alarm") && text.contains("2.3 % slower"), "{text}");
    }

    #[test]
    fn absurd_sizes_stay_readable() {
        let huge = Facts { quick: true, ..facts(5e4, -100.0, f64::MAX, 0.01) };
        let text = said(&huge).1;
        assert!(text.contains("100 % slower and over a million times faster"), "{text}");
        let factor = facts(4900.0, 1900.0, 9900.0, 0.01);
        assert_eq!(
            said(&factor).1,
            "temp-vs-rest is 50 times faster (95 % interval 20 times faster to 100 times faster, \
             p = 0.010)"
        );
    }
}
