//! A page of text, tables and charts, as one HTML file.

mod html;
mod markdown;
mod table;
mod text;

pub use table::{Align, Table, TableColumn};
pub use text::{Span, Text};

use crate::chart::Chart;

/// A page as it grows, from top to bottom.
///
/// ```
/// use punctual_figures::{TableColumn, Page, Table};
///
/// let mut page = Page::new("Retransmission");
/// page.lead("The overhead of retransmission, and the losses that remain.");
/// page.heading("Overhead");
/// let mut table = Table::new("Mean overhead", [TableColumn::text("algorithm"),
/// TableColumn::number("%")]); table.row(["aggressive", "9.66"]); page.table(table);
/// page.details("How to run it again", |page| page.code("punctual lab run srt-retransmission"));
/// assert!(page.to_html().starts_with("<!doctype html>"));
/// ```
#[derive(Clone, Debug)]
pub struct Page {
    title: String,
    lead: Option<Text>,
    foot: Option<Text>,
    blocks: Vec<PageBlock>,
}

#[derive(Clone, Debug)]
enum PageBlock {
    Heading(u8, String),
    Paragraph(Text),
    Note(Text),
    Quotation(Text),
    List(Vec<Text>),
    Code(String),
    Keys(Vec<[String; 3]>),
    Table(Table),
    Chart(Box<Chart>),
    Details(String, Vec<PageBlock>),
}

impl Page {
    /// An empty page.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), lead: None, foot: None, blocks: Vec::new() }
    }

    /// Sets the sentence below the title.
    pub fn lead(&mut self, text: impl Into<Text>) {
        self.lead = Some(text.into());
    }

    /// Sets the text at the end in small letters: the program and the version that made the page.
    pub fn foot(&mut self, text: impl Into<Text>) {
        self.foot = Some(text.into());
    }

    /// Begins a part, which the table of contents names.
    pub fn heading(&mut self, text: impl Into<String>) {
        self.blocks.push(PageBlock::Heading(2, text.into()));
    }

    /// Begins a part of a part.
    pub fn subheading(&mut self, text: impl Into<String>) {
        self.blocks.push(PageBlock::Heading(3, text.into()));
    }

    /// Adds a paragraph.
    pub fn text(&mut self, text: impl Into<Text>) {
        self.blocks.push(PageBlock::Paragraph(text.into()));
    }

    /// Adds a paragraph set apart: a warning, or a limit of the measurement.
    pub fn note(&mut self, text: impl Into<Text>) {
        self.blocks.push(PageBlock::Note(text.into()));
    }

    /// Adds what others say, set off from our own words as a quotation.
    pub fn quotation(&mut self, text: impl Into<Text>) {
        self.blocks.push(PageBlock::Quotation(text.into()));
    }

    /// Adds a list.
    pub fn list<T: Into<Text>>(&mut self, items: impl IntoIterator<Item = T>) {
        self.blocks.push(PageBlock::List(items.into_iter().map(Into::into).collect()));
    }

    /// Adds lines to be shown as they are.
    pub fn code(&mut self, lines: impl Into<String>) {
        self.blocks.push(PageBlock::Code(lines.into()));
    }

    /// Adds figures to be seen first: what, how much, and a word on it, which may be empty.
    pub fn key_figures<S: Into<String>>(&mut self, figures: impl IntoIterator<Item = [S; 3]>) {
        let keys = figures.into_iter().map(|figure| figure.map(Into::into)).collect();
        self.blocks.push(PageBlock::Keys(keys));
    }

    /// Adds a table.
    pub fn table(&mut self, table: Table) {
        self.blocks.push(PageBlock::Table(table));
    }

    /// Adds a chart.
    pub fn chart(&mut self, chart: Chart) {
        self.blocks.push(PageBlock::Chart(Box::new(chart)));
    }

    /// Adds what `build` adds, folded away under `summary`. On paper it is unfolded.
    pub fn details(&mut self, summary: impl Into<String>, build: impl FnOnce(&mut Self)) {
        let start = self.blocks.len();
        build(self);
        let inner = self.blocks.split_off(start);
        self.blocks.push(PageBlock::Details(summary.into(), inner));
    }

    /// The charts of the page, in their order.
    pub fn charts(&self) -> Vec<&Chart> {
        charts_in(&self.blocks)
    }

    /// The whole page as the text of one file.
    pub fn to_html(&self) -> String {
        html::write(self)
    }

    /// Whether a file that starts so is such a page.
    pub fn recognises(start: &[u8]) -> bool {
        start.starts_with(html::START.as_bytes())
    }
}

fn charts_in(blocks: &[PageBlock]) -> Vec<&Chart> {
    let mut found = Vec::new();
    for block in blocks {
        match block {
            PageBlock::Chart(chart) => found.push(&**chart),
            PageBlock::Details(_, inner) => found.extend(charts_in(inner)),
            _ => {}
        }
    }
    found
}

/// A text as part of a file name or an address: small letters, digits and hyphens.
pub fn slug(text: &str) -> String {
    let mut slug = String::new();
    for character in text.chars().flat_map(char::to_lowercase) {
        match character {
            'a'..='z' | '0'..='9' => slug.push(character),
            '\'' | '’' => {}
            _ if slug.is_empty() || slug.ends_with('-') => {}
            _ => slug.push('-'),
        }
    }
    let slug = slug.trim_end_matches('-');
    let short: String = slug.chars().take(60).collect();
    let short = short.trim_end_matches('-');
    if short.is_empty() { "figure".to_owned() } else { short.to_owned() }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
