//! Results as one HTML file: the answer first, then pictures, each with its figures as CSV.
//!
//! ```
//! use shelflife_report::html::{
//!     Axis, Bar, BarGroup, Bars, Figure, Page, Section, Series, Source, Unit,
//! };
//!
//! let bar = |name: &str, colour, value, bounds| Bar {
//!     series: Series::new(name, colour),
//!     value,
//!     bounds: Some(bounds),
//!     ..Bar::default()
//! };
//! let bars = Bars {
//!     x: Axis::new("write amplification", Unit::Plain),
//!     reference: Some((1.0, "no copies".into())),
//!     groups: vec![BarGroup {
//!         label: "greedy, 7 % over-provisioning".into(),
//!         bars: vec![
//!             bar("off", 0, 2.81, (2.79, 2.83)),
//!             bar("wal-first", 1, 2.38, (2.36, 2.40)),
//!         ],
//!     }],
//! };
//! let page = Page::new("Hints for this workload", "wal-first saves 15 %", Source::Simulated)
//!     .fact("workload", "tpcb, 16.4 GB")
//!     .section(
//!         Section::new("Write amplification")
//!             .figure(Figure::new("By policy", bars).reading("Shorter is better.")),
//!     );
//! let html = page.to_string();
//! assert!(html.starts_with("<!DOCTYPE html>") && html.contains("simulated"));
//! ```
//!
//! The page needs no script and no other file. Pictures are SVG whose colours are style
//! properties, so that they follow light and dark and come out on paper; they are drawn twice, for wide and
//! for narrow screens, with texts of the same size. Colours are Okabe and Ito's (2008), which differ
//! for colour-blind readers too; lines also differ by dashes, points by shape.
//!
//! Invariants: pure, as all of the crate; whatever texts say, they are escaped, and whatever numbers
//! are, the page is well formed: what is no number is left out of a picture and shown as `-`.

mod bars;
mod canvas;
mod curves;
mod figure;
mod heat;
mod histogram;
mod intervals;
mod page;
mod raster;
mod rounds;
mod scale;
mod table;
mod text;
mod unit;

pub use bars::{Bar, BarGroup, Bars};
pub use canvas::Series;
pub use curves::{Curve, Curves};
pub use figure::{Figure, Plot};
pub use heat::{Heat, HeatCell, HeatRow};
pub use histogram::Histogram;
pub use intervals::{Estimate, Intervals};
pub use page::{Page, Section, Source};
pub use raster::Raster;
pub use rounds::{RoundPoint, Rounds};
pub use table::{Cell, Table};
pub use unit::{Axis, Unit};
