//! The operation of the relay: its configuration, listeners, reloads, health and end.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use punctual_ends::{Failure, Stop};
use punctual_relay_access::StreamName;
use punctual_relay_config::{
    ChangeKind, ConfigChange, Configuration, Environment, ListenerSettings, Loaded, Sources, check,
};
use punctual_relay_hooks::{HookEventKind, HookResult};
use punctual_relay_http::report::{
    ConfigProblem, ConnectionRole, DurationCounts, HealthReport, HookTally, ListenerReport,
    ReloadReport,
};
use punctual_relay_http::{ConfigSection, Fault, SectionChange, SectionEdit};

use crate::attached::Attached;
use crate::calls::CallPort;
use crate::hooks;
use crate::hub::{Hub, StreamFollower};
use crate::rights::Rights;

/// The configuration with its sources, and what stands by it.
pub(crate) struct Operation {
    rights: Arc<Rights>,
    attached: Arc<Attached>,
    state: Mutex<OperationState>,
    /// Told when the relay has drained or is to end at once.
    pub(crate) stop: Stop,
    drain: Stop,
    /// One change at a time.
    changing: tokio::sync::Mutex<()>,
}

struct OperationState {
    sources: Sources,
    loaded: Loaded,
    /// The listeners, by their names in the configuration.
    ports: BTreeMap<String, BoundPort>,
    warnings: Vec<String>,
}

/// A listener that is bound.
struct BoundPort {
    port: Arc<CallPort>,
    stop: Stop,
    /// Its address, with the port that the system chose for port 0.
    address: SocketAddr,
}

impl Operation {
    /// The operation of what was loaded from `sources`. Nothing listens yet.
    pub(crate) fn new(sources: Sources, loaded: Loaded, rights: Arc<Rights>) -> Self {
        let (ports, warnings) = (BTreeMap::new(), Vec::new());
        Self {
            rights,
            attached: Arc::default(),
            state: Mutex::new(OperationState { sources, loaded, ports, warnings }),
            stop: Stop::default(),
            drain: Stop::default(),
            changing: tokio::sync::Mutex::default(),
        }
    }

    /// The parts of streams beside their callers.
    pub(crate) fn attached(&self) -> &Attached {
        &self.attached
    }

    /// Binds all listeners, and pulls the sources that are pulled all the time.
    ///
    /// # Errors
    ///
    /// A listener cannot be bound.
    pub(crate) async fn begin(&self, hub: &Arc<Hub>) -> Result<(), Failure> {
        hub.be_followed_by(Arc::clone(&self.attached) as Arc<dyn StreamFollower>);
        let configuration = hub.configuration();
        for (name, settings) in configuration.named_listeners() {
            self.listen(hub, name, settings.clone()).await?;
        }
        let hooks = hooks::of(&configuration).map_err(Failure::usage)?;
        hub.hooks.change(&hooks).map_err(|error| Failure::runtime(error.to_string()))?;
        self.pull_all(hub, &configuration);
        Ok(())
    }

    async fn listen(
        &self,
        hub: &Arc<Hub>,
        name: String,
        settings: ListenerSettings,
    ) -> Result<(), Failure> {
        let (port, listener) = CallPort::bind(hub, &self.rights, settings).await?;
        let stop = Stop::default();
        let bound = BoundPort {
            port: Arc::clone(&port),
            stop: stop.clone(),
            address: listener.local_addr(),
        };
        self.state().ports.insert(name, bound);
        tokio::spawn(port.serve(listener, stop));
        Ok(())
    }

    fn pull_all(&self, hub: &Arc<Hub>, configuration: &Configuration) {
        for name in configuration.streams.always_pulled() {
            self.attached.pull(hub, &name, &configuration.stream(&name));
        }
    }

    /// Applies what the sources say now.
    async fn apply(
        &self,
        hub: &Arc<Hub>,
        sources: Sources,
        loaded: Loaded,
    ) -> Result<ReloadReport, Fault> {
        let (old, new) = (hub.configuration(), loaded.configuration.clone());
        let change = ConfigChange::between(&old, &new);
        let rights = self.rights.of(&new).map_err(|it| Fault::Invalid(it, Vec::new()))?;
        // A new listener may fail, so it comes first.
        let mut opened: Vec<String> = Vec::new();
        for (name, settings) in new.named_listeners() {
            if self.state().ports.contains_key(&name) {
                continue;
            }
            if let Err(failure) = self.listen(hub, name.clone(), settings.clone()).await {
                opened.iter().for_each(|name| self.close(name));
                return Err(Fault::Conflict(failure.to_string()));
            }
            opened.push(name);
        }
        let hooks = hooks::of(&new).map_err(|text| Fault::Invalid(text, Vec::new()))?;
        hub.hooks.change(&hooks).map_err(|error| Fault::Failed(error.to_string()))?;
        self.rights.set(rights);
        for part in change.listeners.iter().filter(|it| it.kind == ChangeKind::Removed) {
            self.close(&part.name);
        }
        for (name, settings) in new.named_listeners() {
            if let Some(bound) = self.state().ports.get(&name) {
                bound.port.change(settings.clone());
            }
        }
        let changed_streams = self.changed_streams(hub, &old, &new);
        hub.set_configuration(new.clone());
        for name in &changed_streams {
            self.attached.end_pull(name.as_str());
            self.attached.end(name.as_str());
            if let Some(stream) = hub.find(name.as_str()) {
                self.attached.begin(hub, &stream, &new.stream(name));
            }
        }
        self.pull_all(hub, &new);
        let cut = self.withdraw(hub, &change, &new).await;
        let mut state = self.state();
        (state.sources, state.loaded) = (sources, loaded);
        let report = ReloadReport {
            changed: changed_keys(&change),
            needs_restart: change.needs_restart(),
            cut,
        };
        Ok(report)
    }

    /// The streams that are there and whose source, destinations or recording changed.
    fn changed_streams(
        &self,
        hub: &Hub,
        old: &Configuration,
        new: &Configuration,
    ) -> Vec<StreamName> {
        let there = hub.streams().into_iter().filter_map(|it| StreamName::new(it.name()).ok());
        let all = there.chain(old.streams.always_pulled());
        let differs = |name: &StreamName| {
            let (old, new) = (old.stream(name), new.stream(name));
            old.source != new.source || old.forward != new.forward || old.record != new.record
        };
        let mut names: Vec<_> = all.filter(differs).collect();
        names.sort();
        names.dedup();
        names
    }

    /// Ends connections whose right is gone, if the configuration wants that.
    async fn withdraw(&self, hub: &Hub, change: &ConfigChange, new: &Configuration) -> Vec<String> {
        if !change.rights() || !new.auth.apply_to_existing {
            return Vec::new();
        }
        let access = self.rights.current();
        let mut cut = Vec::new();
        for connection in hub.connections.of(None) {
            if let Some(admitted) = &connection.admitted
                && !access.would_still_admit(admitted)
            {
                connection.end("its right was taken away");
                cut.push(connection.stream.to_string());
            }
        }
        cut.sort();
        cut.dedup();
        cut
    }

    fn close(&self, name: &str) {
        if let Some(port) = self.state().ports.remove(name) {
            port.stop.tell();
        }
    }

    /// Reads all sources again and applies the difference, or changes nothing.
    ///
    /// # Errors
    ///
    /// All problems of the configuration, or a listener that cannot be bound.
    pub(crate) async fn reload(&self, hub: &Arc<Hub>) -> Result<ReloadReport, Fault> {
        let _one_at_a_time = self.changing.lock().await;
        let before = self.state().sources.clone();
        let sources = before.read_again(Environment::of_process()).map_err(|it| invalid(&it))?;
        let loaded = check(&sources).map_err(|it| invalid(&it))?;
        let report = self.apply(hub, sources, loaded).await?;
        let (changed, restart) = (report.changed.join(", "), report.needs_restart.join(", "));
        let text = match (changed.is_empty(), restart.is_empty()) {
            (true, true) => "the configuration was read again: nothing changed".to_owned(),
            (_, true) => format!("the configuration was read again: {changed}"),
            _ => format!("the configuration was read again: {changed}; a restart takes {restart}"),
        };
        hub.tell(punctual_relay_http::report::EventKind::Reload, None, None, text);
        Ok(report)
    }

    /// The faults of a configuration file; none if the relay would take it.
    pub(crate) fn check(&self, file: &str) -> Vec<ConfigProblem> {
        let sources = self.state().sources.with_text(file);
        check(&sources).err().map_or_else(Vec::new, |all| problems(&all))
    }

    /// The configuration in force with the origin of each value.
    pub(crate) fn configuration(&self) -> serde_json::Value {
        toml::from_str(&self.state().loaded.print()).unwrap_or_default()
    }

    /// The section of a name or pattern.
    pub(crate) fn section(&self, name: &str) -> Option<ConfigSection> {
        let values = self.configuration().get("stream")?.get(name)?.clone();
        Some(ConfigSection { version: version(&values), values })
    }

    /// Changes the section of a name or pattern, and gives the section after it.
    ///
    /// # Errors
    ///
    /// The section has another version, or the change is invalid.
    pub(crate) async fn change_section(
        &self,
        hub: &Arc<Hub>,
        change: SectionChange,
    ) -> Result<ConfigSection, Fault> {
        let _one_at_a_time = self.changing.lock().await;
        let before = self.section(&change.name);
        if let Some(wanted) = &change.if_version
            && before.as_ref().is_none_or(|section| section.version != *wanted)
        {
            return Err(Fault::Stale(format!("`{}` was changed meanwhile", change.name)));
        }
        let sources = self.state().sources.clone();
        let (section, persist) = (Some(change.name.as_str()), change.persist);
        let patched = match &change.edit {
            SectionEdit::Patch(values) => sources.patched(section, values, persist),
            SectionEdit::Put(values) => {
                sources.without_changes(section, persist).patched(section, values, persist)
            }
            SectionEdit::Delete => Ok(sources.without_changes(section, persist)),
        };
        let sources = patched.map_err(|text| Fault::Invalid(text, Vec::new()))?;
        let loaded = check(&sources).map_err(|all| invalid(&all))?;
        if persist {
            sources.write_state().map_err(|error| Fault::Failed(error.to_string()))?;
        }
        self.apply(hub, sources, loaded).await?;
        let none = || ConfigSection { values: serde_json::json!({}), version: String::new() };
        Ok(self.section(&change.name).unwrap_or_else(none))
    }

    /// Begins to drain: no new calls, viewers end in slices, publishers last.
    pub(crate) fn drain(self: &Arc<Self>, hub: &Arc<Hub>) {
        if self.drain.is_told() {
            return;
        }
        self.drain.tell();
        hub.begin_drain();
        let (operation, hub) = (Arc::clone(self), Arc::clone(hub));
        tokio::spawn(async move {
            operation.end_connections(&hub).await;
            operation.stop.tell();
        });
    }

    /// Whether the relay drains.
    pub(crate) fn is_draining(&self) -> bool {
        self.drain.is_told()
    }

    async fn end_connections(&self, hub: &Hub) {
        let settings = hub.configuration().drain;
        let viewers = hub.connections.of(None).into_iter();
        let viewers: Vec<_> = viewers.filter(|it| it.role == ConnectionRole::Viewer).collect();
        let share = settings.spread / u32::try_from(viewers.len().max(1)).unwrap_or(u32::MAX);
        for (place, viewer) in viewers.into_iter().enumerate() {
            if place > 0 {
                tokio::time::sleep(share).await;
            }
            viewer.end("the relay is about to end");
        }
        for connection in hub.connections.of(None) {
            connection.end("the relay is about to end");
        }
        let gone = async {
            while !hub.connections.of(None).is_empty() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let _ = tokio::time::timeout(settings.timeout, gone).await;
    }

    /// Whether the relay is able to do its work.
    pub(crate) fn health(&self, hub: &Hub) -> HealthReport {
        let state = self.state();
        let mut problems = Vec::new();
        if state.ports.is_empty() {
            problems.push("no listener is bound".to_owned());
        }
        if hub.is_draining() {
            problems.push("the relay is about to end".to_owned());
        }
        problems.extend(self.attached.failed_recordings());
        HealthReport { ready: problems.is_empty(), problems, warnings: state.warnings.clone() }
    }

    /// The ports on which the relay listens.
    pub(crate) fn listeners(&self) -> Vec<ListenerReport> {
        let state = self.state();
        let report = |(name, it): (String, &ListenerSettings)| {
            let port = state.ports.get(&name);
            let address = port.map(|port| port.address).or(it.address());
            ListenerReport {
                protocol: if it.quic.is_some() { "srt+quic" } else { "srt" }.to_owned(),
                address: address.map_or_else(String::new, |address| address.to_string()),
                stream: it.stream.as_ref().map(ToString::to_string),
                certhash: port.and_then(|it| it.port.certhash().map(str::to_owned)),
            }
        };
        state.loaded.configuration.named_listeners().into_iter().map(report).collect()
    }

    /// The URI with which encoders publish.
    pub(crate) fn publish_uri(&self) -> Option<String> {
        self.uri("publish")
    }

    /// The URI with which players play.
    pub(crate) fn play_uri(&self) -> Option<String> {
        self.uri("request")
    }

    fn uri(&self, mode: &str) -> Option<String> {
        let port = self.srt_address()?.port();
        Some(format!("srt://HOST:{port}?streamid=#!::r=NAME,m={mode}"))
    }

    /// The address of the first listener over UDP.
    pub(crate) fn srt_address(&self) -> Option<SocketAddr> {
        let state = self.state();
        let listeners = state.loaded.configuration.named_listeners();
        let (name, _) = listeners.into_iter().find(|(_, it)| it.srt.is_some())?;
        state.ports.get(&name).map(|port| port.address)
    }

    /// Runs of hooks, by event and result.
    pub(crate) fn hook_runs(&self, hub: &Hub) -> Vec<HookTally> {
        let tally = |(event, result, count): (HookEventKind, HookResult, u64)| HookTally {
            event: event.name().to_owned(),
            result: result.name().to_owned(),
            count,
        };
        hub.hooks.counts().into_iter().map(tally).collect()
    }

    /// The times of other servers' decisions about callers.
    pub(crate) fn auth_requests(&self) -> DurationCounts {
        DurationCounts::default()
    }

    fn state(&self) -> MutexGuard<'_, OperationState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn problems(all: &[punctual_relay_config::ConfigProblem]) -> Vec<ConfigProblem> {
    let number = |it: Option<usize>| it.and_then(|it| u32::try_from(it).ok());
    let problem = |it: &punctual_relay_config::ConfigProblem| ConfigProblem {
        line: number(it.line),
        column: number(it.column),
        key: Some(it.key.clone()).filter(|key| !key.is_empty()),
        message: it.message.clone(),
    };
    all.iter().map(problem).collect()
}

fn invalid(all: &[punctual_relay_config::ConfigProblem]) -> Fault {
    let first = all.first().map_or_else(String::new, ToString::to_string);
    Fault::Invalid(first, problems(all))
}

fn changed_keys(change: &ConfigChange) -> Vec<String> {
    let parts = change.listeners.iter().map(|it| format!("listen `{}`", it.name));
    let parts = parts.chain(change.streams.iter().map(|it| format!("stream `{}`", it.name)));
    let parts = parts.chain(change.users.iter().map(|it| format!("user `{}`", it.name)));
    let keys = |section: &'static str, keys: &[punctual_relay_config::KeyChange]| {
        keys.iter().map(|it| format!("{section}.{}", it.key)).collect::<Vec<_>>()
    };
    let mut all: Vec<String> = parts.collect();
    all.extend(keys("http", &change.http));
    all.extend(keys("auth", &change.auth));
    all.extend(keys("drain", &change.drain));
    all.extend(change.hooks.then(|| "hooks".to_owned()));
    all
}

/// A short text that changes with the values.
fn version(values: &serde_json::Value) -> String {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    values.to_string().hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}
