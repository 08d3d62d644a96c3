//! Keys of a URI's query, as tables: one row says how a key is spelt, what its value means and what
//! it does. Parsing, the help topic and the tests all read the same rows.

use std::borrow::Cow;

use punctual::AppliesTo;

use crate::error::{Problem, UriError, ValueError};
use crate::parts::Parts;
use crate::redact::{is_secret, shown_key, speaks_of_secrets};
use crate::suggest::did_you_mean;

/// One key of the query of URIs that become a `T`.
pub(crate) struct Key<T> {
    /// Its name, lower case: libsrt's where libsrt has one.
    pub(crate) name: &'static str,
    /// Other names for it, from FFmpeg and the SRT tools.
    pub(crate) aliases: &'static [&'static str],
    /// The form of its value: unit and range, and the default unless `default` has that.
    pub(crate) value: &'static str,
    /// The default of an option of the table.
    pub(crate) default: Option<&'static str>,
    /// The unit of its bare numbers, or the kind of its value.
    pub(crate) unit: &'static str,
    /// The end that it applies to; `None` for a key without effect.
    pub(crate) applies_to: Option<AppliesTo>,
    /// Its effect, in one line.
    pub(crate) about: &'static str,
    /// The code behind it.
    pub(crate) effect: Effect<T>,
}

impl<T> Key<T> {
    /// A key whose unit is said by its value, and that concerns nobody in particular.
    pub(crate) const fn new(
        name: &'static str,
        aliases: &'static [&'static str],
        value: &'static str,
        about: &'static str,
        effect: Effect<T>,
    ) -> Self {
        Self { name, aliases, value, unit: "", applies_to: None, default: None, about, effect }
    }

    /// The form of its value with the default, for people.
    pub(crate) fn form(&self) -> Cow<'static, str> {
        match self.default {
            Some(default) => format!("{}; default {default}", self.value).into(),
            None => self.value.into(),
        }
    }
}

/// The effect of a key.
pub(crate) enum Effect<T> {
    /// Changes the target.
    Set(fn(&mut T, &str) -> Result<(), ValueError>),
    /// Nothing: its feature does not exist here, but the harmless values ask for nothing.
    Refused { harmless: &'static [&'static str], reason: &'static str },
    /// Nothing, and nothing is missed.
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

/// Does what `key`, written as `name`, does with this value.
fn apply<T>(key: &Key<T>, name: &str, value: &str, target: &mut T) -> Result<(), Problem> {
    let hides = is_secret(key.name) || speaks_of_secrets(value);
    let shown = if hides { "…" } else { value };
    let (name, owned) = (name.to_owned(), shown.to_owned());
    match key.effect {
        Effect::Set(set) => set(target, value).map_err(|complaint| {
            // A separator that is wrong may bring a passphrase into the value of another key.
            let complaint = match hides && !is_secret(key.name) {
                true => {
                    ValueError("there seems to be a passphrase in it; `&` parts keys".to_owned())
                }
                false => complaint,
            };
            let complaint = with_form(complaint, &key.form());
            Problem::BadValue { key: name, value: owned, complaint }
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

/// The row of a key or of another name for it.
fn find<'a, T>(table: &'a [Key<T>], name: &str) -> Option<&'a Key<T>> {
    table.iter().find(|key| key.name == name || key.aliases.contains(&name))
}

fn unknown<T>(table: &[Key<T>], key: &str) -> Problem {
    let names = table.iter().flat_map(|key| key.aliases.iter().copied().chain([key.name]));
    Problem::UnknownKey { key: shown_key(key), suggestion: did_you_mean(key, names) }
}

/// Adds how the value is written to what is wrong with it, unless that says it already.
fn with_form(complaint: ValueError, form: &str) -> ValueError {
    let range = form.split(';').next().unwrap_or(form);
    // What is wrong with a file or a variable is not how its name is written.
    if complaint.0.contains(range) || ["path", "name"].contains(&range) {
        return complaint;
    }
    ValueError(format!("{} ({form})", complaint.0))
}

/// A switch: 1, yes, on, true, or nothing after the key; 0, no, off, false.
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
    fn switches_and_numbers_say_what_they_take() {
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
