//! Applies the keys of a query to a target, by the tables of keys.

use crate::error::{Problem, UriError, ValueError};
use crate::key::{KeyEffect, UriKey, find, names};
use crate::parts::Parts;
use crate::redact::{is_known, is_secret};
use crate::secrets::{is_stream_id, mentions_passphrase, redacted_stream_id, shown_key};
use crate::suggest::did_you_mean;

/// Applies the query of `parts` to `target`, key by key, by the rows of `table`.
pub(crate) fn apply_query<T>(
    table: &[UriKey<T>],
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
    table: &[UriKey<T>],
    name: &str,
    value: &str,
    target: &mut T,
) -> Result<(), Problem> {
    let key = find(table, name).ok_or_else(|| unknown(table, name))?;
    apply(key, name, value, target)
}

/// Applies `key`, written as `name`, with this value.
fn apply<T>(key: &UriKey<T>, name: &str, value: &str, target: &mut T) -> Result<(), Problem> {
    let hides = is_secret(key.name) || mentions_passphrase(value);
    let shown = match key.name {
        _ if hides => "…".to_owned(),
        id if is_stream_id(id) => redacted_stream_id(value),
        _ => value.to_owned(),
    };
    let (name, owned) = (name.to_owned(), shown);
    let done = match key.effect {
        KeyEffect::Set(set) => set(target, value),
        KeyEffect::Option(set) => set(target, key.name, value),
        KeyEffect::Refused { harmless, reason } => {
            if value.is_empty() || harmless.contains(&value.to_lowercase().as_str()) {
                return Ok(());
            }
            return Err(Problem::NotHere { key: name, value: owned, reason });
        }
        KeyEffect::Ignored => return Ok(()),
    };
    done.map_err(|fault| {
        // With a wrong separator, a passphrase may be part of the value of another key.
        let fault = match hides && !is_secret(key.name) {
            true => ValueError("it seems to contain a passphrase; `&` separates keys".to_owned()),
            false => fault,
        };
        let fault = match !hides && follows_separator(value) {
            true => ValueError("`&` separates keys".to_owned()),
            false => with_form(fault, &key.form()),
        };
        Problem::BadValue { key: name, value: owned, fault }
    })
}

/// Whether a value seems to contain another key, after a `;` or a `,`.
fn follows_separator(value: &str) -> bool {
    let parts = value.split([';', ',']).skip(1).filter_map(|part| part.split_once('='));
    parts.into_iter().any(|(name, _)| is_known(name.trim()))
}

/// The key of `table` that a value seems to contain, after a `;` or a `,`.
pub(crate) fn joined<T>(table: &[UriKey<T>], value: &str) -> Option<&'static str> {
    let names = value.split([';', ',']).skip(1).filter_map(|part| part.split_once('='));
    let mut keys = names.filter_map(|(name, _)| find(table, name.trim()));
    keys.next().map(|key| key.name)
}

fn unknown<T>(table: &[UriKey<T>], key: &str) -> Problem {
    unknown_among(names(table), key)
}

/// The error of a key that is not among `names`.
pub(crate) fn unknown_among(names: impl Iterator<Item = &'static str>, key: &str) -> Problem {
    Problem::UnknownKey { key: shown_key(key), suggestion: did_you_mean(key, names) }
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
