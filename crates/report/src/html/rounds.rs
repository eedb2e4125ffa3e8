//! Points over time, those of a block joined: what is compared are neighbours, not averages.

use maud::{Markup, html};

use super::canvas::{Frame, Key, Series, legend, mark, svg};
use super::figure::Picture;
use super::scale::Extent;
use super::table::{Cell, Table};
use super::text::px;
use super::unit::{Axis, Unit};

/// Rounds over time, in blocks of one round of each series.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rounds {
    /// When.
    pub x: Axis,
    /// What was measured. The axis does not begin at 0.
    pub y: Axis,
    /// What is compared.
    pub series: Vec<Series>,
    /// Blocks in order of time.
    pub blocks: Vec<Vec<RoundPoint>>,
}

/// One round.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RoundPoint {
    /// Which of [`Rounds::series`].
    pub series: usize,
    /// When.
    pub x: f64,
    /// What was measured.
    pub y: f64,
}

impl Rounds {
    fn points(&self) -> impl Iterator<Item = (usize, &RoundPoint, &Series)> {
        let blocks = self.blocks.iter().enumerate();
        let all = blocks.flat_map(|(at, block)| block.iter().map(move |point| (at, point)));
        all.filter_map(|(at, point)| Some((at, point, self.series.get(point.series)?)))
            .filter(|(_, point, _)| point.x.is_finite() && point.y.is_finite())
    }

    /// From where to where each block reaches: to the middle between it and its neighbours.
    fn bands(&self) -> Vec<(f64, f64)> {
        let mut spans: Vec<Option<(f64, f64)>> = vec![None; self.blocks.len()];
        for (block, point, _) in self.points() {
            let span = spans[block].get_or_insert((point.x, point.x));
            *span = (span.0.min(point.x), span.1.max(point.x));
        }
        let mut spans: Vec<(f64, f64)> = spans.into_iter().flatten().collect();
        for at in 1..spans.len() {
            let middle = f64::midpoint(spans[at - 1].1, spans[at].0);
            spans[at - 1].1 = middle;
            spans[at].0 = middle;
        }
        // beyond the ends of the axis: it stops there
        if let Some(first) = spans.first_mut() {
            first.0 = f64::NEG_INFINITY;
        }
        if let Some(last) = spans.last_mut() {
            last.1 = f64::INFINITY;
        }
        spans
    }
}

impl Picture for Rounds {
    fn legend(&self) -> Markup {
        legend(&self.series, Key::Mark)
    }

    fn draw(&self, width: f64, name: &str) -> Markup {
        let values = self.points().map(|(_, point, _)| (point.x, point.y));
        let (xs, ys): (Vec<f64>, Vec<f64>) = values.unzip();
        let (x, y) = (Extent::of(xs).padded(0.03), Extent::of(ys).padded(0.08));
        let size = (width, if width < 500.0 { 240.0 } else { 300.0 });
        let frame = Frame::new(size, 8.0, (&self.x, x), (&self.y, y));
        let place = |point: &RoundPoint| (frame.x.at(point.x), frame.y.at(point.y));
        let says = format!("{} rounds in {} blocks", self.points().count(), self.blocks.len());
        let joined = (0..self.blocks.len()).filter_map(|block| {
            let of_block = self.points().filter(|(at, ..)| *at == block);
            let mut places: Vec<(f64, f64)> = of_block.map(|(_, point, _)| place(point)).collect();
            places.sort_by(|a, b| a.0.total_cmp(&b.0));
            let corners: Vec<String> =
                places.iter().map(|(x, y)| format!("{} {}", px(*x), px(*y))).collect();
            (corners.len() > 1).then(|| format!("M{}", corners.join("L")))
        });
        let (bottom, top) = frame.y.pixels;
        svg(
            size,
            name,
            &says,
            html! {
                @for (from, to) in self.bands().into_iter().step_by(2) {
                    @let (from, to) = (frame.x.at(from), frame.x.at(to));
                    rect.band x=(px(from)) y=(px(top)) width=(px(to - from))
                        height=(px(bottom - top)) {}
                }
                (frame.draw())
                path.pair d=(joined.collect::<String>()) {}
                @for (block, point, series) in self.points() {
                    @let (x, y) = place(point);
                    (mark(series.colour, x, y, if width < 500.0 { 3.6 } else { 4.6 }, &format!(
                        "{}, block {}: {}", series.name, block + 1, self.y.unit.show(point.y))))
                }
            },
        )
    }

    fn table(&self) -> Table {
        let mut table = Table::new()
            .column("block", Unit::Count)
            .column("arm", Unit::Plain)
            .column(&self.x.label, self.x.unit.clone())
            .column(&self.y.label, self.y.unit.clone());
        for (block, point, series) in self.points() {
            let block = Cell::from(block as u64 + 1);
            table.row([block, series.name.as_str().into(), point.x.into(), point.y.into()]);
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_of_a_block_are_joined_and_odd_ones_left_out() {
        let point = |series, x, y| RoundPoint { series, x, y };
        let rounds = Rounds {
            series: vec![Series::new("off", 0), Series::new("<script>", 1)],
            blocks: vec![
                vec![point(0, 2.0, 10.0), point(1, 1.0, 12.0)],
                vec![point(1, 3.0, f64::NAN), point(0, 4.0, 11.0), point(7, 4.0, 11.0)],
            ],
            ..Rounds::default()
        };
        let drawn = rounds.draw(820.0, "rounds").into_string();
        assert_eq!(drawn.matches("class=\"mark").count(), 3, "{drawn}");
        let pairs = drawn.split_once("class=\"pair\" d=\"").unwrap().1.split('"').next().unwrap();
        assert_eq!(pairs.matches('M').count(), 1, "{pairs}");
        assert_eq!(rounds.bands(), [(f64::NEG_INFINITY, 3.0), (3.0, f64::INFINITY)]);
        assert!(drawn.contains("&lt;script&gt;, block 1: 12"), "{drawn}");
        assert_eq!(rounds.table().csv().lines().count(), 4);
        assert!(!Rounds::default().draw(328.0, "none").into_string().contains("NaN"));
    }
}
