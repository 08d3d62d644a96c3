//! A line of figures that fits the terminal: the least important ones go first.

use std::fmt;

/// Figures in a line, each with its worth.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct LineText {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
struct Part {
    /// The text between the previous part and this one.
    gap: &'static str,
    text: String,
    worth: u8,
    /// Whether its start may be cut off: names differ at their ends.
    is_name: bool,
}

impl LineText {
    /// Adds a figure. Figures of the least worth are left out first, and of equal ones the last.
    pub fn push(&mut self, worth: u8, text: impl Into<String>) {
        self.parts.push(Part { gap: "  ", text: text.into(), worth, is_name: false });
    }

    /// Adds a name, whose end is shown if there is no room for the whole.
    pub fn push_name(&mut self, name: &str) {
        self.parts.push(Part { gap: "  ", text: name.to_owned(), worth: 0, is_name: true });
    }

    /// Adds another line after `title`, which stays as long as there is room for anything.
    pub fn append(&mut self, title: &str, other: Self) {
        let gap = if self.parts.is_empty() { "" } else { "  |  " };
        self.parts.push(Part { gap, text: title.to_owned(), worth: ALWAYS, is_name: false });
        let first = self.parts.len();
        self.parts.extend(other.parts);
        if let Some(part) = self.parts.get_mut(first) {
            part.gap = " ";
        }
    }

    /// The line with the parts that fit into `columns`.
    pub fn fit(mut self, columns: usize) -> String {
        while self.columns() > columns {
            let spare = self.columns() - columns;
            let name = self.parts.iter_mut().find(|part| part.is_name);
            if let Some(name) = name.filter(|name| width(&name.text) >= spare + LEAST_OF_NAME) {
                let letters = name.text.chars().skip(spare + 1);
                name.text = letters
                    .fold("…".to_owned(), |name, letter| name + letter.encode_utf8(&mut [0; 4]));
                continue;
            }
            let places = self.parts.iter().enumerate().rev();
            let least = places.filter(|(_, part)| part.worth < ALWAYS).min_by_key(|(_, p)| p.worth);
            match least.map(|(place, _)| place) {
                Some(place) if self.parts.len() > 1 => drop(self.parts.remove(place)),
                _ => break,
            }
        }
        self.to_string()
    }

    fn columns(&self) -> usize {
        width(&self.to_string())
    }
}

impl fmt::Display for LineText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, part) in self.parts.iter().enumerate() {
            let gap = if place == 0 { "" } else { part.gap };
            write!(f, "{gap}{}", part.text)?;
        }
        Ok(())
    }
}

fn width(text: &str) -> usize {
    text.chars().count()
}

/// The worth of a part that is never left out.
const ALWAYS: u8 = u8::MAX;

/// The least number of characters that still identify a name.
const LEAST_OF_NAME: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> LineText {
        let mut line = LineText::default();
        line.push(90, "5 Mb/s");
        line.push(50, "RTT 20 ms");
        line.push(70, "lost 2 %");
        line
    }

    #[test]
    fn the_least_important_figure_goes_first() {
        assert_eq!(line().fit(80), "5 Mb/s  RTT 20 ms  lost 2 %");
        assert_eq!(line().fit(26), "5 Mb/s  lost 2 %");
        assert_eq!(line().fit(10), "5 Mb/s");
        assert_eq!(line().fit(0), "5 Mb/s", "one figure stays");
    }

    #[test]
    fn of_two_lines_both_titles_stay_and_figures_go_from_the_end() {
        let mut both = LineText::default();
        both.append("in", line());
        both.append("out", line());
        let whole = "in 5 Mb/s  RTT 20 ms  lost 2 %  |  out 5 Mb/s  RTT 20 ms  lost 2 %";
        assert_eq!(both.clone().fit(66), whole);
        assert_eq!(both.clone().fit(65), "in 5 Mb/s  RTT 20 ms  lost 2 %  |  out 5 Mb/s  lost 2 %");
        assert_eq!(both.fit(30), "in 5 Mb/s  |  out 5 Mb/s");
    }

    #[test]
    fn a_name_loses_its_start_before_figures_go() {
        let mut line = line();
        line.push_name("recordings/2026/11/23/camera-1.ts");
        assert_eq!(line.clone().fit(48), "5 Mb/s  RTT 20 ms  lost 2 %  …/11/23/camera-1.ts");
        assert_eq!(line.fit(36), "5 Mb/s  RTT 20 ms  lost 2 %");
    }
}
