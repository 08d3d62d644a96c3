//! The effective configuration in TOML, with the origin of each value.

use std::fmt::Write as _;

use crate::configuration::Configuration;
use crate::hooks::HOOK;
use crate::http::{DRAIN, HTTP};
use crate::listener::LISTEN;
use crate::origin::{Origins, Part, ValueOrigin};
use crate::rows::KeyRow;
use crate::streams::STREAM;
use crate::toml_text::quoted;
use crate::users::{AUTH, USER};

/// The configuration in TOML.
pub(crate) fn print(configuration: &Configuration, origins: &Origins) -> String {
    let mut printer = Printer { text: String::new(), origins };
    for (index, listener) in configuration.listeners.iter().enumerate() {
        printer.table("[[listen]]", &Part::Listen(index), LISTEN, listener);
    }
    printer.table("[http]", &Part::Http, HTTP, &configuration.http);
    printer.table("[defaults]", &Part::Defaults, STREAM, configuration.streams.defaults());
    for section in configuration.streams.sections() {
        let pattern = section.pattern.as_str();
        let part = Part::Stream(pattern.to_owned());
        let head = format!("[stream.{}]", quoted(pattern));
        printer.table(&head, &part, STREAM, &section.settings);
    }
    for (index, user) in configuration.users.iter().enumerate() {
        printer.table("[[user]]", &Part::User(index), USER, user);
    }
    printer.table("[auth]", &Part::Auth, AUTH, &configuration.auth);
    for (index, hook) in configuration.hooks.iter().enumerate() {
        printer.table("[[hook]]", &Part::Hook(index), HOOK, hook);
    }
    printer.table("[drain]", &Part::Drain, DRAIN, &configuration.drain);
    printer.text
}

/// The text so far.
struct Printer<'a> {
    text: String,
    origins: &'a Origins,
}

impl Printer<'_> {
    /// Writes one table. A section of streams has only its own keys.
    fn table<T>(&mut self, head: &str, part: &Part, rows: &[KeyRow<T>], target: &T) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(head);
        self.text.push('\n');
        for row in rows {
            let origin = self.origins.exactly(part, row.facts.name);
            let is_inherited = matches!(part, Part::Stream(_)) && origin == ValueOrigin::Default;
            let shown = (row.show)(target);
            let Some(value) = shown.text().filter(|_| !is_inherited) else { continue };
            let _ = writeln!(self.text, "{} = {value}  # {origin}", row.facts.name);
        }
    }
}
