//! Student's t and the noncentral t: distribution functions and quantiles.
//!
//! The central functions rest on the regularised incomplete beta function. The
//! noncentral one is integrated directly over the distribution of the standard
//! deviation: the integrand is smooth and the sum cannot underflow at a large
//! noncentrality, where series such as AS 243 (Lenth 1989) do. Quantiles are
//! bracketed root searches, which end for every input.
//!
//! Invariant: results of finite arguments are finite and never NaN. Arguments
//! outside their range are moved to the nearest one inside (documented at each
//! function).

use statrs::function::beta::beta_reg;
use statrs::function::erf::{erfc, erfc_inv};
use statrs::function::gamma::ln_gamma;

/// Fewest and most panels of Simpson's rule for the noncentral t.
const PANELS: (f64, f64) = (256.0, 65_536.0);

/// Distribution function of Student's t with `df` degrees of freedom (≥ 1).
#[must_use]
pub fn t_cdf(t: f64, df: f64) -> f64 {
    let df = df.max(1.0);
    // At |t| = 1e150 the square is still finite and every tail is 0 or 1.
    let t = t.clamp(-1e150, 1e150);
    let square = t * t;
    let upper_tail = 0.5 * beta_reg(df / 2.0, 0.5, df / (df + square));
    if t > 0.0 { 1.0 - upper_tail } else { upper_tail }
}

/// Quantile of Student's t: the value below which a share `p` of it lies.
///
/// `p` is kept within 1e-12 and 1 − 1e-12.
#[must_use]
pub fn t_quantile(p: f64, df: f64) -> f64 {
    let p = p.clamp(1e-12, 1.0 - 1e-12);
    if p < 0.5 {
        return -t_quantile(1.0 - p, df);
    }
    // The Cornish–Fisher expansion about the normal quantile is a few thousandths
    // off from five degrees of freedom on; the search mends the rest.
    let z = -std::f64::consts::SQRT_2 * erfc_inv(2.0 * p);
    let df = df.max(1.0);
    let start = z + (z.powi(3) + z) / (4.0 * df);
    let start = start + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * df * df);
    find_root(|t| t_cdf(t, df) - p, start, 0.004 * (1.0 + start))
}

/// The noncentral t with a fixed number of degrees of freedom: the distribution
/// of `(Z + ncp) / √(χ²/df)`.
///
/// The part of the integral that only the degrees of freedom shape is computed
/// once, for the many evaluations of a search.
#[derive(Clone, Debug)]
pub struct NoncentralT {
    df: f64,
    nodes: Vec<(f64, f64)>,
}

impl NoncentralT {
    /// With `df` degrees of freedom (≥ 1, not necessarily whole).
    #[must_use]
    pub fn new(df: f64) -> Self {
        let df = df.max(1.0);
        Self { df, nodes: nodes(df, PANELS.0) }
    }

    /// Distribution function at `t` for the noncentrality `ncp`.
    ///
    /// Absolute error below 1e-7 for |t| up to 1000 (compared with an
    /// independent implementation).
    #[must_use]
    pub fn cdf(&self, t: f64, ncp: f64) -> f64 {
        let t = t.clamp(-1e150, 1e150);
        // The normal factor rises within 1/|t|: eight panels for each such
        // stretch.
        let (low, high) = range(self.df);
        let panels = (high - low) * t.abs() * 8.0;
        let finer = (panels > PANELS.0).then(|| nodes(self.df, panels.min(PANELS.1)));
        let nodes = finer.as_deref().unwrap_or(&self.nodes);
        let sum: f64 = nodes.iter().map(|&(u, weight)| weight * normal_cdf(t * u - ncp)).sum();
        sum.clamp(0.0, 1.0)
    }

    /// Quantile for the noncentrality `ncp`; `p` is kept within 1e-6 and 1 − 1e-6.
    #[must_use]
    pub fn quantile(&self, p: f64, ncp: f64) -> f64 {
        let p = p.clamp(1e-6, 1.0 - 1e-6);
        find_root(|t| self.cdf(t, ncp) - p, ncp, 1.0 + ncp.abs() / 2.0)
    }
}

/// Where u = √(χ²/df) lies: its mean is nearly 1, its standard deviation nearly
/// 1/√(2 df), and beyond nine of them less than 1e-12 is left.
fn range(df: f64) -> (f64, f64) {
    let spread = 9.0 / (2.0 * df).sqrt();
    ((1.0 - spread).max(0.0), 1.0 + spread)
}

/// Nodes of Simpson's rule over the density of u, weights included.
fn nodes(df: f64, panels: f64) -> Vec<(f64, f64)> {
    let panels = 2 * (panels / 2.0).ceil() as usize;
    let (low, high) = range(df);
    let step = (high - low) / panels as f64;
    let log_scale = (2.0_f64).ln() + 0.5 * df * (0.5 * df).ln() - ln_gamma(0.5 * df);
    (0..=panels)
        .map(|i| {
            let u = low + step * i as f64;
            // At u = 0 and one degree of freedom the factor u^0 is 1, not NaN.
            let power = if df > 1.0 { (df - 1.0) * u.ln() } else { 0.0 };
            let density = (log_scale + power - 0.5 * df * u * u).exp();
            let simpson = match i {
                _ if i == 0 || i == panels => 1.0,
                _ if i % 2 == 1 => 4.0,
                _ => 2.0,
            };
            (u, simpson * density * step / 3.0)
        })
        // All that is left out together is below 1e-12.
        .filter(|&(_, weight)| weight > 1e-17)
        .collect()
}

/// Distribution function of the standard normal.
fn normal_cdf(z: f64) -> f64 {
    0.5 * erfc(-z / std::f64::consts::SQRT_2)
}

/// The root of a non-decreasing function: a bracket is grown around `start`,
/// then closed by the Illinois variant of regula falsi with bisection whenever
/// that is slow. At most 200 evaluations.
fn find_root(f: impl Fn(f64) -> f64, start: f64, step: f64) -> f64 {
    let (mut low, mut high) = (start, start);
    let (mut at_low, mut at_high) = (f(start), f(start));
    let mut grow = step;
    for _ in 0..60 {
        if at_low > 0.0 {
            low -= grow;
            at_low = f(low);
        } else if at_high < 0.0 {
            // The old upper end is a better lower end than the old lower one.
            (low, at_low) = (high, at_high);
            high += grow;
            at_high = f(high);
        } else {
            break;
        }
        grow *= 2.0;
    }
    let mut width = high - low;
    let mut kept_high = None;
    for round in 0..140 {
        if high - low <= 1e-12 * (1.0 + low.abs()) {
            break;
        }
        // Every third step bisects unless the bracket has shrunk to an eighth.
        let bisect = round % 3 == 2 && high - low > width / 8.0;
        if round % 3 == 2 {
            width = high - low;
        }
        let mut next = 0.5 * (low + high);
        if !bisect && at_high > at_low {
            let secant = high - at_high * (high - low) / (at_high - at_low);
            if secant > low && secant < high {
                next = secant;
            }
        }
        let value = f(next);
        // Closer than the functions themselves are accurate.
        if value.abs() <= 1e-15 {
            return next;
        }
        let is_low = value < 0.0;
        if is_low {
            (low, at_low) = (next, value);
        } else {
            (high, at_high) = (next, value);
        }
        // An end that stays twice is given half its weight.
        if kept_high == Some(is_low) {
            if is_low { at_high *= 0.5 } else { at_low *= 0.5 }
        }
        kept_high = Some(is_low);
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, expected: f64, tolerance: f64) {
        assert!((found - expected).abs() <= tolerance, "{found} is not {expected}");
    }

    /// Critical values of every textbook's table (R's `qt(0.975, df)`).
    #[test]
    fn t_quantiles_are_those_of_the_table() {
        for (df, value) in [
            (1.0, 12.7062047),
            (2.0, 4.3026527),
            (6.0, 2.4469119),
            (9.0, 2.2621572),
            (30.0, 2.0422725),
        ] {
            near(t_quantile(0.975, df), value, 1e-7);
            near(t_quantile(0.025, df), -value, 1e-7);
        }
        near(t_quantile(0.975, 1e7), 1.959_964, 1e-6);
        near(t_quantile(0.5, 4.0), 0.0, 1e-8);
    }

    /// Student, "The probable error of a mean", Biometrika 6 (1908): the sleep
    /// data give t = −4.0621 on 9 degrees of freedom, p = 0.002833 (R's `sleep`).
    #[test]
    fn tails_are_those_of_the_sleep_data() {
        near(2.0 * t_cdf(-4.062_127_683, 9.0), 0.002_832_890, 1e-9);
        near(2.0 * (1.0 - t_cdf(4.062_127_683, 9.0)), 0.002_832_890, 1e-9);
    }

    /// `scipy.stats.nct.cdf(t, df, ncp)`, scipy 1.x (Boost's implementation).
    #[test]
    fn noncentral_t_agrees_with_an_independent_implementation() {
        for (df, ncp, t, value) in [
            (1.0, 0.5, 1.0, 0.592_747_736_440_029_3),
            (3.0, 2.0, 2.5, 0.575_309_413_299_754_3),
            (6.0, 2.4469, 3.5, 0.737_799_954_774_715_2),
            (38.0, 3.162_277_660_168_379_5, 2.0244, 0.131_048_434_325_930_3),
            (10.0, -1.5, 0.3, 0.963_169_645_400_774_8),
            (5.0, 6.0, 9.0, 0.802_831_136_150_811_8),
            (200.0, 2.0, 2.0, 0.499_004_933_584_834_4),
            (2.0, 40.0, 60.0, 0.641_160_560_769_273_4),
            (50.0, 38.0, 40.0, 0.664_443_554_257_323_7),
        ] {
            near(NoncentralT::new(df).cdf(t, ncp), value, 1e-7);
            near(NoncentralT::new(df).quantile(value, ncp), t, 1e-5);
        }
        near(NoncentralT::new(1.0).quantile(0.8, 2.0), 7.865_817_095, 1e-6);
        near(NoncentralT::new(6.0).quantile(0.8, 2.0), 3.288_933_745, 1e-7);
    }

    /// Power of a t test from its noncentral t, as R's `power.t.test` prints it:
    /// two groups of 20, delta 1, sd 1 (`?power.t.test`): 0.8689528; two groups
    /// of 100, delta 1, sd 2.5: 0.8036466; 19.96892 pairs, delta 10, sd of the
    /// differences 14.14214 (Dalgaard, "Introductory Statistics with R", 8.3): 0.85.
    #[test]
    fn power_is_that_of_published_examples() {
        let power = |ncp: f64, df: f64| 1.0 - NoncentralT::new(df).cdf(t_quantile(0.975, df), ncp);
        near(power(10_f64.sqrt(), 38.0), 0.868_952_8, 1e-7);
        near(power(50_f64.sqrt() / 2.5, 198.0), 0.803_646_6, 1e-7);
        near(power(19.96892_f64.sqrt() * 10.0 / 14.142_14, 18.96892), 0.85, 1e-6);
    }

    #[test]
    fn arguments_out_of_range_stay_finite() {
        for value in [
            t_cdf(f64::INFINITY, 0.0),
            t_cdf(f64::MIN, 3.0),
            t_quantile(1.0, 1.0),
            t_quantile(0.0, 1.0),
            NoncentralT::new(1.0).cdf(0.0, 1e6),
            NoncentralT::new(1.0).cdf(1e300, 0.0),
            NoncentralT::new(1.0).quantile(1.0, 0.0),
        ] {
            assert!(value.is_finite());
        }
    }
}
