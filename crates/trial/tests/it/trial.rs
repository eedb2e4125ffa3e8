//! Whole analyses, by example.

use shelflife_trial::stats::{
    Analysis, Data, Metric, Plan, Reported, Round, StatsError, Verdict, analyse,
};

/// Eight blocks of two or more arms; `value` gives a round by block, arm, position.
fn data(names: &[&str], blocks: usize, value: impl Fn(usize, usize, u32) -> f64) -> Data {
    let plan = Plan::new(names.len(), blocks, 11).unwrap();
    let mut table = vec![vec![None; names.len()]; blocks];
    for slot in plan.slots() {
        let value = value(slot.block, slot.arm, slot.position);
        table[slot.block][slot.arm] = Some(Round { position: slot.position, value });
    }
    Data {
        arms: names.iter().map(|name| (*name).to_owned()).collect(),
        blocks: table,
        metric: Metric::Throughput,
        reported: Some(Reported { low_percent: 5.0, high_percent: 8.0 }),
        quick: false,
        seed: 11,
    }
}

/// Noise of about 1 % that looks like noise and is the same everywhere.
fn wobble(block: usize, arm: usize) -> f64 {
    // The finaliser of SplitMix64.
    let mut mixed = (block as u64 * 131 + arm as u64 + 7).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((mixed >> 40) as f64 / f64::from(1 << 24) - 0.5) * 0.03
}

fn verdicts(result: &Analysis) -> Vec<Verdict> {
    result.comparisons.iter().map(|found| found.verdict).collect()
}

#[test]
fn several_arms_are_judged_together() {
    let data = data(&["off", "off", "wal-first"], 12, |block, arm, position| {
        let effect = if arm == 2 { 1.06 } else { 1.0 };
        1000.0 * effect * (wobble(block, arm) - 0.003 * f64::from(position)).exp()
    });
    let result = analyse(&data).unwrap();
    assert_eq!(verdicts(&result), [Verdict::NoDifference, Verdict::Difference]);
    let [same, other] = &result.comparisons[..] else { panic!("two comparisons") };
    assert!(same.same_policy && same.sentence.starts_with("A/A check, off (arm 1)"));
    assert!(other.sentence.starts_with("wal-first is ") && other.sentence.contains("faster"));
    assert!(other.sentence.contains("after Holm over 2 comparisons"));
    assert_eq!((other.fewest_blocks, other.smallest_p), (7, 2.0 / 4096.0));
    let (p, alone) = (other.p.unwrap().holm, other.p.unwrap().value);
    assert!(p > alone && p <= 2.0 * alone);
    let estimate = other.estimate.unwrap();
    assert!((estimate.percent - 6.0).abs() < 1.0);
    let drift = result.drift.unwrap();
    assert!((drift.percent_per_round + 0.3).abs() < 0.1);
    assert!(drift.interval_over_run.high_percent < 0.0);
    let order = estimate.order.unwrap();
    assert!(order.interval.low_percent <= -0.3 && -0.3 <= order.interval.high_percent);
}

#[test]
fn missing_rounds_cost_their_block_for_that_arm_only() {
    let mut data = data(&["off", "a", "b"], 9, |block, arm, _| 1000.0 + wobble(block, arm));
    data.blocks[2][1] = None;
    data.blocks[5][1] = None;
    let result = analyse(&data).unwrap();
    let used: Vec<_> =
        result.comparisons.iter().map(|found| (found.blocks, found.blocks_missing)).collect();
    assert_eq!(used, [(7, 2), (9, 0)]);
    assert_eq!((result.arms[1].rounds, result.arms[1].missing), (7, 2));
    data.blocks.iter_mut().for_each(|rounds| rounds[1] = None);
    let result = analyse(&data).unwrap();
    assert_eq!(result.comparisons[0].verdict, Verdict::NoData);
    assert_eq!(result.comparisons[0].p, None);
    // The other comparison is then the only one with a p-value.
    let other = result.comparisons[1].p.unwrap();
    assert_eq!(other.value, other.holm);
}

#[test]
fn outliers_are_named_and_kept() {
    let calm = |block, arm, _| 1000.0 * f64::exp(wobble(block, arm));
    let clean = analyse(&data(&["off", "a"], 12, calm)).unwrap();
    let struck = data(&["off", "a"], 12, |block, arm, position| {
        calm(block, arm, position) * if (block, arm) == (4, 1) { 0.7 } else { 1.0 }
    });
    let result = analyse(&struck).unwrap();
    assert!(clean.outliers.is_empty() && clean.comparisons[0].outliers.is_empty());
    assert_eq!(result.outliers.len(), 1);
    assert_eq!((result.outliers[0].block, result.outliers[0].arm), (4, 1));
    assert!(result.outliers[0].score < -3.5);
    let found = &result.comparisons[0];
    assert_eq!(found.outliers.len(), 1);
    assert_eq!(found.outliers[0].block, 4);
    assert_eq!(found.blocks, 12);
    let (mean, median) = (found.estimate.unwrap().percent, found.estimate.unwrap().median_percent);
    assert!(mean < -2.0 && median > -1.5, "{mean} {median}");
}

#[test]
fn identical_values_are_no_certainty() {
    let result = analyse(&data(&["off", "a"], 8, |_, _, _| 1234.5)).unwrap();
    let found = &result.comparisons[0];
    assert_eq!(found.verdict, Verdict::NoSpread);
    assert_eq!((found.p.unwrap().value, found.power), (1.0, None));
    assert_eq!(found.estimate.unwrap().interval, None);
    assert_eq!((result.drift, result.arms[0].sd), (None, Some(0.0)));
    let shifted = analyse(&data(&["off", "a"], 8, |_, arm, _| 1000.1 * (1.0 + 0.1 * arm as f64)));
    assert_eq!(shifted.unwrap().comparisons[0].verdict, Verdict::NoSpread);
}

#[test]
fn few_blocks_and_quick_runs_get_an_interval_and_no_verdict() {
    let noisy = |block, arm, _| 1000.0 * f64::exp(wobble(block, arm) + 0.2 * arm as f64);
    let of = |blocks| verdicts(&analyse(&data(&["off", "a"], blocks, noisy)).unwrap())[0];
    let found: Vec<Verdict> = (1..8).map(of).collect();
    use Verdict::{Difference, OneBlock, TooFewBlocks};
    let few = TooFewBlocks;
    assert_eq!(found, [OneBlock, few, few, few, few, Difference, Difference]);
    let mut quick = data(&["off", "a"], 8, noisy);
    quick.quick = true;
    let result = analyse(&quick).unwrap();
    assert_eq!(verdicts(&result), [Verdict::Quick]);
    assert!(result.comparisons[0].sentence.starts_with("an interval only"));
}

#[test]
fn what_is_no_trial_is_refused_with_its_place() {
    let good = data(&["off", "a"], 3, |_, _, _| 1.0);
    let with = |change: &dyn Fn(&mut Data)| {
        let mut bad = good.clone();
        change(&mut bad);
        analyse(&bad).unwrap_err()
    };
    for value in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let error = with(&|bad| bad.blocks[1][1] = Some(Round { position: 9, value }));
        assert!(matches!(error, StatsError::NotPositive { block: 1, arm: 1, .. }), "{error}");
        assert!(error.to_string().starts_with("block 1, arm 1: "), "{error}");
    }
    assert_eq!(with(&|bad| bad.blocks.clear()), StatsError::NoBlocks);
    assert_eq!(with(&|bad| bad.arms.truncate(1)), StatsError::TooFewArms { arms: 1 });
    assert_eq!(
        with(&|bad| bad.blocks[2].push(None)),
        StatsError::Ragged { block: 2, found: 3, arms: 2 }
    );
    let taken = good.blocks[0][0].unwrap().position;
    let again = Some(Round { position: taken, value: 1.0 });
    assert_eq!(
        with(&|bad| bad.blocks[2][1] = again),
        StatsError::PositionTaken { block: 2, arm: 1, position: taken }
    );
}
