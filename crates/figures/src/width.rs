//! How wide a text will be. The font is the reader's, so this is an estimate, on the large side.

/// Width of `text` in a sans-serif font of `size` pixels.
pub(crate) fn text_width(text: &str, size: f64) -> f64 {
    text.chars().map(share).sum::<f64>() * size
}

/// Cuts a text into lines that are at most `width` wide, between words where possible.
pub(crate) fn wrap(text: &str, size: f64, width: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if text_width(line, size) + text_width(word, size) + size / 3.0 <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// A text that is at most `width` wide: its end is cut off where it is wider.
pub(crate) fn shorten(text: &str, size: f64, width: f64) -> String {
    if text_width(text, size) <= width {
        return text.to_owned();
    }
    let room = width - text_width("…", size);
    let mut used = 0.0;
    let fits = |character: &char| {
        used += share(*character) * size;
        used <= room
    };
    let mut short: String = text.chars().take_while(fits).collect();
    short.push('…');
    short
}

/// Width of a character, as a share of the font's size: those of DejaVu Sans, which is wider than
/// what most systems have.
fn share(character: char) -> f64 {
    match character {
        'i' | 'j' | 'l' | '\'' | '|' => 0.3,
        ' ' | ',' | '.' | ':' | ';' | '!' | '/' | 'I' => 0.34,
        'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '-' | '"' => 0.41,
        'm' | 'w' | 'M' | 'W' | '%' | '@' | '…' => 0.95,
        'A'..='Z' | '=' | '+' | '<' | '>' | '~' | '&' | '×' | '≥' | '≤' => 0.73,
        _ if character.is_ascii() || character < '\u{1100}' => 0.62,
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_between_words_and_words_are_never_lost() {
        let text = "the receiver drops none though the sender drops some";
        let lines = wrap(text, 12.0, 120.0);
        assert!(lines.len() > 2 && lines.iter().all(|line| text_width(line, 12.0) <= 120.0));
        assert_eq!(lines.join(" "), text);
        assert_eq!(wrap("", 12.0, 10.0), [""; 0]);
    }

    #[test]
    fn a_shortened_text_fits_and_says_that_it_is() {
        let short = shorten("a name that is much too long", 12.0, 60.0);
        assert!(short.ends_with('…') && text_width(&short, 12.0) <= 60.0, "{short}");
        assert_eq!(shorten("short", 12.0, 60.0), "short");
    }
}
