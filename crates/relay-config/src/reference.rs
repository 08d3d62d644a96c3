//! Every key, for pages and for `check --explain`.

use std::fmt::Write as _;

use crate::configuration::Configuration;
use crate::hooks::{HOOK, HookSettings};
use crate::http::{DRAIN, HTTP};
use crate::listener::{LISTEN, ListenerSettings};
use crate::rows::{KeyFacts, KeyRow};
use crate::streams::{FORWARD, ForwardSettings, STREAM};
use crate::users::{AUTH, PERMISSION, PermissionTable, USER, UserTable};

/// A table of a configuration, with its keys.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct KeySection {
    /// The head of the table in a file, such as `[[listen]]`.
    pub head: &'static str,
    /// The subject, in one sentence.
    pub about: &'static str,
    /// The keys, each with its default in TOML.
    pub keys: Vec<(&'static KeyFacts, Option<String>)>,
}

/// Every table with its keys, in the order of a file.
pub fn sections() -> Vec<KeySection> {
    let standard = Configuration::default();
    vec![
        section(
            (
                "[[listen]]",
                "The sockets at which callers publish and view; one table for each. Without a table \
                 there is one, with the defaults.",
            ),
            LISTEN,
            &ListenerSettings::default(),
        ),
        section(("[http]", "The page, the API, the metrics and health."), HTTP, &standard.http),
        section(
            (
                "[defaults], [stream.\"NAME\"]",
                "The settings of streams. `NAME` is an exact name, a pattern like `live/*`, `~` and a \
                 regular expression, or `all_others`. The narrowest section that matches counts, in \
                 this order; it takes what it does not say from `[defaults]`.",
            ),
            STREAM,
            standard.streams.defaults(),
        ),
        section(
            ("stream.forward", "A destination of a stream."),
            FORWARD,
            &ForwardSettings::default(),
        ),
        section(
            (
                "[[user]]",
                "The users and what they may do. Without a rule about streams, here or in `[auth]`, \
                 everybody may publish, view and play recordings. Without a user who may use the \
                 API, everybody on this machine may use all of it.",
            ),
            USER,
            &UserTable::default(),
        ),
        section(
            ("user.permissions", "A permission of a user."),
            PERMISSION,
            &PermissionTable::default(),
        ),
        section(("[auth]", "Other judges of callers."), AUTH, &standard.auth),
        section(
            ("[[hook]]", "Commands and URLs that events start; one table for each."),
            HOOK,
            &HookSettings::default(),
        ),
        section(("[drain]", "The end of the relay."), DRAIN, &standard.drain),
    ]
}

/// The description of every key.
pub fn keys() -> Vec<&'static KeyFacts> {
    fn facts<T>(rows: &'static [KeyRow<T>]) -> impl Iterator<Item = &'static KeyFacts> {
        rows.iter().map(|row| &row.facts)
    }
    facts(LISTEN)
        .chain(facts(HTTP))
        .chain(facts(STREAM))
        .chain(facts(FORWARD))
        .chain(facts(USER))
        .chain(facts(PERMISSION))
        .chain(facts(AUTH))
        .chain(facts(HOOK))
        .chain(facts(DRAIN))
        .collect()
}

/// Explains a key, such as `http.listen`, `latency` or `defaults.latency`: each with this name.
///
/// # Errors
///
/// No key has this name; the message has the nearest one.
pub fn explain(key: &str) -> Result<String, String> {
    let (section, name) = match key.rsplit_once('.') {
        None => (None, key),
        Some(("defaults", name)) => (Some("stream"), name),
        Some((section, name)) if section.starts_with("stream.\"") => (Some("stream"), name),
        Some((section, name)) => (Some(section), name),
    };
    let mut text = String::new();
    for (facts, default) in sections().iter().flat_map(|section| &section.keys) {
        if facts.name != name || section.is_some_and(|section| section != facts.section) {
            continue;
        }
        if !text.is_empty() {
            text.push('\n');
        }
        let _ = writeln!(text, "{}.{}: {}", facts.section, facts.name, facts.meaning);
        let _ = writeln!(text, "  value:   {}", facts.form);
        let _ = writeln!(text, "  default: {}", default.as_deref().unwrap_or("none"));
        let _ = writeln!(text, "  reload:  {}", facts.reload.name());
        if !facts.habit.is_empty() {
            let _ = writeln!(text, "  known as {}", facts.habit);
        }
    }
    match text.is_empty() {
        false => Ok(text),
        true => {
            let known = keys();
            let hint = punctual_uri::did_you_mean(name, known.iter().map(|facts| facts.name));
            Err(format!("no key has the name `{key}`{hint}"))
        }
    }
}

/// The tables of all keys in Markdown, for `docs/relay-keys.md`.
pub fn page() -> String {
    let mut page = String::new();
    for section in sections() {
        let _ = writeln!(page, "## `{}`\n\n{}\n", section.head, section.about);
        page.push_str("| key | value | default | reload | meaning | known as |\n");
        page.push_str("|---|---|---|---|---|---|\n");
        for (facts, default) in &section.keys {
            let default =
                default.as_ref().map_or_else(|| "none".to_owned(), |it| format!("`{it}`"));
            let _ = writeln!(
                page,
                "| `{}` | {} | {default} | {} | {} | {} |",
                facts.name,
                facts.form.replace('|', "\\|"),
                facts.reload.name(),
                facts.meaning,
                facts.habit,
            );
        }
        page.push('\n');
    }
    page.truncate(page.trim_end().len());
    page.push('\n');
    page
}

fn section<T>(
    (head, about): (&'static str, &'static str),
    rows: &'static [KeyRow<T>],
    standard: &T,
) -> KeySection {
    let key = |row: &'static KeyRow<T>| {
        let shown = (row.show)(standard);
        let default = shown.text().filter(|text| *text != "\"\"").map(str::to_owned);
        (&row.facts, default)
    };
    KeySection { head, about, keys: rows.iter().map(key).collect() }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;
    use crate::{Sources, check};

    fn root() -> PathBuf {
        PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
    }

    /// `PUNCTUAL_WRITE_KEYS=1` writes the tables into the page.
    #[test]
    fn the_page_of_keys_has_the_tables_of_the_program() {
        let path = root().join("docs/relay-keys.md");
        let text = fs::read_to_string(&path).unwrap();
        let (head, rest) = text.split_once(BEGIN).unwrap();
        let (_, tail) = rest.split_once(END).unwrap();
        let expected = format!("{head}{BEGIN}\n\n{}\n{END}{tail}", page());
        if std::env::var_os("PUNCTUAL_WRITE_KEYS").is_some() {
            return fs::write(&path, &expected).unwrap();
        }
        assert!(text == expected, "docs/relay-keys.md differs: run with PUNCTUAL_WRITE_KEYS=1");
    }

    #[test]
    fn the_example_passes_the_check_as_it_is_and_with_all_its_keys() {
        let text = fs::read_to_string(root().join("contrib/relay.toml")).unwrap();
        let loaded = check(&Sources::text("relay.toml", &text)).unwrap();
        assert_eq!(loaded.configuration, Configuration::default());
        // A key is a comment without a space after the `#`.
        let is_key = |line: &&str| line.starts_with('#') && !line.starts_with("# ");
        let all: String = text
            .lines()
            .map(|line| if is_key(&line) { &line[1..] } else { line })
            .map(|line| format!("{line}\n"))
            .collect();
        let problems = check(&Sources::text("relay.toml", &all)).err().unwrap_or_default();
        let real: Vec<_> =
            problems.iter().filter(|it| !it.message.contains("files cannot be named")).collect();
        assert!(real.is_empty(), "{real:#?}");
    }

    #[test]
    fn every_key_is_explained_and_near_names_are_found() {
        for facts in keys() {
            let text = explain(&format!("{}.{}", facts.section, facts.name)).unwrap();
            assert!(text.contains(facts.meaning) && text.contains("default: "), "{text}");
        }
        let latency = explain("latency").unwrap();
        assert!(latency.contains("listen.latency: ") && latency.contains("stream.latency: "));
        assert!(!explain("defaults.latency").unwrap().contains("listen.latency"));
        assert!(explain("stream.\"live/*\".record").unwrap().contains("stream.record: "));
        assert!(explain("http.listne").unwrap_err().contains("did you mean `listen`?"));
    }

    const BEGIN: &str = "<!-- keys -->";
    const END: &str = "<!-- end of keys -->";
}
