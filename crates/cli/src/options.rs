//! `punctual options`: the options of SRT as the program itself has them.

use std::fmt::Write;

use punctual_uri::{OptionStatus, UriOption, options};
use serde_json::json;

use crate::args::OptionsArgs;
use crate::exit::Failure;
use crate::print::print;

/// Prints the table.
pub(crate) fn run(args: &OptionsArgs) -> Result<(), Failure> {
    let chosen: Vec<UriOption> =
        options().filter(|option| args.words.iter().all(|word| has(option, word))).collect();
    if chosen.is_empty() {
        return Err(Failure::usage(format!("no option has `{}` in it", args.words.join(" "))));
    }
    print(if args.json { as_json(&chosen) } else { as_table(&chosen) })
}

fn has(option: &UriOption, word: &str) -> bool {
    let word = word.to_lowercase();
    let names = option.aliases.iter().chain([&option.name, &option.effect]);
    names.into_iter().any(|text| text.to_lowercase().contains(&word))
}

fn as_json(options: &[UriOption]) -> String {
    let list: Vec<_> = options
        .iter()
        .map(|option| {
            json!({
                "name": option.name,
                "aliases": option.aliases,
                "unit": option.unit,
                "default": option.default,
                "range": option.range,
                "concerns": option.concerns,
                "effect": option.effect,
                "status": status(option.status),
            })
        })
        .collect();
    format!("{:#}\n", serde_json::Value::from(list))
}

const fn status(status: OptionStatus) -> &'static str {
    match status {
        OptionStatus::Works => "works",
        OptionStatus::Ignored => "ignored",
        OptionStatus::Refused => "refused",
    }
}

/// A line for each option that works, columns under each other, and lists of the others.
fn as_table(options: &[UriOption]) -> String {
    let of = |status| options.iter().filter(move |option| option.status == status);
    let head = ["option", "unit", "default", "range", "concerns", "effect"].map(str::to_owned);
    let mut rows = vec![head];
    for option in of(OptionStatus::Works) {
        let mut effect = option.effect.to_owned();
        if !option.aliases.is_empty() {
            let _ = write!(effect, " (also {})", option.aliases.join(", "));
        }
        let cells = [option.name, option.unit, option.default, option.range, option.concerns];
        let [name, unit, default, range, concerns] = cells.map(str::to_owned);
        rows.push([name, unit, default, range, concerns, effect]);
    }
    let mut text = String::new();
    if rows.len() > 1 {
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
        let widths: Vec<usize> = (0..5).filter_map(width).collect();
        for row in &rows {
            for (cell, width) in row.iter().zip(&widths) {
                let _ = write!(text, "{cell:<width$}  ");
            }
            text += &row[5];
            text += "\n";
        }
    }
    for (title, wanted) in [
        ("Allowed and without effect", OptionStatus::Ignored),
        ("Refused, unless they ask for nothing", OptionStatus::Refused),
    ] {
        let mut others = of(wanted).peekable();
        if others.peek().is_some() {
            let _ = write!(text, "\n{title}:\n");
        }
        for option in others {
            let names =
                option.aliases.iter().fold(option.name.to_owned(), |all, alias| all + ", " + alias);
            let _ = writeln!(text, "  {names}: {}", option.effect);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(word: &str) -> Vec<UriOption> {
        options().filter(|option| has(option, word)).collect()
    }

    #[test]
    fn the_table_has_a_line_for_each_option_with_what_parsing_takes() {
        let table = as_table(&options().collect::<Vec<_>>());
        for option in options() {
            let line = table.lines().find(|line| line.trim_start().starts_with(option.name));
            let line = line.unwrap_or_else(|| panic!("{} is missing:\n{table}", option.name));
            assert!(line.contains(option.effect), "{line}");
        }
        let words: Vec<&str> = table.lines().next().unwrap().split_whitespace().collect();
        assert_eq!(words, ["option", "unit", "default", "range", "concerns", "effect"]);
        assert!(table.contains("both ends"), "{table}");
    }

    #[test]
    fn words_choose_by_name_other_name_and_effect() {
        assert!(chosen("ffs").iter().any(|option| option.name == "fc"));
        assert!(chosen("LATENCY").iter().any(|option| option.name == "peerlatency"));
        assert!(chosen("no such thing").is_empty());
    }

    #[test]
    fn json_has_every_option_with_all_columns() {
        let all: Vec<UriOption> = options().collect();
        let parsed: serde_json::Value = serde_json::from_str(&as_json(&all)).unwrap();
        let list = parsed.as_array().unwrap();
        assert_eq!(list.len(), all.len());
        let latency = list.iter().find(|option| option["name"] == "latency").unwrap();
        assert_eq!(latency["unit"], "ms");
        assert_eq!(latency["default"], "120");
        assert_eq!(latency["range"], "0 to 65535");
        assert_eq!(latency["concerns"], "both ends");
        assert_eq!(latency["status"], "works");
    }
}
