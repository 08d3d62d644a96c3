//! The options of QUIC endpoints and connections.

use std::sync::Arc;
use std::time::Duration;

use quinn_proto::{MtuDiscoveryConfig, VarInt};

use crate::congestion::CongestionControl;

/// The options of an endpoint.
#[derive(Clone, Debug)]
pub struct QuicEndpointConfig {
    /// The seed of all random numbers, from the system's source of randomness: secret keys depend
    /// on it. In virtual time any number.
    pub seed: [u8; 32],
    /// An instant of the standard library's clock for the origin of the driver's time. quinn counts
    /// in that clock; it is never compared with the time of day.
    pub epoch: std::time::Instant,
    /// The largest number of connections; more are refused. Default 4096.
    pub max_connections: usize,
    /// Handshakes of callers that are under way before every further caller has to prove its
    /// address by a Retry packet first. Default 64.
    pub retry_above: usize,
    /// The options of connections that are accepted.
    pub transport: TransportConfig,
}

impl QuicEndpointConfig {
    /// The defaults, with this seed and epoch.
    pub fn new(seed: [u8; 32], epoch: std::time::Instant) -> Self {
        Self {
            seed,
            epoch,
            max_connections: 4_096,
            retry_above: 64,
            transport: TransportConfig::default(),
        }
    }
}

/// The options of a connection.
#[derive(Clone, Copy, Debug)]
pub struct TransportConfig {
    /// The congestion control. Default: none of QUIC's own.
    pub congestion: CongestionControl,
    /// The largest UDP payload that is sent before discovery has confirmed any, bytes, 1200 to
    /// 1452. Default 1400: a DATAGRAM frame of 1332 bytes, which is an SRT packet with 7 packets of
    /// MPEG-TS, fits. Where the path carries less, lost packets show it after some round trips, and
    /// connections fall back to 1200.
    pub initial_mtu: u16,
    /// The largest UDP payload that discovery tries, bytes. Default 1452, for Ethernet.
    pub max_mtu: u16,
    /// The time without a packet of the peer after which a connection ends. Default 10 s.
    pub idle_timeout: Duration,
    /// The pause after which a keepalive is sent; `None` for none. Default 3 s.
    pub keep_alive: Option<Duration>,
    /// The most bytes of datagrams that wait to be sent because of congestion control, or because
    /// the handshake is under way. The oldest ones are dropped and counted. Default 256 KiB.
    pub send_queue: usize,
    /// The most bytes of received datagrams that wait for the application; the oldest ones are
    /// dropped. Of messages on streams as many wait, and flow control holds the peer back then.
    /// Default 1 MiB.
    pub receive_queue: usize,
    /// The most bytes of a message on a stream of its own. A peer that sends more is reset.
    /// Default 1 MiB.
    pub max_message: usize,
}

/// Bytes of datagrams that quinn holds: a batch for one segmenting send call.
pub(crate) const HANDED_OVER: usize = 64 << 10;

impl Default for TransportConfig {
    fn default() -> Self {
        Self {
            congestion: CongestionControl::None,
            initial_mtu: 1_400,
            max_mtu: 1_452,
            idle_timeout: Duration::from_secs(10),
            keep_alive: Some(Duration::from_secs(3)),
            send_queue: 256 << 10,
            receive_queue: 1 << 20,
            max_message: 1 << 20,
        }
    }
}

/// The round-trip time before any is measured: a first packet that is lost is repeated after
/// three times as long. RFC 9002 recommends 333 ms, for which a call over a lossy path waits a
/// second.
const INITIAL_RTT: Duration = Duration::from_millis(100);

/// Bytes on all streams of a connection that the peer may send before they are read: enough for
/// 640 Mb/s at a round trip of 100 ms.
const RECEIVE_WINDOW: u32 = 8 << 20;

/// Streams of the peer that may be open at once.
const STREAMS: u32 = 1_024;

impl TransportConfig {
    pub(crate) fn build(&self) -> Arc<quinn_proto::TransportConfig> {
        let mut config = quinn_proto::TransportConfig::default();
        let mut discovery = MtuDiscoveryConfig::default();
        discovery.upper_bound(self.max_mtu.max(self.initial_mtu));
        // The idle timeout of QUIC has a unit of 1 ms and 62 bits.
        let idle =
            VarInt::try_from(u64::try_from(self.idle_timeout.as_millis()).unwrap_or(u64::MAX))
                .unwrap_or(VarInt::MAX);
        config
            .congestion_controller_factory(self.congestion.factory())
            .initial_mtu(self.initial_mtu.max(1_200))
            .initial_rtt(INITIAL_RTT)
            .mtu_discovery_config(Some(discovery))
            .max_idle_timeout(Some(idle.into()))
            .keep_alive_interval(self.keep_alive)
            .receive_window(VarInt::from_u32(RECEIVE_WINDOW))
            .max_concurrent_bidi_streams(VarInt::from_u32(0))
            .max_concurrent_uni_streams(VarInt::from_u32(STREAMS))
            .datagram_send_buffer_size(HANDED_OVER)
            .datagram_receive_buffer_size(Some(self.receive_queue));
        Arc::new(config)
    }
}
