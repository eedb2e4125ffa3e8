//! Place against time in coloured cells.
//!
//! Invariant: its size follows the number of cells, not of what was added: a page stays small
//! however long a trace is.

use maud::{Markup, html};

use super::canvas::{Frame, Key, Series, WIDE, colour, legend, shows, svg};
use super::figure::Picture;
use super::scale::Extent;
use super::table::{Cell, Table};
use super::text::px;
use super::unit::{Axis, Unit};

/// Cells from left to right, and from below to above.
const COLUMNS: usize = 160;
const ROWS: usize = 80;

/// Cells over two linear axes from 0, each in the colour of the series that has most in it, and the
/// stronger the more that is.
#[derive(Clone, Debug, PartialEq)]
pub struct Raster {
    x: (Axis, f64),
    y: (Axis, f64),
    /// What is added up.
    weight: (String, Unit),
    series: Vec<Series>,
    /// By row, column and series.
    cells: Vec<f64>,
}

/// What a cell shows.
#[derive(Clone, Copy, PartialEq)]
struct Shown {
    series: usize,
    /// 0 to 2.
    strength: usize,
}

impl Raster {
    /// An empty one: both axes with their ends, what is added up, and whose.
    pub fn new(
        x: (Axis, f64),
        y: (Axis, f64),
        weight: (impl Into<String>, Unit),
        series: Vec<Series>,
    ) -> Raster {
        let end = |(axis, end): (Axis, f64)| {
            let end = if end.is_finite() && end > 0.0 { end } else { 1.0 };
            (Axis { log: false, ..axis }, end)
        };
        let cells = vec![0.0; COLUMNS * ROWS * series.len()];
        Raster { x: end(x), y: end(y), weight: (weight.0.into(), weight.1), series, cells }
    }

    /// Adds `weight` of a series, which lies from `y` on for `length`. What is outside is left out.
    pub fn add(&mut self, series: usize, x: f64, (y, length): (f64, f64), weight: f64) {
        let column = x / self.x.1 * COLUMNS as f64;
        let (from, to) = (y / self.y.1 * ROWS as f64, (y + length) / self.y.1 * ROWS as f64);
        let inside = (0.0..=COLUMNS as f64).contains(&column) && from >= 0.0 && to >= from;
        if series >= self.series.len() || !inside || !weight.is_finite() || from >= ROWS as f64 {
            return;
        }
        let column = (column as usize).min(COLUMNS - 1);
        let (first, last) = (from as usize, (to.ceil() as usize).clamp(from as usize + 1, ROWS));
        for row in first..last {
            let part = (to.min(row as f64 + 1.0) - from.max(row as f64)) / (to - from);
            let part = if part.is_finite() { part } else { 1.0 };
            self.cells[(row * COLUMNS + column) * self.series.len() + series] += weight * part;
        }
    }

    /// Of a cell: the series that has most, and all that is in it.
    fn cell(&self, row: usize, column: usize) -> Option<(usize, f64)> {
        let at = (row * COLUMNS + column) * self.series.len();
        let cell = &self.cells[at..at + self.series.len()];
        let most = cell.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1))?;
        (*most.1 > 0.0).then(|| (most.0, cell.iter().sum()))
    }

    fn filled(&self) -> impl Iterator<Item = (usize, usize, usize, f64)> + '_ {
        let all = (0..ROWS).flat_map(|row| (0..COLUMNS).map(move |column| (row, column)));
        all.filter_map(|(row, column)| {
            let (series, weight) = self.cell(row, column)?;
            Some((row, column, series, weight))
        })
    }

    /// Runs of alike cells as one path for each series and strength.
    fn paths(&self) -> Vec<(Shown, String)> {
        let mut weights: Vec<f64> = self.filled().map(|(.., weight)| weight).collect();
        weights.sort_by(f64::total_cmp);
        let middle = weights.get(weights.len() / 2).copied().unwrap_or_default();
        let shown = |row, column| {
            let (series, weight) = self.cell(row, column)?;
            let strength = match weight / middle {
                much if much >= 0.75 => 2,
                some if some >= 0.1 => 1,
                _ => 0,
            };
            Some(Shown { series, strength })
        };
        let mut paths = vec![String::new(); self.series.len() * 3];
        for row in 0..ROWS {
            let mut column = 0;
            while column < COLUMNS {
                let Some(here) = shown(row, column) else {
                    column += 1;
                    continue;
                };
                let alike = (column..COLUMNS).take_while(|c| shown(row, *c) == Some(here)).count();
                paths[here.series * 3 + here.strength] +=
                    &format!("M{column} {}h{alike}v1h-{alike}z", ROWS - 1 - row);
                column += alike;
            }
        }
        let numbered = paths.into_iter().enumerate().filter(|(_, path)| !path.is_empty());
        numbered.map(|(at, path)| (Shown { series: at / 3, strength: at % 3 }, path)).collect()
    }
}

impl Picture for Raster {
    fn legend(&self) -> Markup {
        let there = |at: &usize| self.filled().any(|(_, _, series, _)| series == *at);
        let series = (0..self.series.len()).filter(there).map(|at| &self.series[at]);
        legend(series, Key::Area)
    }

    /// The cells, once for both widths.
    fn shared(&self, id: &str) -> Markup {
        html! {
            svg.shared width="0" height="0" aria-hidden="true" {
                symbol id=(id) viewBox=(format!("0 0 {COLUMNS} {ROWS}")) preserveAspectRatio="none" {
                    @for (shown, path) in self.paths() {
                        @let class = colour(self.series[shown.series].colour);
                        path class=(format!("cell {class} s{}", shown.strength)) d=(path) {}
                    }
                }
            }
        }
    }

    fn draw(&self, width: f64, name: &str) -> Markup {
        self.draw_with(width, name, "")
    }

    fn draw_with(&self, width: f64, name: &str, id: &str) -> Markup {
        let size = (width, if width < WIDE { 260.0 } else { 400.0 });
        let ends = [Extent::of([0.0, self.x.1]), Extent::of([0.0, self.y.1])];
        let frame = Frame::new(size, 14.0, (&self.x.0, ends[0]), (&self.y.0, ends[1]));
        let ((left, right), (bottom, top)) = (frame.x.pixels, frame.y.pixels);
        let says = shows("Cells", &self.series);
        svg(
            size,
            name,
            &says,
            html! {
                (frame.draw())
                use href=(format!("#{id}")) x=(px(left)) y=(px(top)) width=(px(right - left))
                    height=(px(bottom - top)) {}
            },
        )
    }

    fn table(&self) -> Table {
        let mut table = Table::new()
            .column(&self.x.0.label, self.x.0.unit.clone())
            .column(&self.y.0.label, self.y.0.unit.clone())
            .column("most of", Unit::Plain)
            .column(&self.weight.0, self.weight.1.clone());
        for (row, column, series, weight) in self.filled() {
            let at = |cell: usize, end: f64, cells: usize| end * cell as f64 / cells as f64;
            table.row([
                Cell::from(at(column, self.x.1, COLUMNS)),
                at(row, self.y.1, ROWS).into(),
                self.series[series].name.as_str().into(),
                weight.into(),
            ]);
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raster(end: f64) -> Raster {
        let axis = |label| Axis::new(label, Unit::Bytes);
        let series = vec![Series::new("wal", 1), Series::new("<script>", 2)];
        Raster::new((axis("time"), end), (axis("place"), end), ("written", Unit::Bytes), series)
    }

    #[test]
    fn what_is_added_is_spread_and_the_most_wins() {
        let mut raster = raster(80.0);
        raster.add(0, 0.0, (0.0, 2.0), 20.0);
        raster.add(1, 0.2, (0.0, 1.0), 15.0);
        assert_eq!(raster.cell(0, 0), Some((1, 25.0)));
        assert_eq!(raster.cell(1, 0), Some((0, 10.0)));
        assert_eq!(raster.cell(2, 0), None);
        assert_eq!(raster.filled().count(), 2);
        assert_eq!(raster.table().csv().lines().nth(1), Some("0,0,<script>,25"));
    }

    #[test]
    fn what_is_outside_or_no_number_is_left_out() {
        let mut raster = raster(f64::NAN);
        for odd in [f64::NAN, f64::INFINITY, -1.0, 2.0, f64::MAX] {
            raster.add(0, odd, (0.0, 0.1), 1.0);
            raster.add(0, 0.0, (odd, 0.1), 1.0);
            raster.add(0, 0.0, (0.0, 0.1), f64::NAN);
            raster.add(9, 0.0, (0.0, 0.1), 1.0);
        }
        assert_eq!(raster.filled().count(), 0);
        raster.add(0, 1.0, (0.995, 10.0), 1.0);
        raster.add(0, 0.5, (0.5, 0.0), 1.0);
        assert_eq!(raster.filled().count(), 2, "clipped at the end, and a point");
        raster.draw(328.0, "cells").into_string();
    }

    #[test]
    fn a_million_events_stay_small() {
        let mut raster = raster(1e6);
        let mut state = 1_u64;
        for n in 0..1_000_000_u32 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let place = (state >> 33) as f64 / 2f64.powi(31) * 1e6;
            raster.add((state >> 60) as usize % 2, f64::from(n), (place, 8.0), 8192.0);
        }
        assert_eq!(raster.filled().count(), COLUMNS * ROWS, "the worst case");
        let figure = crate::html::Figure::new("cells", raster).show(1).into_string();
        assert!(figure.len() < 1_000_000, "{}", figure.len());
        assert!(!figure.contains("<script"));
    }
}
