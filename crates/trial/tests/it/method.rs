//! The method put to the test on a made-up server, with fixed seeds.
//!
//! The bounds are those of the promise: coverage of the 95 % interval within two
//! points, A/A alarms at most 5 % plus two Monte Carlo standard errors, and a
//! true 3 % found with 80 % or more at the number of blocks that a pilot of
//! eight proposes. The figures themselves are in `docs/design/statistics.md`.

use crate::sim::{SCENARIOS, score};

/// Runs per scenario; the standard error of 5 % is then half a point.
const RUNS: usize = 2000;

#[test]
fn the_method_holds_under_every_fault_alone_and_together() {
    let error = (0.05 * 0.95 / RUNS as f64).sqrt();
    for scenario in &SCENARIOS {
        let score = score(scenario, RUNS);
        let name = scenario.name;
        assert!((score.coverage - 0.95).abs() <= 0.02, "{name}: {score:?}");
        assert!(score.alarms <= 0.05 + 2.0 * error, "{name}: {score:?}");
        assert!(score.power >= 0.8, "{name}: {score:?}");
        // A method that never says anything, or an interval as wide as a barn
        // door, would pass the rest: eight pairs of independent rounds of this
        // spread give a half width of 122 SD (in percent).
        assert!(score.alarms >= 0.01, "{name}: {score:?}");
        assert!(score.half_width <= 130.0 * scenario.sd, "{name}: {score:?}");
        assert!(score.proposed >= 6, "{name}: {score:?}");
        // The trend's interval keeps its level where its model is the truth.
        if scenario.rho == 0.0 && scenario.warm_up == 0.0 {
            assert!((score.drift - 0.95).abs() <= 0.02, "{name}: {score:?}");
        }
    }
}
