use std::fmt;
use std::time::Duration;

use punctual_units::Instant;

use crate::estimate::Rtt;
use crate::number::PacketNumber;

/// A measured round trip: the acknowledgement of a packet came.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RttSample {
    /// When the acknowledgement came.
    pub now: Instant,
    /// The number of the packet that was acknowledged. Where an acknowledgement covers several
    /// packets, this is the newest of them.
    pub number: PacketNumber,
    /// The time from the packet to its acknowledgement, the peer's delay included.
    pub rtt: Duration,
    /// The peer's report of how long it delayed the acknowledgement; zero where the protocol does
    /// not report it. An SRT peer answers an ACK by an ACKACK at once.
    pub ack_delay: Duration,
}

/// Turns the samples of one path into the estimate that timers and policies use.
///
/// There is an estimator for each connection. Instants never go back. Numbers of sent packets
/// increase; samples may come in another order.
pub trait RttEstimator: fmt::Debug + Send {
    /// The packet `number`, which asks for an acknowledgement, is sent at `now`.
    ///
    /// By default it is ignored.
    fn sent(&mut self, now: Instant, number: PacketNumber) {
        let _ = (now, number);
    }

    /// An acknowledgement came and gave a sample.
    fn acknowledged(&mut self, sample: &RttSample);

    /// The peer reported its own estimate of the round trip at `now`, as SRT's full and small ACKs
    /// do. The result is the estimate that holds until the next sample or report; `None` leaves the
    /// estimate as it is.
    ///
    /// By default the report replaces the estimate: an end that only sends data measures no round
    /// trip, so its peer's report is all that it has, and one that measures too takes whichever is
    /// newer. The estimator's own state is left as it is, and serves again with the next sample.
    fn peer_reported(&mut self, now: Instant, reported: Rtt) -> Option<Rtt> {
        let _ = now;
        Some(reported)
    }

    /// The estimate from the samples so far; `None` before the first. It is read after each sample.
    fn estimate(&self) -> Option<Rtt>;

    /// How long to wait for an acknowledgement while `estimate` is the present one: after this time
    /// it is overdue. It is read after each sample, and after each report that replaces the
    /// estimate. SRT's retransmission timeout and its repetition of ACKs add margins of their own;
    /// the interval of periodic NAKs is the draft's, and follows the estimate alone.
    ///
    /// By default it is RTT + 4 RTTVar ([`Rtt::bound`]).
    fn timeout(&self, estimate: Rtt) -> Duration {
        estimate.bound()
    }

    /// How many updates the estimate has had, if it may change less often than with each sample; a
    /// first sample may count or not. `None`, the default, is for an estimator that updates with
    /// each sample. [`RetransmissionTimer`](crate::RetransmissionTimer) follows the updates.
    fn updates(&self) -> Option<u64> {
        None
    }
}
