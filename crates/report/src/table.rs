//! Plain tables: a header, a line below it, columns two spaces apart.
//!
//! Invariant: a cell holds no control character but the line breaks between its lines.

use std::borrow::Cow;
use std::fmt;

use comfy_table::{
    Cell, CellAlignment, ContentArrangement, ContentLineStyle, LineStyle, TableStyle,
};

/// A table for a terminal or a file, built row by row and shown by `Display`, without a line break
/// at its end.
#[derive(Clone, Debug)]
pub struct Table {
    inner: comfy_table::Table,
}

impl Table {
    /// A table with these column heads.
    pub fn new<T: AsRef<str>>(heads: impl IntoIterator<Item = T>) -> Table {
        let mut inner = comfy_table::Table::new();
        inner.load_style(
            TableStyle::new()
                .header_lines(ContentLineStyle::none().junction(' '))
                .header_separator(LineStyle::none().fill('─').junction('─'))
                .content_lines(ContentLineStyle::none().junction(' ')),
        );
        inner.set_header(cells(heads));
        let mut table = Table { inner };
        table.inner.discover_columns();
        let last = table.inner.column_iter().count().saturating_sub(1);
        for (at, column) in table.inner.column_iter_mut().enumerate() {
            column.set_padding((0, u16::from(at != last)));
        }
        table
    }

    /// Puts figures flush right in these columns, counted from 0.
    #[must_use]
    pub fn right(mut self, columns: impl IntoIterator<Item = usize>) -> Table {
        for at in columns {
            if let Some(column) = self.inner.column_mut(at) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        self
    }

    /// Breaks the text of the widest columns so that lines have at most `columns` characters,
    /// where that is possible.
    #[must_use]
    pub fn width(mut self, columns: u16) -> Table {
        self.inner.set_width(columns).set_content_arrangement(ContentArrangement::Dynamic);
        self
    }

    /// Adds a row.
    pub fn row<T: AsRef<str>>(&mut self, row: impl IntoIterator<Item = T>) -> &mut Table {
        self.inner.add_row(cells(row));
        self
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.inner.is_empty()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, line) in self.inner.lines().enumerate() {
            if at > 0 {
                out.write_str("\n")?;
            }
            out.write_str(line.trim_end())?;
        }
        Ok(())
    }
}

fn cells<T: AsRef<str>>(row: impl IntoIterator<Item = T>) -> Vec<Cell> {
    let lines = |text: &str| {
        let lines: Vec<Cow<'_, str>> = text.split('\n').map(plain).collect();
        lines.join("\n")
    };
    row.into_iter().map(|cell| Cell::new(lines(cell.as_ref()))).collect()
}

/// Characters that turn the direction of writing (Unicode bidi controls): a name that holds one
/// could make the text around it read otherwise.
const TURNS: [char; 11] = [
    '\u{200e}', '\u{200f}', '\u{202a}', '\u{202b}', '\u{202c}', '\u{202d}', '\u{202e}', '\u{2066}',
    '\u{2067}', '\u{2068}', '\u{2069}',
];

/// `text` with control characters and those that turn the direction of writing written out
/// (`\u{1b}`), so that a name or a message from elsewhere cannot steer the terminal or the reader.
/// Line breaks too: split first where they are meant.
pub fn plain(text: &str) -> Cow<'_, str> {
    let steers = |c: char| c.is_control() || TURNS.contains(&c);
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let shown = text.chars().map(|c| match c {
        c if steers(c) => c.escape_default().to_string(),
        c => c.to_string(),
    });
    Cow::Owned(shown.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_text_is_broken_and_figures_stand_right() {
        let mut table = Table::new(["name", "n"]).right([1]).width(14);
        table.row(["one two three", "1"]).row(["x", "1000"]);
        assert_eq!(
            table.to_string(),
            "\
name         n
──────────────
one two      1
three
x         1000"
        );
    }

    #[test]
    fn nothing_steers_the_terminal() {
        let mut table = Table::new(["a"]);
        table.row(["\u{1b}[2Jx\r\u{9b}y\nz"]);
        let shown = table.to_string();
        assert!(shown.contains(r"\u{1b}[2Jx\r\u{9b}y"), "{shown}");
        assert!(shown.ends_with("\nz"), "{shown}");
        assert_eq!(plain("a\u{202e}b"), r"a\u{202e}b");
        assert!(matches!(plain("größer <b>"), Cow::Borrowed(_)));
    }

    #[test]
    fn rows_of_other_lengths_are_shown() {
        let mut table = Table::new(["a", "b"]);
        assert!(table.is_empty());
        table.row(["1"]).row(["1", "2", "3"]);
        assert!(table.to_string().ends_with("3"));
        assert_eq!(Table::new([""; 0]).to_string(), "");
    }
}
