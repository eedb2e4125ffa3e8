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

/// A log that goes round, perfectly apart from random data: A = p + (1 − p)·A((α − s)/(1 − s)), where
/// `random` is A of the random data alone ([`fifo`], or [`greedy`] with some size of unit).
pub fn log_apart(alpha: f64, log: Class, random: impl Fn(f64) -> f64) -> f64 {
    let (p, s) = (log.traffic, log.space);
    p + (1.0 - p) * random((alpha - s) / (1.0 - s))
}

/// The point between `low` and `high` from which on `above` holds.
fn bisect(mut low: f64, mut high: f64, above: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if above(middle) { high = middle } else { low = middle }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S_f, α, FIFO, greedy P = 64, 256, 4096, Agarwal: table 5.1 of the reference.
    const UNIFORM: [(f64, f64, f64, f64, f64, f64, f64); 9] = [
        (0.05, 1.0526, 10.172, 8.817, 9.796, 10.148, 10.000),
        (0.07, 1.0753, 7.318, 6.598, 7.124, 7.305, 7.143),
        (0.10, 1.1111, 5.179, 4.815, 5.083, 5.173, 5.000),
        (0.125, 1.1429, 4.182, 3.945, 4.120, 4.178, 4.000),
        (0.15, 1.1765, 3.519, 3.353, 3.476, 3.516, 3.333),
        (0.20, 1.2500, 2.693, 2.598, 2.668, 2.691, 2.500),
        (0.25, 1.3333, 2.201, 2.139, 2.185, 2.200, 2.000),
        (0.28, 1.3889, 1.992, 1.942, 1.979, 1.991, 1.786),
        (0.50, 2.0, 1.255, 1.239, 1.251, 1.255, 1.000),
    ];

    fn near(found: f64, published: f64) {
        assert!((found - published).abs() <= 0.000_51, "{found} is not {published}");
    }

    #[test]
    fn uniform_forms_meet_the_published_table() {
        for (spare, alpha, f, g64, g256, g4096, a) in UNIFORM {
            let exact = 1.0 / (1.0 - spare);
            assert!((exact - alpha).abs() < 5e-5);
            near(fifo(exact), f);
            near(greedy(exact, 64), g64);
            near(greedy(exact, 256), g256);
            near(greedy(exact, 4096), g4096);
            near(agarwal(exact), a);
        }
    }

    fn pair(space: f64, traffic: f64, death: Death) -> [Class; 2] {
        let rest = Class { space: 1.0 - space, traffic: 1.0 - traffic, death: Death::Random };
        [Class { space, traffic, death }, rest]
    }

    /// Space, traffic, S_f, mixed FIFO, optimum, α_hot, α_cold: table 5.3.
    const HOT_COLD: [(f64, f64, f64, f64, f64, f64, f64); 5] = [
        (0.2, 0.8, 0.07, 7.682, 4.935, 1.188, 1.047),
        (0.2, 0.8, 0.15, 3.869, 2.517, 1.438, 1.111),
        (0.2, 0.8, 0.28, 2.317, 1.563, 1.942, 1.251),
        (0.1, 0.9, 0.07, 8.358, 3.093, 1.374, 1.042),
        (0.1, 0.9, 0.15, 4.430, 1.759, 1.857, 1.101),
    ];

    #[test]
    fn two_random_classes_meet_the_published_table() {
        for (space, traffic, spare, mixed, best, hot, cold) in HOT_COLD {
            let alpha = 1.0 / (1.0 - spare);
            let classes = pair(space, traffic, Death::Random);
            near(mixed_fifo(alpha, &classes), mixed);
            let (a, alphas) = optimum(alpha, &classes);
            near(a, best);
            near(alphas[0], hot);
            near(alphas[1], cold);
        }
    }

    /// Traffic, space, S_f, mixed FIFO, ideal: table 5.4.
    const LOG: [(f64, f64, f64, f64, f64); 6] = [
        (0.3, 0.02, 0.07, 7.405, 5.33),
        (0.3, 0.02, 0.15, 3.966, 2.724),
        (0.3, 0.02, 0.28, 2.293, 1.677),
        (0.5, 0.02, 0.07, 8.495, 4.09),
        (0.5, 0.02, 0.15, 4.524, 2.231),
        (0.5, 0.02, 0.28, 2.586, 1.483),
    ];

    #[test]
    fn a_log_and_random_data_meet_the_published_table() {
        for (traffic, space, spare, mixed, ideal) in LOG {
            let alpha = 1.0 / (1.0 - spare);
            let classes = pair(space, traffic, Death::InOrder);
            near(mixed_fifo(alpha, &classes), mixed);
            let found = log_apart(alpha, classes[0], fifo);
            assert!((found - ideal).abs() <= 0.0051, "{found} is not {ideal}");
        }
    }

    #[test]
    fn the_quota_rule_computes_the_same_optimum() {
        for (space, traffic, spare, ..) in HOT_COLD {
            let alpha = 1.0 / (1.0 - spare);
            let pages = 1e6;
            let classes = [(space * pages, traffic), ((1.0 - space) * pages, 1.0 - traffic)];
            let shares = crate::victim::shares(&classes, alpha * pages);
            let (_, alphas) = optimum(alpha, &pair(space, traffic, Death::Random));
            assert!((shares[0] / (space * pages) / alphas[0] - 1.0).abs() < 1e-6);
            assert!((shares.iter().sum::<f64>() / (alpha * pages) - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn equal_classes_gain_nothing_by_separation() {
        let (a, _) = optimum(1.1, &pair(0.5, 0.5, Death::Random));
        assert!((a / fifo(1.1) - 1.0).abs() < 1e-9);
    }
}
