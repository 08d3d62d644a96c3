//! The options of UDP ports and listeners.

use std::net::SocketAddr;
use std::time::Duration;

use punctual_proto::Config;

/// Options of a UDP port. The names in brackets are libsrt's.
///
/// ```
/// use punctual::PortConfig;
///
/// let config = PortConfig { tos: Some(0xB8), ..PortConfig::default() };
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct PortConfig {
    /// The address to bind; port 0 for any free port. Default: any address and port, of both
    /// families where the system has IPv6.
    pub local: Option<SocketAddr>,
    /// The kernel's buffer for outgoing datagrams, bytes \[udp_sndbuf\]. The kernel may give less.
    /// Default 2 MiB.
    pub send_buffer: Option<usize>,
    /// The kernel's buffer for incoming datagrams, bytes \[udp_rcvbuf\]. The kernel may give less
    /// (on Linux no more than `net.core.rmem_max`). Default 8 MiB.
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
    /// How long work may gather before it is done together, 0 to 100 ms. Messages are delivered
    /// half of this time too early or too late at most, and datagrams received, acknowledged and
    /// sent again up to all of it later than they could be; in return the port's task wakes up once
    /// a period instead of several times a packet. Elsewhere than on Linux it wakes up for each
    /// datagram all the same. Default 0: a message is delivered at its time; those of streams with
    /// more than 2,500 messages a second in groups of 800 µs.
    pub coalesce: Duration,
}

/// Options of a [`Listener`](crate::Listener).
#[derive(Clone, Debug, PartialEq)]
pub struct ListenerConfig {
    /// The UDP port.
    pub port: PortConfig,
    /// The options of accepted connections, unless the answer to a caller brings its own.
    pub connection: Config,
    /// How many UDP sockets share the port, each with its own driver; 0 for one a core. Default 1.
    ///
    /// The kernel gives all datagrams of one caller to one of them (SO_REUSEPORT), so with several
    /// callers and a multi-threaded runtime the work spreads over the cores. More than one needs
    /// Unix.
    pub shards: usize,
    /// Callers that may wait for an answer at once, on each shard; more are rejected with
    /// [`RejectReason::BACKLOG`](crate::RejectReason::BACKLOG). Default 1024.
    pub backlog: Option<usize>,
    /// Most connections at once, on each shard. Default 65,536.
    pub max_connections: Option<usize>,
    /// New callers that are taken in a second, on each shard, a quarter of them at once. The
    /// requests of more are passed over, and callers repeat them; half of those at once are kept
    /// for addresses that few callers come from. Default 1000.
    pub callers_per_second: Option<u32>,
    /// Callers that are taken at a time, on each shard, waiting ones included and links of groups
    /// not. Default: any number. More are refused at once with
    /// [`RejectReason::BACKLOG`](crate::RejectReason::BACKLOG), but one of the same host and with
    /// the same stream ID as another takes the place of that one, if that is not heard any more for
    /// 1.2 s or waits for an answer itself: whoever was started anew need not wait until the peer's
    /// idle timeout is over. A connection that ends by it does so with
    /// [`CloseReason::Replaced`](crate::CloseReason::Replaced).
    pub max_callers: Option<usize>,
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
        }
    }
}
