//! Congestion control: the rate of a sender, and the number of packets in flight.

mod delay;
pub(crate) mod file;
mod input_rate;
pub(crate) mod live;
mod loss_epoch;
mod path_delay;
mod progress;

use std::fmt;
use std::time::Duration;

use punctual_rtt::Rtt;
use punctual_units::{Bitrate, Instant};
use punctual_wire::SeqNo;

use self::delay::DelayControl;
use self::file::FileControl;
use self::live::LiveControl;
pub(crate) use self::path_delay::PathDelay;
use crate::chance::Chance;
use crate::config::{Config, CongestionAlgorithm, Transmission};
use crate::connection::send::pacer::Pace;
use crate::handshake::Negotiated;
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

/// The congestion control of a connection. That of live streams has more inputs: the messages that
/// the application submits, and the size of packets. They come with each packet, so that this
/// control is not a trait object.
#[derive(Debug)]
pub(crate) enum Controller {
    Live(LiveControl),
    Other(Box<Other>),
}

/// The congestion control of a file or a byte stream.
#[derive(Debug)]
pub(crate) struct Other {
    control: Box<dyn CongestionControl>,
    delay: PathDelay,
    packet_size: u32,
}

impl Controller {
    /// The congestion control for packets with `overhead` bytes of headers.
    pub(crate) fn new(config: &Config, negotiated: &Negotiated, overhead: usize) -> Self {
        if config.transmission() == Transmission::Live {
            return Self::Live(LiveControl::new(config, overhead));
        }
        let packet_size = u32::try_from(negotiated.fixed.mss).unwrap_or(u32::MAX);
        let control: Box<dyn CongestionControl> = match config.congestion_algorithm() {
            CongestionAlgorithm::Auto | CongestionAlgorithm::Delay => {
                Box::new(DelayControl::new(config, packet_size))
            }
            CongestionAlgorithm::File => {
                // The ends have generated both numbers at random.
                let mut seed = [0; 32];
                seed[..4].copy_from_slice(&negotiated.fixed.send_isn.value().to_be_bytes());
                seed[4..8].copy_from_slice(&negotiated.fixed.peer_socket_id.value().to_be_bytes());
                Box::new(FileControl::new(
                    negotiated.fixed.mss,
                    config.max_bandwidth(),
                    negotiated.fixed.peer_flow_window,
                    negotiated.fixed.send_isn,
                    Chance::new(seed),
                ))
            }
            CongestionAlgorithm::Custom(factory) => factory.make(),
        };
        Self::Other(Box::new(Other { control, delay: PathDelay::default(), packet_size }))
    }

    /// Takes over the limits of these options.
    pub(crate) fn configure(&mut self, config: &Config) {
        match self {
            Self::Live(live) => live.configure(config),
            Self::Other(other) => other.control.configured(config),
        }
    }

    /// The peer reported its round-trip time.
    pub(crate) fn note_round_trip(&mut self, now: Instant, rtt: Duration) {
        if let Self::Other(other) = self {
            other.delay.sample(now, rtt);
        }
    }

    /// The delays of the path; zero for live streams, where they are not measured.
    pub(crate) fn delay(&self) -> PathDelay {
        match self {
            Self::Live(_) => PathDelay::default(),
            Self::Other(other) => other.delay,
        }
    }

    /// The size of a full packet, bytes, headers included; 0 for live streams.
    pub(crate) fn packet_size(&self) -> u32 {
        match self {
            Self::Live(_) => 0,
            Self::Other(other) => other.packet_size,
        }
    }

    /// The application submitted a packet of `bytes`, headers included.
    #[inline]
    pub(crate) fn submitted(&mut self, now: Instant, bytes: usize) {
        if let Self::Live(live) = self {
            live.submitted(now, bytes);
        }
    }

    /// The application submitted data for which there is no room.
    pub(crate) const fn refused(&mut self) {
        if let Self::Live(live) = self {
            live.refused();
        }
    }

    /// The rate of this number of packets of mean size a second; `None` for files, whose
    /// retransmissions need no such rate.
    pub(crate) fn as_rate(&self, packets_per_sec: Option<u32>) -> Option<Bitrate> {
        match self {
            Self::Live(live) => packets_per_sec.map(|packets| live.as_rate(packets)),
            Self::Other(_) => None,
        }
    }

    /// The input's rate, configured or measured; `None` for files, which have none.
    pub(crate) fn input(&self) -> Option<Bitrate> {
        match self {
            Self::Live(live) => live.input(),
            Self::Other(_) => None,
        }
    }

    /// A packet of `bytes`, headers included, is sent.
    pub(crate) fn sent(&mut self, now: Instant, bytes: usize) {
        match self {
            Self::Live(live) => live.sent(bytes),
            Self::Other(other) => other.control.sent(now),
        }
    }

    /// The instant at which a packet may be sent, as far as the packets in the network determine
    /// it.
    #[inline]
    pub(crate) fn opens(&self) -> WakeUp {
        match self {
            Self::Live(_) => WakeUp::Now,
            Self::Other(other) => other.control.opens(),
        }
    }

    /// The number of packets that may be sent at once after a pause of the application.
    pub(crate) fn burst(&self) -> u32 {
        match self {
            Self::Live(_) => 1,
            Self::Other(other) => other.control.burst(),
        }
    }

    /// The spacing of packets. In live mode the limit is a rate, so that each packet takes the time
    /// for its size. The draft's period is that of a packet of mean size: after a change to small
    /// messages, packets would wait as long as large ones until the mean has followed.
    pub(crate) fn pace(&self) -> Pace {
        match self {
            Self::Live(live) => live.pace(),
            Self::Other(other) => match other.control.rate() {
                Some(rate) => Pace::at(rate),
                None => Pace::Packet(other.control.period()),
            },
        }
    }

    pub(crate) fn get(&self) -> &dyn CongestionControl {
        match self {
            Self::Live(live) => live,
            Self::Other(other) => other.control.as_ref(),
        }
    }

    pub(crate) fn get_mut(&mut self) -> &mut dyn CongestionControl {
        match self {
            Self::Live(live) => live,
            Self::Other(other) => other.control.as_mut(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: Duration = Duration::from_millis(50);

    /// A rate between `least` and `target` that keeps `queue` bytes in the queue of the bottleneck,
    /// as FAST TCP does.
    #[derive(Debug)]
    struct DelayBased {
        least: f64,
        target: f64,
        queue: f64,
        bytes_per_sec: f64,
        updated: Instant,
    }

    impl CongestionControl for DelayBased {
        fn period(&self) -> Duration {
            Duration::from_secs_f64(1_500.0 / self.bytes_per_sec)
        }

        fn rate(&self) -> Option<Bitrate> {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate")]
            Some(Bitrate::from_bytes_per_sec(self.bytes_per_sec as u64))
        }

        fn window(&self) -> u32 {
            u32::MAX
        }

        fn max_bandwidth(&self) -> Bitrate {
            Bitrate::from_mbps(1_000)
        }

        fn round_trip(&mut self, now: Instant, path: &PathState) {
            if now < self.updated + path.latest_rtt {
                return;
            }
            self.updated = now;
            let rtt = path.latest_rtt.as_secs_f64();
            let wanted = (self.bytes_per_sec * path.base_rtt.as_secs_f64() + self.queue) / rtt;
            let rate = f64::midpoint(self.bytes_per_sec, wanted);
            self.bytes_per_sec = rate.clamp(self.least, self.target);
        }

        fn acknowledged(&mut self, _now: Instant, _packets: u32, _path: &PathState) {}

        fn lost(&mut self, _now: Instant, _first: SeqNo, _path: &PathState) {}

        fn timed_out(&mut self, _now: Instant, _path: &PathState) {}
    }

    /// Runs the control for ten seconds over a bottleneck of `capacity` bytes per second, with a
    /// report every 10 ms. Returns the rate, bytes per second, and the queueing delay at the end.
    fn run(capacity: f64) -> (f64, Duration) {
        let factory = CongestionAlgorithm::custom(|| DelayBased {
            least: 250_000.0,
            target: 2_500_000.0,
            queue: 15_000.0,
            bytes_per_sec: 250_000.0,
            updated: Instant::ORIGIN,
        });
        let config = Config::default()
            .with_transmission(Transmission::Stream)
            .with_congestion_algorithm(factory);
        let CongestionAlgorithm::Custom(factory) = config.congestion_algorithm() else {
            panic!("the algorithm is the one that was set");
        };
        let delay = PathDelay::default();
        let mut controller = Controller::Other(Box::new(Other {
            control: factory.make(),
            delay,
            packet_size: 1_500,
        }));
        let mut queue = 0.0_f64;
        for step in 1..=1_000_u64 {
            let Pace::Bytes(_) = controller.pace() else {
                panic!("packets are spaced by the rate")
            };
            let rate = controller.get().rate().expect("a rate").as_bits_per_sec() as f64 / 8.0;
            queue = (queue + (rate - capacity) * 0.01).max(0.0);
            let now = Instant::from_millis(10 * step);
            let latest_rtt = BASE + Duration::from_secs_f64(queue / capacity);
            controller.note_round_trip(now, latest_rtt);
            let path = PathState {
                rtt: Rtt { smoothed: latest_rtt, variance: Duration::ZERO },
                latest_rtt: controller.delay().latest(),
                base_rtt: controller.delay().base(),
                in_flight: 0,
                arrived: None,
                packet_size: controller.packet_size(),
                delivery_rate: 0,
                capacity: 0,
                in_loss_list: 0,
                newly_lost: 0,
                blocked: Duration::ZERO,
                next_new: SeqNo::new(1),
            };
            controller.get_mut().round_trip(now, &path);
        }
        let rate = controller.get().rate().expect("a rate").as_bits_per_sec() as f64 / 8.0;
        (rate, controller.delay().latest() - controller.delay().base())
    }

    #[test]
    fn a_delay_based_control_fills_the_bottleneck_and_keeps_its_queue() {
        let (rate, queueing) = run(1_250_000.0);
        assert!((1_200_000.0..1_300_000.0).contains(&rate), "{rate} bytes a second");
        // 15,000 bytes at 1.25 MB/s.
        assert!(queueing.abs_diff(Duration::from_millis(12)) < Duration::from_millis(2));
    }

    #[test]
    fn a_delay_based_control_stays_between_its_least_and_target_rates() {
        assert_eq!(run(50_000_000.0).0, 2_500_000.0, "the target, on a path that carries more");
        assert_eq!(run(125_000.0).0, 250_000.0, "the least, on a path that carries less");
    }
}
