//! A grid of figures, each shaded by how good or bad it is: many cases at a glance.

use maud::{Markup, html};

use super::figure::Picture;
use super::table::{Cell, Table};
use super::text::safe;
use super::unit::Unit;

/// Cases (rows) under conditions (columns).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Heat {
    /// What the rows are, as `scenario`.
    pub rows_are: String,
    /// What the columns are, as `policy and drive`.
    pub columns_are: String,
    /// What the figures are, as `saving`.
    pub value_is: String,
    /// Their unit. Above 0 is good, below bad.
    pub unit: Unit,
    /// The figure (and its negative) that has the full shade; a smaller one in between has less.
    pub full: f64,
    /// The columns' names.
    pub columns: Vec<String>,
    /// The rows.
    pub rows: Vec<HeatRow>,
}

/// A row of a [`Heat`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeatRow {
    /// Its name.
    pub name: String,
    /// Its cells, by column; `None` where there is nothing to say.
    pub cells: Vec<Option<HeatCell>>,
}

/// A cell of a [`Heat`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeatCell {
    /// The figure.
    pub value: f64,
    /// Between what the true one lies. A cell whose bounds have 0 between them has no shade.
    pub bounds: Option<(f64, f64)>,
    /// Why it is so, in one sentence.
    pub reason: String,
}

impl HeatCell {
    /// Good or bad, and how much, 0 to 1.
    fn shade(&self, full: f64) -> Option<(&'static str, f64)> {
        let (low, high) = self.bounds.unwrap_or((self.value, self.value));
        let certain = low > 0.0 || high < 0.0;
        let share = (self.value / full).abs();
        (certain && share.is_finite())
            .then(|| (if self.value > 0.0 { "good" } else { "bad" }, share.min(1.0)))
    }
}

impl Picture for Heat {
    fn legend(&self) -> Markup {
        let (full, most) = (self.full.abs(), self.unit.show(self.full.abs()));
        html! {
            ul.legend {
                li { span.shade.good style="--much:1" {} "better by " (most) " or more" }
                li { span.shade.bad style="--much:1" {} "worse by " (most) " or more" }
                @if full > 0.0 { li { span.shade {} "no difference that is certain" } }
            }
        }
    }

    fn whole(&self, name: &str) -> Option<Markup> {
        Some(html! {
            div.scroll tabindex="0" {
                table.heat {
                    caption.away { (safe(name)) }
                    thead {
                        tr {
                            th scope="col" { (safe(&self.rows_are)) }
                            @for column in &self.columns { th scope="col" { (safe(column)) } }
                        }
                    }
                    tbody {
                        @for row in &self.rows {
                            tr {
                                th scope="row" { (safe(&row.name)) }
                                @for cell in row.cells.iter().take(self.columns.len()) {
                                    @match cell {
                                        Some(cell) => (self.cell(cell)),
                                        None => td.none { "-" },
                                    }
                                }
                            }
                        }
                    }
                }
            }
        })
    }

    fn draw(&self, _: f64, _: &str) -> Markup {
        html! {}
    }

    fn table(&self) -> Table {
        let mut table = Table::new()
            .column(&self.rows_are, Unit::Plain)
            .column(&self.columns_are, Unit::Plain)
            .column(&self.value_is, self.unit.clone())
            .column("low", self.unit.clone())
            .column("high", self.unit.clone())
            .column("reason", Unit::Plain);
        for row in &self.rows {
            for (cell, column) in row.cells.iter().zip(&self.columns) {
                let Some(cell) = cell else { continue };
                let (low, high) = cell.bounds.unzip();
                table.row([
                    Cell::from(row.name.as_str()),
                    column.as_str().into(),
                    cell.value.into(),
                    low.into(),
                    high.into(),
                    cell.reason.as_str().into(),
                ]);
            }
        }
        table
    }
}

impl Heat {
    fn cell(&self, cell: &HeatCell) -> Markup {
        let shade = cell.shade(self.full);
        let class = shade.map_or("", |(class, _)| class);
        let much = shade.map(|(_, share)| format!("--much:{share:.2}"));
        let reason = Some(safe(&cell.reason)).filter(|reason| !reason.is_empty());
        html! {
            td class=(class) style=[much] title=[reason] {
                b { (self.unit.show(cell.value)) }
                @if let Some((low, high)) = cell.bounds {
                    small { (self.unit.show(low)) " … " (self.unit.show(high)) }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shade_says_what_is_certain() {
        let cell = |value, bounds| HeatCell { value, bounds, reason: String::new() };
        assert_eq!(cell(5.0, Some((4.0, 6.0))).shade(10.0), Some(("good", 0.5)));
        assert_eq!(cell(-50.0, Some((-60.0, -40.0))).shade(10.0), Some(("bad", 1.0)));
        assert_eq!(cell(5.0, Some((-1.0, 11.0))).shade(10.0), None);
        assert_eq!(cell(f64::NAN, None).shade(10.0), None);
        assert_eq!(cell(0.0, None).shade(0.0), None);
    }

    #[test]
    fn a_grid_is_escaped_and_whole() {
        let reason = "\"WAL\" dies <b>young</b>".to_owned();
        let cell = HeatCell { value: 12.0, bounds: Some((10.0, 14.0)), reason };
        let heat = Heat {
            unit: Unit::Change,
            full: 20.0,
            columns: vec!["wal-first, <greedy>".into(), "other".into()],
            rows: vec![HeatRow { name: "<script>".into(), cells: vec![Some(cell), None, None] }],
            ..Heat::default()
        };
        let page = heat.whole("grid").unwrap().into_string();
        assert!(page.contains("title=\"&quot;WAL&quot; dies &lt;b&gt;young&lt;/b&gt;\""), "{page}");
        assert!(!page.contains("<script") && !page.contains("<greedy"), "{page}");
        assert_eq!(page.matches("<td").count(), 2);
        assert_eq!(heat.table().csv().lines().count(), 2);
        Heat::default().whole("none").unwrap().into_string();
    }
}
