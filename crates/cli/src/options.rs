//! `punctual options`: the options of SRT as the program itself has them.

use std::fmt::Write;

use punctual_uri::{OptionStatus, UriOption, options};
use serde_json::json;

use crate::args::OptionsArgs;
use crate::exit::Failure;
use crate::output::{print, print_wrapped};

/// Prints the table.
pub(crate) fn run(args: &OptionsArgs) -> Result<(), Failure> {
    let chosen = choose(&args.words);
    if chosen.is_empty() {
        let words: Vec<_> = args.words.iter().map(|word| punctual_uri::redacted(word)).collect();
        let words = words.join("` and `");
        let message = format!("no option has `{words}` in it; `punctual options` lists all");
        return Err(Failure::usage(message));
    }
    if args.json { print(as_json(&chosen)) } else { print_wrapped(&as_table(&chosen)) }
}

/// The options that several words name, if each names one; otherwise the options that have every
/// word.
fn choose(words: &[String]) -> Vec<UriOption> {
    let named = |word: &String| options().any(|option| is_called(&option, word));
    if words.len() > 1 && words.iter().all(named) {
        let wanted = |option: &UriOption| words.iter().any(|word| is_called(option, word));
        return options().filter(wanted).collect();
    }
    options().filter(|option| words.iter().all(|word| has(option, word))).collect()
}

fn is_called(option: &UriOption, name: &str) -> bool {
    option.aliases.iter().chain([&option.name]).any(|own| own.eq_ignore_ascii_case(name))
}

fn has(option: &UriOption, word: &str) -> bool {
    let word = word.to_lowercase();
    let texts = [&option.name, &option.concerns, &option.effect];
    option.aliases.iter().chain(texts).any(|text| text.to_lowercase().contains(&word))
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
                "phase": option.phase,
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
    let head = ["option", "unit", "default", "range", "concerns", "set", "effect"];
    let head = head.map(str::to_owned);
    let mut rows = vec![head];
    for option in of(OptionStatus::Works) {
        let mut effect = option.effect.to_owned();
        if !option.aliases.is_empty() {
            let _ = write!(effect, " (also {})", option.aliases.join(", "));
        }
        let UriOption { name, unit, default, range, concerns, phase, .. } = option;
        let [name, unit, default, range, concerns, phase] =
            [name, unit, default, range, concerns, phase].map(|cell| (*cell).to_owned());
        rows.push([name, unit, default, range, concerns, phase, effect]);
    }
    let mut text = String::new();
    if rows.len() > 1 {
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
        let widths: Vec<usize> = (0..6).filter_map(width).collect();
        for row in &rows {
            for (cell, width) in row.iter().zip(&widths) {
                let _ = write!(text, "{cell:<width$}  ");
            }
            text += &row[6];
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

    fn chosen(words: &str) -> Vec<UriOption> {
        choose(&words.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    fn names(words: &str) -> Vec<&'static str> {
        chosen(words).iter().map(|option| option.name).collect()
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
        assert_eq!(words, ["option", "unit", "default", "range", "concerns", "set", "effect"]);
        assert!(table.contains("both ends"), "{table}");
    }

    #[test]
    fn words_choose_by_name_other_name_and_effect() {
        assert!(chosen("ffs").iter().any(|option| option.name == "fc"));
        assert!(chosen("LATENCY").iter().any(|option| option.name == "peerlatency"));
        assert!(chosen("no such thing").is_empty());
    }

    #[test]
    fn every_further_word_narrows_the_choice_unless_all_are_names() {
        assert_eq!(names("latency PEER"), ["latency", "peerlatency"]);
        assert!(names("receiver loss").contains(&"lossmaxttl"));
        assert!(names("receiver loss").iter().all(|name| *name != "passphrase"));
        assert_eq!(names("ffs mss"), ["mss", "fc"]);
        assert!(chosen("latency nonsense").is_empty());
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
