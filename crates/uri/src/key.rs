//! Tables of the keys of a URI's query: one row has the spelling, the meaning of the value and the
//! effect of a key. The parser, the help topic and the tests use the same rows.

use std::borrow::Cow;

use punctual::{AppliesTo, OptionInfo};

use crate::error::ValueError;

/// One key of the query of URIs that become a `T`.
pub(crate) struct UriKey<T> {
    /// The name, lower case: libsrt's if libsrt has the option.
    pub(crate) name: &'static str,
    /// Other names, from FFmpeg and the SRT tools.
    pub(crate) aliases: &'static [&'static str],
    /// The form of the value: unit and range, and the default unless `default` has it.
    pub(crate) value: &'static str,
    /// The default, for an option of a table of the library.
    pub(crate) default: Option<&'static str>,
    /// The unit of bare numbers, or the kind of the value.
    pub(crate) unit: &'static str,
    /// The end that the key applies to; `None` if there is none to name.
    pub(crate) applies_to: Option<AppliesTo>,
    /// The effect, in one line, for the help.
    pub(crate) about: &'static str,
    /// The effect, as code.
    pub(crate) effect: KeyEffect<T>,
}

impl<T> UriKey<T> {
    /// A key without a unit, a default or an end that it applies to.
    pub(crate) const fn new(
        name: &'static str,
        aliases: &'static [&'static str],
        value: &'static str,
        about: &'static str,
        effect: KeyEffect<T>,
    ) -> Self {
        Self { name, aliases, value, unit: "", applies_to: None, default: None, about, effect }
    }

    /// The key of an option that the library describes.
    pub(crate) const fn described(
        info: &OptionInfo,
        set: fn(&mut T, &'static str, &str) -> Result<(), ValueError>,
    ) -> Self {
        Self {
            unit: info.unit,
            applies_to: Some(info.applies_to),
            default: Some(info.default),
            ..Self::new(
                info.name,
                info.aliases,
                info.range.text(),
                info.effect,
                KeyEffect::Option(set),
            )
        }
    }

    /// Whether the key has an effect.
    pub(crate) const fn works(&self) -> bool {
        matches!(self.effect, KeyEffect::Set(_) | KeyEffect::Option(_))
    }

    /// The form of the value and the default, for the help and for errors.
    pub(crate) fn form(&self) -> Cow<'static, str> {
        match self.default {
            Some(default) if default.contains(' ') => {
                format!("{}; default: {default}", self.value).into()
            }
            Some(default) => format!("{}; default {default}", self.value).into(),
            None => self.value.into(),
        }
    }
}

/// The effect of a key.
pub(crate) enum KeyEffect<T> {
    /// The key changes the target.
    Set(fn(&mut T, &str) -> Result<(), ValueError>),
    /// The key changes the option of its name.
    Option(fn(&mut T, &'static str, &str) -> Result<(), ValueError>),
    /// The key is refused, since its feature does not exist here; only values that do not need the
    /// feature are accepted.
    Refused { harmless: &'static [&'static str], reason: &'static str },
    /// The key is accepted and ignored, since it is not needed here.
    Ignored,
}

/// The row of a key with this name, or with it as another name.
pub(crate) fn find<'a, T>(table: &'a [UriKey<T>], name: &str) -> Option<&'a UriKey<T>> {
    table.iter().find(|key| key.name == name || key.aliases.contains(&name))
}

/// All names of the keys of a table.
pub(crate) fn names<T>(table: &[UriKey<T>]) -> impl Iterator<Item = &'static str> {
    table.iter().flat_map(|key| key.aliases.iter().copied().chain([key.name]))
}

/// Parses a switch: 1, yes, on, true, or no value; 0, no, off, false.
pub(crate) fn switch(value: &str) -> Result<bool, ValueError> {
    match value.to_lowercase().as_str() {
        "" | "1" | "yes" | "on" | "true" => Ok(true),
        "0" | "no" | "off" | "false" => Ok(false),
        _ => Err(ValueError("it is a switch: 1, yes, on or true; 0, no, off or false".to_owned())),
    }
}

/// A whole number from `least` to `most`, decimal or hexadecimal after `0x`.
pub(crate) fn number(value: &str, least: u32, most: u32) -> Result<u32, ValueError> {
    let parsed = match value.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => value.parse(),
    };
    match parsed {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => Err(ValueError(format!("it must be a whole number, {least} to {most}"))),
    }
}

/// A number of bytes that a `setsockopt` takes.
pub(crate) fn buffer_bytes(value: &str) -> Result<usize, ValueError> {
    let bytes = punctual_units::parse_bytes_in(value, 1)?;
    usize::try_from(bytes)
        .ok()
        .filter(|bytes| (1..=MAX_SOCKET_BUFFER).contains(bytes))
        .ok_or_else(|| ValueError("it must be 1 byte to 1 GiB".to_owned()))
}

/// Kernels count socket buffers in 32-bit integers.
const MAX_SOCKET_BUFFER: usize = 1 << 30;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_switches_and_numbers_list_the_valid_values() {
        assert_eq!(switch("YES"), Ok(true));
        assert_eq!(switch(""), Ok(true));
        assert_eq!(switch("off"), Ok(false));
        assert!(switch("maybe").unwrap_err().0.contains("0, no, off or false"));
        assert_eq!(number("0xB8", 0, 255), Ok(184));
        assert_eq!(number("256", 0, 255).unwrap_err().0, "it must be a whole number, 0 to 255");
        assert_eq!(buffer_bytes("64KiB"), Ok(65_536));
        assert!(buffer_bytes("2GiB").is_err());
        assert!(buffer_bytes("0").is_err());
    }
}
