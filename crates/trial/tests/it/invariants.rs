//! Properties that hold for all rounds, however odd.

use proptest::prelude::*;
use serde_json::Value;
use shelflife_trial::stats::{Analysis, Data, Metric, Plan, Round, Verdict, analyse};

/// A trial of `arms` arms with any positive values, some of them missing.
fn any_data() -> impl Strategy<Value = Data> {
    let value = prop_oneof![
        8 => 900.0..1100.0,
        2 => Just(1000.0),
        1 => (-300..300_i32).prop_map(|exponent| 10_f64.powi(exponent)),
        1 => prop_oneof![Just(f64::MAX), Just(f64::MIN_POSITIVE), Just(5e-324)],
    ];
    let round = prop::option::weighted(0.9, value);
    (2..5_usize, 1..20_usize, any::<u64>()).prop_flat_map(move |(arms, blocks, seed)| {
        let values = prop::collection::vec(round.clone(), arms * blocks);
        (values, any::<bool>()).prop_map(move |(values, quick)| {
            let plan = Plan::new(arms, blocks, seed).unwrap();
            fill(&plan, arms, quick, |slot| values[slot])
        })
    })
}

/// A calm trial of two arms: usual values, none missing.
fn calm_data() -> impl Strategy<Value = Data> {
    (6..20_usize, any::<u64>()).prop_flat_map(|(blocks, seed)| {
        prop::collection::vec(900.0..1100.0, 2 * blocks).prop_map(move |values| {
            let plan = Plan::new(2, blocks, seed).unwrap();
            fill(&plan, 2, false, |slot| Some(values[slot]))
        })
    })
}

fn fill(plan: &Plan, arms: usize, quick: bool, value: impl Fn(usize) -> Option<f64>) -> Data {
    let mut blocks = vec![vec![None; arms]; plan.orders().len()];
    for slot in plan.slots() {
        let position = slot.position;
        let value = value(position as usize);
        blocks[slot.block][slot.arm] = value.map(|value| Round { position, value });
    }
    let names = ["off", "temp-vs-rest", "off", "wal-first"];
    Data {
        arms: names[..arms].iter().map(|name| (*name).to_owned()).collect(),
        blocks,
        metric: Metric::Throughput,
        reported: None,
        quick,
        seed: plan.seed(),
    }
}

/// Every number of a result that serialises is finite: JSON has no other.
fn no_null_number(result: &Analysis) -> bool {
    let text = serde_json::to_string(result).unwrap();
    let again: Analysis = serde_json::from_str(&text).unwrap();
    serde_json::to_value(again).unwrap() == serde_json::from_str::<Value>(&text).unwrap()
}

fn map_values(data: &Data, change: impl Fn(usize, Round) -> Round) -> Data {
    let mut data = data.clone();
    for rounds in &mut data.blocks {
        for (arm, round) in rounds.iter_mut().enumerate() {
            *round = round.map(|round| change(arm, round));
        }
    }
    data
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * (1.0 + a.abs().max(b.abs()))
}

proptest! {
    #[test]
    fn any_rounds_give_a_finite_result_and_a_sentence(data in any_data()) {
        let result = analyse(&data).unwrap();
        prop_assert!(no_null_number(&result));
        prop_assert_eq!(result.comparisons.len(), data.arms.len() - 1);
        for found in &result.comparisons {
            prop_assert!(!found.sentence.contains("NaN") && !found.sentence.contains("inf"));
            prop_assert_eq!(found.blocks + found.blocks_missing, data.blocks.len());
            if let Some(p) = found.p {
                prop_assert!(p.value > 0.0 && p.value <= p.holm && p.holm <= 1.0);
                prop_assert!(p.value >= found.smallest_p);
            }
            let decided = matches!(found.verdict, Verdict::Difference | Verdict::NoDifference);
            prop_assert!(!(decided && (data.quick || found.blocks < found.fewest_blocks)));
            let interval = found.estimate.and_then(|estimate| estimate.interval);
            if let (Some(estimate), Some(interval)) = (found.estimate, interval) {
                prop_assert!(interval.low_percent <= estimate.percent);
                prop_assert!(estimate.percent <= interval.high_percent);
            }
        }
    }

    /// Exchanging the arms turns every sign and nothing else.
    #[test]
    fn exchanged_arms_mirror_the_result(data in calm_data()) {
        let mut mirrored = data.clone();
        for rounds in &mut mirrored.blocks {
            rounds.swap(0, 1);
        }
        let (a, b) = (analyse(&data).unwrap(), analyse(&mirrored).unwrap());
        let (a, b) = (&a.comparisons[0], &b.comparisons[0]);
        let (one, other) = (a.estimate.unwrap(), b.estimate.unwrap());
        prop_assert!(near(one.log_ratio, -other.log_ratio));
        let (one, other) = (one.interval.unwrap(), other.interval.unwrap());
        let log = |percent: f64| (percent / 100.0).ln_1p();
        prop_assert!(near(log(one.low_percent), -log(other.high_percent)));
        prop_assert!(near(log(one.high_percent), -log(other.low_percent)));
        prop_assert_eq!(a.verdict, b.verdict);
        prop_assert!(near(a.p.unwrap().value, b.p.unwrap().value));
    }

    /// The unit of the metric does not matter.
    #[test]
    fn a_scaled_metric_gives_the_same_ratios(data in calm_data(), scale in 1e-6..1e6) {
        let scaled = map_values(&data, |_, round| Round { value: round.value * scale, ..round });
        let (a, b) = (analyse(&data).unwrap(), analyse(&scaled).unwrap());
        let (a, b) = (&a.comparisons[0], &b.comparisons[0]);
        prop_assert!(near(a.estimate.unwrap().log_ratio, b.estimate.unwrap().log_ratio));
        prop_assert!(near(a.p.unwrap().value, b.p.unwrap().value));
        prop_assert_eq!(&a.sentence, &b.sentence);
    }

    /// A constant factor on one arm moves the estimate by it, not its width.
    #[test]
    fn a_true_effect_moves_the_estimate(data in calm_data(), effect in -0.2..0.2) {
        let moved = map_values(&data, |arm, round| {
            let factor = if arm == 1 { f64::exp(effect) } else { 1.0 };
            Round { value: round.value * factor, ..round }
        });
        let (a, b) = (analyse(&data).unwrap(), analyse(&moved).unwrap());
        let (a, b) = (a.comparisons[0].estimate.unwrap(), b.comparisons[0].estimate.unwrap());
        prop_assert!(near(a.log_ratio + effect, b.log_ratio));
        prop_assert!(near(a.residual_sd_percent.unwrap(), b.residual_sd_percent.unwrap()));
    }

    /// Linear drift over the run does not touch the effect or its interval.
    #[test]
    fn linear_drift_changes_nothing(data in calm_data(), slope in -0.02..0.02) {
        let drifting = map_values(&data, |_, round| Round {
            value: round.value * f64::exp(slope * f64::from(round.position)),
            ..round
        });
        let (a, b) = (analyse(&data).unwrap(), analyse(&drifting).unwrap());
        let (a, b) = (a.comparisons[0].estimate.unwrap(), b.comparisons[0].estimate.unwrap());
        prop_assert!(near(a.log_ratio, b.log_ratio));
        prop_assert!(near(a.residual_sd_percent.unwrap(), b.residual_sd_percent.unwrap()));
    }

    /// Which block is called which does not matter (exact p-values).
    #[test]
    fn the_order_of_blocks_in_the_table_does_not_matter(data in calm_data(), by in 1..19_usize) {
        prop_assume!(data.blocks.len() <= 16);
        let mut rotated = data.clone();
        let length = rotated.blocks.len();
        rotated.blocks.rotate_left(by % length);
        let (a, b) = (analyse(&data).unwrap(), analyse(&rotated).unwrap());
        let (a, b) = (&a.comparisons[0], &b.comparisons[0]);
        prop_assert!(near(a.estimate.unwrap().log_ratio, b.estimate.unwrap().log_ratio));
        prop_assert!(near(a.p.unwrap().value, b.p.unwrap().value));
    }
}
