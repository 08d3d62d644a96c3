//! Tables of the keys of a URI's query: one row has the spelling, the meaning of the value and the
//! effect of a key. The parser, the help topic and the tests use the same rows.

use std::borrow::Cow;

use punctual::{AppliesTo, OptionInfo, TypedOption};

use crate::error::{Problem, UriError, ValueError};
use crate::parts::Parts;
use crate::redact::{
    is_known, is_secret, is_stream_id, mentions_passphrase, redacted_stream_id, shown_key,
};
use crate::suggest::did_you_mean;

/// One key of the query of URIs that become a `T`.
pub(crate) struct Key<T> {
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
    pub(crate) effect: Effect<T>,
}

impl<T> Key<T> {
    /// A key without a unit, a default or an end that it applies to.
    pub(crate) const fn new(
        name: &'static str,
        aliases: &'static [&'static str],
        value: &'static str,
        about: &'static str,
        effect: Effect<T>,
    ) -> Self {
        Self { name, aliases, value, unit: "", applies_to: None, default: None, about, effect }
    }

    /// The key of an option that the library describes.
    pub(crate) const fn described(
        info: &OptionInfo,
        aliases: &'static [&'static str],
        set: fn(&mut T, &str) -> Result<(), ValueError>,
    ) -> Self {
        Self {
            unit: info.unit,
            applies_to: Some(info.applies_to),
            default: Some(info.default),
            ..Self::new(info.name, aliases, info.range, info.effect, Effect::Set(set))
        }
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

/// The description of the option with this name in a table of the library.
///
/// Panics if the table does not have it: that is an error of compilation in the table of keys.
pub(crate) const fn described<T>(
    table: &'static [TypedOption<T>],
    name: &str,
) -> &'static OptionInfo {
    let mut index = 0;
    while index < table.len() {
        let info = &table[index].info;
        if is_same(info.name.as_bytes(), name.as_bytes()) {
            return info;
        }
        index += 1;
    }
    panic!("the table of options has no option of this name")
}

const fn is_same(a: &[u8], b: &[u8]) -> bool {
    let mut index = 0;
    while index < a.len() && index < b.len() && a[index] == b[index] {
        index += 1;
    }
    index == a.len() && index == b.len()
}

/// The effect of a key.
pub(crate) enum Effect<T> {
    /// The key changes the target.
    Set(fn(&mut T, &str) -> Result<(), ValueError>),
    /// The key is refused, since its feature does not exist here; only values that do not need the
    /// feature are accepted.
    Refused { harmless: &'static [&'static str], reason: &'static str },
    /// The key is accepted and ignored, since it is not needed here.
    Ignored,
}

/// Applies the query of `parts` to `target`, key by key, by the rows of `table`.
pub(crate) fn apply_query<T>(
    table: &[Key<T>],
    parts: &Parts<'_>,
    target: &mut T,
) -> Result<(), UriError> {
    let mut given: Vec<&str> = Vec::new();
    for (written, value) in &parts.query {
        let key = find(table, written).ok_or_else(|| parts.error(unknown(table, written)))?;
        if given.contains(&key.name) {
            let alias = match written.as_str() {
                same if same == key.name => String::new(),
                alias => format!(" (`{alias}` is another name of it)"),
            };
            return Err(parts.error(Problem::GivenTwice { key: key.name.to_owned(), alias }));
        }
        given.push(key.name);
        apply(key, written, value, target).map_err(|problem| parts.error(problem))?;
    }
    Ok(())
}

/// Applies one key of `table`, under any of its names, to `target`.
pub(crate) fn apply_one<T>(
    table: &[Key<T>],
    name: &str,
    value: &str,
    target: &mut T,
) -> Result<(), Problem> {
    let key = find(table, name).ok_or_else(|| unknown(table, name))?;
    apply(key, name, value, target)
}

/// Applies `key`, written as `name`, with this value.
fn apply<T>(key: &Key<T>, name: &str, value: &str, target: &mut T) -> Result<(), Problem> {
    let hides = is_secret(key.name) || mentions_passphrase(value);
    let shown = match key.name {
        _ if hides => "…".to_owned(),
        id if is_stream_id(id) => redacted_stream_id(value),
        _ => value.to_owned(),
    };
    let (name, owned) = (name.to_owned(), shown);
    match key.effect {
        Effect::Set(set) => set(target, value).map_err(|fault| {
            // With a wrong separator, a passphrase may be part of the value of another key.
            let fault = match hides && !is_secret(key.name) {
                true => {
                    ValueError("it seems to contain a passphrase; `&` separates keys".to_owned())
                }
                false => fault,
            };
            let fault = match !hides && follows_separator(value) {
                true => ValueError("`&` separates keys".to_owned()),
                false => with_form(fault, &key.form()),
            };
            Problem::BadValue { key: name, value: owned, fault }
        }),
        Effect::Refused { harmless, reason } => {
            if value.is_empty() || harmless.contains(&value.to_lowercase().as_str()) {
                return Ok(());
            }
            Err(Problem::NotHere { key: name, value: owned, reason })
        }
        Effect::Ignored => Ok(()),
    }
}

/// Whether a value seems to contain another key, after a `;` or a `,`.
fn follows_separator(value: &str) -> bool {
    let parts = value.split([';', ',']).skip(1).filter_map(|part| part.split_once('='));
    parts.into_iter().any(|(name, _)| is_known(name.trim()))
}

/// The key of `table` that a value seems to contain, after a `;` or a `,`.
pub(crate) fn joined<T>(table: &[Key<T>], value: &str) -> Option<&'static str> {
    let names = value.split([';', ',']).skip(1).filter_map(|part| part.split_once('='));
    let mut keys = names.filter_map(|(name, _)| find(table, name.trim()));
    keys.next().map(|key| key.name)
}

/// The row of a key with this name, or with it as another name.
pub(crate) fn find<'a, T>(table: &'a [Key<T>], name: &str) -> Option<&'a Key<T>> {
    table.iter().find(|key| key.name == name || key.aliases.contains(&name))
}

fn unknown<T>(table: &[Key<T>], key: &str) -> Problem {
    unknown_among(names(table), key)
}

/// The error of a key that is not among `names`.
pub(crate) fn unknown_among(names: impl Iterator<Item = &'static str>, key: &str) -> Problem {
    Problem::UnknownKey { key: shown_key(key), suggestion: did_you_mean(key, names) }
}

/// All names of the keys of a table.
pub(crate) fn names<T>(table: &[Key<T>]) -> impl Iterator<Item = &'static str> {
    table.iter().flat_map(|key| key.aliases.iter().copied().chain([key.name]))
}

/// Adds the form of the value to its fault, unless the fault has it already.
fn with_form(fault: ValueError, form: &str) -> ValueError {
    let range = form.split(';').next().unwrap_or(form);
    // The fault of a file or a variable is not the form of its name.
    if fault.0.contains(range) || ["path", "name"].contains(&range) {
        return fault;
    }
    ValueError(format!("{} ({form})", fault.0))
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
