//! Changes of streams' settings by the API, apart from the file that a person wrote.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value as Json;
use toml::de::{DeTable, DeValue};

use crate::problem::{ConfigProblem, Place};
use crate::toml_text;

/// Keys of `[defaults]` and of sections of streams, with their values in TOML.
#[derive(Clone, Default)]
pub(crate) struct ApiChanges {
    /// `None` stands for `[defaults]`.
    sections: BTreeMap<Option<String>, BTreeMap<String, String>>,
}

impl ApiChanges {
    /// Reads a file that [`ApiChanges::text`] wrote. The values are checked with those of the
    /// configuration.
    pub(crate) fn parse(name: &str, text: &str) -> Result<Self, Vec<ConfigProblem>> {
        let place = Place::file(name, text);
        let table = DeTable::parse(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            vec![place.problem(at, "", &format!("not TOML: {}", error.message()))]
        })?;
        let mut changes = Self::default();
        let foreign = |at: usize, key: &str| {
            let message = "this file has changes by the API: only `[defaults]` and \
                           `[stream.\"NAME\"]`; write other keys into the configuration file";
            vec![place.problem(at, key, message)]
        };
        for (key, value) in table.get_ref() {
            match (key.get_ref().as_ref(), value.get_ref()) {
                ("defaults", DeValue::Table(keys)) => changes.add(None, keys, text),
                ("stream", DeValue::Table(sections)) => {
                    for (name, value) in sections {
                        let DeValue::Table(keys) = value.get_ref() else {
                            return Err(foreign(name.span().start, name.get_ref()));
                        };
                        changes.add(Some(name.get_ref().to_string()), keys, text);
                    }
                }
                (key_name, _) => return Err(foreign(key.span().start, key_name)),
            }
        }
        Ok(changes)
    }

    fn add(&mut self, section: Option<String>, keys: &DeTable<'_>, text: &str) {
        let entries = self.sections.entry(section).or_default();
        for (key, value) in keys {
            let value = text.get(value.span()).unwrap_or_default();
            entries.insert(key.get_ref().to_string(), value.to_owned());
        }
    }

    /// Changes keys of a section. `null` takes a change away.
    pub(crate) fn merge(&mut self, section: Option<&str>, patch: &Json) -> Result<(), String> {
        let Json::Object(patch) = patch else {
            return Err("the change is not an object of keys and values".to_owned());
        };
        let values: Vec<(&String, Option<String>)> = patch
            .iter()
            .map(|(key, value)| match value {
                Json::Null => Ok((key, None)),
                value => {
                    Ok((key, Some(to_toml(value).map_err(|fault| format!("`{key}`: {fault}"))?)))
                }
            })
            .collect::<Result<_, String>>()?;
        let section = section.map(str::to_owned);
        let entries = self.sections.entry(section.clone()).or_default();
        for (key, value) in values {
            match value {
                None => entries.remove(key),
                Some(value) => entries.insert(key.clone(), value),
            };
        }
        if entries.is_empty() && section.is_none() {
            self.sections.remove(&section);
        }
        Ok(())
    }

    /// Takes away the changes of the keys that a patch names.
    pub(crate) fn forget_keys(&mut self, section: Option<&str>, patch: &Json) {
        let keys = patch.as_object().into_iter().flat_map(serde_json::Map::keys);
        if let Some(entries) = self.sections.get_mut(&section.map(str::to_owned)) {
            keys.for_each(|key| drop(entries.remove(key)));
        }
    }

    /// Takes away all changes of a section.
    pub(crate) fn remove(&mut self, section: Option<&str>) {
        self.sections.remove(&section.map(str::to_owned));
    }

    /// The changes in TOML.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for (section, entries) in &self.sections {
            let _ = match section {
                None => writeln!(text, "[defaults]"),
                Some(name) => writeln!(text, "[stream.{}]", toml_text::quoted(name)),
            };
            for (key, value) in entries {
                let _ = writeln!(text, "{} = {value}", toml_text::key(key));
            }
        }
        text
    }
}

/// A value of JSON in TOML, on one line.
fn to_toml(value: &Json) -> Result<String, String> {
    Ok(match value {
        Json::Null => return Err("`null` has no place in a list or a table".to_owned()),
        Json::Bool(switch) => switch.to_string(),
        Json::Number(number) => number.to_string(),
        Json::String(text) => toml_text::quoted(text),
        Json::Array(parts) => {
            let parts: Vec<String> = parts.iter().map(to_toml).collect::<Result<_, _>>()?;
            format!("[{}]", parts.join(", "))
        }
        Json::Object(entries) => {
            let entry = |(key, value): (&String, &Json)| {
                Ok::<_, String>(format!("{} = {}", toml_text::key(key), to_toml(value)?))
            };
            let entries: Vec<String> = entries.iter().map(entry).collect::<Result<_, _>>()?;
            format!("{{ {} }}", entries.join(", "))
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn changes_are_merged_written_and_read_back() {
        let mut changes = ApiChanges::default();
        let patch = json!({
            "keep-viewers": "30s",
            "forward": [{"to": "srt://h:1"}],
            "record": true,
            "max-viewers": 7,
            "odd \"key": null,
        });
        changes.merge(Some("live/a"), &patch).unwrap();
        changes.merge(None, &json!({"start": "gop"})).unwrap();
        changes.merge(Some("live/a"), &json!({"record": null})).unwrap();
        let text = changes.text();
        assert_eq!(
            text,
            "[defaults]\nstart = \"gop\"\n[stream.\"live/a\"]\n\
             forward = [{ to = \"srt://h:1\" }]\nkeep-viewers = \"30s\"\nmax-viewers = 7\n"
        );
        assert_eq!(ApiChanges::parse("state.toml", &text).unwrap().text(), text);
        changes.remove(Some("live/a"));
        changes.forget_keys(None, &json!({"start": 1}));
        assert!(!changes.text().contains("start"));
        assert!(changes.merge(None, &json!([1])).is_err());
        assert!(changes.merge(None, &json!({"forward": [null]})).is_err());
    }

    #[test]
    fn a_file_of_changes_has_only_streams() {
        let error = ApiChanges::parse("state.toml", "[http]\nlisten = \":1\"\n").err().unwrap();
        assert!(error[0].to_string().starts_with("state.toml:1:2: `http`: "), "{}", error[0]);
        let error = ApiChanges::parse("state.toml", "[stream.\n").err().unwrap();
        assert!(error[0].to_string().contains("not TOML"), "{}", error[0]);
    }
}
