//! The options of UDP ports and listeners.

pub(crate) mod port_options;

use std::net::SocketAddr;
#[cfg(feature = "quic")]
use std::sync::Arc;
use std::time::Duration;

use punctual_proto::{Config, ConfigError, OptionValue, TypedOption};

use self::port_options::PORT_OPTIONS;
#[cfg(feature = "quic")]
use crate::srt_over_quic::QuicConfig;

/// Options of a UDP port. The names in brackets are libsrt's, which [`PORT_OPTIONS`] describes.
///
/// ```
/// use punctual::PortConfig;
///
/// # fn main() -> Result<(), punctual::ConfigError> {
/// let config = PortConfig { tos: Some(0xB8), ..PortConfig::default() };
/// assert_eq!(config, PortConfig::default().with_option("iptos", 0xB8)?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct PortConfig {
    /// The address to bind; port 0 for any free port. Default: any address and port, of both
    /// families where the system has IPv6.
    pub local: Option<SocketAddr>,
    /// The kernel's buffer for outgoing datagrams, 1 byte to 1 GiB \[udp_sndbuf\]. The kernel may
    /// give less. Default 2 MiB.
    pub send_buffer: Option<usize>,
    /// The kernel's buffer for incoming datagrams, 1 byte to 1 GiB \[udp_rcvbuf\]. The kernel may
    /// give less (on Linux no more than `net.core.rmem_max`). Default 8 MiB.
    pub receive_buffer: Option<usize>,
    /// Time to live, or hop limit, of outgoing datagrams, 1 to 255 \[ipttl\]. Default: the
    /// system's.
    pub ttl: Option<u32>,
    /// Type of service, or traffic class, of outgoing datagrams, 0 to 255: the DSCP times four, so
    /// 0xB8 is Expedited Forwarding \[iptos\]. Default: the system's.
    pub tos: Option<u32>,
    /// Whether a port bound to an IPv6 address is closed to IPv4 \[ipv6only\]. Default: open, so
    /// that `[::]` serves both families.
    pub ipv6_only: Option<bool>,
    /// The network device that all datagrams must take, by name (Linux only) \[bindtodevice\].
    pub device: Option<String>,
    /// How long work may be collected before it is done in one batch, 0 to 100 ms. Messages are
    /// then delivered at most half of this time too early or too late, and datagrams are received,
    /// acknowledged and retransmitted at most this time later than possible; in return the port's
    /// task wakes up once per period instead of several times per packet. On other systems than
    /// Linux it still wakes up for each datagram. Default 0: a message is delivered at its time; if
    /// there are more than 2,500 messages a second, those of 800 µs are delivered together.
    pub coalesce: Duration,
    /// The carriage of SRT packets. Default: UDP.
    pub carriage: Carriage,
}

impl PortConfig {
    /// The value of the option with this name in [`PORT_OPTIONS`]; `None` for an unknown name.
    pub fn option(&self, name: &str) -> Option<OptionValue> {
        TypedOption::find(PORT_OPTIONS, name)?.get(self)
    }

    /// Returns these options with this value of the option with this name in [`PORT_OPTIONS`].
    ///
    /// # Errors
    ///
    /// The name is unknown, or the value has the wrong type or lies outside the range.
    pub fn with_option(
        self,
        name: &str,
        value: impl Into<OptionValue>,
    ) -> Result<Self, ConfigError> {
        match TypedOption::find(PORT_OPTIONS, name) {
            Some(option) => option.set(self, &value.into()),
            None => Err(ConfigError {
                option: "option",
                value: name.to_owned(),
                expected: "the name of an option of a UDP port",
            }),
        }
    }

    /// Checks the ranges of all options.
    ///
    /// # Errors
    ///
    /// The first option whose value lies outside its range.
    pub fn check(&self) -> Result<(), ConfigError> {
        for option in PORT_OPTIONS {
            if let Some(value) = option.get(self) {
                option.set(Self::default(), &value)?;
            }
        }
        if self.coalesce > LONGEST_COALESCE {
            let value = format!("{:?}", self.coalesce);
            return Err(ConfigError { option: "coalesce", value, expected: "0 to 100 ms" });
        }
        Ok(())
    }
}

/// Beyond this, ACKs, which are due every 10 ms, come too late for any sender.
const LONGEST_COALESCE: Duration = Duration::from_millis(100);

/// The carriage of the SRT packets of a port.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Carriage {
    /// Each packet is a UDP datagram.
    #[default]
    Udp,
    /// The packets travel in the DATAGRAM frames of QUIC, with these options. All calls of a port
    /// to one server share a QUIC connection. Rendezvous and shards are not possible.
    #[cfg(feature = "quic")]
    Quic(Arc<QuicConfig>),
}

impl Carriage {
    /// Whether it is UDP.
    pub const fn is_udp(&self) -> bool {
        matches!(self, Self::Udp)
    }
}

/// Two carriages by QUIC are equal if they share their options.
impl PartialEq for Carriage {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Udp, Self::Udp) => true,
            #[cfg(feature = "quic")]
            (Self::Quic(one), Self::Quic(other)) => Arc::ptr_eq(one, other),
            #[cfg(feature = "quic")]
            _ => false,
        }
    }
}

impl Eq for Carriage {}

/// Options of a [`Listener`](crate::Listener).
#[derive(Clone, Debug, PartialEq)]
pub struct ListenerConfig {
    /// The UDP port.
    pub port: PortConfig,
    /// The options of accepted connections, unless the application accepts a caller with other
    /// options.
    pub connection: Config,
    /// The number of UDP sockets that share the port, each with its own driver; 0 for one per core.
    /// Default 1.
    ///
    /// The kernel gives all datagrams of one caller to the same socket (SO_REUSEPORT), so with
    /// several callers and a multi-threaded runtime the work spreads over the cores. More than one
    /// socket needs Unix.
    pub shards: usize,
    /// The largest number of callers that wait for an answer at the same time, on each shard;
    /// further callers are rejected with [`RejectReason::BACKLOG`](crate::RejectReason::BACKLOG).
    /// Default 1024.
    pub backlog: Option<usize>,
    /// The largest number of connections at the same time, on each shard. Default 65,536.
    pub max_connections: Option<usize>,
    /// The largest number of new callers per second, on each shard; a quarter of them may come at
    /// once. Handshakes beyond that are ignored, and callers repeat them; half of that quarter is
    /// reserved for addresses that few callers come from. Default 1000.
    pub callers_per_second: Option<u32>,
    /// The largest number of callers at the same time, on each shard, including waiting callers and
    /// excluding links of groups. Default: no limit. Further callers are rejected at once with
    /// [`RejectReason::BACKLOG`](crate::RejectReason::BACKLOG). Exception: a caller replaces an
    /// earlier one of the same host and with the same stream ID if that one has sent nothing for
    /// 1.2 s or still waits for an answer. So a program that was restarted need not wait for the
    /// idle timeout of its old connection, which ends with
    /// [`CloseReason::Replaced`](crate::CloseReason::Replaced).
    pub max_callers: Option<usize>,
    /// Whether an older caller keeps its connection while it is silent and another caller of its
    /// host and stream ID waits for an answer. By default the older one ends when it has been
    /// silent for 1.2 s, since both may be the same program before and after a restart. Keep
    /// silent callers if decisions take time and many callers of a host have one stream ID.
    pub keep_silent_callers: bool,
}

impl Default for ListenerConfig {
    fn default() -> Self {
        Self {
            port: PortConfig::default(),
            connection: Config::default(),
            shards: 1,
            backlog: None,
            max_connections: None,
            callers_per_second: None,
            max_callers: None,
            keep_silent_callers: false,
        }
    }
}
