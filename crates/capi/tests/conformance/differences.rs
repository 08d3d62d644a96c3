use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::rows::Key;

/// The differences that are accepted, in the file's order.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Accepted {
    #[serde(default, rename = "difference")]
    pub(crate) groups: Vec<Group>,
}

/// Rows that differ for one reason.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Group {
    /// One sentence.
    pub(crate) reason: String,
    /// `program | function | situation`.
    rows: Vec<String>,
}

impl Group {
    /// The keys of its rows.
    pub(crate) fn keys(&self) -> impl Iterator<Item = Key> {
        self.rows.iter().map(|text| {
            Key::parse(text)
                .unwrap_or_else(|| panic!("not `program | function | situation`: {text}"))
        })
    }
}

impl Accepted {
    /// Reads `differences.toml`.
    ///
    /// # Panics
    ///
    /// If it cannot be read, if a row's key has not three parts or if a row occurs twice.
    pub(crate) fn read(path: &Path) -> Self {
        let text =
            fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let accepted = Self::parse(&text);
        accepted.reasons();
        accepted
    }

    fn parse(text: &str) -> Self {
        toml::from_str(text).unwrap_or_else(|error| panic!("differences.toml: {error}"))
    }

    /// Each accepted row with its reason.
    pub(crate) fn reasons(&self) -> BTreeMap<Key, &str> {
        let mut reasons = BTreeMap::new();
        for group in &self.groups {
            for key in group.keys() {
                let older = reasons.insert(key.clone(), group.reason.as_str());
                assert!(older.is_none(), "differences.toml has two entries of {key}");
            }
        }
        reasons
    }
}

#[test]
fn a_difference_has_a_reason_and_rows() {
    let text = "[[difference]]\nreason = 'It is newer.'\nrows = ['texts | srt_getversion | -']\n";
    let accepted = Accepted::parse(text);
    let key = Key::parse("texts | srt_getversion | -").expect("a key");
    assert_eq!(accepted.reasons()[&key], "It is newer.");
}
