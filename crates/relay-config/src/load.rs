//! The check of all sources of a configuration together.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use punctual_relay_access::{PatternError, StreamPattern};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::configuration::Configuration;
use crate::environment_keys;
use crate::hooks::HOOK;
use crate::http::{DRAIN, HTTP};
use crate::listener::{LISTEN, ListenerSettings};
use crate::origin::{Origins, Part, ValueOrigin};
use crate::print;
use crate::problem::{ConfigProblem, PartFault, Place, problem, problem_of};
use crate::rows::KeyRow;
use crate::sources::{Environment, MOST_BYTES, Sources};
use crate::streams::{STREAM, StreamSection, StreamSettings, StreamTable};
use crate::table::{SeenKey, read_table};
use crate::users::{AUTH, USER, UserTable};
use crate::value::{Context, unknown};

/// A configuration that has passed the check, with the origin of each value.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The configuration.
    pub configuration: Configuration,
    origins: Origins,
}

impl Loaded {
    /// The effective configuration in TOML: each value with its origin in a comment. Secrets are
    /// `"…"`. The sections of streams have only their own keys.
    pub fn print(&self) -> String {
        print::print(&self.configuration, &self.origins)
    }

    /// The origin of a value: `http.listen`, `defaults.latency`, or a key of a section of streams,
    /// such as `record` of `live/*`.
    pub fn origin(&self, section: &str, key: &str) -> ValueOrigin {
        let part = match section {
            "http" => Part::Http,
            "auth" => Part::Auth,
            "drain" => Part::Drain,
            "defaults" => Part::Defaults,
            pattern => Part::Stream(pattern.to_owned()),
        };
        self.origins.exactly(&part, key)
    }

    /// Values that are valid but probably not intended, such as a latency in microseconds.
    pub fn warnings(&self) -> Vec<ConfigProblem> {
        let streams = &self.configuration.streams;
        let sections = streams
            .sections()
            .iter()
            .map(|section| (Part::Stream(section.pattern.as_str().to_owned()), &section.settings));
        let mut warnings = Vec::new();
        for (part, settings) in
            std::iter::once((Part::Defaults, streams.defaults())).chain(sections)
        {
            let source = settings.source.uri.iter().map(|uri| ("source", uri));
            let forward = settings.forward.iter().filter_map(|it| it.to.as_ref());
            for (key, uri) in source.chain(forward.map(|uri| ("forward", uri))) {
                let origin = self.origins.exactly(&part, key);
                // A section that takes the value from the defaults repeats nothing.
                if origin != ValueOrigin::Default {
                    let key = format!("{}.{key}", part.name());
                    let told = uri.warnings().into_iter();
                    warnings.extend(told.map(|message| problem_of(&origin, &key, &message)));
                }
            }
        }
        warnings
    }
}

/// Reads the file, if there is to be one, the environment and persistent API changes, and checks
/// all of them.
///
/// # Errors
///
/// All problems, at most a hundred.
pub fn load(path: Option<&Path>, environment: Environment) -> Result<Loaded, Vec<ConfigProblem>> {
    check(&Sources::read(path, environment)?)
}

/// Checks all sources: every key, every value, and several together.
///
/// # Errors
///
/// All problems, at most a hundred.
pub fn check(sources: &Sources) -> Result<Loaded, Vec<ConfigProblem>> {
    let (state, live) = (sources.state.text(), sources.live.text());
    let file =
        sources.file.as_ref().map(|file| ConfigLayer::new(&file.name, &file.text, LayerKind::File));
    let state = ConfigLayer::new("state.toml", &state, LayerKind::Kept);
    let live = ConfigLayer::new("API", &live, LayerKind::Live);
    let mut check = Check::new(sources);
    let layers: Vec<&ConfigLayer<'_>> = file.iter().chain([&state, &live]).collect();
    for layer in &layers {
        check.syntax(layer);
    }
    if let Some(file) = &file {
        check.file(file);
    }
    check.environment(sources);
    for layer in [&state, &live] {
        if let Some(DeValue::Table(table)) = layer.table.get("defaults").map(Spanned::get_ref) {
            check.defaults(layer, table);
        }
    }
    check.streams(&layers);
    check.finish()
}

/// A text with keys, parsed.
struct ConfigLayer<'a> {
    place: Place<'a>,
    kind: LayerKind,
    table: DeTable<'a>,
    errors: Vec<toml::de::Error>,
}

/// The source of a layer.
#[derive(Clone, Copy)]
enum LayerKind {
    File,
    /// Changes by the API that persist.
    Kept,
    /// Changes by the API that last until the end.
    Live,
}

impl<'a> ConfigLayer<'a> {
    fn new(name: &'a str, text: &'a str, kind: LayerKind) -> Self {
        let place = Place::file(name, text);
        if text.len() as u64 > MOST_BYTES {
            return Self { place, kind, table: DeTable::new(), errors: Vec::new() };
        }
        let (table, errors) = DeTable::parse_recoverable(text);
        Self { place, kind, table: table.into_inner(), errors }
    }

    fn origin(&self, at: usize) -> ValueOrigin {
        match self.kind {
            LayerKind::File => {
                ValueOrigin::File { name: self.place.name().to_owned(), line: self.place.line(at) }
            }
            LayerKind::Kept => ValueOrigin::Api { persistent: true },
            LayerKind::Live => ValueOrigin::Api { persistent: false },
        }
    }
}

/// The state of a check.
struct Check<'a> {
    context: Context<'a>,
    configuration: Configuration,
    defaults: StreamSettings,
    /// The place of each part that was given, for faults of several keys together.
    origins: Origins,
    problems: Vec<ConfigProblem>,
    /// Problems beyond the most that are told.
    untold: usize,
}

impl<'a> Check<'a> {
    fn new(sources: &'a Sources) -> Self {
        Self {
            context: Context { files: &sources.files, only_texts: false },
            configuration: Configuration::default(),
            defaults: StreamSettings::default(),
            origins: Origins::default(),
            problems: Vec::new(),
            untold: 0,
        }
    }

    /// Tells a problem, unless there are too many already.
    fn tell(&mut self, problem: impl FnOnce() -> ConfigProblem) {
        match self.problems.len() {
            0..MOST_PROBLEMS => self.problems.push(problem()),
            _ => self.untold += 1,
        }
    }

    fn syntax(&mut self, layer: &ConfigLayer<'_>) {
        if layer.errors.is_empty() && layer.place.is_longer_than(MOST_BYTES) {
            let message = format!("it has more than {MOST_BYTES} bytes");
            self.tell(|| problem(layer.place.name(), "", &message));
        }
        for error in &layer.errors {
            let at = error.span().map_or(0, |span| span.start);
            let message = format!("not TOML: {}", error.message());
            self.tell(|| layer.place.problem(at, "", &message));
        }
    }

    /// Reads everything of the file but the sections of streams.
    fn file(&mut self, layer: &ConfigLayer<'_>) {
        let mut configuration = std::mem::take(&mut self.configuration);
        for (key, value) in &layer.table {
            let span = value.span();
            match (key.get_ref().as_ref(), value.get_ref()) {
                ("http", DeValue::Table(table)) => {
                    self.table(layer, table, (&Part::Http, "http"), HTTP, &mut configuration.http);
                    let fault = configuration.http.tls.fault();
                    self.fault(layer, key.span(), "http", fault);
                }
                ("auth", DeValue::Table(table)) => {
                    self.table(layer, table, (&Part::Auth, "auth"), AUTH, &mut configuration.auth);
                }
                ("drain", DeValue::Table(table)) => {
                    let target = &mut configuration.drain;
                    self.table(layer, table, (&Part::Drain, "drain"), DRAIN, target);
                }
                ("defaults", DeValue::Table(table)) => self.defaults(layer, table),
                ("stream", DeValue::Table(_)) => {}
                ("listen", value) => {
                    configuration.listeners = self.tables(
                        layer,
                        (value, &span),
                        ("listen", LISTEN, MOST_LISTENERS),
                        (Part::Listen, ListenerSettings::unset),
                        ListenerSettings::fault,
                    );
                }
                ("user", value) => {
                    configuration.users = self.tables(
                        layer,
                        (value, &span),
                        ("user", USER, MOST_USERS),
                        (Part::User, UserTable::default),
                        UserTable::fault,
                    );
                }
                ("hook", value) => {
                    configuration.hooks = self.tables(
                        layer,
                        (value, &span),
                        ("hook", HOOK, MOST_HOOKS),
                        (Part::Hook, Default::default),
                        crate::hooks::HookSettings::fault,
                    );
                }
                (name, _) => {
                    let message = match SECTIONS.contains(&name) {
                        true => format!("this is not a table: write `[{name}]`"),
                        false => unknown(name, SECTIONS.iter().copied()),
                    };
                    self.tell(|| layer.place.problem(key.span().start, name, &message));
                }
            }
        }
        self.configuration = configuration;
    }

    fn defaults(&mut self, layer: &ConfigLayer<'_>, table: &DeTable<'_>) {
        let mut defaults = std::mem::take(&mut self.defaults);
        self.table(layer, table, (&Part::Defaults, "defaults"), STREAM, &mut defaults);
        self.defaults = defaults;
    }

    /// Reads one table.
    fn table<T>(
        &mut self,
        layer: &ConfigLayer<'_>,
        table: &DeTable<'_>,
        (part, name): (&Part, &str),
        rows: &[KeyRow<T>],
        target: &mut T,
    ) -> Vec<SeenKey> {
        let (seen, faults) = read_table(table, rows, target, &self.context);
        for key in &seen {
            self.origins.note(part.clone(), key.name, layer.origin(key.at));
        }
        for PartFault { path, span, message } in faults {
            let at = span.map_or(0, |span| span.start);
            self.tell(|| layer.place.problem(at, &format!("{name}.{path}"), &message));
        }
        seen
    }

    /// Reads `[[NAME]]`, or a single `[NAME]`.
    fn tables<T>(
        &mut self,
        layer: &ConfigLayer<'_>,
        (value, span): (&DeValue<'_>, &Range<usize>),
        (name, rows, most): (&str, &[KeyRow<T>], usize),
        (part, start): PartStart<T>,
        fault: fn(&T) -> Option<String>,
    ) -> Vec<T> {
        let single;
        let parts: Vec<(&DeValue<'_>, Range<usize>)> = match value {
            DeValue::Array(parts) if parts.len() <= most => {
                parts.iter().map(|part| (part.get_ref(), part.span())).collect()
            }
            DeValue::Array(_) => {
                let message = format!("there are more than {most} of these tables");
                self.tell(|| layer.place.problem(span.start, name, &message));
                Vec::new()
            }
            other => {
                single = (other, span.clone());
                vec![single]
            }
        };
        let mut found = Vec::new();
        for (index, (value, span)) in parts.into_iter().enumerate() {
            let DeValue::Table(table) = value else {
                let message = format!("this is not a table: write `[[{name}]]`");
                self.tell(|| layer.place.problem(span.start, name, &message));
                continue;
            };
            let mut target = start();
            let before = self.problems.len();
            self.table(layer, table, (&part(index), name), rows, &mut target);
            if self.problems.len() == before {
                self.fault(layer, span, name, fault(&target));
            }
            found.push(target);
        }
        found
    }

    fn fault(
        &mut self,
        layer: &ConfigLayer<'_>,
        span: Range<usize>,
        key: &str,
        fault: Option<String>,
    ) {
        if let Some(message) = fault {
            self.tell(|| layer.place.problem(span.start, key, &message));
        }
    }

    /// Reads the variables of the environment.
    fn environment(&mut self, sources: &Sources) {
        let found = environment_keys::tables(&sources.environment.variables);
        for (name, key, message) in found.problems {
            self.tell(|| problem(&name, &key, &message));
        }
        let context = Context { only_texts: true, ..self.context };
        let mut read = Vec::new();
        let Configuration { http, auth, drain, .. } = &mut self.configuration;
        for (part, table) in &found.tables {
            let (seen, faults) = match part {
                Part::Http => read_table(table, HTTP, http, &context),
                Part::Auth => read_table(table, AUTH, auth, &context),
                Part::Drain => read_table(table, DRAIN, drain, &context),
                _ => read_table(table, STREAM, &mut self.defaults, &context),
            };
            read.push((part, seen, faults));
        }
        let variable = |at: usize| sources.environment.variables[at].0.clone();
        for (part, seen, faults) in read {
            for key in seen {
                self.origins.note(
                    part.clone(),
                    key.name,
                    ValueOrigin::Environment(variable(key.at)),
                );
            }
            for fault in faults {
                let at = fault.span.map_or(0, |span| span.start);
                let key = format!("{}.{}", part.name(), fault.path);
                self.tell(|| problem(&variable(at), &key, &fault.message));
            }
        }
    }

    /// Reads the sections of streams of all layers, over the defaults.
    fn streams(&mut self, layers: &[&ConfigLayer<'_>]) {
        let mut sections: Vec<ConfigPart<'_, '_>> = Vec::new();
        let mut by_name: BTreeMap<String, usize> = BTreeMap::new();
        for &layer in layers {
            let Some(DeValue::Table(tables)) = layer.table.get("stream").map(Spanned::get_ref)
            else {
                continue;
            };
            for (name, value) in tables {
                let (text, at) = (name.get_ref().as_ref(), name.span().start);
                let key = format!("stream.{text:?}");
                let DeValue::Table(table) = value.get_ref() else {
                    let message = "this is not a table: write `[stream.\"NAME\"]`";
                    self.tell(|| layer.place.problem(at, &key, message));
                    continue;
                };
                let pattern: StreamPattern = match text.parse() {
                    Ok(pattern) => pattern,
                    Err(error) => {
                        let error: PatternError = error;
                        self.tell(|| layer.place.problem(at, &key, &error.to_string()));
                        continue;
                    }
                };
                let index = *by_name.entry(pattern.as_str().to_owned()).or_insert(sections.len());
                match sections.get_mut(index) {
                    None => {
                        let tables = vec![(layer, table, at)];
                        sections.push(ConfigPart { key, pattern, tables });
                    }
                    Some(section) => section.add(layer, table, at, self),
                }
            }
        }
        if sections.len() > MOST_SECTIONS {
            let message = format!("there are more than {MOST_SECTIONS} sections");
            self.tell(|| problem(layers[0].place.name(), "stream", &message));
            return;
        }
        let shared = self.defaults.faults(None);
        for (key, message) in &shared {
            let origin = self.origins.of(&Part::Defaults, key);
            self.tell(|| problem_of(&origin, &format!("defaults.{key}"), message));
        }
        let mut read = Vec::new();
        for section in sections {
            let mut settings = self.defaults.clone();
            let mut seen = Vec::new();
            let part = Part::Stream(section.pattern.as_str().to_owned());
            for (layer, table, _) in &section.tables {
                let names = (&part, section.key.as_str());
                let keys = self.table(layer, table, names, STREAM, &mut settings);
                seen.extend(keys.into_iter().map(|key| (*layer, key)));
            }
            for (key, message) in settings.faults(Some(&section.pattern)) {
                if shared.contains(&(key, message.clone())) {
                    continue;
                }
                let place = seen.iter().rev().find(|(_, seen)| seen.name == key);
                let place = place.map(|(layer, seen)| (*layer, seen.at));
                let (layer, at) = place.unwrap_or((section.tables[0].0, section.tables[0].2));
                let key = format!("{}.{key}", section.key);
                self.tell(|| layer.place.problem(at, &key, &message));
            }
            read.push(StreamSection { pattern: section.pattern, settings });
        }
        self.configuration.streams = StreamTable::new(self.defaults.clone(), read);
    }

    /// The end: what several parts mean together.
    fn finish(mut self) -> Result<Loaded, Vec<ConfigProblem>> {
        for (key, message) in self.configuration.faults() {
            let (part, name) = key;
            let origin = self.origins.of(&part, name);
            let key = match name {
                "" => part.name(),
                name => format!("{}.{name}", part.name()),
            };
            self.tell(|| problem_of(&origin, &key, &message));
        }
        if self.untold > 0 {
            let more = format!("{} more problems are not told", self.untold);
            self.problems.push(problem("check", "", &more));
        }
        if !self.problems.is_empty() {
            return Err(self.problems);
        }
        Ok(Loaded { configuration: self.configuration, origins: self.origins })
    }
}

/// A section of streams, which several layers may have.
struct ConfigPart<'l, 't> {
    key: String,
    pattern: StreamPattern,
    tables: Vec<(&'l ConfigLayer<'t>, &'l DeTable<'t>, usize)>,
}

impl<'l, 't> ConfigPart<'l, 't> {
    /// Adds the section of a later layer. A second one of the same layer is a fault.
    fn add(
        &mut self,
        layer: &'l ConfigLayer<'t>,
        table: &'l DeTable<'t>,
        at: usize,
        check: &mut Check<'_>,
    ) {
        match self.tables.iter().any(|(other, ..)| std::ptr::eq(*other, layer)) {
            false => self.tables.push((layer, table, at)),
            true => {
                let message = "a section above is about the same streams";
                check.tell(|| layer.place.problem(at, &self.key, message));
            }
        }
    }
}

/// The part of a table by its number, and its keys before it is read.
type PartStart<T> = (fn(usize) -> Part, fn() -> T);

/// The names of tables.
const SECTIONS: &[&str] =
    &["listen", "http", "defaults", "stream", "user", "auth", "hook", "drain"];

/// The most problems that are told.
const MOST_PROBLEMS: usize = 100;
const MOST_LISTENERS: usize = 64;
const MOST_USERS: usize = 10_000;
const MOST_HOOKS: usize = 100;
const MOST_SECTIONS: usize = 10_000;

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
