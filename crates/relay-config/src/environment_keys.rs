//! The names of variables of the environment that set keys.

use std::borrow::Cow;
use std::collections::BTreeMap;

use punctual_uri::did_you_mean;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::http::{DRAIN, HTTP};
use crate::origin::Part;
use crate::reference::keys;
use crate::rows::KeyRow;
use crate::sources::{FOREIGN, OWN};
use crate::streams::STREAM;
use crate::users::AUTH;

/// The keys that the environment sets.
pub(crate) struct EnvironmentTables {
    /// The texts by part and key; the span of each is the number of its variable.
    pub(crate) tables: BTreeMap<Part, DeTable<'static>>,
    /// Variable, key and message of each variable that sets none.
    pub(crate) problems: Vec<(String, String, String)>,
}

/// Finds the keys that variables set.
pub(crate) fn tables(variables: &[(String, String)]) -> EnvironmentTables {
    let mut found = EnvironmentTables { tables: BTreeMap::new(), problems: Vec::new() };
    if variables.is_empty() {
        return found;
    }
    let known = known();
    for (number, (name, text)) in variables.iter().enumerate() {
        match known.iter().find(|(variable, ..)| variable == name) {
            Some((_, part, key)) => {
                insert(found.tables.entry(part.clone()).or_default(), key, text, number);
            }
            None if name.starts_with(FOREIGN) => {
                let message = format!("variables of MediaMTX have no effect here{}", hint(name));
                found.problems.push((name.clone(), String::new(), message));
            }
            None => {
                let names = known.iter().map(|(variable, ..)| variable.as_str());
                let hint = did_you_mean(name, names);
                let message = format!(
                    "no key has this variable{hint} (variables set keys of [http], [auth], [drain] \
                     and [defaults], like {OWN}HTTP_LISTEN; listeners, streams, users and hooks \
                     stand in the file)"
                );
                found.problems.push((name.clone(), String::new(), message));
            }
        }
    }
    found
}

/// Adds a text to a table, with the number of the variable as its place.
fn insert(table: &mut DeTable<'static>, key: &str, text: &str, variable: usize) {
    let span = variable..variable;
    let key = Spanned::new(span.clone(), Cow::Owned(key.to_owned()));
    table.insert(key, Spanned::new(span, DeValue::String(Cow::Owned(text.to_owned()))));
}

/// Every variable with its part and key.
fn known() -> Vec<(String, Part, &'static str)> {
    fn names<T>(part: &Part, rows: &[KeyRow<T>]) -> Vec<(String, Part, &'static str)> {
        let name = |row: &KeyRow<T>| {
            let key = row.facts.name;
            let variable = format!("{OWN}{}_{key}", part.name()).replace('-', "_");
            (variable.to_ascii_uppercase(), part.clone(), key)
        };
        rows.iter().map(name).collect()
    }
    let mut known = names(&Part::Http, HTTP);
    known.extend(names(&Part::Auth, AUTH));
    known.extend(names(&Part::Drain, DRAIN));
    known.extend(names(&Part::Defaults, STREAM));
    known
}

/// The key that has the place of a variable of MediaMTX.
fn hint(name: &str) -> String {
    let wanted = name.trim_start_matches(FOREIGN);
    let wanted = wanted.strip_prefix("PATHDEFAULTS_").unwrap_or(wanted);
    let matches = |habit: &str| {
        habit.strip_prefix("MediaMTX: ").is_some_and(|it| it.eq_ignore_ascii_case(wanted))
    };
    match keys().into_iter().find(|facts| matches(facts.habit)) {
        None => String::new(),
        Some(facts) if facts.section == "stream" => {
            format!("; the key here is `{}` of [defaults] or [stream.\"NAME\"]", facts.name)
        }
        Some(facts) => format!("; the key here is `{}.{}`", facts.section, facts.name),
    }
}
