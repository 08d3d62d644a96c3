//! Results with lines that fit the terminal.

use std::io;

use super::print;
use crate::exit::Failure;

/// Prints, with lines that are longer than the terminal is wide, if there is one, wrapped between
/// words.
pub fn print_wrapped(text: &str) -> Result<(), Failure> {
    match terminal_size::terminal_size_of(io::stdout()) {
        Some((terminal_size::Width(columns), _)) => print(wrapped(text, columns.into())),
        None => print(text),
    }
}

/// The text in lines of at most `width` columns, as far as words allow. The rest of a line begins
/// below its last column, or 4 columns further than the line if that leaves too little room; a line
/// without columns goes on where it begins.
fn wrapped(text: &str, width: usize) -> String {
    let lines = text.split('\n').map(|line| wrapped_line(line, width));
    lines.collect::<Vec<_>>().join("\n")
}

fn wrapped_line(line: &str, width: usize) -> String {
    let len = |text: &str| text.chars().count();
    if len(line) <= width {
        return line.to_owned();
    }
    let indent = len(line) - len(line.trim_start());
    let column = line.rfind("  ").map_or(0, |at| len(&line[..at]) + 2);
    let hanging = match column {
        _ if column <= indent => indent,
        _ if column + LEAST_COLUMN <= width => column,
        _ => indent + 4,
    };
    let (mut shown, mut used) = (String::new(), 0);
    for word in line.split_inclusive(' ') {
        if used > hanging && used + len(word.trim_end()) > width {
            shown.truncate(shown.trim_end().len());
            shown += "\n";
            shown += &" ".repeat(hanging);
            used = hanging;
        }
        shown += word;
        used += len(word);
    }
    shown
}

/// The least width of a last column in which the rest of a line stays.
const LEAST_COLUMN: usize = 24;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_wrapped_below_their_last_column() {
        let text = "name   effect\nmss    the largest datagram with all of its headers\nshort";
        let shown =
            "name   effect\nmss    the largest datagram\n       with all of its headers\nshort";
        assert_eq!(wrapped(text, 31), shown);
        let plain = "  a sentence without columns";
        assert_eq!(wrapped(plain, 16), "  a sentence\n  without\n  columns");
        let narrow = "  a key  with words that have no room";
        assert_eq!(
            wrapped(narrow, 16),
            "  a key  with\n      words that\n      have no\n      room"
        );
        assert_eq!(wrapped("averyverylongword", 5), "averyverylongword");
    }

    #[test]
    fn no_line_of_the_topics_is_wider_than_a_terminal() {
        let topic = wrapped(&punctual_uri::topic(), 80);
        let long =
            topic.lines().find(|line| line.chars().count() > 80 && line.trim_start().contains(' '));
        assert_eq!(long, None);
    }
}
