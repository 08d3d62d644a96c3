//! Setting and reading the options of a socket.

use punctual::{ConnectionInfo, KeyState, OptionPhase, Socket as Connection};
use punctual_blocking::Events;

use super::link::Link;
use super::{Socket, SocketState};
use crate::code::{Code, Failure};
use crate::options::{OptionNumber, SocketOptionValue};
use crate::ports::LocalPort;

/// The options of a socket.
#[derive(Debug)]
pub(crate) struct OptionAccess<'a>(pub(super) &'a Socket);

impl OptionAccess<'_> {
    /// Sets an option.
    pub(crate) fn set(
        &self,
        number: OptionNumber,
        value: SocketOptionValue,
    ) -> Result<(), Failure> {
        self.0.check_settable()?;
        if self.0.is_group() && NOT_OF_GROUPS.contains(&number) {
            return Err(Code::InvalidParameter.into());
        }
        let mut state = self.0.lock();
        state.check_phase(number).map_err(|failure| match failure.code {
            // Groups are never bound.
            Code::Bound if self.0.is_group() => Code::Connected.into(),
            _ => failure,
        })?;
        let mut options = state.options.clone();
        options.set(number, value)?;
        if let Some(link) = self.0.core.link() {
            // Values that the running connection refuses are no error: libsrt takes them, too.
            if let Ok(config) = options.config() {
                let _ = link.configure(|present| Ok(follow(present, &config)));
            }
        }
        self.0.core.settings.follow(&options);
        state.options = options;
        Ok(())
    }

    /// The value of an option.
    pub(crate) fn get(&self, number: OptionNumber) -> Result<SocketOptionValue, Failure> {
        if self.0.is_group() {
            return self.of_group(number);
        }
        let info = self.0.core.link().and_then(Link::connection).map(Connection::info);
        if let Some(value) = self.live_value(number, info.as_ref()) {
            return Ok(value);
        }
        self.0.lock().options.get(number).ok_or_else(|| Code::InvalidOperation.into())
    }

    /// The value of an option of a group: what it has itself, or what its first link says.
    fn of_group(&self, number: OptionNumber) -> Result<SocketOptionValue, Failure> {
        if NOT_READ_OF_GROUPS.contains(&number) {
            return Err(Code::InvalidParameter.into());
        }
        let own = [OptionNumber::GROUPTYPE, OptionNumber::SNDDATA, OptionNumber::RCVDATA];
        let value = match self.0.links().first().filter(|_| !own.contains(&number)) {
            Some(link) => {
                let info = link.link().and_then(Link::connection).map(Connection::info);
                link.options().live_value(number, info.as_ref())
            }
            None if number == OptionNumber::ISN => Some(SocketOptionValue::Int(-1)),
            None if own.contains(&number) => self.live_value(number, None),
            None => None,
        };
        let value = value.or_else(|| self.0.lock().options.get(number));
        value.ok_or_else(|| Code::InvalidOperation.into())
    }

    /// The value of an option that the connection determines.
    fn live_value(
        &self,
        number: OptionNumber,
        info: Option<&ConnectionInfo>,
    ) -> Option<SocketOptionValue> {
        let int =
            |number: u64| Some(SocketOptionValue::Int(i32::try_from(number).unwrap_or(i32::MAX)));
        match number {
            OptionNumber::STATE => Some(SocketOptionValue::Int(self.0.state() as i32)),
            OptionNumber::EVENT => {
                Some(SocketOptionValue::Int(self.event_option().0.cast_signed()))
            }
            OptionNumber::ISN => Some(SocketOptionValue::Int(
                self.0.core.link().map_or(0, |link| link.first_sequence),
            )),
            OptionNumber::MSS => int(u64::from(self.0.core.link()?.statistics().mss)),
            OptionNumber::SNDBUF | OptionNumber::RCVBUF => {
                // libsrt counts packets, and packets have the size that both ends agreed on.
                let options = self.0.lock().options.clone();
                let own = i64::from(options.int(OptionNumber::MSS)) - IP_AND_UDP;
                let agreed = i64::from(self.0.core.link()?.statistics().mss) - IP_AND_UDP;
                int(u64::try_from(options.number(number) / own * agreed).unwrap_or(0))
            }
            OptionNumber::IPTTL => self.ip_option(LocalPort::ttl),
            OptionNumber::IPTOS => self.ip_option(LocalPort::tos),
            OptionNumber::SNDDATA => int(self.statistics_now().send_buffer_packets.into()),
            OptionNumber::RCVDATA => {
                let buffered = u64::from(self.statistics_now().receive_buffer_packets);
                int(buffered + self.0.receiver.waiting() as u64)
            }
            OptionNumber::PEERVERSION => int(info.map_or(0, |info| info.peer_version.into())),
            OptionNumber::KMSTATE => {
                let sends = self.0.lock().options.is_on(OptionNumber::SENDER);
                let [send, receive] = self.key_states(info);
                int(if sends { send } else { receive } as u64)
            }
            OptionNumber::SNDKMSTATE => int(self.key_states(info)[0] as u64),
            OptionNumber::RCVKMSTATE => int(self.key_states(info)[1] as u64),
            OptionNumber::LATENCY | OptionNumber::RCVLATENCY => int(millis(info?.receive_latency)),
            OptionNumber::PEERLATENCY => int(millis(info?.peer_latency)),
            OptionNumber::PBKEYLEN => int(info?.cipher?.1.bytes() as u64),
            OptionNumber::STREAMID => {
                // In a rendezvous, the peer's replaces this end's own one.
                let id = self.0.core.link()?.connection()?.raw_stream_id().bytes();
                (!id.is_empty()).then(|| SocketOptionValue::Text(id.to_vec()))
            }
            OptionNumber::PACKETFILTER => {
                Some(SocketOptionValue::Text(info?.packet_filter.clone().into_bytes()))
            }
            OptionNumber::GROUPTYPE => Some(SocketOptionValue::Int(self.0.group_type())),
            _ => None,
        }
    }

    /// The events of a connection, without those of its end beside the error.
    fn event_option(&self) -> Events {
        match self.0.state() {
            SocketState::Broken => Events::ERR,
            SocketState::Connected => self.0.core.readiness.events(),
            _ => Events::NONE,
        }
    }

    /// The states of the keys for what is sent and for what is received.
    fn key_states(&self, info: Option<&ConnectionInfo>) -> [KeyState; 2] {
        info.map_or_else(
            || {
                let failed = self.0.lock().failed_keys;
                [failed.send, failed.receive]
            },
            |info| [info.send_key_state, info.receive_key_state],
        )
    }

    /// An option that the UDP port has, once the socket is bound.
    fn ip_option(&self, read: impl FnOnce(&LocalPort) -> Option<u32>) -> Option<SocketOptionValue> {
        let state = self.0.lock();
        let value = read(state.local.as_ref()?)?;
        Some(SocketOptionValue::Int(i32::try_from(value).ok()?))
    }

    fn statistics_now(&self) -> punctual::Statistics {
        self.0.core.link().map(Link::statistics).unwrap_or_default()
    }
}

/// Options that concern a single socket, or that would end the live mode, the only one of groups;
/// and the packet filter, which a group cannot use: its links skip sequence numbers when they join.
const NOT_OF_GROUPS: [OptionNumber; 9] = [
    OptionNumber::BINDTODEVICE,
    OptionNumber::CONGESTION,
    OptionNumber::GROUPCONNECT,
    OptionNumber::IPV6ONLY,
    OptionNumber::PACKETFILTER,
    OptionNumber::RENDEZVOUS,
    OptionNumber::SENDER,
    OptionNumber::TRANSTYPE,
    OptionNumber::TSBPDMODE,
];

/// Options of which a group has no value, as in libsrt.
const NOT_READ_OF_GROUPS: [OptionNumber; 7] = [
    OptionNumber::BINDTODEVICE,
    OptionNumber::EVENT,
    OptionNumber::GROUPCONNECT,
    OptionNumber::KMPREANNOUNCE,
    OptionNumber::KMREFRESHRATE,
    OptionNumber::PASSPHRASE,
    OptionNumber::STATE,
];

/// The bytes of the headers of IPv4 and UDP.
const IP_AND_UDP: i64 = 28;

fn millis(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The present options of a connection, with those of `wanted` that can change at any time.
fn follow(mut present: punctual::Config, wanted: &punctual::Config) -> punctual::Config {
    for option in punctual::CONNECTION_OPTIONS {
        if option.info.phase != OptionPhase::AnyTime {
            continue;
        }
        if let Some(value) = option.get(wanted)
            && let Ok(changed) = option.set(present.clone(), &value)
        {
            present = changed;
        }
    }
    present
}
