//! Estimates with their intervals, on one scale, beside zero.

use maud::{Markup, html};

use super::canvas::{Series, colour, mark, svg};
use super::figure::Picture;
use super::scale::Extent;
use super::table::{Cell, Table};
use super::text::{bold_fitted, px, safe, width};
use super::unit::{Axis, Unit};

/// Estimates, each on a line of its own.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Intervals {
    /// What is estimated; 0 means no difference.
    pub x: Axis,
    /// What it means to lie below and above 0, as `slower` and `faster`.
    pub sides: Option<(String, String)>,
    /// The estimates.
    pub rows: Vec<Estimate>,
}

/// An estimate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Estimate {
    /// Of what, and in which colour.
    pub series: Series,
    /// The estimate.
    pub value: f64,
    /// The ends of its interval, if there is one.
    pub bounds: Option<(f64, f64)>,
    /// What should be said beside it, in a few words.
    pub remark: String,
}

impl Estimate {
    fn shown(&self, unit: &Unit) -> String {
        match self.bounds {
            Some((low, high)) => {
                format!("{} ({} … {})", unit.show(self.value), unit.show(low), unit.show(high))
            }
            None => format!("{}, no interval", unit.show(self.value)),
        }
    }

    fn values(&self) -> [f64; 3] {
        let (low, high) = self.bounds.unwrap_or((self.value, self.value));
        [self.value, low, high]
    }
}

impl Picture for Intervals {
    fn legend(&self) -> Markup {
        html! {}
    }

    fn draw(&self, wide: f64, name: &str) -> Markup {
        const ROW: f64 = 46.0;
        let top = if self.sides.is_some() { 24.0 } else { 6.0 };
        let bottom = top + ROW * self.rows.len() as f64 + 4.0;
        let size = (wide, bottom + 40.0);
        let edge = 14.0;
        let values = self.rows.iter().flat_map(Estimate::values).chain([0.0]);
        let x = Extent::of(values).padded(0.06).scale((edge, wide - edge));
        let zero = x.at(0.0);
        let says =
            self.rows.iter().map(|row| format!("{}: {}", row.series.name, row.shown(&self.x.unit)));
        svg(
            size,
            name,
            &says.collect::<Vec<_>>().join("; "),
            html! {
                @if let Some((below, above)) = &self.sides {
                    @let (below, above) = (format!("← {}", safe(below)), format!("{} →", safe(above)));
                    @if width(&below) < zero - 8.0 {
                        text.axis x=(px(zero - 8.0)) y="12" text-anchor="end" { (below) }
                    }
                    @if width(&above) < wide - zero - 8.0 {
                        text.axis x=(px(zero + 8.0)) y="12" { (above) }
                    }
                }
                @for (value, text) in x.ticks(&self.x.unit, (wide / 62.0) as usize) {
                    @let at = x.at(value);
                    line.grid x1=(px(at)) x2=(px(at)) y1=(px(top)) y2=(px(bottom)) {}
                    @let half = width(&text) / 2.0;
                    text.tick x=(px(at.clamp(half, wide - half))) y=(px(bottom + 16.0))
                        text-anchor="middle" { (text) }
                }
                line.zero x1=(px(zero)) x2=(px(zero)) y1=(px(top - 4.0)) y2=(px(bottom)) {}
                text.axis x=(px(wide - edge)) y=(px(bottom + 34.0)) text-anchor="end" {
                    (safe(&self.x.text()))
                }
                @for (at, row) in self.rows.iter().enumerate() {
                    @let y = top + ROW * at as f64;
                    @let shown = row.shown(&self.x.unit);
                    @let room = wide - width(&shown) - 16.0;
                    text.name x="0" y=(px(y + 14.0)) { (bold_fitted(&row.series.name, room)) }
                    text.value x=(px(wide)) y=(px(y + 14.0)) text-anchor="end" { (shown) }
                    @let y = y + 30.0;
                    @if let Some((low, high)) = row.bounds {
                        @let (low, high) = (px(x.at(low)), px(x.at(high)));
                        line class=(format!("interval {}", colour(row.series.colour)))
                            x1=(low) x2=(high) y1=(px(y)) y2=(px(y)) {}
                        @for end in [&low, &high] {
                            line class=(format!("cap {}", colour(row.series.colour)))
                                x1=(end) x2=(end) y1=(px(y - 6.0)) y2=(px(y + 6.0)) {}
                        }
                    }
                    @if row.value.is_finite() {
                        (mark(row.series.colour, x.at(row.value), y, 5.5, &row.remark))
                    }
                }
            },
        )
    }

    fn table(&self) -> Table {
        let unit = || self.x.unit.clone();
        let mut table = Table::new()
            .column("of", Unit::Plain)
            .column(&self.x.label, unit())
            .column("low", unit())
            .column("high", unit())
            .column("remark", Unit::Plain);
        for row in &self.rows {
            let (low, high) = row.bounds.unzip();
            let name = Cell::from(row.series.name.as_str());
            let remark = row.remark.as_str().into();
            table.row([name, row.value.into(), low.into(), high.into(), remark]);
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_without_interval_or_sense_are_said() {
        let row = |value, bounds| Estimate {
            series: Series::new("<script>", 1),
            value,
            bounds,
            remark: String::new(),
        };
        let intervals = Intervals {
            x: Axis::new("change", Unit::Change),
            sides: Some(("slower".into(), "faster".into())),
            rows: vec![row(1.0, Some((-2.0, 4.0))), row(f64::NAN, None), row(-1e9, None)],
        };
        for width in [328.0, 820.0] {
            let drawn = intervals.draw(width, "change").into_string();
            assert!(drawn.contains("+1 % (−2 % … +4 %)"), "{drawn}");
            assert!(!drawn.contains("<script") && !drawn.contains("NaN"), "{drawn}");
            assert_eq!(drawn.matches("class=\"mark").count(), 2);
        }
        assert!(intervals.table().csv().contains("<script>,1,-2,4,"), "raw, for spreadsheets");
        Intervals::default().draw(328.0, "none").into_string();
    }
}
