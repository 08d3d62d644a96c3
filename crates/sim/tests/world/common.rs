//! Worlds to begin with.

use std::time::Duration;

use punctual_netem::{LinkConfig, QueueLimit};
use punctual_proto::Config;
use punctual_sim::{
    End, HostConfig, HostId, LinkId, RateSchedule, StreamConfig, StreamId, TcpConfig, TcpControl,
    Traffic, TrafficConfig, Transport, World,
};
use punctual_units::Bitrate;

pub const MS: fn(u64) -> Duration = Duration::from_millis;
pub const US: fn(u64) -> Duration = Duration::from_micros;
pub const SECS: fn(u64) -> Duration = Duration::from_secs;

/// Two hosts and a link each way.
pub struct Pair {
    pub world: World,
    pub from: HostId,
    pub to: HostId,
    pub there: LinkId,
    pub back: LinkId,
}

impl Pair {
    pub fn new(seed: u64, link: LinkConfig) -> Self {
        Self::of(seed, link, HostConfig::default(), HostConfig::default())
    }

    pub fn of(seed: u64, link: LinkConfig, from: HostConfig, to: HostConfig) -> Self {
        let mut world = World::new(seed);
        let (from, to) = (world.add_host(from), world.add_host(to));
        let (there, back) = (world.add_link(link.clone()), world.add_link(link));
        world.set_route(from, to, &[there]).expect("a route");
        world.set_route(to, from, &[back]).expect("a route");
        Self { world, from, to, there, back }
    }

    /// A stream of `mbps` for some seconds, of messages of 1250 bytes, which take whole
    /// microseconds.
    pub fn stream(&self, transport: Transport, mbps: u64, seconds: u64) -> StreamConfig {
        StreamConfig {
            transport,
            rate: RateSchedule::constant(Bitrate::from_mbps(mbps)),
            payload: 1_250,
            start: Duration::ZERO,
            duration: SECS(seconds),
            from: self.from,
            to: self.to,
            series: None,
        }
    }

    pub fn add(&mut self, stream: StreamConfig) -> StreamId {
        self.world.add_stream(stream).expect("a stream")
    }
}

/// Both ends with this configuration; the sender calls.
pub fn srt(config: &Config) -> Transport {
    Transport::Srt { sender: config.clone(), receiver: config.clone(), caller: End::Sender }
}

pub fn latency(ms: u64) -> Config {
    Config::default().with_latency(MS(ms)).expect("in range")
}

/// A perfect link with this delay.
pub fn delay(ms: u64) -> LinkConfig {
    LinkConfig::default().with_delay(MS(ms))
}

/// A link with this delay that loses packets at random.
pub fn lossy(ms: u64, share: f64) -> LinkConfig {
    delay(ms).with_loss(punctual_netem::Loss::Random(share)).expect("a share")
}

/// A TCP flow with endless data from the start on, beside the streams of a pair.
pub fn tcp(pair: &Pair, control: TcpControl) -> TrafficConfig {
    TrafficConfig {
        traffic: Traffic::Tcp(TcpConfig::new(control)),
        packet: 1_500,
        links: vec![pair.there],
        back: vec![pair.back],
        start: Duration::ZERO,
        duration: SECS(3_600),
    }
}

/// A link of this rate and round trip whose queue holds the bytes of `round_trips` round trips.
pub fn bottleneck(mbps: u64, rtt: Duration, round_trips: f64) -> LinkConfig {
    let rate = Bitrate::from_mbps(mbps);
    LinkConfig::default()
        .with_delay(rtt / 2)
        .with_rate(Some(rate))
        .with_queue(QueueLimit::Time(rtt.mul_f64(round_trips)))
}
