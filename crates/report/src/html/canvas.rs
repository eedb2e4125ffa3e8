//! Drawing: the frame with its axes, and marks. Every colour is a class, so that a page decides it
//! (light, dark, print).
//!
//! Invariant: a drawing is a whole SVG element of one width, whose texts have 12 px there. A page
//! holds each picture for a wide and for a narrow screen.

use maud::{Markup, html};

use super::scale::{Extent, Scale};
use super::text::{px, safe, width};
use super::unit::Axis;

/// Widths that pictures are drawn for, in px: a page on a desk or on paper, and a phone.
pub(super) const WIDE: f64 = 820.0;
pub(super) const NARROW: f64 = 328.0;

/// How many colours there are; a ninth series has the first one again, in another pattern.
const COLOURS: usize = 8;

/// A series of data: its name, and the number of its colour.
///
/// The same number has the same colour, pattern and mark in every picture of a page: 0 is a neutral
/// one for what others are compared with, and eight differ clearly.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Series {
    /// What it is.
    pub name: String,
    /// The number of its colour, from 0.
    pub colour: usize,
}

impl Series {
    /// A series.
    pub fn new(name: impl Into<String>, colour: usize) -> Series {
        Series { name: name.into(), colour }
    }
}

/// The class that colours a mark.
pub(super) fn colour(number: usize) -> String {
    format!("c{}", number % COLOURS)
}

/// Dashes, so that lines differ without colour; `None` is a whole line.
pub(super) fn dashes(number: usize) -> Option<&'static str> {
    [
        None,
        Some("7 3"),
        Some("2 3"),
        Some("9 3 2 3"),
        Some("4 2"),
        Some("12 4"),
        Some("1 2"),
        Some("6 2 1 2 1 2"),
    ][(number + number / COLOURS) % 8]
}

/// A mark of one of four shapes at a place.
pub(super) fn mark(number: usize, x: f64, y: f64, r: f64, title: &str) -> Markup {
    let at = |dx: f64, dy: f64| format!("{} {}", px(x + dx * r), px(y + dy * r));
    let path = match number % 4 {
        0 => format!(
            "M{}A{r} {r} 0 1 1 {}A{r} {r} 0 1 1 {}Z",
            at(-1.0, 0.0),
            at(1.0, 0.0),
            at(-1.0, 0.0)
        ),
        1 => format!("M{}L{}L{}L{}Z", at(-0.9, -0.9), at(0.9, -0.9), at(0.9, 0.9), at(-0.9, 0.9)),
        2 => format!("M{}L{}L{}Z", at(0.0, -1.15), at(1.1, 0.85), at(-1.1, 0.85)),
        _ => format!("M{}L{}L{}L{}Z", at(0.0, -1.25), at(1.25, 0.0), at(0.0, 1.25), at(-1.25, 0.0)),
    };
    html! {
        path class=(format!("mark {}", colour(number))) d=(path) {
            @if !title.is_empty() { title { (safe(title)) } }
        }
    }
}

/// An SVG element of this size around `inside`.
pub(super) fn svg(size: (f64, f64), name: &str, says: &str, inside: Markup) -> Markup {
    let class = if size.0 < WIDE { "narrow" } else { "wide" };
    html! {
        svg class=(class) role="img" aria-label=(safe(&format!("{name}. {says}")))
            viewBox=(format!("0 0 {} {}", px(size.0), px(size.1)))
        {
            (inside)
        }
    }
}

/// Where in an element data lie, and on which scales.
pub(super) struct Frame {
    pub size: (f64, f64),
    pub x: Scale,
    pub y: Scale,
    x_axis: Axis,
    y_axis: Axis,
}

impl Frame {
    /// A frame of `size`, with `right` px free at the right of the data.
    pub fn new(
        size: (f64, f64),
        right: f64,
        (x_axis, x): (&Axis, Extent),
        (y_axis, y): (&Axis, Extent),
    ) -> Frame {
        const TOP: f64 = 26.0;
        const BOTTOM: f64 = 42.0;
        let scale = |axis: &Axis, extent: Extent, pixels| match axis.log {
            true => extent.log_scale(pixels),
            false => extent.scale(pixels),
        };
        let y = scale(y_axis, y, (size.1 - BOTTOM, TOP));
        let texts =
            y.ticks(&y_axis.unit, y_ticks(size.1)).into_iter().map(|(_, text)| width(&text));
        let left = texts.fold(20.0, f64::max) + 10.0;
        let x = scale(x_axis, x, (left.min(size.0 / 2.0), size.0 - right));
        Frame { size, x, y, x_axis: x_axis.clone(), y_axis: y_axis.clone() }
    }

    /// Lines, ticks and labels.
    pub fn draw(&self) -> Markup {
        let (left, right) = self.x.pixels;
        let (bottom, _) = self.y.pixels;
        let mut end = f64::NEG_INFINITY;
        let x_ticks: Vec<(f64, String)> = self
            .x
            .ticks(&self.x_axis.unit, ((right - left) / 80.0) as usize)
            .into_iter()
            .map(|(value, text)| (self.x.at(value), text))
            // texts that would touch the one before
            .filter(|(x, text)| {
                let half = width(text) / 2.0;
                let free = x - half > end + 6.0;
                if free {
                    end = x + half;
                }
                free
            })
            .collect();
        html! {
            text.axis x="0" y="12" { (safe(&self.y_axis.text())) }
            @for (value, text) in self.y.ticks(&self.y_axis.unit, y_ticks(self.size.1)) {
                @let y = px(self.y.at(value));
                line.grid x1=(px(left)) x2=(px(right)) y1=(y) y2=(y) {}
                text.tick x=(px(left - 6.0)) y=(y) dy="0.35em" text-anchor="end" { (text) }
            }
            line.base x1=(px(left)) x2=(px(right)) y1=(px(bottom)) y2=(px(bottom)) {}
            @for (x, text) in x_ticks {
                line.base x1=(px(x)) x2=(px(x)) y1=(px(bottom)) y2=(px(bottom + 4.0)) {}
                @let half = width(&text) / 2.0;
                text.tick x=(px(x.clamp(half, (self.size.0 - half).max(half)))) y=(px(bottom + 17.0))
                    text-anchor="middle" { (text) }
            }
            text.axis x=(px(right)) y=(px(bottom + 34.0)) text-anchor="end" {
                (safe(&self.x_axis.text()))
            }
        }
    }
}

fn y_ticks(height: f64) -> usize {
    (height / 55.0) as usize
}

/// What a picture shows, for those who do not see it: `Curves of off, wal-first`.
pub(super) fn shows<'s>(what: &str, series: impl IntoIterator<Item = &'s Series>) -> String {
    let names: Vec<&str> = series.into_iter().map(|series| series.name.as_str()).collect();
    format!("{what} of {}", names.join(", "))
}

/// Which colour, pattern and mark is whose.
pub(super) fn legend<'s>(series: impl IntoIterator<Item = &'s Series>, kind: Key) -> Markup {
    html! {
        ul.legend {
            @for series in series {
                li {
                    svg.key viewBox="0 0 26 12" aria-hidden="true" { (kind.draw(series.colour)) }
                    (safe(&series.name))
                }
            }
        }
    }
}

/// What a legend shows.
#[derive(Clone, Copy)]
pub(super) enum Key {
    Line,
    Mark,
    Area,
}

impl Key {
    fn draw(self, number: usize) -> Markup {
        match self {
            Key::Line => html! {
                path class=(format!("line {}", colour(number))) d="M0 6H26"
                    stroke-dasharray=[dashes(number)] {}
            },
            Key::Mark => mark(number, 13.0, 6.0, 4.5, ""),
            Key::Area => html! {
                rect class=(format!("area {}", colour(number))) x="5" y="0" width="16" height="12" {}
            },
        }
    }
}

/// Places for labels that want to stand at `wanted`, `gap` apart, between `low` and `high`, in the
/// same order.
pub(super) fn spread(wanted: &[f64], gap: f64, low: f64, high: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|a, b| wanted[*a].total_cmp(&wanted[*b]));
    let mut places = wanted.to_vec();
    let mut free = low;
    for at in &order {
        places[*at] = places[*at].max(free);
        free = places[*at] + gap;
    }
    let mut free = high;
    for at in order.iter().rev() {
        places[*at] = places[*at].min(free);
        free = places[*at] - gap;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::Unit;

    #[test]
    fn labels_keep_apart_and_in_order() {
        assert_eq!(spread(&[50.0, 10.0, 52.0], 13.0, 0.0, 100.0), [50.0, 10.0, 63.0]);
        assert_eq!(spread(&[99.0, 99.0], 13.0, 0.0, 100.0), [87.0, 100.0]);
        assert!(spread(&[], 13.0, 0.0, 100.0).is_empty());
    }

    #[test]
    fn series_differ_without_colour() {
        let patterns: std::collections::HashSet<_> = (0..8).map(dashes).collect();
        assert_eq!(patterns.len(), 8);
        assert_eq!(colour(0), colour(8));
        assert_ne!(dashes(0), dashes(8));
    }

    #[test]
    fn labels_are_escaped_and_ticks_do_not_touch() {
        let axis = Axis::new("<script>", Unit::Bytes).log();
        let extent = Extent::of([1.0, 1e12]);
        for wide in [NARROW, WIDE] {
            let frame = Frame::new((wide, 260.0), 8.0, (&axis, extent), (&axis, extent));
            let drawn = frame.draw().into_string();
            assert!(!drawn.contains("<script"), "{drawn}");
            assert!(drawn.matches("<text").count() > 6, "{drawn}");
        }
    }
}
