//! A manual page.

use clap_mangen::roff::{Roff, roman};

/// A manual page and its place.
pub(crate) struct ManualPage {
    pub(crate) name: String,
    /// 1 for commands, 5 for files.
    pub(crate) section: u8,
    /// The page in roff.
    pub(crate) text: String,
}

impl ManualPage {
    pub(crate) fn file_name(&self) -> String {
        format!("{}.{}", self.name, self.section)
    }
}

/// Adds a text whose lines and indents stay. A line without indent that ends with a colon, such as
/// `Examples:`, is a heading.
pub(crate) fn add_lines(roff: &mut Roff, text: &str) {
    let mut is_filled = true;
    for line in text.lines() {
        match line.strip_suffix(':').filter(|it| !it.starts_with(' ') && it.len() < 30) {
            Some(heading) => {
                if !is_filled {
                    roff.control("fi", []);
                }
                is_filled = true;
                roff.control("SH", [heading.to_uppercase().as_str()]);
            }
            None if is_filled && line.is_empty() => {}
            None => {
                if is_filled {
                    roff.control("nf", []);
                }
                is_filled = false;
                roff.text([roman(line)]);
            }
        }
    }
    if !is_filled {
        roff.control("fi", []);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_examples_stay_apart_below_their_heading() {
        let mut roff = Roff::new();
        add_lines(&mut roff, "Examples:\n  punctual demo\n  punctual uri\n\nExit codes:\n  0 done");
        let text = roff.to_roff();
        let expected = ".SH EXAMPLES\n.nf\n  punctual demo\n  punctual uri\n\n.fi\n";
        assert!(text.starts_with(expected), "{text}");
        assert!(text.ends_with(".SH \"EXIT CODES\"\n.nf\n  0 done\n.fi\n"), "{text}");
    }
}
