//! Callers by SRT: the decision on each, and its connection.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use punctual::{
    Accepted, CallerInfo, Carriage, Config, Listener, ListenerConfig, PortConfig, RawStreamId,
    RefusedCaller, RejectReason,
};
use punctual_ends::{Connection, EndLog, Failure, PortTransport, Stop};
use punctual_relay::{NotAdmitted, RefusedCall, Viewer};
use punctual_relay_access::{Action, Admitted, Call, Caller, shown};
use punctual_relay_config::ListenerSettings;
use punctual_relay_recording::Playback;
use tokio::sync::Notify;

use crate::admitted_call::AdmittedCall;
use crate::caller_rules::CallerRules;
use crate::group_calls::TooManyLinks;
use crate::hub::Hub;
use crate::playback;
use crate::rights::Rights;
use crate::serve::{serve_publisher, serve_viewer};
use crate::settings::{accepted, listening};

/// A listener of the relay.
pub(crate) struct CallPort {
    hub: Arc<Hub>,
    rights: Arc<Rights>,
    /// The rules for the next caller. A reload may change them.
    rules: Mutex<Arc<CallerRules>>,
    /// Told when they change.
    changed: Notify,
    log: Arc<EndLog>,
    certhash: Option<String>,
}

impl CallPort {
    /// Binds the listener.
    ///
    /// # Errors
    ///
    /// The address is in use or not of this machine.
    pub(crate) async fn bind(
        hub: &Arc<Hub>,
        rights: &Arc<Rights>,
        settings: ListenerSettings,
    ) -> Result<(Arc<Self>, Listener), Failure> {
        let address =
            settings.address().ok_or_else(|| Failure::usage("a listener has no address"))?;
        let port = PortConfig {
            local: Some(address),
            coalesce: COALESCE,
            carriage: carriage(&settings)?,
            ..PortConfig::default()
        };
        let certhash = crate::quic::certhash(&port.carriage);
        let shards = match port.carriage.is_udp() {
            true => std::thread::available_parallelism().map_or(1, usize::from),
            false => 1,
        };
        let config = ListenerConfig {
            port,
            connection: listening(&settings).map_err(punctual::Error::from)?,
            shards,
            max_callers: Some(settings.max_callers as usize),
            // Viewers behind one address have one stream ID, and a decision may take seconds.
            keep_silent_callers: true,
            ..ListenerConfig::default()
        };
        let listener = Listener::bind_with(config).await.map_err(|error| match &error {
            punctual::Error::Io(cause) => {
                punctual_ends::cannot_bind("listen at", address, PortTransport::Udp, cause)
            }
            _ => error.into(),
        })?;
        let log = Arc::new(EndLog::new(settings.uri(), false));
        let rules = Mutex::new(Arc::new(CallerRules::new(settings)));
        let (hub, rights, changed) = (Arc::clone(hub), Arc::clone(rights), Notify::new());
        let port = Arc::new(Self { hub, rights, rules, changed, log, certhash });
        let hearer = Arc::clone(&port);
        listener.hear_refusals(move |refused| hearer.note_refused(&refused));
        port.hub.groups.share_with(&listener);
        Ok((port, listener))
    }

    /// The hash of its certificate, by which callers over QUIC can verify it.
    pub(crate) fn certhash(&self) -> Option<&str> {
        self.certhash.as_deref()
    }

    /// Takes other settings for the next callers. The socket and its connections stay.
    pub(crate) fn change(&self, settings: ListenerSettings) {
        let rules = Arc::new(CallerRules::new(settings));
        *self.rules.lock().unwrap_or_else(PoisonError::into_inner) = rules;
        self.changed.notify_one();
    }

    fn rules(&self) -> Arc<CallerRules> {
        Arc::clone(&self.rules.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Serves callers until the relay ends.
    pub(crate) async fn serve(self: Arc<Self>, listener: Listener, stop: Stop) {
        let decider = Arc::clone(&self);
        let mut gate = listener
            .gate_with_value(move |caller| {
                let port = Arc::clone(&decider);
                async move { port.decide(caller).await }
            })
            .with_deadline(LONGEST_DECISION);
        loop {
            let next = tokio::select! {
                next = gate.accept_any() => next,
                () = self.changed.notified() => {
                    let most = self.rules().settings().max_callers as usize;
                    gate.listener().limit_callers(Some(most));
                    continue;
                }
                () = stop.told() => return,
            };
            match next {
                Ok((accepted, admitted)) => self.begin(accepted, admitted),
                Err(error) => {
                    tracing::error!("{}: {error}", self.rules().settings().uri());
                    return;
                }
            }
        }
    }

    /// Decides on a caller.
    async fn decide(
        &self,
        caller: CallerInfo,
    ) -> Result<(Config, (AdmittedCall, Option<Playback>)), RejectReason> {
        let rules = self.rules();
        let raw = RawStreamId::from(caller.stream_id.as_str());
        let refuse = |reason: &'static str, code: RejectReason, text: String| {
            self.refuse(caller.remote, shown(&raw), reason, code, text);
            code
        };
        if self.hub.is_draining() {
            let text = "the relay is about to end".to_owned();
            return Err(refuse("draining", RejectReason::UNAVAILABLE, text));
        }
        let ip = caller.remote.ip().to_canonical();
        if !rules.admit(ip) || self.hub.is_banned(ip) {
            let refused = punctual_relay_access::Refused::by_network(ip);
            return Err(refuse(refused.reason().word(), refused.code(), refused.to_string()));
        }
        if !rules.has_time() {
            let text = "too many callers in this second".to_owned();
            return Err(refuse("rate", RejectReason::OVERLOAD, text));
        }
        let Some(place) = self.hub.place(ip, rules.most_per_address()) else {
            let text = format!("{ip} has as many connections as an address may have");
            return Err(refuse("address-limit", RejectReason::OVERLOAD, text));
        };
        let call = Call::parse(&raw, rules.defaults())
            .map_err(|error| refuse("stream-id", error.code(), error.to_string()))?;
        let who = Caller::srt(ip, caller.remote.to_string());
        let admitted = self.rights.current().decide(&call, &who).await.map_err(|refused| {
            refuse(refused.reason().word(), refused.code(), refused.text().to_owned())
        })?;
        let settings = self.hub.settings(admitted.stream());
        if let Err((reason, code, text)) = self.room(&call, &admitted).await
            // A further link needs no room: its group has it.
            && !self.hub.groups.knows(&caller)
        {
            return Err(refuse(reason, code, text));
        }
        let mut playback = None;
        if admitted.action() == Action::Playback {
            let at = call.at().unwrap_or_default();
            let opened = playback::open(&self.hub, admitted.stream(), at).await;
            let opened = opened.map_err(|fault| {
                refuse("not-recorded", RejectReason::NOT_FOUND, fault.to_string())
            })?;
            playback = Some(opened);
        }
        let passphrase = admitted.passphrase();
        let config = accepted(rules.settings(), &settings, admitted.action(), passphrase).map_err(
            |error| {
                let text = format!("the settings of the stream cannot be used: {error}");
                refuse("settings", RejectReason::SERVER_ERROR, text)
            },
        )?;
        let group = self.hub.groups.admit(&caller).map_err(|TooManyLinks| {
            let text = "the group has as many links as a group may have".to_owned();
            refuse("too-many", RejectReason::OVERLOAD, text)
        })?;
        let call = AdmittedCall::new(admitted, &call, config.receive_latency(), (place, group));
        Ok((config, (call, playback)))
    }

    /// Whether the stream has room for the caller; else the reason in a word, the code and the
    /// text.
    async fn room(
        &self,
        call: &Call,
        admitted: &Admitted,
    ) -> Result<(), (&'static str, RejectReason, String)> {
        let name = admitted.stream();
        let room = match admitted.action() {
            Action::Publish => match self.hub.find(name.as_str()) {
                Some(stream) => stream.admits_publisher(admitted, call.is_backup()),
                None => Ok(()),
            },
            Action::Read => {
                let Some(stream) = self.hub.wanted(name).await else {
                    let text = format!("nobody publishes `{name}`");
                    return Err(("not-found", RejectReason::NOT_FOUND, text));
                };
                let user = admitted.user().map(str::to_owned);
                let viewer = Viewer { user, ..Viewer::default() };
                stream.look(|stream| stream.admits_viewer(&viewer))
            }
            _ => Ok(()),
        };
        match room {
            // A stream that has ended begins anew with a publisher.
            Ok(()) | Err(NotAdmitted::Ended) => Ok(()),
            Err(refused @ NotAdmitted::InUse) => {
                Err(("in-use", RejectReason::CONFLICT, format!("`{name}`: {refused}")))
            }
            Err(refused) => {
                Err(("too-many", RejectReason::OVERLOAD, format!("`{name}`: {refused}")))
            }
        }
    }

    fn begin(
        self: &Arc<Self>,
        accepted: Accepted,
        (call, playback): (AdmittedCall, Option<Playback>),
    ) {
        let connection = match accepted {
            Accepted::Socket(socket) => Connection::of_socket(socket, &self.log),
            Accepted::Group(group) => {
                call.is_connected_as(&group);
                Connection::of_group(group, &self.log)
            }
        };
        let protocol = if self.rules().settings().quic.is_some() { "srt+quic" } else { "srt" };
        let hub = Arc::clone(&self.hub);
        tokio::spawn(async move {
            match (call.admitted.action(), playback) {
                (Action::Publish, _) => serve_publisher(&hub, connection, &call, protocol).await,
                (_, Some(playback)) => {
                    playback::serve(&hub, connection, &call, playback, protocol).await;
                }
                (_, None) => serve_viewer(&hub, connection, &call, protocol).await,
            }
        });
    }

    /// Notes a caller that the library refused by itself, such as one with a wrong passphrase. The
    /// others are noted where they are decided on.
    fn note_refused(&self, refused: &RefusedCaller) {
        let words;
        let (reason, text) = match refused.reason {
            // The hook has noted it, unless the time for its decision was over.
            code if refused.by_hook && code != RejectReason::GATEWAY_TIMEOUT => return,
            RejectReason::BAD_SECRET => ("wrong-passphrase", "the passphrase is wrong"),
            RejectReason::UNSECURE => {
                ("unencrypted", "one end has a passphrase, the other has none")
            }
            RejectReason::BACKLOG => ("backlog", "too many callers wait or are connected"),
            RejectReason::VERSION => ("version", "the version of SRT is too old"),
            other => {
                words = other.to_string();
                ("protocol", words.as_str())
            }
        };
        let stream_id = shown(&RawStreamId::from(refused.stream_id.as_str()));
        self.refuse(refused.remote, stream_id, reason, refused.reason, text.to_owned());
    }

    fn refuse(
        &self,
        peer: SocketAddr,
        stream_id: String,
        reason: &'static str,
        code: RejectReason,
        text: String,
    ) {
        // The number that programs on libsrt see: that on the wire is larger by 1,000.
        let (at, code) = (punctual::now(), code.code() - 1_000);
        self.hub.refuse(RefusedCall { at, peer, stream_id, reason, code, text });
    }
}

/// The carriage of a listener.
fn carriage(settings: &ListenerSettings) -> Result<Carriage, Failure> {
    if settings.quic.is_none() {
        return Ok(Carriage::Udp);
    }
    crate::quic::carriage(&settings.tls)
}

/// The time for which work of a port may gather: one wake-up then serves many viewers.
const COALESCE: Duration = Duration::from_millis(4);

/// The longest decision on a caller: as long as a viewer may wait for a stream.
const LONGEST_DECISION: Duration = Duration::from_secs(3_600);
