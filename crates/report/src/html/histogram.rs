//! How values spread over bins: outlines, so that several can be laid over each other.

use maud::{Markup, html};

use super::canvas::{Frame, Key, Series, WIDE, colour, dashes, legend, shows, svg};
use super::figure::Picture;
use super::scale::Extent;
use super::table::{Cell, Table};
use super::text::{px, safe};
use super::unit::{Axis, Unit};

/// Counts by bin, shown as shares of each series.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    /// What was sorted into bins.
    pub x: Axis,
    /// What was counted, as `victims`.
    pub counted: String,
    /// The ends of the bins, one more than there are.
    pub edges: Vec<f64>,
    /// Series, and the counts of each by bin.
    pub series: Vec<(Series, Vec<u64>)>,
}

impl Histogram {
    /// Shares, 0 to 1, in bins of one width: twenty counts are twentieths.
    pub fn of_shares(
        label: impl Into<String>,
        counted: impl Into<String>,
        series: Vec<(Series, Vec<u64>)>,
    ) -> Histogram {
        let bins = series.iter().map(|(_, counts)| counts.len()).max().unwrap_or(0);
        Histogram {
            x: Axis::new(label, Unit::Share),
            counted: counted.into(),
            edges: (0..=bins).map(|bin| bin as f64 / bins.max(1) as f64).collect(),
            series,
        }
    }

    /// Bins as (from, to), and the share in each.
    fn shares<'h>(&'h self, counts: &'h [u64]) -> impl Iterator<Item = (f64, f64, f64)> + 'h {
        let all = counts.iter().map(|count| *count as f64).sum::<f64>().max(1.0);
        let bins = self.edges.windows(2).zip(counts);
        bins.map(move |(edges, count)| (edges[0], edges[1], *count as f64 / all))
    }
}

impl Picture for Histogram {
    fn legend(&self) -> Markup {
        legend(self.series.iter().map(|(series, _)| series), Key::Line)
    }

    fn draw(&self, width: f64, name: &str) -> Markup {
        let size = (width, if width < WIDE { 220.0 } else { 260.0 });
        let shares = self.series.iter().flat_map(|(_, counts)| self.shares(counts));
        let y = Extent::of(shares.map(|(_, _, share)| share)).and([0.0]);
        let y_axis = Axis::new(format!("share of {}", self.counted), Unit::Share);
        let x = Extent::of(self.edges.iter().copied());
        let frame = Frame::new(size, 14.0, (&self.x, x), (&y_axis, y));
        let zero = frame.y.at(0.0);
        let outline = |counts: &[u64]| {
            let mut path = String::new();
            for (from, to, share) in self.shares(counts) {
                if path.is_empty() {
                    path += &format!("M{} {}", px(frame.x.at(from)), px(zero));
                }
                path += &format!("V{}H{}", px(frame.y.at(share)), px(frame.x.at(to)));
            }
            if path.is_empty() { path } else { format!("{path}V{}", px(zero)) }
        };
        let says = shows("Spread", self.series.iter().map(|(series, _)| series));
        svg(
            size,
            name,
            &says,
            html! {
                (frame.draw())
                @for (series, counts) in &self.series {
                    @let class = colour(series.colour);
                    path class=(format!("area {class}")) d=(outline(counts)) {}
                }
                @for (series, counts) in &self.series {
                    @let class = colour(series.colour);
                    path class=(format!("line {class}")) d=(outline(counts))
                        stroke-dasharray=[dashes(series.colour)] { title { (safe(&series.name)) } }
                }
            },
        )
    }

    fn table(&self) -> Table {
        let mut table = Table::new()
            .column("of", Unit::Plain)
            .column(format!("{} from", self.x.label), self.x.unit.clone())
            .column("to", self.x.unit.clone())
            .column(&self.counted, Unit::Count);
        for (series, counts) in &self.series {
            for (edges, count) in self.edges.windows(2).zip(counts) {
                let name = Cell::from(series.name.as_str());
                table.row([name, edges[0].into(), edges[1].into(), (*count).into()]);
            }
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outlines_begin_and_end_at_zero() {
        let series = vec![
            (Series::new("off", 0), vec![1, 3]),
            (Series::new("none", 1), vec![0, 0]),
            (Series::new("short", 2), vec![]),
        ];
        let histogram = Histogram::of_shares("valid", "victims", series);
        assert_eq!(histogram.edges, [0.0, 0.5, 1.0]);
        let drawn = histogram.draw(820.0, "valid").into_string();
        let path = drawn.split_once("class=\"line c0\" d=\"").unwrap().1.split('"').next().unwrap();
        let commands: String = path.chars().filter(char::is_ascii_alphabetic).collect();
        assert_eq!(commands, "MVHVHV");
        assert!(!drawn.contains("NaN"), "{drawn}");
        assert_eq!(histogram.table().csv().lines().count(), 5);
        Histogram::default().draw(328.0, "none").into_string();
    }
}
