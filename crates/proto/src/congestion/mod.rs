//! Congestion control: the rate of a sender, and the number of packets in flight.

mod delay;
pub(crate) mod file;
mod input_rate;
pub(crate) mod live;
mod loss_epoch;
mod progress;

use punctual_units::{Bitrate, Instant};

use self::delay::DelayControl;
use self::file::FileControl;
use self::live::LiveControl;
use crate::chance::Chance;
use crate::config::{Config, CongestionAlgorithm};
use crate::handshake::Negotiated;
use crate::pace::Pace;
use crate::policy::congestion::CongestionControl;
use crate::transmission::Transmission;
use crate::wake_up::WakeUp;

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
        Self::Other(Box::new(Other { control, packet_size }))
    }

    /// Takes over the limits of these options.
    pub(crate) fn configure(&mut self, config: &Config) {
        match self {
            Self::Live(live) => live.configure(config),
            Self::Other(other) => other.control.configured(config),
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
    use std::time::Duration;

    use super::*;
    use crate::measured_path::{Packets, RoundTrips};
    use crate::policy::congestion::PathState;
    use punctual_rtt::Rtt;
    use punctual_wire::SeqNo;

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
        let mut trips = RoundTrips::default();
        let mut controller =
            Controller::Other(Box::new(Other { control: factory.make(), packet_size: 1_500 }));
        let mut queue = 0.0_f64;
        for step in 1..=1_000_u64 {
            let Pace::Bytes(_) = controller.pace() else {
                panic!("packets are spaced by the rate")
            };
            let rate = controller.get().rate().expect("a rate").as_bits_per_sec() as f64 / 8.0;
            queue = (queue + (rate - capacity) * 0.01).max(0.0);
            let now = Instant::from_millis(10 * step);
            let latest_rtt = BASE + Duration::from_secs_f64(queue / capacity);
            trips.sample(now, latest_rtt, Packets::default());
            let path = PathState {
                rtt: Rtt { smoothed: latest_rtt, variance: Duration::ZERO },
                latest_rtt: trips.latest(),
                base_rtt: trips.least(),
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
        (rate, trips.latest() - trips.least())
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
