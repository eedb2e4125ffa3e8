//! What a number counts, and the axis that it lies on.

use std::borrow::Cow;
use std::time::Duration;

use crate::units;

/// What a number counts: how it is shown, and what a CSV calls it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum Unit {
    /// A number without unit, as a write amplification.
    #[default]
    Plain,
    /// A whole number of things.
    Count,
    /// Bytes.
    Bytes,
    /// Seconds.
    Seconds,
    /// A share, 0 to 1, shown in percent.
    Share,
    /// A change, given in percent, shown with its sign.
    Change,
    /// Another unit by its sign, as `tps`.
    Named(Cow<'static, str>),
}

impl Unit {
    /// The unit of this sign.
    pub fn named(sign: impl Into<Cow<'static, str>>) -> Unit {
        Unit::Named(sign.into())
    }

    /// `value` for people; `-` if it is no number.
    pub fn show(&self, value: f64) -> String {
        if !value.is_finite() {
            return "-".to_owned();
        }
        let sign = if value < 0.0 { "−" } else { "" };
        let size = value.abs();
        match self {
            Unit::Plain => units::figure(value).replacen('-', "−", 1),
            Unit::Count => format!("{sign}{}", units::count(size.round() as u64)),
            Unit::Bytes => format!("{sign}{}", units::bytes(size.round() as u64)),
            Unit::Seconds => {
                let time = Duration::try_from_secs_f64(size).unwrap_or(Duration::MAX);
                format!("{sign}{}", units::duration(time))
            }
            Unit::Share => format!("{sign}{} %", units::figure(size * 100.0)),
            Unit::Change => units::percent(value),
            Unit::Named(name) => format!("{sign}{} {name}", units::figure(size)),
        }
    }

    /// `value` beside a tick, where `step` lies between two of them. The sign of a named unit stands
    /// at the axis.
    pub(super) fn tick(&self, value: f64, step: f64) -> String {
        let percent = match self {
            Unit::Bytes | Unit::Seconds | Unit::Count => return self.show(value),
            Unit::Share => 100.0,
            Unit::Plain | Unit::Change | Unit::Named(_) => 1.0,
        };
        let (value, step) = (value * percent, step * percent);
        let decimals = (-(step.log10() + 1e-9).floor()).clamp(0.0, 9.0);
        let decimals = if decimals.is_finite() { decimals as usize } else { 0 };
        let size = value.abs();
        let rounded = format!("{size:.decimals$}");
        let digits = match rounded.split_once('.') {
            _ if size >= 1e15 => format!("{size:.2e}"),
            Some((whole, rest)) => format!("{}.{rest}", grouped(whole)),
            None => grouped(&rounded),
        };
        let zero = digits.chars().all(|c| c == '0' || c == '.');
        let sign = match self {
            _ if zero => "",
            _ if value < 0.0 => "−",
            Unit::Change => "+",
            _ => "",
        };
        let unit = if matches!(self, Unit::Share | Unit::Change) { " %" } else { "" };
        format!("{sign}{digits}{unit}")
    }

    /// What stands behind a name at an axis or in the head of a CSV.
    pub(super) fn sign(&self) -> Option<&str> {
        match self {
            Unit::Plain | Unit::Count => None,
            Unit::Bytes => Some("bytes"),
            Unit::Seconds => Some("s"),
            Unit::Share => Some("share"),
            Unit::Change => Some("percent"),
            Unit::Named(name) => Some(name),
        }
    }
}

fn grouped(digits: &str) -> String {
    digits.parse().map_or_else(|_| digits.to_owned(), units::count)
}

/// An axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axis {
    /// What lies on it.
    pub label: String,
    /// In which unit.
    pub unit: Unit,
    /// Whether each step multiplies; what is not above 0 then lies at its beginning.
    pub log: bool,
}

impl Axis {
    /// A linear axis.
    pub fn new(label: impl Into<String>, unit: Unit) -> Axis {
        Axis { label: label.into(), unit, log: false }
    }

    /// A logarithmic one.
    #[must_use]
    pub fn log(self) -> Axis {
        Axis { log: true, ..self }
    }

    /// Its label, with the unit if ticks do not show it.
    pub(super) fn text(&self) -> String {
        match &self.unit {
            Unit::Named(name) if *name != self.label => format!("{}, {name}", self.label),
            _ => self.label.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_their_unit() {
        for (unit, value, shown) in [
            (Unit::Plain, -2.345, "−2.35"),
            (Unit::Count, 12_345.0, "12,345"),
            (Unit::Bytes, 1.5e9, "1.5 GB"),
            (Unit::Seconds, 75.0, "1 min 15 s"),
            (Unit::Share, 0.125, "12.5 %"),
            (Unit::Change, -3.0, "−3 %"),
            (Unit::named("tps"), 812.0, "812 tps"),
            (Unit::Seconds, f64::MAX, units::duration(Duration::MAX).as_str()),
            (Unit::Bytes, f64::NAN, "-"),
        ] {
            assert_eq!(unit.show(value), shown, "{unit:?}");
        }
    }

    #[test]
    fn ticks_have_the_decimals_of_their_step() {
        for (unit, value, step, shown) in [
            (Unit::Plain, 12.35, 0.05, "12.35"),
            (Unit::Plain, 2000.0, 500.0, "2,000"),
            (Unit::Plain, 0.3, 0.1, "0.3"),
            (Unit::Plain, -0.0001, 0.1, "0.0"),
            (Unit::Change, 2.0, 1.0, "+2 %"),
            (Unit::Change, -2.5, 0.5, "−2.5 %"),
            (Unit::Change, 0.0, 1.0, "0 %"),
            (Unit::Share, 0.25, 0.25, "25 %"),
            (Unit::named("tps"), 1500.0, 500.0, "1,500"),
            (Unit::Plain, 1e300, 1e299, "1.00e300"),
            (Unit::Plain, 1.0, f64::NAN, "1"),
        ] {
            assert_eq!(unit.tick(value, step), shown, "{unit:?} {value}");
        }
    }
}
