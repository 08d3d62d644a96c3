//! Plans without their passphrases, for folders of results and for reports.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use crate::plan::keys;

/// A plan's text with every passphrase replaced, so that it still is a plan.
pub(crate) fn hidden(text: &str) -> String {
    let Ok(table) = DeTable::parse(text) else {
        // No plan has such a text, as it was read before it is written.
        return text.lines().map(|line| punctual_uri::redacted_line(line) + "\n").collect();
    };
    let mut found = Vec::new();
    in_table(table.get_ref(), &mut found);
    found.sort_by_key(|found| std::cmp::Reverse(found.span.start));
    let mut shown = text.to_owned();
    for FoundSecret { span, is_whole } in found {
        let value = without_queries(&shown[span.clone()]).filter(|_| !is_whole);
        shown.replace_range(span, &value.unwrap_or_else(|| format!("\"{PLACEHOLDER}\"")));
    }
    shown.split_inclusive('\n').map(comment).collect()
}

/// A word of a command line, such as `passphrase=hush`, likewise.
pub(crate) fn hidden_word(word: &str) -> String {
    let Some((key, value)) = word.split_once('=') else { return word.to_owned() };
    if !keys::is_secret(key.trim()) {
        return without_queries(word).unwrap_or_else(|| word.to_owned());
    }
    let entry = format!("{SECRET} = {value}");
    let value = match DeTable::parse(&entry) {
        Ok(_) => hidden(&entry)[SECRET.len() + 3..].to_owned(),
        Err(_) if value.is_empty() => String::new(),
        Err(_) => PLACEHOLDER.to_owned(),
    };
    format!("{key}={value}")
}

/// A secret, or a text with one in it.
struct FoundSecret {
    span: Range<usize>,
    is_whole: bool,
}

fn in_table(table: &DeTable<'_>, found: &mut Vec<FoundSecret>) {
    for (key, value) in table {
        let is_secret = keys::is_secret(key.get_ref());
        in_value(value.get_ref(), value.span(), is_secret, found);
    }
}

fn in_value(
    value: &DeValue<'_>,
    span: Range<usize>,
    is_secret: bool,
    found: &mut Vec<FoundSecret>,
) {
    match value {
        DeValue::Table(inner) => in_table(inner, found),
        DeValue::Array(values) => {
            for value in values {
                in_value(value.get_ref(), value.span(), is_secret, found);
            }
        }
        DeValue::String(text) if text.is_empty() => {}
        DeValue::String(text) if !is_secret && place_in_query(text).is_none() => {}
        DeValue::String(_) => found.push(FoundSecret { span, is_whole: is_secret }),
        _ if is_secret => found.push(FoundSecret { span, is_whole: true }),
        _ => {}
    }
}

/// A text with the passphrases of its queries replaced, as in command lines of other programs;
/// `None` if it has no passphrase.
fn without_queries(text: &str) -> Option<String> {
    let mut shown = String::new();
    let mut rest = text;
    while let Some(start) = place_in_query(rest) {
        let (before, after) = rest.split_at(start);
        let end = after.find([' ', '&', '"', '\'', '\n']).unwrap_or(after.len());
        shown += before;
        // A placeholder is not a passphrase.
        shown += if after.starts_with('{') { &after[..end] } else { PLACEHOLDER };
        rest = &after[end..];
    }
    (!shown.is_empty()).then(|| shown + rest)
}

/// Where the value of a query's passphrase begins.
fn place_in_query(text: &str) -> Option<usize> {
    let key = format!("{SECRET}=");
    text.to_ascii_lowercase().find(&key).map(|start| start + key.len())
}

/// A line; of a comment that is an entry, without its secret.
fn comment(line: &str) -> String {
    match line.trim_start().strip_prefix('#') {
        Some(entry) if DeTable::parse(entry).is_ok() => {
            let start = &line[..line.len() - entry.len()];
            start.to_owned() + &hidden(entry)
        }
        _ => line.to_owned(),
    }
}

const SECRET: &str = "passphrase";

/// The replacement of a passphrase. It is as long as one must be, so that the plan can be run.
const PLACEHOLDER: &str = "…………";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_keeps_everything_but_its_passphrases() {
        let plan = r#"
title = "About passphrases"
# passphrase = "hush, hush, hush"
# A passphrase has 10 bytes or more.
[options]
sender.passphrase = "hush, passphrase=hush"
Passphrase = ["", 'hush, hush, hush', 1234567890]
latency = "2 × RTT"
[external]
sender = "there srt://h:1?passphrase=hush,hush,hush&fc=9 -v"
receiver = "here 'srt://h:{port}?passphrase={query}'"
"#;
        let expected = r#"
title = "About passphrases"
# passphrase = "…………"
# A passphrase has 10 bytes or more.
[options]
sender.passphrase = "…………"
Passphrase = ["", "…………", "…………"]
latency = "2 × RTT"
[external]
sender = "there srt://h:1?passphrase=…………&fc=9 -v"
receiver = "here 'srt://h:{port}?passphrase={query}'"
"#;
        assert_eq!(hidden(plan), expected);
        assert_eq!(hidden(expected), expected);
    }

    #[test]
    fn a_word_of_a_command_line_keeps_its_key() {
        for (word, shown) in [
            ("loss=5%", "loss=5%"),
            ("passphrase=hush, hush, hush", "passphrase=…………"),
            ("options.sender.passphrase=\"hush, hush\"", "options.sender.passphrase=\"…………\""),
            ("passphrase=[\"\", \"hush, hush\"]", "passphrase=[\"\", \"…………\"]"),
            ("passphrase=", "passphrase="),
            ("sender=a srt://h:1?passphrase=hush,hush b", "sender=a srt://h:1?passphrase=………… b"),
        ] {
            assert_eq!(hidden_word(word), shown);
        }
    }
}
