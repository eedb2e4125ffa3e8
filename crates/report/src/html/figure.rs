//! A picture with its title, how to read it, and its figures as a table and as CSV.
//!
//! Invariant: the table is made of the same values as the picture; nobody has to give it.

use maud::{Markup, html};

use super::bars::Bars;
use super::canvas::{NARROW, WIDE};
use super::curves::Curves;
use super::heat::Heat;
use super::histogram::Histogram;
use super::intervals::Intervals;
use super::raster::Raster;
use super::rounds::Rounds;
use super::table::Table;
use super::text::safe;

/// What every kind of picture can do.
pub(super) trait Picture {
    /// Whose the colours are.
    fn legend(&self) -> Markup;
    /// The picture, so wide.
    fn draw(&self, width: f64, name: &str) -> Markup;
    /// Its figures.
    fn table(&self) -> Table;

    /// The same, with the place of what is shared.
    fn draw_with(&self, width: f64, name: &str, _shared: &str) -> Markup {
        self.draw(width, name)
    }

    /// What the picture of all widths have in common, with this name in the page.
    fn shared(&self, _id: &str) -> Markup {
        html! {}
    }

    /// The picture, if it is one for all widths.
    fn whole(&self, _name: &str) -> Option<Markup> {
        None
    }
}

/// A kind of picture.
#[derive(Clone, Debug, PartialEq)]
pub enum Plot {
    /// Paired rounds over time.
    Rounds(Rounds),
    /// Estimates with intervals.
    Intervals(Intervals),
    /// Lines, or step curves.
    Curves(Curves),
    /// Bars with bounds.
    Bars(Bars),
    /// Coloured cells.
    Raster(Raster),
    /// Outlines of counts by bin.
    Histogram(Histogram),
    /// A grid of shaded figures.
    Heat(Heat),
}

macro_rules! plots {
    ($($kind:ident),*) => {
        $(impl From<$kind> for Plot {
            fn from(plot: $kind) -> Plot {
                Plot::$kind(plot)
            }
        })*

        impl Plot {
            fn picture(&self) -> &dyn Picture {
                match self { $(Plot::$kind(plot) => plot,)* }
            }
        }
    };
}

plots!(Rounds, Intervals, Curves, Bars, Raster, Histogram, Heat);

/// A picture in a page.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    title: String,
    reading: String,
    plot: Plot,
}

impl Figure {
    /// A picture with its title.
    pub fn new(title: impl Into<String>, plot: impl Into<Plot>) -> Figure {
        Figure { title: title.into(), reading: String::new(), plot: plot.into() }
    }

    /// How to read it: what is what, and what must not be concluded.
    #[must_use]
    pub fn reading(self, text: impl Into<String>) -> Figure {
        Figure { reading: text.into(), ..self }
    }

    /// Its figures.
    pub fn table(&self) -> Table {
        self.plot.picture().table()
    }

    pub(super) fn show(&self, number: usize) -> Markup {
        let picture = self.plot.picture();
        let id = format!("picture-{number}");
        let table = self.table();
        html! {
            figure {
                figcaption {
                    h3 { (safe(&self.title)) }
                    @if !self.reading.is_empty() { p { (safe(&self.reading)) } }
                }
                @if table.is_empty() {
                    p.note { "no data" }
                } @else {
                    (picture.legend())
                    @if let Some(whole) = picture.whole(&self.title) {
                        (whole)
                    } @else {
                        (picture.shared(&id))
                        (picture.draw_with(WIDE, &self.title, &id))
                        (picture.draw_with(NARROW, &self.title, &id))
                    }
                    details {
                        summary { "Figures" }
                        (table.show(&self.title))
                    }
                }
            }
        }
    }
}
