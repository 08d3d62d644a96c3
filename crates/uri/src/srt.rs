//! `srt://host:port?…`: the mode, the address and the options of a connection.

use std::net::IpAddr;
#[cfg(feature = "quic")]
use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "quic")]
use punctual::{Carriage, quic::SRT_PROTOCOLS};
use punctual::{Config, GroupKind, PortConfig};

use crate::error::{Problem, UriError};
#[cfg(feature = "quic")]
use crate::key::{find, names};
use crate::parts::Parts;
use crate::place::is_wildcard;
#[cfg(feature = "quic")]
use crate::query::unknown_among;
use crate::query::{apply_one, apply_query, joined};
#[cfg(feature = "quic")]
use crate::quic::{QUIC_KEYS, QuicKeys};
use crate::redact::redacted;
use crate::secrets::is_stream_id;
use crate::srt_keys::{Mode, SRT_KEYS, SrtKeys};

/// An SRT peer to call, or a port to listen on.
#[derive(Clone, Debug)]
pub struct SrtTarget {
    /// The role of this end in the handshake.
    pub mode: Mode,
    /// The host to call, or the local address to listen on; empty for every IPv4 address.
    pub host: String,
    /// The port to call or to listen on.
    pub port: u16,
    /// The local address of a caller or in a rendezvous.
    pub local_host: Option<String>,
    /// The local port of a caller or in a rendezvous. In a rendezvous it is always set, since the
    /// other end has to know it.
    pub local_port: Option<u16>,
    /// The kind of the group that a caller is a link of; `None` for a single connection.
    pub group: Option<GroupKind>,
    /// The weight of the link in its group.
    pub weight: u16,
    /// The options of the connection.
    pub config: Config,
    /// The options of the UDP port, except its address.
    pub port_config: PortConfig,
    /// Whether the URI sets the largest payload.
    pub payload_size_given: bool,
    /// Whether the boundaries of messages are kept in a stream of bytes: a program that frames its
    /// messages sets [`Config::with_framing`] to this. Default true.
    pub framing: bool,
    /// The time that a listener waits for a caller; `None` for no limit.
    pub listen_timeout: Option<Duration>,
    /// Warnings about values that are valid but probably not intended.
    pub warnings: Vec<String>,
}

impl SrtTarget {
    /// Checks the parts of an `srt://` URI.
    pub(crate) fn over_udp(parts: &Parts<'_>) -> Result<Self, UriError> {
        #[cfg(feature = "quic")]
        if let Some((key, _)) = parts.query.iter().find(|(key, _)| find(QUIC_KEYS, key).is_some()) {
            return Err(parts.error(Problem::QuicOnly { key: key.clone() }));
        }
        Self::new(parts)
    }

    /// Checks the parts of an `srt+quic://` URI.
    #[cfg(feature = "quic")]
    pub(crate) fn over_quic(parts: &Parts<'_>) -> Result<Self, UriError> {
        let is_of_quic = |key: &str| find(QUIC_KEYS, key).is_some();
        let [quic_parts, srt_parts] = parts.split_query(is_of_quic);
        if let Some((key, _)) =
            srt_parts.query.iter().find(|(key, _)| find(&SRT_KEYS, key).is_none())
        {
            let all = names(&SRT_KEYS).chain(names(QUIC_KEYS));
            return Err(parts.error(unknown_among(all, key)));
        }
        let mut keys = QuicKeys::default();
        apply_query(QUIC_KEYS, &quic_parts, &mut keys)?;
        let mut target = Self::new(&srt_parts)?;
        let config = match target.mode {
            Mode::Caller => keys.caller(&target.host, SRT_PROTOCOLS),
            Mode::Listener => keys.listener(&target.host, SRT_PROTOCOLS),
            Mode::Rendezvous => Err(Problem::Mode(
                "QUIC has a client and a server: `mode=rendezvous` is only for `srt://`",
            )),
        };
        let (config, warnings) = config.map_err(|problem| parts.error(problem))?;
        target.port_config.carriage = Carriage::Quic(Arc::new(config));
        target.warnings.extend(warnings);
        Ok(target)
    }

    fn new(parts: &Parts<'_>) -> Result<Self, UriError> {
        let port = parts.required_port()?;
        let linger = Config::default().with_linger(DEFAULT_LINGER);
        let mut keys = SrtKeys { config: linger, ..SrtKeys::default() };
        apply_query(&SRT_KEYS, &parts.with_first(PRESETS), &mut keys)?;
        keys.config.check().map_err(|error| parts.error(error.into()))?;
        check_encryption(parts, &mut keys)?;
        let mode = match keys.mode {
            Some(mode) => mode,
            None if parts.host.is_empty() => Mode::Listener,
            None => Mode::Caller,
        };
        let mut target = Self {
            mode,
            host: parts.host.clone(),
            port,
            local_host: keys.local_host,
            local_port: keys.local_port,
            group: keys.group,
            weight: keys.weight.unwrap_or(0),
            config: keys.config,
            port_config: keys.port_config,
            payload_size_given: keys.payload_size_given,
            framing: keys.framing.unwrap_or(true),
            listen_timeout: keys.listen_timeout,
            warnings: keys.warnings,
        };
        match mode {
            Mode::Caller => target.check_caller(keys.mode.is_some()),
            Mode::Listener => target.check_listener(),
            Mode::Rendezvous => target.check_rendezvous(),
        }
        .map_err(|problem| parts.error(problem))?;
        Ok(target)
    }

    /// The options, with payloads of `size` bytes unless the URI sets the largest payload.
    pub fn config_for_payload(&self, size: usize) -> Result<Config, punctual::ConfigError> {
        if self.payload_size_given || size <= self.config.payload_size() {
            return Ok(self.config.clone());
        }
        self.config.clone().with_payload_size(size)
    }

    fn check_caller(&mut self, mode_given: bool) -> Result<(), Problem> {
        if self.host.is_empty() {
            return Err(Problem::NoHost("a caller needs one to call: `srt://host:4200`"));
        }
        if is_wildcard(&self.host) {
            return Err(Problem::Mode(
                "the address of all interfaces cannot be called; to listen there, leave the host \
                 out or add `mode=listener`",
            ));
        }
        if self.local_host.is_some() && !mode_given {
            self.warnings.push(
                "a host with `adapter` means rendezvous in srt-live-transmit; here it means caller \
                 (write `mode=caller` or `mode=rendezvous`)"
                    .to_owned(),
            );
        }
        Ok(())
    }

    /// Both ends use the port after the host, as in srt-live-transmit, unless `port` sets another
    /// local port.
    fn check_rendezvous(&mut self) -> Result<(), Problem> {
        if self.group.is_some() {
            return Err(Problem::Mode("the links of a group call (`mode=caller`)"));
        }
        if self.host.is_empty() || is_wildcard(&self.host) {
            return Err(Problem::NoHost(
                "a rendezvous needs the other end's host: `srt://host:4200?mode=rendezvous`",
            ));
        }
        self.local_port.get_or_insert(self.port);
        Ok(())
    }

    fn check_listener(&mut self) -> Result<(), Problem> {
        if let Some(port) = self.local_port.take()
            && port != self.port
        {
            return Err(Problem::Mode(
                "a listener has one port: the one after the host; leave `port` out",
            ));
        }
        // The name of an interface limits the listener to it, at any address.
        if let Some(adapter) = self.local_host.take_if(|it| it.parse::<IpAddr>().is_ok()) {
            if !self.host.is_empty() && self.host != adapter {
                return Err(Problem::Mode(
                    "a listener has one address: the host or `adapter`, not both",
                ));
            }
            self.host = adapter;
        }
        if self.group.is_some() {
            return Err(Problem::Mode(
                "the caller sets the kind of a group (`grouptype`); a listener accepts groups with \
                 `groupconnect=1`",
            ));
        }
        if !self.config.stream_id().is_empty() {
            self.warnings.push(
                "`streamid` has no effect at a listener: the caller sends it, and this end \
                 accepts callers with any stream ID"
                    .to_owned(),
            );
        }
        Ok(())
    }
}

/// Returns `config` with the option `key` set to `value`, both as in an `srt://` URI.
///
/// # Errors
///
/// The key is unknown or not an option of a connection, or the value is not valid.
pub fn set_option(config: Config, key: &str, value: &str) -> Result<Config, UriError> {
    let error = |problem| UriError { uri: redacted(&format!("{key}={value}")), problem };
    let mut keys = SrtKeys { config, ..SrtKeys::default() };
    apply_one(&SRT_KEYS, key, value, &mut keys).map_err(error)?;
    let is_other = keys.mode.is_some()
        || keys.local_host.is_some()
        || keys.local_port.is_some()
        || keys.group.is_some()
        || keys.weight.is_some()
        || keys.listen_timeout.is_some()
        || keys.framing.is_some()
        || keys.port_config != PortConfig::default();
    if is_other {
        let (key, value) = (key.to_owned(), value.to_owned());
        let reason =
            "it belongs to the address, the UDP port or the program, not to the connection";
        return Err(error(Problem::NotHere { key, value, reason }));
    }
    Ok(keys.config)
}

/// Refuses an empty passphrase, which a script may have read from a variable that is not set: the
/// stream would not be encrypted. Warns of keys that have no effect without one.
fn check_encryption(parts: &Parts<'_>, keys: &mut SrtKeys) -> Result<(), UriError> {
    let has = |name: &str| parts.query.iter().any(|(key, value)| key == name && value.is_empty());
    if has("passphrase") {
        return Err(parts.error(Problem::EmptyPassphrase));
    }
    let is_given = |name: &&str| parts.query.iter().any(|(key, _)| key == name);
    if keys.config.passphrase().is_none()
        && let Some(name) = ["pbkeylen", "key-length", "cryptomode"].iter().find(|it| is_given(it))
    {
        keys.warnings.push(format!("`{name}` without a passphrase: the stream is not encrypted"));
    }
    let streamid = parts.query.iter().find(|(key, _)| is_stream_id(key));
    if let Some(joined) = streamid.and_then(|(_, value)| joined(&SRT_KEYS, value)) {
        keys.warnings.push(format!(
            "`{joined}` is part of the stream ID as it is written: `&` separates keys"
        ));
    }
    if has("streamid") || has("srt_streamid") {
        keys.warnings.push("`streamid` is empty: the listener gets no stream ID".to_owned());
    }
    Ok(())
}

/// Keys that set several options, or that the meaning of others depends on: they are applied first,
/// wherever they are in the URI.
const PRESETS: &[&str] = &["transtype", "congestion", "smoother", "messageapi"];

/// The default of `linger` in URIs, so that a program that ends does not lose the last messages of
/// a file. The library's default is libsrt's: none.
pub(crate) const DEFAULT_LINGER: Duration = Duration::from_secs(3);

#[cfg(test)]
mod tests {
    use punctual::Transmission;

    use super::*;

    fn parse(rest: &str) -> Result<SrtTarget, UriError> {
        SrtTarget::new(&Parts::parse(rest, rest).unwrap())
    }

    fn problem(rest: &str) -> String {
        parse(rest).unwrap_err().to_string()
    }

    #[test]
    fn the_mode_follows_from_the_host() {
        assert_eq!(parse(":4200").unwrap().mode, Mode::Listener);
        assert_eq!(parse("host:4200").unwrap().mode, Mode::Caller);
        assert_eq!(parse("10.0.0.1:4200?mode=listener").unwrap().mode, Mode::Listener);
        assert_eq!(parse("host:4200?mode=client").unwrap().mode, Mode::Caller);
        assert_eq!(parse(":4200?mode=server").unwrap().mode, Mode::Listener);
        assert!(problem(":4200?mode=caller").contains("srt://host:4200"));
        assert!(problem("[::]:4200").contains("mode=listener"));
        assert!(problem("host").contains("port is missing"));
    }

    #[test]
    fn a_caller_may_set_its_local_address() {
        let target = parse("host:4200?bind=10.0.0.2:5000").unwrap();
        assert_eq!(target.local_host.as_deref(), Some("10.0.0.2"));
        assert_eq!(target.local_port, Some(5000));
        assert!(target.warnings[0].contains("rendezvous"));
        let target = parse("host:4200?bind=[::1]:5000&mode=caller").unwrap();
        assert_eq!(target.local_host.as_deref(), Some("::1"));
        assert!(target.warnings.is_empty());
        assert_eq!(parse("host:4200?port=5000").unwrap().local_port, Some(5000));
    }

    #[test]
    fn a_rendezvous_uses_the_same_port_at_both_ends_by_default() {
        let target = parse("host:4200?mode=rendezvous").unwrap();
        assert_eq!((target.mode, target.local_port), (Mode::Rendezvous, Some(4200)));
        assert_eq!(target.local_host, None);
        let target = parse("host:4200?mode=rendezvous&adapter=10.0.0.2&port=5000").unwrap();
        assert_eq!(target.local_host.as_deref(), Some("10.0.0.2"));
        assert_eq!(target.local_port, Some(5000));
        assert!(target.warnings.is_empty());
        assert_eq!(parse("host:4200?rendezvous=1").unwrap().mode, Mode::Rendezvous);
        assert_eq!(parse("host:4200?rendezvous=0").unwrap().mode, Mode::Caller);
        assert!(problem("host:4200?mode=caller&rendezvous=1").contains("contradicts"));
        assert!(problem(":4200?mode=rendezvous").contains("other end's"));
    }

    #[test]
    fn a_listener_takes_its_address_from_adapter() {
        let target = parse(":4200?adapter=10.0.0.2").unwrap();
        assert_eq!((target.mode, target.host.as_str()), (Mode::Listener, "10.0.0.2"));
        assert!(problem("10.0.0.1:4200?mode=listener&adapter=10.0.0.2").contains("not both"));
        assert!(problem(":4200?port=4300").contains("leave `port` out"));
        assert!(parse(":4200?streamid=a").unwrap().warnings[0].contains("any stream ID"));
        assert!(parse("host:4200?streamid=a").unwrap().warnings.is_empty());
    }

    #[test]
    fn a_preset_is_applied_before_other_keys() {
        let config = |rest: &str| parse(rest).unwrap().config;
        let live = config("h:1");
        assert_eq!((live.transmission(), live.linger()), (Transmission::Live, DEFAULT_LINGER));
        assert_eq!(config("h:1?transtype=live"), live);
        let file = config("h:1?linger=5&messageapi=1&transtype=file");
        assert_eq!(file.transmission(), Transmission::Messages);
        assert_eq!((file.linger(), file.tsbpd()), (Duration::from_secs(5), false));
        assert_eq!(config("h:1?transtype=file").linger(), Duration::from_secs(180));
        let set = |key, value| set_option(config("h:1?streamid=a"), key, value);
        assert_eq!(set("transtype", "file").unwrap().stream_id(), "a");
    }

    #[test]
    fn a_caller_may_be_a_link_of_a_group_and_a_listener_accepts_groups() {
        let target = parse("host:4200?grouptype=backup&weight=50").unwrap();
        assert_eq!((target.group, target.weight), (Some(GroupKind::Backup), 50));
        let target = parse("host:4200?grouptype=Broadcast&groupminstabletimeo=80").unwrap();
        assert_eq!((target.group, target.weight), (Some(GroupKind::Broadcast), 0));
        assert_eq!(target.config.group_min_stability(), Duration::from_millis(80));
        assert!(parse(":4200?groupconnect=1").unwrap().config.group_connect());
        assert!(problem(":4200?grouptype=backup").contains("`groupconnect=1`"));
        assert!(problem("host:4200?mode=rendezvous&grouptype=backup").contains("mode=caller"));
        assert!(problem("host:4200?grouptype=both").contains("broadcast, backup or balance"));
        assert!(problem("host:4200?weight=65536").contains("weight"));
    }

    #[test]
    fn options_are_set_one_by_one() {
        let set = |key, value| set_option(Config::default(), key, value);
        assert_eq!(set("latency", "80ms").unwrap().receive_latency(), Duration::from_millis(80));
        assert!(set("latncy", "1").unwrap_err().to_string().contains("did you mean `latency`?"));
        assert!(set("latency", "soon").is_err());
        assert!(set("mode", "caller").unwrap_err().to_string().contains("belongs to the address"));
        assert!(set("ipttl", "7").is_err());
    }

    #[test]
    fn the_payload_size_follows_the_message_unless_it_is_set() {
        let size = |rest: &str| {
            parse(rest).unwrap().config_for_payload(1400).map(|config| config.payload_size())
        };
        assert_eq!(size("h:1"), Ok(1400));
        assert_eq!(size("h:1?payloadsize=1316"), Ok(1316));
        assert!(parse("h:1").unwrap().config_for_payload(1500).is_err());
    }
}
