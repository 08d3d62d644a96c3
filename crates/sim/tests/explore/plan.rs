//! The decisions of a seed.

use std::time::Duration;

use punctual_netem::{
    Action, Change, Event, Jitter, LinkConfig, LinkProfile, Loss, QueueLimit, Ramp, Reorder,
};
use punctual_proto::{
    BufferSize, Config, CryptoMode, MaxBandwidth, RetransmitAlgorithm, RetransmitBandwidth,
    Transmission,
};
#[cfg(feature = "quic")]
use punctual_quic::TransportConfig;
use punctual_sim::{End, HostConfig, Lateness, Traffic};
use punctual_units::Bitrate;

use crate::extras::{self, Keys, Moves};
use crate::kinds::{self, Bonding};
use punctual_testbed::Random;
use punctual_testbed::plan::{draw_impairments, draw_live};

const MS: fn(u64) -> Duration = Duration::from_millis;
const SECS: fn(u64) -> Duration = Duration::from_secs;

/// A world and what happens in it, to be shown if it fails.
#[derive(Debug)]
pub struct Plan {
    pub shape: Shape,
    /// The senders, the one in the middle, and if there are files, the two ends of these.
    pub hosts: Vec<Host>,
    pub links: Vec<LinkProfile>,
    pub streams: Vec<Stream>,
    pub traffic: Vec<Traffic>,
    pub is_over_quic: bool,
    pub moves: Moves,
    /// When the faults are over.
    pub heal_at: Duration,
}

/// How hosts and links lie.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Shape {
    /// Two hosts, a link each way.
    Pair,
    /// Two senders and a receiver, whose ways lead over the same two links.
    Shared,
    /// Two senders, each with one link each way, and behind these two common links.
    Tree,
    /// This number of ports of one sender, each with one link each way to the receiver.
    Bonded(usize),
}

#[derive(Clone, Debug)]
pub struct Host {
    pub config: HostConfig,
    pub lateness: Lateness,
}

#[derive(Clone, Debug)]
pub struct Stream {
    /// Which of the senders, and whether it is the sender of messages.
    pub host: usize,
    pub reversed: bool,
    /// Nothing for bare UDP.
    pub srt: Option<(Config, Config, End)>,
    /// How it goes over all senders' links together, if it does.
    pub bonding: Option<Bonding>,
    pub keys: Keys,
    pub rate: Bitrate,
    pub payload: usize,
    pub start: Duration,
}

impl Plan {
    pub fn draw(seed: u64) -> Self {
        let mut chance = Random(seed);
        let chance = &mut chance;
        // The first draws of neighbouring seeds are alike.
        for _ in 0..4 {
            chance.next_u32();
        }
        let shape = chance.pick(&[Shape::Pair, Shape::Pair, Shape::Shared, Shape::Tree]);
        let heal_at = SECS(2) + chance.millis(3_000);
        let links = (0..shape.links()).map(|_| draw_link(chance, heal_at)).collect();
        let hosts: Vec<_> = (0..shape.senders() + 1).map(|_| draw_host(chance)).collect();
        let count = 1 + chance.below(3) as usize;
        let mut streams: Vec<_> = (0..count).map(|_| draw_stream(chance, shape)).collect();
        let traffic = if chance.one_in(3) { vec![draw_traffic(chance)] } else { Vec::new() };
        let more = &mut Random(!seed);
        (0..4).for_each(|_| drop(more.next_u32().to_string()));
        for stream in &mut streams {
            stream.add_extras(more);
        }
        let moves = extras::draw_moves(more, hosts.len(), heal_at);
        let mut plan =
            Self { shape, hosts, links, streams, traffic, is_over_quic: false, moves, heal_at };
        kinds::draw(seed, more, &mut plan);
        plan.draw_carriage(seed);
        plan
    }

    /// Whether SRT goes over QUIC in the world of this seed, if the simulator has QUIC: in one of
    /// four.
    pub fn chooses_quic(seed: u64) -> bool {
        let mut chance = Random(seed ^ CARRIAGE);
        (0..4).for_each(|_| drop(chance.next_u32().to_string()));
        chance.one_in(4)
    }

    fn draw_carriage(&mut self, seed: u64) {
        if cfg!(feature = "quic") && Self::chooses_quic(seed) {
            self.is_over_quic = true;
            for host in &mut self.hosts {
                host.config = over_quic(host.config);
            }
            // In QUIC only a client may move (RFC 9000, section 9).
            if self.streams.iter().any(|stream| self.calls(stream, self.moves.host)) {
                self.moves.at.clear();
            }
        }
    }

    /// Whether a stream's caller calls this host.
    fn calls(&self, stream: &Stream, host: usize) -> bool {
        let Some((.., caller)) = stream.srt else { return false };
        let middle = self.shape.senders();
        let is_sender = match stream {
            it if it.is_file() => host == middle + 1,
            it if it.bonding.is_some() => host < middle,
            it => host == it.host,
        };
        let is_receiver = host == if stream.is_file() { middle + 2 } else { middle };
        // A reversed stream's sender of messages is the one in the middle.
        let first_calls = (caller == End::Sender) != stream.reversed;
        if first_calls { is_receiver } else { is_sender }
    }

    /// Whether a packet may arrive more often than it was sent.
    pub fn duplicates(&self) -> bool {
        self.links.iter().any(|link| {
            let set = |event: &Event| matches!(event.action, Action::Set(Change::Duplicate(_)));
            let events = link.timeline.events().iter();
            link.config.duplicate > 0.0 || events.filter(|event| set(event)).count() > 1
        })
    }
}

impl Stream {
    fn add_extras(&mut self, chance: &mut Random) {
        if let Some((sender, receiver, _)) = &mut self.srt {
            let mut ends = [std::mem::take(sender), std::mem::take(receiver)];
            self.keys = extras::draw(chance, &mut ends);
            [*sender, *receiver] = ends;
        }
    }

    /// Whether packets may be decrypted by another key than theirs. AES-CTR does not show that, and
    /// it happens if an announcement of a key is lost with all its repetitions, or a packet comes
    /// after the next key but one.
    pub fn may_be_garbled(&self) -> bool {
        let garbles = |config: &Config| {
            config.crypto_mode() != CryptoMode::Gcm && config.key_refresh_rate() < 1 << 20
        };
        self.srt.as_ref().is_some_and(|(sender, ..)| garbles(sender)) && self.keys == Keys::Same
    }

    /// Whether messages are to arrive.
    pub fn is_readable(&self) -> bool {
        matches!(self.keys, Keys::None | Keys::Same)
    }

    /// Whether the application waits for room, and everything arrives.
    pub fn is_file(&self) -> bool {
        let transmission = self.srt.as_ref().map(|(sender, ..)| sender.transmission());
        transmission.is_some_and(|it| it != Transmission::Live)
    }

    /// Whether the sender adds packets from which missing ones can be rebuilt.
    pub fn has_filter(&self) -> bool {
        let ends = self.srt.iter().flat_map(|(sender, receiver, _)| [sender, receiver]);
        ends.into_iter().any(|config| !config.packet_filter().is_empty())
    }
}

impl Shape {
    /// Hosts that are not the one in the middle, which comes after them.
    pub const fn senders(self) -> usize {
        match self {
            Self::Pair => 1,
            Self::Shared | Self::Tree => 2,
            Self::Bonded(ports) => ports,
        }
    }

    const fn links(self) -> usize {
        match self {
            Self::Pair | Self::Shared => 2,
            Self::Tree => 6,
            Self::Bonded(ports) => 2 * ports,
        }
    }

    /// The links from a sender to the middle, and those back.
    pub fn ways(self, sender: usize) -> [Vec<usize>; 2] {
        match self {
            Self::Pair | Self::Shared => [vec![0], vec![1]],
            Self::Tree => [vec![2 + 2 * sender, 0], vec![1, 3 + 2 * sender]],
            Self::Bonded(_) => [vec![2 * sender], vec![2 * sender + 1]],
        }
    }
}

/// Each impairment is there in one of three links, so that they meet in all combinations; a few
/// more begin or change later; all are gone at `heal_at`, but for the delay.
pub fn draw_link(chance: &mut Random, heal_at: Duration) -> LinkProfile {
    let mut config = LinkConfig::default().with_delay(chance.millis(60));
    for change in draw_changes(chance, 3) {
        change.apply(&mut config);
    }
    let mut profile = LinkProfile::from(config);
    let latest = heal_at.as_millis() as u32;
    for _ in 0..chance.below(3) {
        let at = chance.millis(latest);
        for change in draw_changes(chance, 6) {
            profile.timeline.push(Event::set(at, change));
        }
    }
    if chance.one_in(3) {
        let at = chance.millis(latest);
        let length = chance.millis(2_500).min(heal_at - at);
        let action = match chance.below(4) {
            0 => Action::Stall { duration: length, drain: Some(Bitrate::from_mbps(12)) },
            1 => Action::Ramp { to: Ramp::Delay(chance.millis(80)), over: length },
            _ => Action::Outage(length),
        };
        profile.timeline.push(Event::once(at, action));
    }
    for change in [
        Change::Rate(None),
        Change::Queue(QueueLimit::Unlimited),
        Change::Jitter(Jitter::None),
        Change::KeepOrder(true),
        Change::Loss(Loss::None),
        Change::Reorder(Reorder::None),
        Change::Duplicate(0.0),
        Change::Corrupt(0.0),
    ] {
        profile.timeline.push(Event::set(heal_at, change));
    }
    profile
}

/// Each impairment in one of `n` cases.
fn draw_changes(chance: &mut Random, n: u32) -> Vec<Change> {
    let mut changes = draw_impairments(chance, n);
    if chance.one_in(n) {
        changes.push(Change::Corrupt(chance.share(0.1)));
    }
    if chance.one_in(n) {
        let rate = Bitrate::from_mbps(1 + u64::from(chance.below(20)));
        changes.push(Change::Rate(Some(rate)));
        changes.push(Change::Queue(chance.pick(&[
            QueueLimit::Packets(20),
            QueueLimit::Bytes(100_000),
            QueueLimit::Time(MS(300)),
            QueueLimit::Unlimited,
        ])));
    }
    changes
}

pub fn draw_host(chance: &mut Random) -> Host {
    let ppm = chance.pick(&[0, 0, 0, -200, 200]);
    let lateness = if chance.one_in(4) {
        let mean = Duration::from_micros(chance.below(100).into());
        Lateness { least: Duration::from_micros(10), mean, most: MS(1) }
    } else {
        Lateness::default()
    };
    let config = HostConfig::default()
        .with_offset(chance.millis(100_000))
        .with_drift_ppm(ppm)
        .expect("in range")
        .with_lateness(lateness);
    Host { config, lateness }
}

/// Sets the chance of the carriage apart from that of everything else.
const CARRIAGE: u64 = 0x5155_4943;

#[cfg(feature = "quic")]
fn over_quic(host: HostConfig) -> HostConfig {
    // QUIC doubles the time after which it repeats a packet of its handshake. While the faults last
    // it must not give up.
    let transport = TransportConfig { idle_timeout: SECS(30), ..TransportConfig::default() };
    host.with_carriage(punctual_sim::HostCarriage::SrtOverQuic(transport))
}

#[cfg(not(feature = "quic"))]
fn over_quic(host: HostConfig) -> HostConfig {
    host
}

fn draw_stream(chance: &mut Random, shape: Shape) -> Stream {
    let caller = chance.pick(&[End::Sender, End::Receiver]);
    let packets_a_second = chance.pick(&[100, 300, 600, 1_000]);
    let mut config = || draw_config(chance, packets_a_second);
    let ends = (config(), config(), caller);
    let payload = chance.pick(&[24, 188, 1_000, 1_316, 1_316, 1_316]);
    Stream {
        host: chance.below(shape.senders() as u32) as usize,
        reversed: chance.one_in(4),
        srt: (!chance.one_in(8)).then_some(ends),
        bonding: None,
        keys: Keys::None,
        rate: Bitrate::from_bytes_per_sec(u64::from(packets_a_second) * payload as u64),
        payload,
        start: chance.millis(500),
    }
}

fn draw_config(chance: &mut Random, packets_a_second: u32) -> Config {
    let algorithms = [
        RetransmitAlgorithm::Auto,
        RetransmitAlgorithm::Aggressive,
        RetransmitAlgorithm::Efficient,
        RetransmitAlgorithm::Deadline,
    ];
    let latencies = [MS(0), MS(20), MS(120), MS(400), MS(1_000)];
    let mut config = draw_live(chance, &latencies, &algorithms)
        .with_connect_timeout(SECS(30))
        .expect("in range");
    if chance.one_in(4) {
        // No less than the healthy stream needs at the longest round trip.
        let packets = packets_a_second * 7 / 10 + 32 + chance.below(300);
        let packets = packets as usize;
        config = config.with_send_buffer(BufferSize::Packets(packets));
    }
    match chance.below(8) {
        0 => {
            config = config.with_max_bandwidth(MaxBandwidth::Absolute(Bitrate::from_mbps(20)));
        }
        1 => config = config.with_max_bandwidth(MaxBandwidth::Relative),
        _ => {}
    }
    if chance.one_in(6) {
        config = config
            .with_max_retransmit_bandwidth(RetransmitBandwidth::Absolute(Bitrate::from_mbps(4)));
    }
    config
}

fn draw_traffic(chance: &mut Random) -> Traffic {
    let rate = Bitrate::from_mbps(1 + u64::from(chance.below(10)));
    match chance.below(3) {
        0 => Traffic::Constant { rate },
        1 => Traffic::OnOff { rate, on: MS(50), off: MS(100) },
        _ => Traffic::TcpLike { max_window: 200_000 },
    }
}
