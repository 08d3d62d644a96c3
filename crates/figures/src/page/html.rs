//! From blocks to HTML.

use std::fmt::Display;

use super::{Align, Page, PageBlock, Span, Table, Text, slug};
use crate::chart::Chart;
use crate::chart::draw::{Look, draw};
use crate::svg::Xml;
use crate::theme::{chart_rules, variables};

/// The page as one file.
pub(crate) fn write(page: &Page) -> String {
    let mut writer = Writer::default();
    let mut xml = Xml::default();
    xml.raw(START);
    head(&mut xml, &page.title);
    xml.raw("<body>\n<header>");
    xml.leaf("h1", &[], &page.title);
    if let Some(lead) = &page.lead {
        xml.open("p", &[("class", &"lead")]);
        text(&mut xml, lead);
        xml.close("p");
    }
    xml.raw("</header>\n");
    contents(&mut xml, &page.blocks);
    xml.raw("<main>\n");
    writer.blocks(&mut xml, &page.blocks);
    xml.raw("</main>\n");
    if let Some(foot) = &page.foot {
        xml.raw("<footer>");
        text(&mut xml, foot);
        xml.raw("</footer>\n");
    }
    if writer.charts > 0 || writer.tables {
        xml.raw("<script>\n");
        xml.raw(include_str!("script.js"));
        xml.raw("</script>\n");
    }
    xml.raw("</body>\n</html>\n");
    xml.finish()
}

/// The start of every page, by which it is recognised. Nothing is ever fetched, whatever a file's
/// name or a plan's text says.
pub(super) const START: &str = "<!doctype html>
<html lang=\"en\">
<head>
<meta charset=\"utf-8\">
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">
<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
    style-src 'unsafe-inline'; script-src 'unsafe-inline'\">
";

fn head(xml: &mut Xml, title: &str) {
    xml.leaf("title", &[], title);
    let (light, dark) = (variables(false), variables(true));
    xml.raw(&format!(
        "\n<style>\n:root{{{light}}}\n@media screen and (prefers-color-scheme:dark)\
         {{:root{{{dark}}}}}\n{}\n{}</style>\n</head>\n",
        chart_rules(|name| format!("var(--{name})")),
        include_str!("style.css"),
    ));
}

/// The table of contents, for pages that have something to choose from.
fn contents(xml: &mut Xml, blocks: &[PageBlock]) {
    let mut anchors = Anchors::default();
    let mut parts = Vec::new();
    for block in blocks {
        if let PageBlock::Heading(level, text) = block {
            let anchor = anchors.next(text);
            if *level == 2 {
                parts.push((anchor, text));
            }
        }
    }
    if parts.len() < 3 {
        return;
    }
    xml.raw("<nav aria-label=\"Contents\"><ul>");
    for (anchor, text) in parts {
        xml.raw("<li>");
        xml.leaf("a", &[("href", &format!("#{anchor}"))], text);
        xml.raw("</li>");
    }
    xml.raw("</ul></nav>\n");
}

/// Anchors of headings, each its own.
#[derive(Default)]
struct Anchors {
    used: Vec<String>,
}

impl Anchors {
    fn next(&mut self, heading: &str) -> String {
        let base = slug(heading);
        let is_free = |anchor: &String| !self.used.contains(anchor);
        let mut numbered = (2..).map(|number| format!("{base}-{number}"));
        let anchor = match is_free(&base) {
            true => base.clone(),
            false => numbered.find(is_free).expect("numbers do not end"),
        };
        self.used.push(anchor.clone());
        anchor
    }
}

#[derive(Default)]
struct Writer {
    anchors: Anchors,
    charts: usize,
    tables: bool,
}

impl Writer {
    fn blocks(&mut self, xml: &mut Xml, blocks: &[PageBlock]) {
        for block in blocks {
            self.block(xml, block);
            xml.raw("\n");
        }
    }

    fn block(&mut self, xml: &mut Xml, block: &PageBlock) {
        match block {
            PageBlock::Heading(level, heading) => {
                let anchor = self.anchors.next(heading);
                let name = if *level == 2 { "h2" } else { "h3" };
                xml.open(name, &[("id", &anchor)]);
                xml.leaf("a", &[("href", &format!("#{anchor}"))], heading);
                xml.close(name);
            }
            PageBlock::Paragraph(paragraph) => wrapped(xml, "p", "", paragraph),
            PageBlock::Note(note) => wrapped(xml, "p", "note", note),
            PageBlock::Quotation(said) => wrapped(xml, "blockquote", "", said),
            PageBlock::List(items) => {
                xml.raw("<ul>");
                items.iter().for_each(|item| wrapped(xml, "li", "", item));
                xml.raw("</ul>");
            }
            PageBlock::Code(lines) => {
                xml.raw("<pre tabindex=\"0\"><code>");
                xml.text(lines);
                xml.raw("</code></pre>");
            }
            PageBlock::Keys(keys) => key_figures(xml, keys),
            PageBlock::Table(data) => {
                self.tables = true;
                table(xml, data);
            }
            PageBlock::Chart(chart) => self.chart(xml, chart),
            PageBlock::Details(summary, inner) => {
                xml.raw("<details>");
                xml.leaf("summary", &[], summary);
                xml.raw("\n");
                self.blocks(xml, inner);
                xml.raw("</details>");
            }
        }
    }

    /// A chart, drawn once for screens and paper and once for phones: one that is scaled down would
    /// have letters too small to read.
    fn chart(&mut self, xml: &mut Xml, chart: &Chart) {
        self.charts += 1;
        xml.raw("<figure>");
        xml.raw("<figcaption>");
        xml.leaf("strong", &[], &chart.title);
        if !chart.caption.is_empty() {
            xml.raw(" ");
            xml.text(&together(&chart.caption));
        }
        if !chart.quotation.is_empty() {
            xml.leaf("blockquote", &[], &together(&chart.quotation));
        }
        xml.raw("</figcaption>\n");
        for (class, width) in [("wide", WIDE), ("narrow", NARROW)] {
            let id = format!("{class}-{}", self.charts);
            xml.open("div", &[("class", &class)]);
            xml.raw(&draw(chart, &Look { width, alone: None, id }));
            xml.close("div");
            xml.raw("\n");
        }
        xml.raw("</figure>");
    }
}

fn key_figures(xml: &mut Xml, keys: &[[String; 3]]) {
    xml.raw("<dl class=\"keys\">");
    for [label, value, note] in keys {
        xml.raw("<div>");
        xml.leaf("dt", &[], label);
        xml.leaf("dd", &[], value);
        if !note.is_empty() {
            xml.leaf("dd", &[("class", &"why")], note);
        }
        xml.raw("</div>");
    }
    xml.raw("</dl>");
}

fn table(xml: &mut Xml, data: &Table) {
    if !data.caption.is_empty() {
        xml.leaf("p", &[("class", &"caption")], &together(&data.caption));
    }
    // The box can be scrolled by keys, too.
    let label = if data.caption.is_empty() { "Table" } else { &data.caption };
    let dense = if data.columns.len() > MOST_ROOMY { " dense" } else { "" };
    let long = if data.rows.len() > MOST_IN_SIGHT { " long" } else { "" };
    let kind = format!("table{dense}{long}");
    xml.open("div", &[("class", &kind), ("tabindex", &"0"), ("aria-label", &label)]);
    xml.raw("<table><thead>");
    if data.columns.iter().any(|column| !column.group.is_empty()) {
        xml.raw("<tr class=\"groups\">");
        for same in data.columns.chunk_by(|one, other| one.group == other.group) {
            let name = &same[0].group;
            let class = if name.is_empty() { "" } else { "group" };
            xml.leaf("th", &[("colspan", &same.len()), ("class", &class)], name);
        }
        xml.raw("</tr>");
    }
    xml.raw("<tr>");
    for column in &data.columns {
        xml.leaf("th", &[("scope", &"col"), ("class", &class(column.align))], &column.name);
    }
    xml.raw("</tr></thead>\n<tbody>");
    for row in &data.rows {
        xml.raw("<tr>");
        for index in 0..data.columns.len().max(row.len()) {
            let align = data.columns.get(index).map_or(Align::Left, |column| column.align);
            let attributes: [(&str, &dyn Display); 1] = [("class", &class(align))];
            xml.open("td", &attributes);
            match row.get(index) {
                Some(cell) if align == Align::Right => number(xml, cell),
                Some(cell) => text(xml, cell),
                None => {}
            }
            xml.close("td");
        }
        xml.raw("</tr>\n");
    }
    xml.raw("</tbody></table></div>");
}

fn class(align: Align) -> &'static str {
    match align {
        Align::Left => "t",
        Align::Right => "n",
    }
}

fn wrapped(xml: &mut Xml, name: &str, class: &str, content: &Text) {
    let attributes: [(&str, &dyn Display); 1] = [("class", &class)];
    xml.open(name, if class.is_empty() { &[] } else { &attributes });
    text(xml, content);
    xml.close(name);
}

/// A number; the interval behind it is kept whole where the cell breaks.
fn number(xml: &mut Xml, cell: &Text) {
    let [Span::Plain(plain)] = cell.spans.as_slice() else { return text(xml, cell) };
    let end = [" ±", " ("].iter().filter_map(|start| plain.find(start)).min();
    match end.map(|end| plain.split_at(end)) {
        Some((value, interval)) => {
            xml.text(&together(value));
            xml.raw(" ");
            xml.leaf("span", &[], &together(interval.trim_start()));
        }
        None => xml.text(&together(plain)),
    }
}

/// A text in which a number and its unit stay on one line.
fn together(text: &str) -> String {
    let mut whole = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(space) = rest.find(' ') {
        let (before, after) = (&rest[..space], &rest[space + 1..]);
        let word = after.split(|c: char| c.is_whitespace() || ",;.:)".contains(c)).next();
        let is_unit = before.ends_with(|c: char| c.is_ascii_digit())
            && word.is_some_and(|word| UNITS.contains(&word));
        let joined = is_unit || before.ends_with('±');
        whole.push_str(before);
        whole.push(if joined { '\u{a0}' } else { ' ' });
        rest = after;
    }
    whole + rest
}

fn text(xml: &mut Xml, content: &Text) {
    for span in &content.spans {
        match span {
            Span::Plain(plain) => xml.text(&together(plain)),
            Span::Strong(strong) => xml.leaf("strong", &[], &together(strong)),
            Span::Code(code) => xml.leaf("code", &[], code),
            Span::Link(link, address) if leads_somewhere(address) => {
                xml.leaf("a", &[("href", address)], link);
            }
            Span::Link(link, _) => xml.text(link),
        }
    }
}

/// Whether an address may be followed: no script, no file.
fn leads_somewhere(address: &str) -> bool {
    ["https://", "http://", "#"].iter().any(|start| address.starts_with(start))
}

/// Tables of more columns are set closer.
const MOST_ROOMY: usize = 6;

/// Tables of more rows are scrolled in a box, so that their head stays in sight.
const MOST_IN_SIGHT: usize = 40;

/// Units, which stay on one line with the number before them.
const UNITS: [&str; 9] = ["%", "ms", "µs", "s", "B", "kb/s", "Mb/s", "Gb/s", "packets/s"];

/// Widths of a chart in CSS pixels: on wide screens and paper, and on phones.
const WIDE: f64 = 820.0;
const NARROW: f64 = 340.0;
