//! The configuration of a relay: its file, the file of MediaMTX, changes by the API, variables.

use punctual_relay_access::StreamName;
use punctual_relay_config::{ConfigChange, ConfigProblem, Environment, Sources, check, import};

/// The first byte chooses the meaning of the rest.
pub(crate) fn run(input: &[u8]) {
    let Some((&kind, rest)) = input.split_first() else { return };
    let Ok(text) = std::str::from_utf8(rest) else { return };
    match kind % 4 {
        0 => file(text),
        1 => foreign(text),
        2 => change(text),
        _ => variables(text),
    }
}

/// A file is read and printed, or each problem names a line of it.
fn file(text: &str) {
    match check(&Sources::text("relay.toml", text)) {
        Ok(loaded) => {
            let configuration = &loaded.configuration;
            assert!(ConfigChange::between(configuration, configuration).is_empty());
            assert!(!loaded.print().is_empty());
            if let Ok(name) = StreamName::new("live/a1") {
                drop(configuration.stream(&name));
            }
        }
        Err(problems) => told(&problems, text),
    }
}

fn told(problems: &[ConfigProblem], text: &str) {
    assert!((1..=101).contains(&problems.len()));
    let lines = text.lines().count().max(1);
    for problem in problems {
        assert!(problem.line.is_none_or(|line| (1..=lines + 1).contains(&line)), "{problem}");
        assert!(!problem.message.contains('\n'), "{problem}");
    }
}

/// A file of MediaMTX becomes a file that passes the check, or its keys that do not are told.
fn foreign(text: &str) {
    let Ok(imported) = import(text) else { return };
    if let Err(problems) = check(&Sources::text("relay.toml", &imported.toml)) {
        for problem in problems.iter().filter(|it| !it.message.contains("cannot be named")) {
            assert!(imported.left.iter().any(|left| left.key == problem.key), "{problem}");
        }
    }
}

/// A change by the API is applied, or refused without effect on the configuration before it.
fn change(text: &str) {
    let (section, patch) = text.split_once('\n').unwrap_or(("live/a", text));
    let Ok(patch) = serde_json::from_str(patch) else { return };
    let before = Sources::text("relay.toml", "[stream.\"live/a\"]\nrecord = true\n");
    for persist in [false, true] {
        let Ok(after) = before.patched(Some(section), &patch, persist) else { continue };
        if let Err(problems) = check(&after) {
            assert!(!problems.is_empty());
        }
        assert!(check(&after.without_changes(Some(section), true)).is_ok());
    }
}

/// Variables set keys or are refused.
fn variables(text: &str) {
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    let environment = Environment::new(
        pairs.map(|(name, value)| (format!("PUNCTUAL_RELAY_{name}"), value.to_owned())),
    );
    if let Err(problems) = check(&Sources::text("relay.toml", "").with_environment(environment)) {
        told(&problems, "");
    }
}
