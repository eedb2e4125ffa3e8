//! The two special functions that the closed forms need.
//!
//! Invariant: relative error below 1e-12 on the ranges stated (tested against published values).

/// Euler's constant γ.
const EULER: f64 = 0.577_215_664_901_532_9;

/// The principal branch of Lambert's W: w·e^w = z, w ≥ −1, for z ≥ −1/e.
pub fn lambert_w0(z: f64) -> f64 {
    // Near the branch point −1/e the series in p = √(2(e z + 1)) starts Newton well (Corless et
    // al., "On the Lambert W function", 1996, eq. 4.22).
    let p = (2.0 * (std::f64::consts::E * z + 1.0)).max(0.0).sqrt();
    let mut w = if z < 0.5 { -1.0 + p - p * p / 3.0 } else { z.ln_1p() };
    // Halley's method.
    for _ in 0..60 {
        let e = w.exp();
        let f = w * e - z;
        let step = f / (e * (w + 1.0) - (w + 2.0) * f / (2.0 * w + 2.0));
        if !step.is_finite() {
            break;
        }
        w -= step;
        if step.abs() <= 1e-16 * w.abs() {
            break;
        }
    }
    w
}

/// The harmonic number H(x) = ψ(x + 1) + γ for real x ≥ 0.
pub fn harmonic(x: f64) -> f64 {
    // ψ by recurrence into the range of the asymptotic series (Abramowitz and Stegun 6.3.18).
    let (mut z, mut below) = (x + 1.0, 0.0);
    while z < 16.0 {
        below += 1.0 / z;
        z += 1.0;
    }
    let r = 1.0 / (z * z);
    let series =
        r * (1.0 / 12.0 - r * (1.0 / 120.0 - r * (1.0 / 252.0 - r * (1.0 / 240.0 - r / 132.0))));
    z.ln() - 0.5 / z - series - below + EULER
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lambert_w_is_the_inverse_and_meets_known_values() {
        // Ω, the omega constant: OEIS A030178.
        assert!((lambert_w0(1.0) - 0.567_143_290_409_783_8).abs() < 1e-15);
        assert!((lambert_w0(std::f64::consts::E) - 1.0).abs() < 1e-15);
        assert_eq!(lambert_w0(0.0), 0.0);
        for w in [-0.999, -0.9, -0.5, -0.1, -1e-6, 1e-6, 0.3, 2.0, 10.0_f64] {
            let found = lambert_w0(w * w.exp());
            // Near −1 the inverse is ill-conditioned: error of the argument over (1 + w).
            let bound = 1e-14 / (1.0 + w).min(1.0);
            assert!((found - w).abs() <= bound * w.abs().max(1.0), "{found} is not {w}");
        }
    }

    #[test]
    fn harmonic_numbers_are_sums_and_continue_them() {
        let mut sum = 0.0;
        for n in 1..=100 {
            sum += 1.0 / f64::from(n);
            assert!((harmonic(f64::from(n)) / sum - 1.0).abs() < 1e-13, "H({n})");
        }
        assert!(harmonic(0.0).abs() < 1e-14);
        // H(1/2) = 2 − 2 ln 2.
        assert!((harmonic(0.5) - (2.0 - 2.0 * std::f64::consts::LN_2)).abs() < 1e-13);
    }
}
