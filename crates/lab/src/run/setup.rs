//! The meaning of the values of a run: links, options, streams.

use std::time::Duration;

use punctual::Config;
use punctual_netem::{PathProfile, Trace, presets};
use punctual_sim::TcpControl;
use punctual_units::{Bitrate, read_text};
use punctual_uri::did_you_mean;

use super::blocks::BlockOptions;
use super::quic_model::QuicTransfer;
use super::tcp;
use super::transport::{MessageCarriage, QuicCongestion, RunTransport};
use crate::plan::{Experiment, ParameterValue, Plan, PlanError, Quantity, Values, keys};
use crate::settings;

/// Everything that a backend needs to know for a run.
#[derive(Clone, Debug)]
pub struct Setup {
    /// How messages are carried.
    pub transport: RunTransport,
    /// Payload bits a second that each stream sends, at the start.
    pub bitrate: Bitrate,
    /// How the rate grows, if it does.
    pub ramp: Option<RateRamp>,
    /// Bytes of each message.
    pub payload: usize,
    /// The time for which each stream sends.
    pub duration: Duration,
    /// The number of streams over the same link.
    pub streams: usize,
    /// The links from the sender to the receiver and back.
    pub path: PathProfile,
    /// The options of the sending end.
    pub sender: Config,
    /// The options of the receiving end.
    pub receiver: Config,
    /// The options of both ends as they are written: key and value, the sender's and the
    /// receiver's.
    pub written_options: [Vec<(String, ParameterValue)>; 2],
    /// The sender's host and the receiver's. Only `sim` has simulated hosts.
    pub hosts: [HostOptions; 2],
    /// Other traffic on the links. Only `sim` has that.
    pub traffic: Option<CrossTraffic>,
    /// The transfer over the model of QUIC, which then is all of the run: nothing is streamed. Only
    /// `quic-model` runs it.
    pub quic: Option<QuicTransfer>,
    /// The record of each data packet that is wanted. Only `sim` has one.
    pub blocks: Option<BlockOptions>,
    /// The TCP connection that carries the stream in place of SRT. Only `sim` has one.
    pub tcp: Option<TcpControl>,
    /// Where the run's chance comes from.
    pub seed: u64,
    /// Period of the time series; `None` for none.
    pub series: Option<Duration>,
    /// Whether packets are recorded.
    pub captures: bool,
}

/// A rate that grows in steps.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RateRamp {
    /// The difference between one step and the next.
    pub by: Bitrate,
    /// The time between steps.
    pub every: Duration,
}

/// The properties of a simulated host.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct HostOptions {
    /// How late it wakes up on average; exponentially distributed, up to ten times that.
    pub lateness: Duration,
    /// The error of its clock's rate in parts per million; positive if the clock is fast.
    pub drift_ppm: i32,
    /// The error of its clock at the start; the clock is ahead by it.
    pub offset: Duration,
}

/// Traffic that takes room on the links.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CrossTraffic {
    /// Its course.
    pub kind: TrafficKind,
    /// Bytes of each packet.
    pub packet: u16,
    /// When it starts.
    pub start: Duration,
    /// Its duration; `None` for that of the streams.
    pub duration: Option<Duration>,
    /// Whether it goes with the streams (`up`) or against them.
    pub up: bool,
}

/// The course of cross traffic.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TrafficKind {
    /// Always the same rate.
    Constant(Bitrate),
    /// Bursts at a rate, and pauses, of these mean lengths.
    OnOff(Bitrate, Duration, Duration),
    /// As much as a simple model of NewReno takes, as the plans of earlier results have it.
    Tcp,
    /// As much as a TCP connection with this congestion control takes.
    TcpConnection(TcpControl),
}

impl Setup {
    /// The meaning of the `values` of an experiment.
    ///
    /// # Errors
    ///
    /// A value that cannot be had, at its place in the plan.
    pub(crate) fn new(
        plan: &Plan,
        experiment: &Experiment,
        values: &Values,
        seed: u64,
    ) -> Result<Self, PlanError> {
        let given = Given { plan, experiment, values };
        let by = given.rate("stream.ramp.by")?;
        let every = given.time("stream.ramp.every")?;
        let ramp = match (by, every) {
            (None, None) => None,
            (Some(by), Some(every)) if !every.is_zero() => Some(RateRamp { by, every }),
            _ => return Err(given.error("stream.ramp.by", "a ramp has `by` and `every`")),
        };
        let written_options = [given.options("sender"), given.options("receiver")];
        let [sender, receiver] = &written_options;
        let payload = given.count("stream.payload")?.unwrap_or(DEFAULT_PAYLOAD);
        let payload = usize::try_from(payload).unwrap_or(usize::MAX);
        let transport = given.transport()?;
        let most = transport.max_payload();
        if !(24..=most).contains(&payload) {
            let message = format!("`payload` is {payload}; it must be 24 to {most} bytes");
            return Err(given.error("stream.payload", message));
        }
        let streams = given.count("stream.streams")?.unwrap_or(1);
        let quic = QuicTransfer::read(&given)?;
        let (bitrate, duration) = (given.rate("stream.bitrate")?, given.time("stream.duration")?);
        // A transfer has neither of them; its duration is a limit.
        let is_transfer = quic.is_some();
        let bitrate = bitrate.or(is_transfer.then_some(Bitrate::ZERO));
        let duration = duration.or(is_transfer.then_some(TRANSFER_LIMIT));
        Ok(Self {
            transport,
            bitrate: bitrate.ok_or_else(|| given.missing("bitrate"))?,
            ramp,
            payload,
            duration: duration.ok_or_else(|| given.missing("duration"))?,
            streams: usize::try_from(streams)
                .ok()
                .filter(|n| (1..=10_000).contains(n))
                .ok_or_else(|| given.error("stream.streams", "`streams` must be 1 to 10000"))?,
            path: given.path(seed)?,
            sender: given.config("sender", sender, payload)?,
            receiver: given.config("receiver", receiver, payload)?,
            written_options,
            hosts: [given.host("sender")?, given.host("receiver")?],
            traffic: given.traffic()?,
            quic,
            blocks: BlockOptions::read(&given)?,
            tcp: tcp::control(&given)?,
            seed,
            series: plan.run.series,
            captures: plan.run.captures,
        })
    }
}

impl Setup {
    /// The rate at which a stream sends at this time after its start.
    pub fn rate_at(&self, time: Duration) -> Bitrate {
        let Some(RateRamp { by, every }) = self.ramp else { return self.bitrate };
        let steps = u64::try_from(time.as_nanos() / every.as_nanos().max(1)).unwrap_or(u64::MAX);
        let added = by.as_bits_per_sec().saturating_mul(steps);
        Bitrate::from_bits_per_sec(self.bitrate.as_bits_per_sec().saturating_add(added))
    }
}

/// The values of a run, and their places in the plan.
pub(super) struct Given<'a> {
    plan: &'a Plan,
    experiment: &'a Experiment,
    values: &'a Values,
}

impl Given<'_> {
    fn get(&self, key: &str) -> Option<&ParameterValue> {
        self.values.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// Whether a key begins so.
    pub(super) fn has_any(&self, start: &str) -> bool {
        self.values.iter().any(|(key, _)| key.starts_with(start))
    }

    /// A value as text.
    pub(super) fn text(&self, key: &str) -> Option<String> {
        self.get(key).map(ParameterValue::to_string)
    }

    /// An error about a key.
    pub(super) fn error(&self, key: &str, message: impl Into<String>) -> PlanError {
        let parameters = &self.experiment.grid.parameters;
        match parameters.iter().find(|parameter| parameter.key == key) {
            Some(parameter) => parameter.place.error(message),
            None => {
                let place = if self.experiment.name.is_empty() {
                    self.plan.name.clone()
                } else {
                    format!("{}, experiment `{}`", self.plan.name, self.experiment.name)
                };
                PlanError { place, line: None, excerpt: None, message: message.into() }
            }
        }
    }

    fn missing(&self, key: &str) -> PlanError {
        self.error("", format!("[stream] has no `{key}`"))
    }

    fn quantity<T>(
        &self,
        key: &str,
        what: &str,
        read: impl Fn(&Quantity) -> Option<T>,
    ) -> Result<Option<T>, PlanError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let quantity = value.quantity().as_ref().and_then(read);
        quantity.map(Some).ok_or_else(|| {
            self.error(key, format!("`{}` is `{value}`; it must be {what}", keys::name(key)))
        })
    }

    pub(super) fn time(&self, key: &str) -> Result<Option<Duration>, PlanError> {
        self.quantity(key, "a time, such as `120s`", Quantity::time)
    }

    fn rate(&self, key: &str) -> Result<Option<Bitrate>, PlanError> {
        self.quantity(key, "a bit rate, such as `5Mbps`", Quantity::rate)
    }

    pub(super) fn count(&self, key: &str) -> Result<Option<u64>, PlanError> {
        let read = |quantity: &Quantity| quantity.count().or_else(|| quantity.bytes());
        self.quantity(key, "a whole number", read)
    }

    /// One of several words.
    pub(super) fn word(&self, key: &str, words: &[&str]) -> Result<Option<String>, PlanError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let text = value.to_string();
        if words.contains(&text.as_str()) {
            return Ok(Some(text));
        }
        let suggestion = did_you_mean(&text, words.iter().copied());
        let words = words.join(", ");
        let name = keys::name(key);
        Err(self.error(key, format!("`{name}` is `{text}`{suggestion} (one of: {words})")))
    }

    /// The value that a word means, of these.
    pub(super) fn named<T: Copy>(
        &self,
        key: &str,
        known: &[(&str, T)],
    ) -> Result<Option<T>, PlanError> {
        let words: Vec<&str> = known.iter().map(|(word, _)| *word).collect();
        let word = self.word(key, &words)?;
        Ok(word.and_then(|word| known.iter().find(|(known, _)| *known == word).map(|(_, it)| *it)))
    }

    fn transport(&self) -> Result<RunTransport, PlanError> {
        let observed = match self.word("stream.transport", &MessageCarriage::names())? {
            Some(name) => MessageCarriage::from_name(&name).unwrap_or_default(),
            None => MessageCarriage::default(),
        };
        let together = self.together()?;
        if !together.is_empty() && !together.contains(&observed) {
            let message = format!("`{}` is not among the streams of `together`", observed.name());
            return Err(self.error("stream.transport", message));
        }
        let congestion = self.word("stream.quiccc", &QuicCongestion::names())?;
        let congestion = congestion.and_then(|name| QuicCongestion::from_name(&name));
        Ok(RunTransport { observed, together, congestion })
    }

    /// The streams that share the link; `none` for no other ones.
    fn together(&self) -> Result<Vec<MessageCarriage>, PlanError> {
        let Some(value) = self.get("stream.together") else { return Ok(Vec::new()) };
        let text = value.to_string();
        let names = text.lines().filter(|name| *name != "none");
        let read = |name: &str| {
            MessageCarriage::from_name(name).ok_or_else(|| {
                let known = MessageCarriage::names();
                let suggestion = did_you_mean(name, known);
                let known = known.join(", ");
                let message = format!("`together` has `{name}`{suggestion} (known: {known})");
                self.error("stream.together", message)
            })
        };
        names.map(read).collect()
    }

    /// The path that the plan's values change: a preset, or a perfect one.
    fn preset(&self, seed: u64) -> Result<PathProfile, PlanError> {
        let Some(name) = self.get("link.preset").map(ParameterValue::to_string) else {
            return Ok(PathProfile::default());
        };
        let preset =
            presets::find(&name).map_err(|error| self.error("link.preset", error.to_string()))?;
        let event = self.get("link.event").map(ParameterValue::to_string);
        match event.as_deref() {
            None => Ok(preset.path(seed)),
            Some(_) if preset.name != "4g-stationary" => {
                Err(self.error("link.event", "only the preset `4g-stationary` has an `event`"))
            }
            Some("none") => Ok(presets::stationary_4g(seed, &[])),
            Some(_) => {
                let at = self.time("link.event")?.unwrap_or_default();
                let usual = presets::CongestionEvent::default();
                let stall = self.time("link.stall")?.unwrap_or(usual.stall);
                let lost = self.time("link.outage")?.unwrap_or(usual.lost);
                let event = presets::CongestionEvent { at, stall, lost, ..usual };
                Ok(presets::stationary_4g(seed, &[event]))
            }
        }
    }

    /// Reads a recorded course of the link towards the receiver.
    fn trace(&self, name: &str) -> Result<Trace, PlanError> {
        let wrong = |message: String| self.error("link.trace", format!("{name}: {message}"));
        let text = read_text(name).map_err(|error| wrong(error.to_string()))?;
        Trace::parse(&text).map_err(|error| wrong(error.to_string()))
    }

    fn path(&self, seed: u64) -> Result<PathProfile, PlanError> {
        let mut path = self.preset(seed)?;
        if let Some(name) = self.get("link.trace") {
            let trace = self.trace(&name.to_string())?;
            path.up.trace = Some(trace);
        }
        // Keys for both ways come before those for one way, in any order of the plan.
        let one_way = |key: &str| key.starts_with("link.up.") || key.starts_with("link.down.");
        for half in [false, true] {
            for (key, value) in self.values.iter().filter(|(key, _)| one_way(key) == half) {
                let Some(name) = key.strip_prefix("link.").filter(|name| !OURS.contains(name))
                else {
                    continue;
                };
                let text = value.to_string();
                let set = match name.split_once('.') {
                    Some(("up", name)) => path.up.set(name, &text),
                    Some(("down", name)) => path.down.set(name, &text),
                    _ => path.set(name, &text),
                };
                set.map_err(|error| {
                    self.error(key, format!("`{name}` is `{text}`: {error}{}", forms(name)))
                })?;
            }
        }
        Ok(path)
    }

    /// The options of one end: those of both, then its own.
    fn options(&self, end: &str) -> Vec<(String, ParameterValue)> {
        let mut options: Vec<(String, ParameterValue)> = Vec::new();
        for (key, value) in self.values {
            let Some(name) = key.strip_prefix("options.") else { continue };
            let name = match name.split_once('.') {
                Some((which, name)) if which == end => name,
                Some(_) => continue,
                None => name,
            };
            options.retain(|(known, _)| known != name || !key.contains(end));
            if !options.iter().any(|(known, _)| known == name) {
                options.push((name.to_owned(), value.clone()));
            }
        }
        options
    }

    fn config(
        &self,
        end: &str,
        options: &[(String, ParameterValue)],
        payload: usize,
    ) -> Result<Config, PlanError> {
        let mut config = Config::default();
        if payload > config.payload_size() {
            config = config
                .with_payload_size(payload.min(1_456))
                .map_err(|error| self.error("stream.payload", error.to_string()))?;
        }
        for (name, value) in options {
            config = settings::set(config, name, &value.exact()).map_err(|error| {
                let own = format!("options.{end}.{name}");
                let key = if self.get(&own).is_some() { own } else { format!("options.{name}") };
                self.error(&key, error)
            })?;
        }
        Ok(config)
    }

    fn host(&self, end: &str) -> Result<HostOptions, PlanError> {
        let key = |name: &str| {
            let own = format!("hosts.{end}.{name}");
            if self.get(&own).is_some() { own } else { format!("hosts.{name}") }
        };
        let drift_key = key("drift");
        let drift = self.quantity(
            &drift_key,
            "a number of parts in a million, -100000 to 100000",
            |quantity| {
                let drift = i32::try_from(quantity.number.round()).ok()?;
                (quantity.number.is_whole() && drift.abs() <= 100_000).then_some(drift)
            },
        )?;
        Ok(HostOptions {
            lateness: self.time(&key("lateness"))?.unwrap_or_default(),
            drift_ppm: drift.unwrap_or_default(),
            offset: self.time(&key("offset"))?.unwrap_or_default(),
        })
    }

    fn traffic(&self) -> Result<Option<CrossTraffic>, PlanError> {
        let kinds = ["none", "constant", "on-off", "tcp", "newreno", "cubic", "bbr", "bbr3"];
        let Some(kind) = self.word("traffic.kind", &kinds)? else {
            let given = self.values.iter().find(|(key, _)| key.starts_with("traffic."));
            let message =
                "[traffic] has no `kind`: none, constant, on-off, tcp, newreno, cubic, bbr or bbr3";
            return given.map_or(Ok(None), |(key, _)| Err(self.error(key, message)));
        };
        let needed = |key: &str| self.error("traffic.kind", format!("it needs `{key}`"));
        let rate = || self.rate("traffic.rate")?.ok_or_else(|| needed("rate"));
        let time = |key: &str| self.time(&format!("traffic.{key}"))?.ok_or_else(|| needed(key));
        let connection = tcp::CONTROLS.iter().find(|(name, _)| *name == kind);
        let kind = match kind.as_str() {
            "none" => return Ok(None),
            "constant" => TrafficKind::Constant(rate()?),
            "on-off" => TrafficKind::OnOff(rate()?, time("on")?, time("off")?),
            _ => connection
                .map_or(TrafficKind::Tcp, |(_, control)| TrafficKind::TcpConnection(*control)),
        };
        let packet = self.count("traffic.packet")?.unwrap_or(1_500);
        // Headers of TCP, with timestamps where today's connections are simulated, and a byte.
        let least = if matches!(kind, TrafficKind::TcpConnection(_)) { 53 } else { 40 };
        let wrong =
            || self.error("traffic.packet", format!("`packet` must be {least} to 65535 bytes"));
        Ok(Some(CrossTraffic {
            kind,
            packet: u16::try_from(packet).ok().filter(|size| *size >= least).ok_or_else(wrong)?,
            start: self.time("traffic.start")?.unwrap_or_default(),
            duration: self.time("traffic.duration")?,
            up: self.word("traffic.way", &["up", "down"])?.is_none_or(|way| way == "up"),
        }))
    }
}

/// How the value of a link's parameter is written.
fn forms(name: &str) -> String {
    let name = name.rsplit('.').next().unwrap_or(name);
    match punctual_netem::KEYS.iter().find(|key| key.name == name) {
        Some(key) => format!(" ({})", key.forms),
        None => String::new(),
    }
}

/// Keys of a link that its text form does not have.
const OURS: [&str; 5] = ["preset", "event", "stall", "outage", "trace"];

/// The time after which a transfer over the model of QUIC ends in any case.
const TRANSFER_LIMIT: Duration = Duration::from_secs(120);

/// Seven MPEG-TS packets.
const DEFAULT_PAYLOAD: u64 = 1_316;
