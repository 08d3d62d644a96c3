//! Values written as TOML.

use std::fmt::Write as _;
use std::time::Duration;

use crate::rows::Shown;

/// A text in quotes.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' => quoted += "\\\"",
            '\\' => quoted += "\\\\",
            '\n' => quoted += "\\n",
            '\t' => quoted += "\\t",
            '\r' => quoted += "\\r",
            control if control.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(control));
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

/// A key: bare if TOML allows it, else in quotes.
pub(crate) fn key(name: &str) -> String {
    let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if !name.is_empty() && name.bytes().all(is_bare) { name.to_owned() } else { quoted(name) }
}

/// A time in the largest unit that leaves no fraction: `120ms`, `1d`.
pub(crate) fn time(time: Duration) -> String {
    let nanos = time.as_nanos();
    let unit = UNITS.iter().find(|(_, size)| nanos > 0 && nanos.is_multiple_of(*size));
    match unit {
        None => "0s".to_owned(),
        Some((unit, size)) => format!("{}{unit}", nanos / size),
    }
}

/// A number of bytes in the largest unit of thousands that leaves no fraction.
pub(crate) fn bytes(bytes: u64) -> String {
    match [("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000)]
        .iter()
        .find(|(_, size)| bytes > 0 && bytes.is_multiple_of(*size))
    {
        Some((unit, size)) => format!("{}{unit}", bytes / size),
        None => format!("{bytes}B"),
    }
}

/// A list of texts.
pub(crate) fn list(texts: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let texts: Vec<_> = texts.into_iter().map(|text| quoted(text.as_ref())).collect();
    format!("[{}]", texts.join(", "))
}

/// A text as the value of a key.
pub(crate) fn shown_text<'a>(text: impl AsRef<str>) -> Shown<'a> {
    Shown::Toml(quoted(text.as_ref()))
}

/// A text as the value of a key that may have none.
pub(crate) fn shown_option<'a>(text: Option<impl AsRef<str>>) -> Shown<'a> {
    text.map_or(Shown::Nothing, shown_text)
}

/// A time as the value of a key.
pub(crate) fn shown_time<'a>(value: Duration) -> Shown<'a> {
    shown_text(time(value))
}

/// A number or a switch as the value of a key.
pub(crate) fn shown_plain<'a>(value: &impl ToString) -> Shown<'a> {
    Shown::Toml(value.to_string())
}

/// A list as the value of a key.
pub(crate) fn shown_list<'a>(texts: impl IntoIterator<Item = impl AsRef<str>>) -> Shown<'a> {
    Shown::Toml(list(texts))
}

const UNITS: [(&str, u128); 7] = [
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("min", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_values_are_read_back() {
        for nanos in [0, 1, 1_000, 120_000_000, 90_000_000_000, 86_400_000_000_000, 1_500_000_000] {
            let value = Duration::from_nanos(nanos);
            assert_eq!(punctual_units::parse_duration(&time(value)), Ok(value));
        }
        assert_eq!(time(Duration::from_secs(3600)), "1h");
        for count in [0, 1, 1_000, 1_500, 2_000_000, 5_000_000_000] {
            assert_eq!(punctual_units::parse_bytes(&bytes(count)), Ok(count));
        }
        let odd = "a\"b\\c\nd\u{1}é";
        let table = format!("{} = {}", key(odd), quoted(odd));
        let table = toml::de::DeTable::parse(&table).unwrap();
        let (name, value) = table.get_ref().iter().next().unwrap();
        assert_eq!((name.get_ref().as_ref(), value.get_ref().as_str()), (odd, Some(odd)));
        assert_eq!(
            (key("record-path").as_str(), key("live/*").as_str()),
            ("record-path", "\"live/*\"")
        );
    }
}
