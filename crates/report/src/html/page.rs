//! A page: the answer first, then sections.
//!
//! Invariant: one file. It asks for nothing, runs nothing, and its `Content-Security-Policy` forbids
//! both; every text in it is escaped.

use std::fmt;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::figure::Figure;
use super::table::Table;
use super::text::safe;

const STYLE: &str = include_str!("style.css");

/// What a browser may load and do for a page: only its own style, and images inside it.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; \
                      base-uri 'none'; form-action 'none'";

/// A longer answer is shown in smaller letters.
const LONG: usize = 160;

/// Where figures come from: it stands at the headline.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Source {
    /// Computed by the simulator of drives.
    Simulated,
    /// Measured on this machine, as the server and the kernel see it.
    Measured,
    /// Measured on the drive, by its own counters.
    OnTheDrive,
}

impl Source {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Source::Simulated => "simulated",
            Source::Measured => "measured on this machine",
            Source::OnTheDrive => "measured on the drive",
        }
    }

    fn show(self) -> Markup {
        let class = match self {
            Source::Simulated => "simulated",
            Source::Measured | Source::OnTheDrive => "measured",
        };
        html! { span class=(format!("badge {class}")) { (self.name()) } }
    }
}

/// A page. [`fmt::Display`] gives its HTML.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    title: String,
    answer: String,
    source: Source,
    facts: Vec<(String, String)>,
    sections: Vec<Section>,
    made_by: String,
}

impl Page {
    /// A page with its title (what was asked), the answer in a sentence, and where that comes from.
    pub fn new(title: impl Into<String>, answer: impl Into<String>, source: Source) -> Page {
        Page {
            title: title.into(),
            answer: answer.into(),
            source,
            facts: Vec::new(),
            sections: Vec::new(),
            made_by: String::new(),
        }
    }

    /// Adds a condition under which the answer holds, as machine, server or seed.
    #[must_use]
    pub fn fact(mut self, name: impl Into<String>, value: impl Into<String>) -> Page {
        self.facts.push((name.into(), value.into()));
        self
    }

    /// Adds a section.
    #[must_use]
    pub fn section(mut self, section: Section) -> Page {
        self.sections.push(section);
        self
    }

    /// What made it, and when: the last line.
    #[must_use]
    pub fn made_by(self, text: impl Into<String>) -> Page {
        Page { made_by: text.into(), ..self }
    }

    fn markup(&self) -> Markup {
        let mut number = 0;
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta http-equiv="Content-Security-Policy" content=(POLICY);
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    // else a browser asks the server of the page for one
                    link rel="icon" href="data:,";
                    title { (safe(&self.title)) }
                    style { (PreEscaped(STYLE)) }
                }
                body {
                    header {
                        p.title { (safe(&self.title)) " " (self.source.show()) }
                        h1.long[self.answer.chars().count() > LONG] { (safe(&self.answer)) }
                    }
                    main {
                        @for section in &self.sections { (section.show(&mut number)) }
                        @if !self.facts.is_empty() {
                            section.facts {
                                h2 { "On what this holds" }
                                dl {
                                    @for (name, value) in &self.facts {
                                        dt { (safe(name)) }
                                        dd { (safe(value)) }
                                    }
                                }
                            }
                        }
                    }
                    @if !self.made_by.is_empty() { footer { (safe(&self.made_by)) } }
                }
            }
        }
    }
}

impl fmt::Display for Page {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.markup().0)
    }
}

/// A part of a page, with a heading.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    title: String,
    source: Option<Source>,
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq)]
enum Part {
    Text(String),
    List(Vec<String>),
    Table(String, Table),
    Figure(Figure),
}

impl Section {
    /// A section with its heading.
    pub fn new(title: impl Into<String>) -> Section {
        Section { title: title.into(), source: None, parts: Vec::new() }
    }

    /// Says at its heading where its figures come from: always where that differs from the page's.
    #[must_use]
    pub fn source(self, source: Source) -> Section {
        Section { source: Some(source), ..self }
    }

    /// Adds a paragraph.
    #[must_use]
    pub fn text(self, text: impl Into<String>) -> Section {
        self.with(Part::Text(text.into()))
    }

    /// Adds a list, unless it is empty.
    #[must_use]
    pub fn list<T: Into<String>>(self, entries: impl IntoIterator<Item = T>) -> Section {
        let entries: Vec<String> = entries.into_iter().map(Into::into).collect();
        if entries.is_empty() { self } else { self.with(Part::List(entries)) }
    }

    /// Adds a table with its name.
    #[must_use]
    pub fn table(self, name: impl Into<String>, table: Table) -> Section {
        self.with(Part::Table(name.into(), table))
    }

    /// Adds a picture.
    #[must_use]
    pub fn figure(self, figure: Figure) -> Section {
        self.with(Part::Figure(figure))
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    fn with(mut self, part: Part) -> Section {
        self.parts.push(part);
        self
    }

    fn show(&self, number: &mut usize) -> Markup {
        html! {
            section {
                h2 {
                    (safe(&self.title))
                    @if let Some(source) = self.source { " " (source.show()) }
                }
                @for part in &self.parts {
                    @match part {
                        Part::Text(text) => p { (safe(text)) },
                        Part::List(entries) => ul { @for entry in entries { li { (safe(entry)) } } },
                        Part::Table(name, table) => (table.show(name)),
                        Part::Figure(figure) => ({
                            *number += 1;
                            figure.show(*number)
                        }),
                    }
                }
            }
        }
    }
}
