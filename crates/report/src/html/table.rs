//! Tables of a page, and their CSV.
//!
//! Invariants: a CSV holds every row, with numbers as they are (nine digits) and not as they are
//! shown; no text of it begins like a formula of a spreadsheet.

use maud::{Markup, html};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use super::text::{safe, slug};
use super::unit::Unit;

/// A table of a page shows so many rows; its CSV has all.
const SHOWN: usize = 100;

/// What would end a `data:` address or its attribute.
const NOT_IN_DATA: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'&')
    .add(b'\'')
    .add(b'<')
    .add(b'>')
    .add(b'`');

/// A table with heads and rows, shown in the page and offered as CSV.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    columns: Vec<(String, Unit)>,
    rows: Vec<Vec<Cell>>,
}

/// A cell of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Cell {
    /// Nothing is known.
    #[default]
    Empty,
    /// Words.
    Text(String),
    /// A number in the unit of its column.
    Number(f64),
}

impl Table {
    /// A table without columns.
    pub fn new() -> Table {
        Table::default()
    }

    /// Adds a column: its head, and what its numbers count.
    #[must_use]
    pub fn column(mut self, head: impl Into<String>, unit: Unit) -> Table {
        self.columns.push((head.into(), unit));
        self
    }

    /// Adds a row. What has no column is left out.
    pub fn row<C: Into<Cell>>(&mut self, cells: impl IntoIterator<Item = C>) -> &mut Table {
        self.rows.push(cells.into_iter().map(Into::into).take(self.columns.len()).collect());
        self
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// All of it as CSV (RFC 4180, but with plain line breaks), in UTF-8. Empty cells are empty
    /// fields; a text that begins like a formula has an apostrophe before it.
    pub fn csv(&self) -> String {
        let heads = self.columns.iter().map(|(head, unit)| match unit.sign() {
            Some(sign) if sign != head => tame(&format!("{head} [{sign}]")),
            _ => tame(head),
        });
        let rows = self.rows.iter().map(|row| {
            // rows may be short
            let cells = row.iter().map(|cell| match cell {
                Cell::Text(text) => tame(text),
                Cell::Number(value) if value.is_finite() => digits(*value),
                Cell::Number(_) | Cell::Empty => String::new(),
            });
            cells.collect::<Vec<String>>()
        });
        let mut writer = csv::WriterBuilder::new().flexible(true).from_writer(Vec::new());
        let mut written = writer.write_record(heads);
        for row in rows {
            written = written.and_then(|()| writer.write_record(row));
        }
        // writing to memory does not fail, nor do rows of other lengths
        let bytes = written.ok().and_then(|()| writer.into_inner().ok()).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The CSV as an address, so that a page can offer it without another file.
    fn data_uri(&self) -> String {
        let csv = self.csv();
        format!("data:text/csv;charset=utf-8,{}", utf8_percent_encode(&csv, NOT_IN_DATA))
    }

    pub(super) fn show(&self, name: &str) -> Markup {
        let right = |at: usize| {
            let mut cells = self.rows.iter().filter_map(|row| row.get(at));
            cells.any(|cell| matches!(cell, Cell::Number(_)))
        };
        let right: Vec<bool> = (0..self.columns.len()).map(right).collect();
        html! {
            div.scroll tabindex="0" {
                table {
                    caption.away { (safe(name)) }
                    thead {
                        tr {
                            @for ((head, _), right) in self.columns.iter().zip(&right) {
                                th.right[*right] scope="col" { (safe(head)) }
                            }
                        }
                    }
                    tbody {
                        @for row in self.rows.iter().take(SHOWN) {
                            tr {
                                @for ((cell, (_, unit)), right) in
                                    row.iter().zip(&self.columns).zip(&right)
                                {
                                    td.right[*right] { (cell.show(unit)) }
                                }
                            }
                        }
                    }
                }
            }
            @if let Some(more) = self.rows.len().checked_sub(SHOWN + 1) {
                p.note { "and " (crate::count(more as u64 + 1)) " more rows in the CSV" }
            }
            (self.download(name))
        }
    }

    pub(super) fn download(&self, name: &str) -> Markup {
        html! {
            a.csv href=(self.data_uri()) download=(format!("{}.csv", slug(name))) { "CSV" }
        }
    }
}

impl Cell {
    fn show(&self, unit: &Unit) -> String {
        match self {
            Cell::Empty => "-".to_owned(),
            Cell::Text(text) => safe(text).into_owned(),
            Cell::Number(value) => unit.show(*value),
        }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::Text(text)
    }
}

impl From<f64> for Cell {
    fn from(value: f64) -> Cell {
        Cell::Number(value)
    }
}

impl From<u64> for Cell {
    fn from(value: u64) -> Cell {
        Cell::Number(value as f64)
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Cell {
        value.map_or(Cell::Empty, Into::into)
    }
}

/// A number with nine digits, without needless ones.
fn digits(value: f64) -> String {
    // a round trip through the exponent form rounds to digits, not to decimals
    let rounded: f64 = format!("{value:.8e}").parse().unwrap_or(value);
    match rounded.abs() {
        usual if usual == 0.0 || (1e-6..1e16).contains(&usual) => rounded.to_string(),
        _ => format!("{rounded:e}"),
    }
}

/// `text` as a spreadsheet shows it and does not run it (OWASP, "CSV injection").
fn tame(text: &str) -> String {
    let text = safe(text);
    match text.trim_start().chars().next() {
        Some('=' | '+' | '-' | '@' | '＝' | '＋' | '－' | '＠') => format!("'{text}"),
        _ => text.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Table {
        let mut table = Table::new().column("name", Unit::Plain).column("written", Unit::Bytes);
        table.row(["<script>alert(1)</script>".into(), Cell::Number(1.5e9)]);
        table.row([Cell::from("=HYPERLINK(\"x\")"), f64::NAN.into()]);
        table.row([Cell::from("a,\"b\"\nc"), None::<f64>.into()]);
        table
    }

    #[test]
    fn a_csv_has_numbers_as_they_are_and_no_formulas() {
        assert_eq!(
            sample().csv(),
            "name,written [bytes]\n\
             <script>alert(1)</script>,1500000000\n\
             \"'=HYPERLINK(\"\"x\"\")\",\n\
             \"a,\"\"b\"\"\\nc\",\n"
        );
        let shown = ["+1", "-1", "@x", " =1", "－1", "x=1", ""].map(tame);
        assert_eq!(shown, ["'+1", "'-1", "'@x", "' =1", "'－1", "x=1", ""]);
        let shown = [1.0 / 3.0, 1e15, -0.5, 0.0, 1e300].map(digits);
        assert_eq!(shown, ["0.333333333", "1000000000000000", "-0.5", "0", "1e300"]);
    }

    #[test]
    fn nothing_leaves_its_attribute_or_cell() {
        let page = sample().show("a \"table\" <b>").into_string();
        assert!(!page.contains("<script") && !page.contains("<b>"), "{page}");
        let (_, address) = page.split_once("data:text/csv").unwrap();
        let (address, rest) = address.split_once('"').unwrap();
        assert!(!address.contains(['<', '>', '&', '\'', ' ', '\n', '#']), "{address}");
        assert!(address.contains("%3Cscript%3Ealert(1)%3C/script%3E"), "{address}");
        assert!(rest.contains("download=\"a-table-b.csv\""), "{rest}");
    }

    #[test]
    fn a_long_table_is_whole_in_its_csv_only() {
        let mut table = Table::new().column("n", Unit::Count);
        (0..250u64).for_each(|n| {
            table.row([n]);
        });
        let page = table.show("numbers").into_string();
        assert!(page.contains("and 150 more rows in the CSV"));
        assert_eq!(page.matches("<td").count(), 100);
        assert_eq!(table.csv().lines().count(), 251);
        table.row([1u64, 2, 3]);
        assert_eq!(table.csv().lines().last(), Some("1"));
        assert_eq!(Table::new().csv(), "\"\"\n");
    }
}
