//! The configuration of a relay as data.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use punctual_relay_access::{AccessConfig, StreamName};

use crate::hooks::HookSettings;
use crate::http::{DrainSettings, HttpSettings};
use crate::listener::ListenerSettings;
use crate::origin::Part;
use crate::streams::{StreamSettings, StreamTable};
use crate::users::{AuthSettings, UserTable};

/// The configuration of a relay. The default is that of `punctual relay` without a file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Configuration {
    /// The listening sockets.
    pub listeners: Vec<ListenerSettings>,
    /// The page, the API and the metrics.
    pub http: HttpSettings,
    /// The settings of every stream.
    pub streams: StreamTable,
    /// The users. If no rule is about streams, everybody may publish and view; if none is about the
    /// API, everybody on this machine may use all of it.
    pub users: Vec<UserTable>,
    /// Other judges of callers.
    pub auth: AuthSettings,
    /// The commands and URLs that events start.
    pub hooks: Vec<HookSettings>,
    /// The end of the relay.
    pub drain: DrainSettings,
}

impl Configuration {
    /// The settings of the stream with this name.
    pub fn stream(&self, name: &StreamName) -> StreamSettings {
        self.streams.settings(name)
    }

    /// The listeners, each by a name of its own: its URI, with a number if others before it have
    /// the same, as those at port 0 may.
    pub fn named_listeners(&self) -> Vec<(String, &ListenerSettings)> {
        let mut count = BTreeMap::<String, usize>::new();
        let name = |it: &ListenerSettings| {
            let uri = it.uri();
            let number = count.entry(uri.clone()).or_default();
            *number += 1;
            if *number == 1 { uri } else { format!("{uri} ({number})") }
        };
        self.listeners.iter().map(name).zip(&self.listeners).collect()
    }

    /// The rules about callers, for the decision about each.
    ///
    /// # Errors
    ///
    /// A rule cannot be, which the check of a configuration tells.
    pub fn access(&self) -> Result<AccessConfig, String> {
        Ok(AccessConfig {
            users: self.users.iter().map(UserTable::user).collect::<Result<_, _>>()?,
            signing_keys: self.auth.signing_keys().map_err(|error| error.to_string())?,
            jwt: self.auth.jwt().map_err(|error| error.to_string())?,
            callout: self.auth.callout().map_err(|error| error.to_string())?,
        })
    }

    /// The faults of several keys together, each with the part and the key that shows it.
    pub(crate) fn faults(&self) -> Vec<((Part, &'static str), String)> {
        let mut faults = Vec::new();
        let mut fault = |part, key, message: Option<String>| {
            faults.extend(message.map(|message| ((part, key), message)));
        };
        fault(Part::Auth, "", self.auth.fault());
        fault(Part::Drain, "spread", self.drain.fault());
        let http = [self.http.listen, self.http.metrics];
        if let [Some(listen), Some(metrics)] = http
            && collide(listen, metrics)
        {
            fault(Part::Http, "metrics", Some("it is the address of `listen`".to_owned()));
        }
        for (index, listener) in self.listeners.iter().enumerate() {
            let Some(address) = listener.address() else { continue };
            let before = self.listeners[..index].iter().filter_map(ListenerSettings::address);
            if before.into_iter().any(|other| collide(address, other)) {
                let key = if listener.quic.is_some() { "quic" } else { "srt" };
                let message = format!("another `[[listen]]` has the UDP port {}", address.port());
                fault(Part::Listen(index), key, Some(message));
            }
        }
        faults
    }
}

impl Default for Configuration {
    fn default() -> Self {
        Self {
            listeners: vec![ListenerSettings::default()],
            http: HttpSettings::default(),
            streams: StreamTable::default(),
            users: Vec::new(),
            auth: AuthSettings::default(),
            hooks: Vec::new(),
            drain: DrainSettings::default(),
        }
    }
}

/// Whether two sockets cannot have both addresses.
fn collide(a: SocketAddr, b: SocketAddr) -> bool {
    let is_any = a.ip().is_unspecified() || b.ip().is_unspecified();
    a.port() == b.port() && a.port() != 0 && (a.ip() == b.ip() || is_any)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listeners_at_port_0_have_names_of_their_own() {
        let at = |port| ListenerSettings {
            srt: Some(SocketAddr::from(([127, 0, 0, 1], port))),
            ..ListenerSettings::default()
        };
        let listeners = vec![at(0), at(8890), at(0), at(0)];
        let configuration = Configuration { listeners, ..Configuration::default() };
        let names: Vec<_> = configuration.named_listeners().into_iter().map(|it| it.0).collect();
        let (first, second) = ("srt://127.0.0.1:0", "srt://127.0.0.1:8890");
        assert_eq!(names, [first, second, "srt://127.0.0.1:0 (2)", "srt://127.0.0.1:0 (3)"]);
    }
}
