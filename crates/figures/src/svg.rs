//! Writing XML: escaped, with numbers of one decimal, the same bytes each time.

use std::fmt::{self, Display, Write as _};

/// XML as it grows.
#[derive(Debug, Default)]
pub(crate) struct Xml {
    text: String,
}

impl Xml {
    /// Begins an element with content.
    pub(crate) fn open(&mut self, name: &str, attributes: &[(&str, &dyn Display)]) {
        self.tag(name, attributes);
        self.text.push('>');
    }

    /// Ends it.
    pub(crate) fn close(&mut self, name: &str) {
        let _ = write!(self.text, "</{name}>");
    }

    /// An element with nothing in it.
    pub(crate) fn empty(&mut self, name: &str, attributes: &[(&str, &dyn Display)]) {
        self.tag(name, attributes);
        self.text.push_str("/>");
    }

    /// An element with text in it.
    pub(crate) fn leaf(&mut self, name: &str, attributes: &[(&str, &dyn Display)], text: &str) {
        self.open(name, attributes);
        self.text(text);
        self.close(name);
    }

    /// Text.
    pub(crate) fn text(&mut self, text: &str) {
        let _ = write!(self.text, "{}", Escaped(text));
    }

    /// Adds text that is XML already.
    pub(crate) fn raw(&mut self, xml: &str) {
        self.text.push_str(xml);
    }

    /// All that was written.
    pub(crate) fn finish(self) -> String {
        self.text
    }

    fn tag(&mut self, name: &str, attributes: &[(&str, &dyn Display)]) {
        let _ = write!(self.text, "<{name}");
        for (key, value) in attributes {
            let _ = write!(self.text, " {key}=\"{}\"", Escaped(&value.to_string()));
        }
    }
}

/// Text in which the characters with a meaning in XML and HTML are replaced. Characters that
/// neither can hold, such as control characters, become the replacement character.
pub(crate) struct Escaped<'a>(pub(crate) &'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\t' | '\n' => f.write_char(character)?,
                '\u{fffe}' | '\u{ffff}' => f.write_char('\u{fffd}')?,
                control if control.is_control() => f.write_char('\u{fffd}')?,
                other => f.write_char(other)?,
            }
        }
        Ok(())
    }
}

/// A length or a place in CSS pixels, to a tenth.
#[derive(Clone, Copy)]
pub(crate) struct Px(pub(crate) f64);

impl Display for Px {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = (self.0.clamp(-1e6, 1e6) * 10.0).round();
        if tenths % 10.0 == 0.0 {
            // Adding zero turns -0 into 0.
            write!(f, "{:.0}", tenths / 10.0 + 0.0)
        } else {
            write!(f, "{:.1}", tenths / 10.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_with_a_meaning_in_xml_are_escaped() {
        let mut xml = Xml::default();
        xml.leaf("t", &[("a", &"\"<&>\u{1}")], "</t>\u{0}\r\n'");
        assert_eq!(
            xml.finish(),
            "<t a=\"&quot;&lt;&amp;&gt;\u{fffd}\">&lt;/t&gt;\u{fffd}\u{fffd}\n'</t>"
        );
    }

    #[test]
    fn lengths_have_one_decimal_at_most() {
        let shown = [0.0, -0.01, 1.0, 1.04, 1.05, -2.26, f64::INFINITY].map(|l| Px(l).to_string());
        assert_eq!(shown, ["0", "0", "1", "1", "1.1", "-2.3", "1000000"]);
    }
}
