//! The policy of files and streams of bytes: their rate, and the number of packets in flight.

use std::fmt;
use std::time::Duration;

use punctual_rtt::Rtt;
use punctual_units::{Bitrate, Instant};
use punctual_wire::SeqNo;

use crate::config::Config;
use crate::wake_up::WakeUp;

/// The state of the sender's path at an event to which congestion control may react.
#[derive(Clone, Copy, Debug)]
pub struct PathState {
    /// The estimate of the round-trip time.
    pub rtt: Rtt,
    /// The newest round-trip time that the peer reported (every 10 ms, in its ACKs); zero before
    /// the first report. Peers of other implementations smooth it over the last eight samples or
    /// so; toward them, while packets are lost, it is that which their NAKs measure.
    pub latest_rtt: Duration,
    /// The least `latest_rtt` of the last ten minutes, which is the round-trip time without a queue
    /// (RFC 6817 section 3.4.2); zero before the first report.
    pub base_rtt: Duration,
    /// The number of packets that were sent and are not acknowledged.
    pub in_flight: u32,
    /// The total of data packets that have arrived at the peer, retransmissions and duplicates
    /// included, modulo 2^32; `None` before the first report. Only ends of this implementation
    /// report it; toward others it is inferred from their ACKs and NAKs.
    pub arrived: Option<u32>,
    /// The size of a full packet, bytes, IP and UDP headers included. A rate is this size divided
    /// by the [`period`].
    ///
    /// [`period`]: CongestionControl::period
    pub packet_size: u32,
    /// Packets per second that arrive at the peer, smoothed from its ACKs; 0 if unknown.
    pub delivery_rate: u32,
    /// Packets per second that the link seems to carry, smoothed from the peer's ACKs; 0 if
    /// unknown.
    pub capacity: u32,
    /// The number of packets that the peer reported lost and that wait for retransmission.
    pub in_loss_list: usize,
    /// The number of packets that the latest NAK added to `in_loss_list`; 0 if no NAK came.
    pub newly_lost: u64,
    /// The time for which the oldest packet in flight has been missing: packets behind it have
    /// arrived meanwhile, and are not acknowledged. Zero while nothing is lost, and in live mode.
    pub blocked: Duration,
    /// The sequence number of the next original.
    pub next_new: SeqNo,
}

impl PathState {
    /// The time that packets wait in queues along the path: the newest round-trip time less the
    /// least one. Zero before the first report.
    pub fn queueing_delay(&self) -> Duration {
        self.latest_rtt.saturating_sub(self.base_rtt)
    }
}

/// Decides the rate of files and byte streams, and the largest number of packets in flight.
///
/// A congestion control can be based on losses, on the rate of delivery or on delay: it is called
/// with each reported round-trip time, and the queueing delay that follows from it. It determines a
/// window, and a period or a rate, which the sender reads after each call that may change them.
/// They apply to originals and retransmissions alike; the
/// [`RetransmitPolicy`](crate::RetransmitPolicy) decides which packets are retransmitted.
pub trait CongestionControl: fmt::Debug + Send {
    /// The time from one packet to the next. It is shown in the statistics, and spaces the packets
    /// unless [`rate`](Self::rate) returns a rate.
    fn period(&self) -> Duration;

    /// The sending rate, headers included: each packet takes the time for its own size. The default
    /// is `None`: each packet takes the [`period`](Self::period), regardless of its size.
    fn rate(&self) -> Option<Bitrate> {
        None
    }

    /// The largest number of packets in flight. The peer's flow window is a limit too.
    fn window(&self) -> u32;

    /// The highest allowed rate, headers included, for the statistics and for the limit of
    /// retransmissions.
    fn max_bandwidth(&self) -> Bitrate;

    /// The peer reported a round-trip time: `path.latest_rtt` is new. The default ignores it.
    fn round_trip(&mut self, now: Instant, path: &PathState) {
        let _ = (now, path);
    }

    /// An ACK arrived that acknowledged `packets` packets, possibly none.
    fn acknowledged(&mut self, now: Instant, packets: u32, path: &PathState);

    /// The peer reported packets lost, the first of them `first`.
    fn lost(&mut self, now: Instant, first: SeqNo, path: &PathState);

    /// No packet was acknowledged for the retransmission timeout.
    fn timed_out(&mut self, now: Instant, path: &PathState);

    /// A packet is sent, an original or a retransmission. The default ignores it.
    fn sent(&mut self, now: Instant) {
        let _ = now;
    }

    /// The number of packets that may be sent at once when the application submits data after a
    /// pause. The default is one.
    fn burst(&self) -> u32 {
        1
    }

    /// The instant at which a packet may be sent, as far as the packets in the network determine
    /// it; the [`period`](Self::period) or [`rate`](Self::rate) applies as well. The default is
    /// now: the [`window`](Self::window) alone limits the packets in flight.
    fn opens(&self) -> WakeUp {
        WakeUp::Now
    }

    /// The application changed options of the connection. The default ignores it.
    fn configured(&mut self, config: &Config) {
        let _ = config;
    }
}
