//! `mediamtx.yml` as a configuration of this relay, as far as it goes.

mod document;
mod globals;
mod paths;
mod users;

use serde_json::Value as Json;

use crate::sources::MOST_BYTES;
use document::Document;
pub use document::{Imported, LeftKey};

/// Translates the text of a `mediamtx.yml`, of version 1.20 or earlier.
///
/// # Errors
///
/// The text is not YAML, or not a table of keys.
pub fn import(text: &str) -> Result<Imported, String> {
    if text.len() as u64 > MOST_BYTES {
        return Err(format!("it has more than {MOST_BYTES} bytes"));
    }
    let settings: Json = match text.trim() {
        "" => Json::Null,
        text => serde_saphyr::from_str(text).map_err(|error| format!("not YAML: {error}"))?,
    };
    let settings = match settings {
        Json::Object(settings) => settings,
        Json::Null => serde_json::Map::new(),
        _ => return Err("this is not a table of keys, as mediamtx.yml is".to_owned()),
    };
    let mut document = Document::default();
    globals::translate(&settings, &mut document);
    users::translate(&settings, &mut document);
    paths::translate(&settings, &mut document);
    Ok(document.finish())
}

#[cfg(test)]
mod tests;
