//! A TCP connection, reduced to its ways of sending: loss recovery, and congestion control.

pub(super) mod delivery_rate;
mod progress;
mod rack;
mod rate_reduction;
mod receiver;
mod recovery;
mod retransmission_timer;
mod segments;
mod sender;
mod source;
mod transmissions;

use punctual_units::Instant;

pub use self::progress::FlowProgress;
use self::receiver::Receiver;
use self::sender::Sender;
use self::source::Segmenter;
pub use self::source::TcpSource;
use super::TrafficStatistics;
use super::control::{Bbr1, Bbr3, CongestionControl, TcpCubic, TcpNewReno};
use crate::error::WorldError;
use crate::schedule::RateSchedule;

/// A TCP connection as of today's systems: the data, and the control of its rate.
///
/// Modelled: selective acknowledgements (RFC 2018, RFC 6675), segments that are sent again until
/// they arrive, loss detection by three later packets or by time (RACK, RFC 8985 section 6), the
/// tail loss probe (RFC 8985 section 7), proportional rate reduction (RFC 6937) for NewReno and
/// CUBIC, limited transmit (RFC 3042), the retransmission timeout of RFC 6298 with Linux' least
/// variance of 200 ms, a window that does not grow while the application is the limit (RFC 7661
/// section 4.2), pacing and delivery-rate samples for BBR, and a receiver that answers each second
/// packet, or after 40 ms (RFC 5681 section 4.2). Each packet has 52 bytes of headers (IP, and TCP
/// with timestamps), each answer 52 bytes.
///
/// Not modelled: the handshake (add a round trip to times), the receiver's window (`max_window` is
/// the limit), the number of blocks in a selective acknowledgement (an answer tells all arrivals
/// before it), a tolerance of reordering that adapts, the undoing of a reduction for a packet that
/// was only late, ECN, and segmentation offload.
///
/// In ten cases, alone and in pairs, with and without loss, its rates lie within a quarter of those
/// of Linux 6.18 over the same link (`tests/world/tcp_linux.rs`).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TcpConfig {
    /// Decides the window, and perhaps the rate.
    pub control: TcpControl,
    /// The data.
    pub source: TcpSource,
    /// The largest window, bytes of IP packets.
    pub max_window: u64,
}

/// The congestion control of a TCP connection.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum TcpControl {
    /// RFC 5681 and RFC 6582: half the window after losses, and a packet more each round trip.
    NewReno,
    /// RFC 9438, the default of today's systems. The first slow start ends by HyStart++ (RFC 9406),
    /// or when a train of acknowledgements is long, as in Linux.
    Cubic,
    /// Version 1, draft-cardwell-iccrg-bbr-congestion-control-00.
    Bbr,
    /// Version 3, draft-ietf-ccwg-bbr.
    Bbr3,
}

/// A packet of a flow.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Packet {
    /// Counts every packet.
    transmission: u32,
    /// The segment that it carries.
    segment: u32,
}

/// Both ends of a TCP flow.
#[derive(Debug)]
pub(super) struct Tcp {
    sender: Sender,
    receiver: Receiver,
    answer: u16,
    drops_damaged: bool,
}

impl TcpConfig {
    /// A connection with endless data and a largest window of 64 MiB, so that the control alone
    /// decides.
    pub const fn new(control: TcpControl) -> Self {
        Self { control, source: TcpSource::Endless, max_window: 64 << 20 }
    }

    /// The same connection with other data.
    #[must_use]
    pub const fn with_source(self, source: TcpSource) -> Self {
        Self { source, ..self }
    }

    /// The same connection with another largest window.
    #[must_use]
    pub const fn with_max_window(self, max_window: u64) -> Self {
        Self { max_window, ..self }
    }

    /// Whether it can be simulated with packets of this size.
    pub(super) fn check(&self, packet: u16) -> Result<(), WorldError> {
        if packet <= HEADERS {
            return Err(WorldError::TcpPacket(packet));
        }
        match self.source {
            TcpSource::Rate(rate) => RateSchedule::constant(rate).check(),
            TcpSource::Endless | TcpSource::Bytes(_) => Ok(()),
        }
    }
}

impl Tcp {
    /// A flow of packets of `packet` bytes.
    pub(super) fn new(config: TcpConfig, packet: u16, seed: u64, start: Instant) -> Self {
        let TcpConfig { control, source, max_window } = config;
        let bytes = u64::from(packet);
        let control: Box<dyn CongestionControl> = match control {
            TcpControl::NewReno => Box::new(TcpNewReno::new(bytes, max_window)),
            TcpControl::Cubic => Box::new(TcpCubic::new(bytes, max_window)),
            TcpControl::Bbr => Box::new(Bbr1::new(bytes, seed)),
            TcpControl::Bbr3 => Box::new(Bbr3::new(bytes, seed)),
        };
        let payload = packet - HEADERS;
        let segments = Segmenter::new(source, payload, start);
        Self {
            sender: Sender::new(bytes, max_window, control, segments),
            receiver: Receiver::new(true, payload.into(), source.total()),
            answer: HEADERS,
            drops_damaged: true,
        }
    }

    /// The flow of [`super::Traffic::TcpLike`].
    pub(super) fn simple(packet: u16, max_window: u64) -> Self {
        let control = Box::new(TcpNewReno::new(packet.into(), max_window));
        Self {
            sender: Sender::simple(packet.into(), max_window, control),
            receiver: Receiver::new(false, u64::from(packet - SIMPLE_HEADERS), None),
            answer: SIMPLE_HEADERS,
            drops_damaged: false,
        }
    }

    /// Bytes of an answer.
    pub(super) fn answer(&self) -> u16 {
        self.answer
    }

    /// The number of a packet that may leave now.
    pub(super) fn poll_send(&mut self, now: Instant) -> Option<u64> {
        self.sender.poll_send(now).map(Packet::to_number)
    }

    /// When the sender is to be called.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.sender.poll_timeout()
    }

    /// When the receiver is to be called.
    pub(super) fn poll_answer_timeout(&self) -> Option<Instant> {
        self.receiver.poll_timeout()
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.sender.handle_timeout(now);
    }

    /// At the receiver: a packet arrived.
    pub(super) fn handle_packet(&mut self, now: Instant, number: u64, damaged: bool) {
        if !(damaged && self.drops_damaged) {
            self.receiver.handle_packet(now, Packet::of(number));
        }
    }

    /// At the receiver: the number of an answer that is due.
    pub(super) fn poll_answer(&mut self, now: Instant) -> Option<u64> {
        self.receiver.poll_answer(now)
    }

    /// At the sender: an answer arrived, which tells of all that had arrived when it was sent.
    pub(super) fn handle_answer(&mut self, now: Instant, answer: u64, damaged: bool) {
        if damaged && self.drops_damaged {
            return;
        }
        let receiver = &mut self.receiver;
        self.sender.handle_answer(now, std::iter::from_fn(|| receiver.learn(answer)));
    }

    pub(super) fn tell(&self, statistics: &mut TrafficStatistics) {
        self.sender.tell(statistics);
    }

    pub(super) fn progress(&self) -> &FlowProgress {
        self.receiver.progress()
    }
}

/// The segment that the packet with this number carries.
pub(super) fn segment_of(number: u64) -> u32 {
    Packet::of(number).segment
}

impl Packet {
    fn to_number(self) -> u64 {
        u64::from(self.transmission) << 32 | u64::from(self.segment)
    }

    #[expect(clippy::cast_possible_truncation, reason = "each half has 32 bits")]
    fn of(number: u64) -> Self {
        Self { transmission: (number >> 32) as u32, segment: number as u32 }
    }
}

/// Bytes of an IP header, and of a TCP header with timestamps.
const HEADERS: u16 = 52;
/// Without timestamps.
const SIMPLE_HEADERS: u16 = 40;
