//! Traffic that belongs to nobody here and takes room on the links.

mod control;
mod firsts;
mod tcp;

use std::time::Duration;

use punctual_units::{Bitrate, Instant};

use self::firsts::Firsts;
use self::tcp::Tcp;
pub use self::tcp::{FlowProgress, TcpConfig, TcpControl, TcpSource};
use crate::error::WorldError;
use crate::ids::LinkId;
use crate::schedule::{MessagePace, RateSchedule};
use crate::seeds::{Purpose, SplitMix64, derive};

/// Cross traffic from the entrance of one link to the exit of another.
#[derive(Clone, Debug)]
pub struct TrafficConfig {
    /// Its rate and shape.
    pub traffic: Traffic,
    /// Bytes of each packet with its IP header: 40 to 65,535, usually up to 1500.
    pub packet: u16,
    /// The links that it goes over, one after the other.
    pub links: Vec<LinkId>,
    /// The links that answers come back over; only TCP has answers.
    pub back: Vec<LinkId>,
    /// When it starts, since the world's start.
    pub start: Duration,
    /// The time for which it sends.
    pub duration: Duration,
}

/// The amount of cross traffic. Rates are of IP packets.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Traffic {
    /// Always the same, evenly spaced.
    Constant {
        /// The rate.
        rate: Bitrate,
    },
    /// Bursts and pauses of exponentially distributed length.
    OnOff {
        /// The rate within a burst.
        rate: Bitrate,
        /// Mean length of a burst.
        on: Duration,
        /// Mean length of a pause.
        off: Duration,
    },
    /// As much as a simple TCP connection with endless data takes.
    ///
    /// Modelled: the window of RFC 5681 and RFC 6928 (ten packets at first, slow start, congestion
    /// avoidance, half the window once a round trip with losses), loss detected by the arrival of
    /// three packets sent later, as by selective acknowledgements (RFC 6675), and the
    /// retransmission timeout of RFC 6298 with at least 200 ms. The receiver acknowledges each
    /// packet with 40 bytes; an acknowledgement tells all arrivals before it. Not modelled: the
    /// handshake, the receiver's window, delayed acknowledgements, tail loss probes, damage, and
    /// packets that come after they were taken for lost.
    /// [`Tcp`](Self::Tcp) is closer to the systems of today.
    TcpLike {
        /// The largest window, bytes of IP packets.
        max_window: u64,
    },
    /// A TCP connection with NewReno, CUBIC or BBR, whose data may be endless, end, or come at the
    /// rate of a live stream.
    Tcp(TcpConfig),
}

/// Totals of cross traffic.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct TrafficStatistics {
    /// Packets sent.
    pub sent: u64,
    /// Packets that arrived, duplicates too.
    pub delivered: u64,
    /// IP bytes of those.
    pub delivered_bytes: u64,
    /// IP bytes that got across, each once.
    ///
    /// Bytes of paced traffic in all packets that arrived, without duplicates. Bytes of TCP in the
    /// segments that the sender knows to have arrived, each in one packet. With
    /// [`Traffic::TcpLike`], a packet that was taken for lost does not count, even if it came
    /// later: another one carries the same bytes again.
    pub goodput_bytes: u64,
    /// TCP: packets that it took for lost.
    pub lost: u64,
    /// TCP: packets with a segment that had been sent before.
    pub retransmitted: u64,
    /// TCP: tail loss probes.
    pub probes: u64,
    /// TCP: the number of times that it began to recover from losses, and lowered its window unless
    /// its congestion control is BBR.
    pub reductions: u64,
    /// TCP: times that nothing came back for too long.
    pub timeouts: u64,
    /// TCP: the window now, bytes.
    pub window: u64,
    /// TCP: the rate at which packets leave now; `None` if the window alone decides.
    pub pacing_rate: Option<Bitrate>,
    /// TCP: the smoothed round-trip time.
    pub rtt: Duration,
}

/// Cross traffic at work.
#[derive(Debug)]
pub(crate) struct CrossFlow {
    config: TrafficConfig,
    pub(crate) route: u32,
    pub(crate) back: Option<u32>,
    pub(crate) statistics: TrafficStatistics,
    source: FlowSource,
    end: Instant,
}

#[derive(Debug)]
enum FlowSource {
    Paced {
        /// Since `begun`.
        pace: MessagePace,
        begun: Instant,
        next: Option<Instant>,
        bursts: Option<BurstTraffic>,
        arrived: Firsts,
    },
    Tcp(Box<Tcp>),
}

#[derive(Debug)]
struct BurstTraffic {
    rate: Bitrate,
    on: Duration,
    off: Duration,
    chance: SplitMix64,
    /// When the burst ends.
    until: Instant,
}

impl TrafficConfig {
    /// Whether this can be sent.
    pub(crate) fn check(&self) -> Result<(), WorldError> {
        if self.packet < LEAST_PACKET {
            return Err(WorldError::TrafficPacket(self.packet));
        }
        match self.traffic {
            Traffic::Constant { rate } => RateSchedule::constant(rate).check(),
            Traffic::OnOff { on, off, .. } if on.is_zero() || off.is_zero() => {
                Err(WorldError::ZeroPhase)
            }
            Traffic::OnOff { rate, .. } => RateSchedule::constant(rate).check(),
            Traffic::TcpLike { .. } => Ok(()),
            Traffic::Tcp(tcp) => tcp.check(self.packet),
        }
    }
}

impl CrossFlow {
    /// Flow number `index` of the world with this seed, from `start` on.
    pub(crate) fn new(
        config: TrafficConfig,
        [route, back]: [Option<u32>; 2],
        seed: u64,
        index: usize,
        start: Instant,
    ) -> Self {
        let size = usize::from(config.packet);
        let paced = |rate, bursts| FlowSource::Paced {
            pace: MessagePace::new(RateSchedule::constant(rate), size),
            begun: start,
            next: Some(start),
            bursts,
            arrived: Firsts::default(),
        };
        let source = match config.traffic {
            Traffic::Constant { rate } => paced(rate, None),
            Traffic::OnOff { rate, on, off } => {
                let mut chance = SplitMix64::new(derive(seed, Purpose::Traffic, index));
                let until = start + chance.exponential(on);
                paced(rate, Some(BurstTraffic { rate, on, off, chance, until }))
            }
            Traffic::TcpLike { max_window } => {
                FlowSource::Tcp(Box::new(Tcp::simple(config.packet, max_window)))
            }
            Traffic::Tcp(tcp) => {
                let seed = derive(seed, Purpose::Traffic, index);
                FlowSource::Tcp(Box::new(Tcp::new(tcp, config.packet, seed, start)))
            }
        };
        let mut flow = Self {
            route: route.unwrap_or(0),
            back,
            statistics: TrafficStatistics::default(),
            source,
            end: start + config.duration,
            config,
        };
        if let FlowSource::Paced { pace, begun, next, .. } = &mut flow.source {
            *next = pace.next().map(|time| *begun + time);
        }
        flow
    }

    /// Bytes of each packet.
    pub(crate) fn packet(&self) -> u16 {
        self.config.packet
    }

    /// Whether this is TCP.
    pub(crate) fn is_tcp(&self) -> bool {
        matches!(self.source, FlowSource::Tcp(_))
    }

    /// The number of a packet that is to be sent at `now`; `None` if nothing is to be sent now.
    pub(crate) fn poll_send(&mut self, now: Instant) -> Option<u64> {
        if now >= self.end {
            return None;
        }
        let number = match &mut self.source {
            FlowSource::Paced { pace, begun, next, bursts, .. } => {
                next.filter(|&at| at <= now)?;
                *next = pace.next().map(|time| *begun + time);
                if let Some(bursts) = bursts
                    && next.is_some_and(|at| at >= bursts.until)
                {
                    *begun = bursts.until + bursts.chance.exponential(bursts.off);
                    bursts.until = *begun + bursts.chance.exponential(bursts.on);
                    *pace = MessagePace::new(
                        RateSchedule::constant(bursts.rate),
                        self.config.packet.into(),
                    );
                    *next = pace.next().map(|time| *begun + time);
                }
                self.statistics.sent
            }
            FlowSource::Tcp(tcp) => tcp.poll_send(now)?,
        };
        self.statistics.sent += 1;
        Some(number)
    }

    /// When it sends next, gives up waiting for an answer, or answers.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let (send, answer) = match &self.source {
            FlowSource::Paced { next, .. } => (*next, None),
            FlowSource::Tcp(tcp) => (tcp.poll_timeout(), tcp.poll_answer_timeout()),
        };
        [send.filter(|&at| at < self.end), answer].into_iter().flatten().min()
    }

    /// Handles the timers of the sender that are due at `now`.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if let FlowSource::Tcp(tcp) = &mut self.source
            && now < self.end
        {
            tcp.handle_timeout(now);
        }
    }

    /// A packet arrived, perhaps with damage.
    pub(crate) fn handle_packet(&mut self, now: Instant, number: u64, damaged: bool) {
        self.statistics.delivered += 1;
        self.statistics.delivered_bytes += u64::from(self.config.packet);
        match &mut self.source {
            FlowSource::Paced { arrived, .. } => {
                if arrived.is_first(number) {
                    self.statistics.goodput_bytes += u64::from(self.config.packet);
                }
            }
            FlowSource::Tcp(tcp) => tcp.handle_packet(now, number, damaged),
        }
    }

    /// The number and the size of an answer that is to be sent at `now`.
    pub(crate) fn poll_answer(&mut self, now: Instant) -> Option<(u64, u16)> {
        match &mut self.source {
            FlowSource::Paced { .. } => None,
            FlowSource::Tcp(tcp) => tcp.poll_answer(now).map(|number| (number, tcp.answer())),
        }
    }

    /// An answer arrived, perhaps with damage.
    pub(crate) fn handle_answer(&mut self, now: Instant, number: u64, damaged: bool) {
        if let FlowSource::Tcp(tcp) = &mut self.source {
            tcp.handle_answer(now, number, damaged);
        }
    }

    /// The totals so far.
    pub(crate) fn statistics(&self) -> TrafficStatistics {
        let mut statistics = self.statistics.clone();
        if let FlowSource::Tcp(tcp) = &self.source {
            tcp.tell(&mut statistics);
        }
        statistics
    }

    /// The bytes of a TCP flow that arrived in order.
    pub(crate) fn progress(&self) -> Option<&FlowProgress> {
        match &self.source {
            FlowSource::Paced { .. } => None,
            FlowSource::Tcp(tcp) => Some(tcp.progress()),
        }
    }
}

/// The sequence number of a packet of TCP with `size` bytes, or the acknowledgement number of an
/// answer, as a capture shows it: bytes for packets, and packets for answers.
pub(crate) fn tcp_sequence(number: u64, size: u16, back: bool) -> u32 {
    if back {
        return u32::try_from(number & 0xFFFF_FFFF).unwrap_or(0);
    }
    tcp::segment_of(number).wrapping_mul(u32::from(size - LEAST_PACKET))
}

/// Bytes of the smallest packet: IP and TCP headers.
const LEAST_PACKET: u16 = 40;
