//! Bars from zero, with bounds.

use maud::{Markup, html};

use super::canvas::{Series, colour, svg};
use super::figure::Picture;
use super::scale::Extent;
use super::table::{Cell, Table};
use super::text::{bold_fitted, fitted, px, safe, width};
use super::unit::{Axis, Unit};

/// Bars in groups.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bars {
    /// What is measured, from 0.
    pub x: Axis,
    /// A value to compare with, and what it is.
    pub reference: Option<(f64, String)>,
    /// The groups, from above.
    pub groups: Vec<BarGroup>,
}

/// Bars that belong together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BarGroup {
    /// What they have in common; may be empty.
    pub label: String,
    /// The bars.
    pub bars: Vec<Bar>,
}

/// A bar.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bar {
    /// Of what, and in which colour.
    pub series: Series,
    /// Its length; `NaN` if it is not known.
    pub value: f64,
    /// Between what the true value lies.
    pub bounds: Option<(f64, f64)>,
    /// What should stand behind the value, in a few words.
    pub remark: String,
}

impl Bar {
    /// The value, and the remark.
    fn shown(&self, unit: &Unit) -> String {
        let value = unit.show(self.value);
        if self.remark.is_empty() { value } else { format!("{value}, {}", safe(&self.remark)) }
    }

    fn end(&self) -> f64 {
        self.bounds.map_or(self.value, |(_, high)| high.max(self.value))
    }
}

impl Bars {
    fn bars(&self) -> impl Iterator<Item = &Bar> {
        self.groups.iter().flat_map(|group| &group.bars)
    }
}

impl Picture for Bars {
    fn legend(&self) -> Markup {
        html! {}
    }

    fn draw(&self, wide: f64, name: &str) -> Markup {
        const ROW: f64 = 22.0;
        const HEAD: f64 = 26.0;
        let unit = &self.x.unit;
        let most =
            |room: f64, texts: &mut dyn Iterator<Item = f64>| texts.fold(0.0, f64::max).min(room);
        let names = most(wide * 0.32, &mut self.bars().map(|bar| width(&safe(&bar.series.name))));
        let behind = most(wide * 0.42, &mut self.bars().map(|bar| width(&bar.shown(unit))));
        let (from, to) = (names + 10.0, (wide - behind - 10.0).max(names + 40.0));
        let ends = self.bars().map(Bar::end).chain(self.reference.iter().map(|(value, _)| *value));
        let x = Extent::of(ends.chain([0.0])).scale((from, to));
        let top = if self.reference.is_some() { 20.0 } else { 2.0 };
        let height = |group: &BarGroup| {
            let head = if group.label.is_empty() { 6.0 } else { HEAD };
            head + ROW * group.bars.len() as f64 + 8.0
        };
        let bottom = top + self.groups.iter().map(height).sum::<f64>();
        let size = (wide, bottom + 38.0);
        let says = self.bars().map(|bar| format!("{}: {}", bar.series.name, bar.shown(unit)));
        let tops: Vec<f64> = self
            .groups
            .iter()
            .scan(top, |y, group| {
                *y += height(group);
                Some(*y - height(group))
            })
            .collect();
        svg(
            size,
            name,
            &says.collect::<Vec<_>>().join("; "),
            html! {
                @for (value, text) in x.ticks(unit, (((to - from) / 70.0) as usize).max(2)) {
                    @let at = px(x.at(value));
                    line.grid x1=(at) x2=(at) y1=(px(top)) y2=(px(bottom)) {}
                    text.tick x=(at) y=(px(bottom + 15.0)) text-anchor="middle" { (text) }
                }
                @for (group, y) in self.groups.iter().zip(&tops) {
                    @let head = if group.label.is_empty() { 6.0 } else { HEAD };
                    @for (at, bar) in group.bars.iter().enumerate() {
                        (self.bar(bar, &x, (y + head + ROW * at as f64, names, wide)))
                    }
                }
                line.base x1=(px(x.at(0.0))) x2=(px(x.at(0.0))) y1=(px(top)) y2=(px(bottom)) {}
                @if let Some((value, what)) = self.reference.as_ref().filter(|(v, _)| v.is_finite()) {
                    @let at = x.at(*value);
                    line.reference x1=(px(at)) x2=(px(at)) y1=(px(top - 4.0)) y2=(px(bottom)) {}
                    text.axis x=(px(at)) y="11" { (fitted(what, wide - at)) }
                }
                // lines run behind words
                @for (group, y) in self.groups.iter().zip(&tops) {
                    text.name x="0" y=(px(y + 18.0)) { (bold_fitted(&group.label, wide)) }
                }
                text.axis x=(px(to)) y=(px(bottom + 33.0)) text-anchor="end" { (safe(&self.x.text())) }
            },
        )
    }

    fn table(&self) -> Table {
        let unit = || self.x.unit.clone();
        let mut table = Table::new()
            .column("group", Unit::Plain)
            .column("of", Unit::Plain)
            .column(&self.x.label, unit())
            .column("low", unit())
            .column("high", unit())
            .column("remark", Unit::Plain);
        for group in &self.groups {
            for bar in &group.bars {
                let (low, high) = bar.bounds.unzip();
                table.row([
                    Cell::from(group.label.as_str()),
                    bar.series.name.as_str().into(),
                    bar.value.into(),
                    low.into(),
                    high.into(),
                    bar.remark.as_str().into(),
                ]);
            }
        }
        table
    }
}

impl Bars {
    fn bar(&self, bar: &Bar, x: &super::scale::Scale, place: (f64, f64, f64)) -> Markup {
        let (y, names, wide) = place;
        let (zero, middle) = (x.at(0.0), y + 9.0);
        let at = if bar.value.is_finite() { x.at(bar.value) } else { zero };
        let end = if bar.end().is_finite() { x.at(bar.end()) } else { at };
        let behind = end.max(at) + 8.0;
        html! {
            text.tick x=(px(names)) y=(px(middle)) dy="0.35em" text-anchor="end" {
                (fitted(&bar.series.name, names + 1.0))
            }
            rect class=(format!("bar {}", colour(bar.series.colour))) x=(px(zero.min(at)))
                y=(px(y)) width=(px((at - zero).abs())) height="18"
            {
                title { (safe(&format!("{}: {}", bar.series.name, bar.shown(&self.x.unit)))) }
            }
            @if let Some((low, high)) = bar.bounds {
                @let (low, high) = (px(x.at(low)), px(x.at(high)));
                line.bounds x1=(low) x2=(high) y1=(px(middle)) y2=(px(middle)) {}
                @for end in [&low, &high] {
                    line.bounds x1=(end) x2=(end) y1=(px(middle - 4.0)) y2=(px(middle + 4.0)) {}
                }
            }
            text.value x=(px(behind)) y=(px(middle)) dy="0.35em" {
                (fitted(&bar.shown(&self.x.unit), wide - behind))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_begin_at_zero_and_unknown_ones_have_no_length() {
        let bar = |value, bounds| Bar {
            series: Series::new("<script>", 2),
            value,
            bounds,
            remark: "short <i>".into(),
        };
        let bars = Bars {
            x: Axis::new("write amplification", Unit::Plain),
            reference: Some((1.0, "no copies".into())),
            groups: vec![BarGroup {
                label: "greedy".into(),
                bars: vec![bar(2.5, Some((2.4, 2.6))), bar(f64::NAN, None), bar(0.0, None)],
            }],
        };
        for width in [328.0, 820.0] {
            let drawn = bars.draw(width, "WAF").into_string();
            assert!(drawn.contains(">2.5, short &lt;i&gt;<"), "{drawn}");
            assert!(!drawn.contains("<script") && !drawn.contains("NaN"), "{drawn}");
            assert_eq!(drawn.matches(" width=\"0\"").count(), 2, "{drawn}");
        }
        assert_eq!(bars.table().csv().lines().count(), 4);
        Bars::default().draw(328.0, "none").into_string();
    }
}
