//! Tables and texts as Markdown, for pages that are read where HTML is not.

use super::table::{Align, Table, TableColumn};
use super::text::{Span, Text};

/// A table as GitHub-flavoured Markdown.
pub(super) fn table(table: &Table) -> String {
    let mut lines = Vec::new();
    if !table.caption.is_empty() {
        lines.push(format!("**{}**", escaped(&table.caption)));
        lines.push(String::new());
    }
    lines.push(row(table.columns.iter().map(head)));
    lines.push(row(table.columns.iter().map(|column| match column.align {
        Align::Left => "---".to_owned(),
        Align::Right => "--:".to_owned(),
    })));
    for cells in &table.rows {
        let empty = table.columns.len().saturating_sub(cells.len());
        let cells = cells.iter().map(text);
        lines.push(row(cells.chain(std::iter::repeat_n(String::new(), empty))));
    }
    lines.join("\n") + "\n"
}

/// A text as Markdown in one line.
pub(super) fn text(text: &Text) -> String {
    let span = |span: &Span| match span {
        Span::Plain(text) => escaped(text),
        Span::Strong(text) => format!("**{}**", escaped(text)),
        Span::Code(text) => format!("`{}`", text.replace('`', "'")),
        Span::Link(text, address) => format!("[{}]({address})", escaped(text)),
    };
    text.spans.iter().map(span).collect()
}

fn head(column: &TableColumn) -> String {
    let parts = [&column.group, &column.name].map(|part| escaped(part));
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": ")
}

fn row(cells: impl Iterator<Item = String>) -> String {
    let cells: Vec<String> = cells.collect();
    format!("| {} |", cells.join(" | "))
}

/// Text whose signs do not count as Markdown, in one line.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' => escaped.push(' '),
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' => escaped.extend(['\\', c]),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_a_caption_a_head_with_groups_and_rows() {
        let columns = [
            TableColumn::text("loss"),
            TableColumn::number("mean").group("retransmitted"),
            TableColumn::number("most").group("retransmitted"),
        ];
        let mut table = Table::new("Table 1. Overhead, %", columns);
        table.row(["5 %", "9.7 ± 0.1", "10"]);
        table.row(["10 %"]);
        let expected = "\
**Table 1. Overhead, %**

| loss | retransmitted: mean | retransmitted: most |
| --- | --: | --: |
| 5 % | 9.7 ± 0.1 | 10 |
| 10 % |  |  |
";
        assert_eq!(table.to_markdown(), expected);
    }

    #[test]
    fn signs_of_markdown_in_a_text_stay_signs() {
        let text = Text::from("a|b *c* <d>\n_e_").strong("f|g").code("h|`i").link("j", "#k");
        let expected = r"a\|b \*c\* \<d\> \_e\_**f\|g**`h|'i`[j](#k)";
        assert_eq!(text.to_markdown(), expected);
    }
}
