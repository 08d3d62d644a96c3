//! Text of others, as people are shown it.

use std::borrow::Cow;
use std::fmt::Write as _;

/// `text` with every character escaped that would break a line, move a terminal's cursor, turn the
/// direction of what follows or hide: `a\nb`. For names that somebody else chose.
pub fn one_line(text: &str) -> Cow<'_, str> {
    if !text.contains(breaks) {
        return Cow::Borrowed(text);
    }
    let mut line = String::with_capacity(text.len() + 8);
    for letter in text.chars() {
        if breaks(letter) {
            let _ = write!(line, "{}", letter.escape_default());
        } else {
            line.push(letter);
        }
    }
    Cow::Owned(line)
}

/// `text` without the numbers of errors that the standard library puts behind the system's words:
/// `No such file or directory (os error 2)` is said twice.
pub fn without_os_error(text: &str) -> Cow<'_, str> {
    const MARK: &str = " (os error ";
    let Some((before, after)) = text.split_once(MARK) else { return Cow::Borrowed(text) };
    let rest = match after.split_once(')') {
        Some((number, rest)) if number.bytes().all(|byte| byte.is_ascii_digit()) => rest,
        _ => return Cow::Borrowed(text),
    };
    Cow::Owned(format!("{before}{}", without_os_error(rest)))
}

fn breaks(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{2028}' | '\u{2029}')
        || turns(letter)
        || hides(letter)
}

/// Whether a character sets the direction of others: Unicode's property `Bidi_Control`.
const fn turns(letter: char) -> bool {
    matches!(
        letter,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    )
}

/// Whether a character is not seen, so that two different names look the same: those of Unicode's
/// category `Cf` that no script needs to spell its words. Persian words and emoji have joiners.
const fn hides(letter: char) -> bool {
    matches!(
        letter,
        '\u{ad}' | '\u{180e}' | '\u{200b}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e007f}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_systems_error_is_left_out() {
        let error = std::io::Error::from_raw_os_error(2).to_string();
        assert!(error.ends_with("(os error 2)"), "{error}");
        assert_eq!(without_os_error(&error), error.trim_end_matches(" (os error 2)"));
        let twice = "a: gone (os error 2); b: full (os error 28), ended";
        assert_eq!(without_os_error(twice), "a: gone; b: full, ended");
        assert_eq!(without_os_error("(os error x) (os error "), "(os error x) (os error ");
    }

    #[test]
    fn line_breaks_and_control_characters_are_escaped() {
        assert_eq!(one_line("live/é ✓"), "live/é ✓");
        assert_eq!(one_line("a\nb\r\t\0"), "a\\nb\\r\\t\\u{0}");
        assert_eq!(one_line("\u{1b}[2J\u{9b}\u{7f}"), "\\u{1b}[2J\\u{9b}\\u{7f}");
        assert_eq!(one_line("a\u{202e}b\u{2028}"), "a\\u{202e}b\\u{2028}");
    }

    #[test]
    fn no_character_turns_the_direction_of_others() {
        // Unicode's property Bidi_Control.
        let controls = "\u{61c}\u{200e}\u{200f}\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2066}\
                        \u{2067}\u{2068}\u{2069}";
        for control in controls.chars() {
            let name = format!("a{control}b");
            assert_eq!(one_line(&name), format!("a\\u{{{:x}}}b", u32::from(control)));
        }
    }

    #[test]
    fn invisible_characters_are_escaped_and_words_keep_their_joiners() {
        assert_eq!(one_line("admin\u{200b}\u{2060}\u{feff}"), "admin\\u{200b}\\u{2060}\\u{feff}");
        assert_eq!(one_line("so\u{ad}ft\u{e0041}"), "so\\u{ad}ft\\u{e0041}");
        let joined = "\u{645}\u{6cc}\u{200c}\u{62e} \u{1f469}\u{200d}\u{1f680}";
        assert_eq!(one_line(joined), joined);
    }
}
