//! The share of data that is still alive after so many bytes or nanoseconds.
//!
//! Invariant: the estimator is Kaplan and Meier's (J. Am. Stat. Assoc. 53, 1958): what is alive at
//! the end of the trace has lived at least so long, and is neither left out nor taken for dead.
//! Within a bin, deaths come first.

use serde::Serialize;

use crate::histogram::{Histogram, middle};

/// Slack for the rounding of products.
const SLACK: f64 = 1e-9;

/// A step of a survival curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Point {
    /// Lifetime, in bytes or nanoseconds: the middle of its bin.
    pub at: u64,
    /// Share of the data that lives longer, 0 to 1.
    pub alive: f64,
}

/// A survival curve.
#[derive(Clone, Debug, Default)]
pub struct Survival {
    points: Vec<Point>,
    longest: u64,
}

impl Survival {
    pub(crate) fn new(died: &Histogram, alive: &Histogram) -> Survival {
        let total = |histogram: &Histogram| histogram.iter().map(|(_, count)| count).sum::<u64>();
        let (mut at_risk, mut share) = (total(died) + total(alive), 1.0);
        let (mut died, mut alive) = (died.iter().peekable(), alive.iter().peekable());
        let mut survival = Survival::default();
        loop {
            let bin = match (died.peek(), alive.peek()) {
                (Some(a), Some(b)) => a.0.min(b.0),
                (Some(a), None) => a.0,
                (None, Some(b)) => b.0,
                (None, None) => return survival,
            };
            survival.longest = middle(bin);
            if let Some((_, deaths)) = died.next_if(|entry| entry.0 == bin) {
                share *= 1.0 - deaths as f64 / at_risk as f64;
                at_risk -= deaths;
                survival.points.push(Point { at: middle(bin), alive: share });
            }
            if let Some((_, censored)) = alive.next_if(|entry| entry.0 == bin) {
                at_risk -= censored;
            }
        }
    }

    /// The lifetime that a share (0 to 1) of the data does not survive; `None` if more than the
    /// rest was alive at the end.
    pub fn quantile(&self, dead: f64) -> Option<u64> {
        let reached = |point: &&Point| point.alive <= 1.0 - dead + SLACK;
        self.points.iter().find(reached).map(|point| point.at)
    }

    /// The longest lifetime that was seen, of dead or living data.
    pub fn longest(&self) -> u64 {
        self.longest
    }

    /// All steps.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// Steps of at least half a percent, and the last: enough for a picture.
    pub fn curve(&self) -> Vec<Point> {
        let (mut curve, mut before) = (Vec::new(), 1.0);
        for (at, point) in self.points.iter().enumerate() {
            if before - point.alive >= 0.005 - SLACK || at + 1 == self.points.len() {
                curve.push(*point);
                before = point.alive;
            }
        }
        curve
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        values.iter().for_each(|value| histogram.add(*value, 1));
        histogram
    }

    /// Freireich and others 1963, the 6-mercaptopurine group, as in every text book.
    #[test]
    fn a_published_example() {
        let died = [6, 6, 6, 7, 10, 13, 16, 22, 23];
        let alive = [6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35];
        let survival = Survival::new(&histogram(&died), &histogram(&alive));
        let published = [
            (6, 0.8571),
            (7, 0.8067),
            (10, 0.7529),
            (13, 0.6902),
            (16, 0.6275),
            (22, 0.5378),
            (23, 0.4482),
        ];
        for (point, (at, share)) in survival.points().iter().zip(published) {
            assert!(point.at == at && (point.alive - share).abs() < 5e-5, "{point:?}");
        }
        assert_eq!(survival.points().len(), published.len());
        assert_eq!(survival.quantile(0.5), Some(23));
        assert_eq!((survival.quantile(0.6), survival.longest()), (None, 35));
    }

    #[test]
    fn nothing_dies_or_nothing_is_there() {
        let alive = Survival::new(&Histogram::default(), &histogram(&[3, 300]));
        assert_eq!((alive.quantile(0.0), alive.quantile(0.5)), (None, None));
        assert!(alive.curve().is_empty());
        let none = Survival::new(&Histogram::default(), &Histogram::default());
        assert_eq!((none.longest(), none.quantile(0.5)), (0, None));
    }

    #[test]
    fn a_curve_leaves_out_small_steps_only() {
        let values: Vec<u64> = (1..=250).collect();
        let survival = Survival::new(&histogram(&values), &Histogram::default());
        let curve = survival.curve();
        assert_eq!((survival.points().len(), curve.len()), (250, 125));
        assert_eq!(curve.last().map(|point| point.at), Some(250));
    }
}
