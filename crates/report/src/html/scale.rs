//! From values to pixels, and where ticks stand.
//!
//! Invariant: whatever the values are (none, one, not a number, far apart), low lies below high and
//! both are finite.

use super::unit::Unit;

/// Beyond this, differences overflow; nothing that is measured comes near.
const LARGEST: f64 = 1e300;

/// A stretch of an axis on a stretch of pixels.
#[derive(Clone, Debug)]
pub(super) struct Scale {
    pub log: bool,
    pub low: f64,
    pub high: f64,
    /// Pixel of `low` and of `high`.
    pub pixels: (f64, f64),
}

/// Between which values an axis has to reach.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    low: f64,
    high: f64,
}

impl Extent {
    pub fn of(values: impl IntoIterator<Item = f64>) -> Extent {
        Extent::none().and(values)
    }

    fn none() -> Extent {
        Extent { low: f64::INFINITY, high: f64::NEG_INFINITY }
    }

    pub fn and(mut self, values: impl IntoIterator<Item = f64>) -> Extent {
        for value in values.into_iter().filter(|value| value.is_finite()) {
            self.low = self.low.min(value.clamp(-LARGEST, LARGEST));
            self.high = self.high.max(value.clamp(-LARGEST, LARGEST));
        }
        self
    }

    /// With so much of its length more at both ends.
    pub fn padded(self, share: f64) -> Extent {
        let Extent { low, high } = self.filled();
        let more = (high - low) * share;
        Extent { low: low - more, high: high + more }
    }

    /// The same, never empty and never a point.
    fn filled(self) -> Extent {
        let Extent { low, high } = self;
        if low > high {
            return Extent { low: 0.0, high: 1.0 };
        }
        // also if what lies between is lost in rounding
        if high - low > (low.abs() + high.abs()) * 1e-12 {
            return self;
        }
        let more = if low == 0.0 { 1.0 } else { low.abs() * 0.1 };
        Extent { low: low - more, high: high + more }
    }

    pub fn scale(self, pixels: (f64, f64)) -> Scale {
        let Extent { low, high } = self.filled();
        Scale { log: false, low, high, pixels }
    }

    /// A logarithmic one; values that are not above 0 must have been left out.
    pub fn log_scale(self, pixels: (f64, f64)) -> Scale {
        let (low, high) = match self.low > self.high || self.low <= 0.0 {
            true => (1.0, 10.0),
            false => (self.low, self.high),
        };
        let (low, high) = if high / low < 1.01 { (low / 2.0, high * 2.0) } else { (low, high) };
        Scale { log: true, low, high, pixels }
    }
}

impl Scale {
    /// The pixel of `value`; outside values lie at the ends.
    pub fn at(&self, value: f64) -> f64 {
        let (from, to) = self.pixels;
        let value = if value.is_nan() { self.low } else { value.clamp(self.low, self.high) };
        let share = match self.log {
            true => (value.ln() - self.low.ln()) / (self.high.ln() - self.low.ln()),
            false => (value - self.low) / (self.high - self.low),
        };
        from + share.clamp(0.0, 1.0) * (to - from)
    }

    /// Ticks, about `most` of them at the utmost, and their texts.
    pub fn ticks(&self, unit: &Unit, most: usize) -> Vec<(f64, String)> {
        let most = most.max(2);
        if self.log {
            return self.log_ticks(most).into_iter().map(|v| (v, unit.tick(v, v))).collect();
        }
        let step = nice((self.high - self.low) / most as f64, unit);
        let first = (self.low / step - 1e-9).ceil();
        (0..=most * 2)
            .map(|n| (first + n as f64) * step)
            .take_while(|value| *value <= self.high + step * 1e-9)
            .map(|value| (value, unit.tick(value, step)))
            .collect()
    }

    fn log_ticks(&self, most: usize) -> Vec<f64> {
        let (low, high) = (self.low.log10(), self.high.log10());
        let every = ((high - low) / most as f64).ceil().max(1.0);
        let first = (low / every - 1e-9).ceil() * every;
        let powers: Vec<f64> = (0..=most)
            .map(|n| first + n as f64 * every)
            .take_while(|power| *power <= high + 1e-9)
            .map(|power| 10f64.powf(power))
            .collect();
        if powers.len() >= 2 && (powers.len() * 3 > most || every > 1.0) {
            return powers;
        }
        // few whole powers: 1, 2 and 5 of each
        let from = low.floor() as i32;
        (from..=high.ceil() as i32)
            .flat_map(|power| [1.0, 2.0, 5.0].map(|n| n * 10f64.powi(power)))
            .filter(|value| (self.low * 0.999..=self.high * 1.001).contains(value))
            .take(most * 2)
            .collect()
    }
}

/// The least step of at least `step` that people like to read.
fn nice(step: f64, unit: &Unit) -> f64 {
    const TIMES: [f64; 17] = [
        10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0, 10_800.0,
        21_600.0, 43_200.0, 86_400.0, 172_800.0, 432_000.0,
    ];
    if !(step.is_finite() && step > 0.0) {
        return 1.0;
    }
    let step = if *unit == Unit::Count { step.max(1.0) } else { step };
    if *unit == Unit::Seconds
        && step > 5.0
        && let Some(time) = TIMES.iter().find(|time| **time >= step * 0.999)
    {
        return *time;
    }
    let power = 10f64.powf(step.log10().floor());
    let digit = [1.0, 2.0, 5.0].into_iter().find(|digit| digit * power >= step * 0.999);
    digit.unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(scale: &Scale, unit: &Unit, most: usize) -> Vec<String> {
        scale.ticks(unit, most).into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn ticks_are_round_and_lie_inside() {
        let scale = Extent::of([812.0, 1043.0]).scale((0.0, 100.0));
        assert_eq!(texts(&scale, &Unit::named("tps"), 5), ["850", "900", "950", "1,000"]);
        let scale = Extent::of([0.0, 400.0]).scale((0.0, 100.0));
        let minutes = ["0 s", "2 min", "4 min", "6 min"];
        assert_eq!(texts(&scale, &Unit::Seconds, 4), minutes);
        let scale = Extent::of([-2.2, 4.1]).scale((0.0, 100.0));
        assert_eq!(texts(&scale, &Unit::Change, 5), ["−2 %", "0 %", "+2 %", "+4 %"]);
        assert_eq!(scale.at(-2.2), 0.0);
        assert_eq!(scale.at(f64::INFINITY), 100.0);
    }

    #[test]
    fn logarithms_have_powers_of_ten() {
        let scale = Extent::of([4096.0, 2e9]).log_scale((0.0, 60.0));
        let shown = ["10 kB", "100 kB", "1 MB", "10 MB", "100 MB", "1 GB"];
        assert_eq!(texts(&scale, &Unit::Bytes, 8), shown);
        assert_eq!(texts(&scale, &Unit::Bytes, 3), ["10 kB", "1 MB", "100 MB"]);
        let short = Extent::of([1.0, 6.0]).log_scale((0.0, 60.0));
        assert_eq!(texts(&short, &Unit::Plain, 6), ["1", "2", "5"]);
    }

    #[test]
    fn nothing_breaks_a_scale() {
        let odd: [&[f64]; 8] = [
            &[],
            &[f64::NAN, f64::INFINITY],
            &[0.0],
            &[7.0, 7.0],
            &[-f64::MAX, f64::MAX],
            &[1e-300, 1e300],
            &[1.0, 1.0 + f64::EPSILON],
            &[f64::MIN_POSITIVE],
        ];
        for values in odd {
            let extent = Extent::of(values.iter().copied());
            let above = Extent::of(values.iter().copied().filter(|value| *value > 0.0));
            for scale in [extent.padded(0.05).scale((0.0, 9.0)), above.log_scale((0.0, 9.0))] {
                assert!(scale.low < scale.high, "{values:?}");
                for unit in [Unit::Plain, Unit::Bytes, Unit::Seconds, Unit::Count] {
                    assert!(scale.ticks(&unit, 6).len() <= 13, "{values:?}");
                }
                for value in [f64::NAN, -1.0, 0.0, 1.0, f64::MAX] {
                    assert!((0.0..=9.0).contains(&scale.at(value)), "{values:?} {value}");
                }
            }
        }
    }
}
