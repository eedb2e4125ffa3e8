//! Closed forms for write amplification, against which the simulator is tested.
//!
//! Invariant: every function takes α = T/U (or what makes it) and returns A = WAF; ρ and S_f are the
//! caller's to convert. Symbols: α = T/U, P pages per reclaim unit, x the valid ratio of a victim,
//! A = 1/(1 − x).

mod special;

pub use special::{harmonic, lambert_w0};

/// FIFO, and greedy for P → ∞, uniform random writes: A = α / (α + W(−α e^−α)).
///
/// Desnoyers, "Analytic modeling of SSD write performance", SYSTOR '12; Xiang and Kurkoski,
/// arXiv:1110.4245. α must be above 1.
pub fn fifo(alpha: f64) -> f64 {
    alpha / (alpha + lambert_w0(-alpha * (-alpha).exp()))
}

/// Greedy with reclaim units of P pages, uniform random writes: the X with α/A = H(P) − H(X),
/// A = P/(P − X) (Desnoyers '12, with harmonic numbers instead of their logarithmic approximation).
pub fn greedy(alpha: f64, ru_pages: u32) -> f64 {
    let p = f64::from(ru_pages);
    let top = harmonic(p);
    // α(P − X)/P − (H(P) − H(X)) is negative at 0 (for α < H(P)), positive just below P, 0 at P.
    let excess = |x: f64| alpha * (p - x) / p - (top - harmonic(x));
    let x = bisect(0.0, p * (1.0 - 1e-12), |x| excess(x) > 0.0);
    p / (p - x)
}

/// Agarwal and Marrow's approximation A = α / (2(α − 1)) (IEEE Globecom Workshops '10).
pub fn agarwal(alpha: f64) -> f64 {
    alpha / (2.0 * (alpha - 1.0))
}

/// How the pages of a class die.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Death {
    /// At random: exponential lifetimes.
    Random,
    /// In the order of writing: the same lifetime for all, as in a log that goes round.
    InOrder,
}

/// A class of data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Class {
    /// Share of the logical pages; shares sum to 1.
    pub space: f64,
    /// Share of the host's writes; shares sum to 1.
    pub traffic: f64,
    /// How its pages die.
    pub death: Death,
}

/// Classes mixed in one FIFO without hints: A(τ) = Σ p_i / (1 − e^(−p_i τ/s_i)), A(τ)·τ = α, τ the
/// host writes per cycle in units of U; for deaths in order the factor is 1 + ⌊(s/p)/τ⌋.
pub fn mixed_fifo(alpha: f64, classes: &[Class]) -> f64 {
    let amplification = |tau: f64| -> f64 {
        let factor = |class: &Class| match class.death {
            Death::Random => 1.0 / -(-class.traffic * tau / class.space).exp_m1(),
            Death::InOrder => 1.0 + (class.space / class.traffic / tau).floor(),
        };
        classes.iter().map(|class| class.traffic * factor(class)).sum()
    };
    // A(τ)·τ rises with τ (but for the steps of deaths in order, which rise as well).
    let tau = bisect(1e-9, alpha, |tau| amplification(tau) * tau > alpha);
    amplification(tau)
}

/// The best split of the space among separated classes with random deaths: (A, α_i).
///
/// Minimises Σ p_i A(α_i) for Σ s_i α_i = α, A the form for P → ∞. With A = 1/(1 − x) and
/// α = −ln x/(1 − x), the condition is (p_i/s_i) / (1/x_i − 1 + ln x_i) = λ for all classes.
pub fn optimum(alpha: f64, classes: &[Class]) -> (f64, Vec<f64>) {
    let ratio = |class: &Class, lambda: f64| {
        let gain = class.traffic / class.space / lambda;
        bisect(1e-15, 1.0 - 1e-12, |x| 1.0 / x - 1.0 + x.ln() < gain)
    };
    let alphas = |lambda: f64| -> Vec<f64> {
        classes
            .iter()
            .map(|class| {
                let x = ratio(class, lambda);
                -x.ln() / (1.0 - x)
            })
            .collect()
    };
    let space = |lambda: f64| -> f64 {
        alphas(lambda).iter().zip(classes).map(|(alpha, class)| alpha * class.space).sum()
    };
    let log_lambda = bisect(-30.0, 30.0, |l| space(l.exp()) < alpha);
    let alphas = alphas(log_lambda.exp());
    let a = alphas.iter().zip(classes).map(|(&alpha, class)| class.traffic * fifo(alpha)).sum();
    (a, alphas)
}

/// A log that goes round, perfectly apart from random data: A = p + (1 − p)·A((α − s)/(1 − s)).
pub fn log_apart(alpha: f64, log: Class) -> f64 {
    let (p, s) = (log.traffic, log.space);
    p + (1.0 - p) * fifo((alpha - s) / (1.0 - s))
}

/// The point between `low` and `high` from which on `above` holds.
fn bisect(mut low: f64, mut high: f64, above: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if above(middle) { high = middle } else { low = middle }
    }
    0.5 * (low + high)
}
