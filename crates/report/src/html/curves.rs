//! Lines and step curves, each named at its end.

use maud::{Markup, html};

use super::canvas::{Frame, Key, Series, WIDE, colour, dashes, legend, shows, spread, svg};
use super::figure::Picture;
use super::scale::{Extent, Scale};
use super::table::{Cell, Table};
use super::text::{bold_fitted, bold_width, px};
use super::unit::{Axis, Unit};

/// Curves on common axes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curves {
    /// From left to right.
    pub x: Axis,
    /// From below to above.
    pub y: Axis,
    /// Values that the axis from below to above has to reach at least.
    pub y_range: Option<(f64, f64)>,
    /// For step curves, as those of survival: their height before the first step. Else points are
    /// joined by straight lines.
    pub steps_from: Option<f64>,
    /// The curves.
    pub curves: Vec<Curve>,
}

/// A curve.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curve {
    /// Of what, and in which colour.
    pub series: Series,
    /// Points from left to right: of a step curve where it comes to which height.
    pub points: Vec<(f64, f64)>,
    /// How far a step curve was observed: beyond its last point, or without any.
    pub until: Option<f64>,
}

impl Curves {
    /// Points that can be drawn.
    fn points<'c>(&self, curve: &'c Curve) -> impl Iterator<Item = (f64, f64)> + 'c {
        let (x_log, y_log) = (self.x.log, self.y.log);
        let fits = |value: f64, log: bool| value.is_finite() && (!log || value > 0.0);
        curve.points.iter().copied().filter(move |(x, y)| fits(*x, x_log) && fits(*y, y_log))
    }

    fn xs(&self, curve: &Curve) -> impl Iterator<Item = f64> {
        let until = curve.until.filter(|until| !self.x.log || *until > 0.0);
        self.points(curve).map(|(x, _)| x).chain(until).collect::<Vec<_>>().into_iter()
    }

    fn path(&self, curve: &Curve, x: &Scale, y: &Scale) -> Option<(String, f64)> {
        let mut last = None;
        let mut path = String::new();
        let mut go = |command: char, at: String| {
            path.push(command);
            path += &at;
        };
        if let Some(from) = self.steps_from {
            go('M', format!("{} {}", px(x.at(x.low)), px(y.at(from))));
            last = Some(from);
        }
        for (at, height) in self.points(curve) {
            match (self.steps_from, last) {
                (Some(_), _) => {
                    go('H', px(x.at(at)));
                    go('V', px(y.at(height)));
                }
                (None, None) => go('M', format!("{} {}", px(x.at(at)), px(y.at(height)))),
                (None, Some(_)) => go('L', format!("{} {}", px(x.at(at)), px(y.at(height)))),
            }
            last = Some(height);
        }
        if let (Some(_), Some(until)) = (self.steps_from, curve.until.filter(|u| u.is_finite())) {
            go('H', px(x.at(until)));
        }
        // without a step a step curve is a level line, as far as it was observed
        Some((path, last.filter(|_| !curve.points.is_empty() || curve.until.is_some())?))
    }
}

impl Picture for Curves {
    fn legend(&self) -> Markup {
        legend(self.curves.iter().map(|curve| &curve.series), Key::Line)
    }

    fn draw(&self, wide: f64, name: &str) -> Markup {
        let names = self.curves.iter().map(|curve| bold_width(&curve.series.name));
        let at_end = if wide < WIDE { 0.0 } else { names.fold(0.0, f64::max).min(150.0) };
        let xs = self.curves.iter().flat_map(|curve| self.xs(curve));
        let ys = self.curves.iter().flat_map(|curve| self.points(curve).map(|(_, y)| y));
        let given = self.y_range.map(|(low, high)| [low, high]).into_iter().flatten();
        let given = given.chain(self.steps_from).filter(|y| !self.y.log || *y > 0.0);
        let size = (wide, if wide < WIDE { 250.0 } else { 330.0 });
        let (x, y) = (Extent::of(xs), Extent::of(ys).and(given));
        let frame = Frame::new(size, 10.0 + at_end, (&self.x, x), (&self.y, y));
        let paths: Vec<(&Curve, String, f64)> = self
            .curves
            .iter()
            .filter_map(|curve| {
                let (path, end) = self.path(curve, &frame.x, &frame.y)?;
                Some((curve, path, frame.y.at(end)))
            })
            .collect();
        let ends: Vec<f64> = paths.iter().map(|(_, _, end)| *end).collect();
        let (bottom, top) = frame.y.pixels;
        let labels = spread(&ends, 14.0, top, bottom);
        let says = shows("Curves", self.curves.iter().map(|curve| &curve.series));
        svg(
            size,
            name,
            &says,
            html! {
                (frame.draw())
                @for (curve, path, _) in &paths {
                    path class=(format!("line {}", colour(curve.series.colour))) d=(path)
                        stroke-dasharray=[dashes(curve.series.colour)]
                    {
                        title { (super::text::safe(&curve.series.name)) }
                    }
                }
                @if at_end > 0.0 {
                    @for ((curve, _, end), label) in paths.iter().zip(labels) {
                        @let right = frame.x.pixels.1;
                        @let reached = self.xs(curve).fold(f64::NEG_INFINITY, f64::max);
                        @let reached = frame.x.at(reached);
                        path.lead d=(format!("M{} {}L{} {}", px(reached + 2.0), px(*end),
                            px(right + 4.0), px(label))) {}
                        text class=(format!("end {}", colour(curve.series.colour))) x=(px(right + 7.0))
                            y=(px(label)) dy="0.35em" { (bold_fitted(&curve.series.name, at_end + 3.0)) }
                    }
                }
            },
        )
    }

    fn table(&self) -> Table {
        let mut table = Table::new()
            .column("of", Unit::Plain)
            .column(&self.x.label, self.x.unit.clone())
            .column(&self.y.label, self.y.unit.clone());
        for curve in &self.curves {
            for (x, y) in &curve.points {
                table.row([Cell::from(curve.series.name.as_str()), (*x).into(), (*y).into()]);
            }
            if let (Some(from), Some(until)) = (self.steps_from, curve.until) {
                let end = curve.points.last().map_or(from, |(_, y)| *y);
                table.row([Cell::from(curve.series.name.as_str()), until.into(), end.into()]);
            }
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curves(points: Vec<(f64, f64)>, steps_from: Option<f64>) -> Curves {
        Curves {
            x: Axis::new("lifetime", Unit::Bytes).log(),
            y: Axis::new("alive", Unit::Share),
            y_range: Some((0.0, 1.0)),
            steps_from,
            curves: vec![
                Curve { series: Series::new("<script>", 1), points, until: Some(1e6) },
                Curve::default(),
            ],
        }
    }

    #[test]
    fn steps_go_across_then_down() {
        let drawn = curves(vec![(1e3, 0.5), (1e5, 0.25)], Some(1.0)).draw(820.0, "s").into_string();
        let path = drawn.split_once("class=\"line c1\" d=\"").unwrap().1.split('"').next().unwrap();
        let commands: String = path.chars().filter(char::is_ascii_alphabetic).collect();
        assert_eq!(commands, "MHVHVH");
        assert!(drawn.contains("class=\"end c1\"") && !drawn.contains("<script"), "{drawn}");
        let drawn = curves(vec![(1e3, 0.5), (1e5, 0.25)], None).draw(328.0, "s").into_string();
        let path = drawn.split_once("class=\"line c1\" d=\"").unwrap().1.split('"').next().unwrap();
        assert_eq!(path.matches(['M', 'L', 'H']).collect::<String>(), "ML");
        assert!(!drawn.contains("class=\"end"), "no room for names: {drawn}");
        let level = curves(Vec::new(), Some(1.0));
        let drawn = level.draw(820.0, "s").into_string();
        assert!(
            drawn.contains("class=\"line c1\"") && !drawn.contains("class=\"line c0\""),
            "{drawn}"
        );
        assert_eq!(level.table().csv().lines().nth(1), Some("<script>,1000000,1"));
    }

    #[test]
    fn odd_points_are_left_out() {
        let odd = vec![(0.0, 0.9), (f64::NAN, 0.5), (1e3, f64::INFINITY)];
        for steps in [None, Some(1.0)] {
            let drawn = curves(odd.clone(), steps).draw(820.0, "s").into_string();
            assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
            curves(Vec::new(), steps).draw(820.0, "s").into_string();
            curves(vec![(5.0, 0.5)], steps).draw(820.0, "s").into_string();
        }
    }
}
