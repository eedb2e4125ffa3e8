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
