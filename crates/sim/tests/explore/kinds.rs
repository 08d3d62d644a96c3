//! Kinds of stream that some of the seeds add to a world: one over several links, and files.

use std::time::Duration;

use punctual_netem::{LinkConfig, LinkProfile};
use punctual_proto::{BufferSize, Config, GroupKind, MaxBandwidth, Transmission};
use punctual_sim::End;
use punctual_units::Bitrate;

use crate::extras;
use crate::plan::{Plan, Shape, Stream, draw_host, draw_link};
use punctual_testbed::Random;

const MS: fn(u64) -> Duration = Duration::from_millis;
const SECS: fn(u64) -> Duration = Duration::from_secs;

/// How a stream goes over several links.
#[derive(Clone, Debug)]
pub struct Bonding {
    pub kind: GroupKind,
    /// The weights of the links from each of the senders.
    pub weights: Vec<u16>,
    /// A link to which nothing ever happens.
    pub sound: Option<usize>,
    /// Which link is cut when all are well.
    pub cut: usize,
}

/// Turns the worlds of some seeds into worlds of a group, and gives some others a file or two.
pub fn draw(seed: u64, chance: &mut Random, plan: &mut Plan) {
    match seed % 5 {
        1 => draw_group(chance, plan),
        4 => draw_files(chance, plan),
        _ => {}
    }
}

/// Another world in the place of the one that was drawn: ports of one machine, a link each way from
/// each, and at most one stream beside the group's.
fn draw_group(chance: &mut Random, plan: &mut Plan) {
    let ports = 2 + chance.below(2) as usize;
    let sender = draw_host(chance);
    let receiver = draw_host(chance);
    plan.shape = Shape::Bonded(ports);
    plan.hosts = vec![sender; ports];
    plan.hosts.push(receiver);
    plan.moves.host = chance.below(ports as u32 + 1) as usize;
    let sound = chance.one_in(2).then(|| chance.below(ports as u32) as usize);
    plan.links = Vec::new();
    for port in 0..ports {
        for _ in 0..2 {
            let link = draw_link(chance, plan.heal_at);
            let spared = LinkProfile::from(LinkConfig::default().with_delay(link.config.delay));
            plan.links.push(if sound == Some(port) { spared } else { link });
        }
    }
    if sound == Some(0) {
        plan.traffic.clear();
    }
    plan.streams.truncate(chance.below(2) as usize);
    for stream in &mut plan.streams {
        stream.host = chance.below(ports as u32) as usize;
    }
    let bonding = Bonding {
        kind: chance.pick(&[GroupKind::Broadcast, GroupKind::Backup, GroupKind::Balance]),
        weights: (0..ports).map(|_| chance.below(3) as u16).collect(),
        sound,
        cut: chance.below(ports as u32) as usize,
    };
    plan.streams.push(draw_bonded(chance, bonding));
}

fn draw_bonded(chance: &mut Random, bonding: Bonding) -> Stream {
    // A group whose links have all ended has ended, so timeouts are short only if there is a sound
    // link.
    let timeout = if bonding.sound.is_some() { SECS(2) } else { SECS(60) };
    let config = Config::default()
        .with_latency(MS(400) + chance.millis(1_200))
        .and_then(|config| config.with_connect_timeout(SECS(30)))
        .and_then(|config| config.with_peer_idle_timeout(timeout))
        .expect("in range")
        .with_periodic_nak(!chance.one_in(6))
        .with_drift_tracer(!chance.one_in(3));
    let (config, keys) = extras::with_shared_keys(chance, config);
    let payload = chance.pick(&[188, 1_316, 1_316]);
    let packets = u64::from(chance.pick(&[100_u32, 300, 600]));
    Stream {
        host: 0,
        reversed: chance.one_in(4),
        srt: Some((config.clone(), config, chance.pick(&[End::Sender, End::Receiver]))),
        bonding: Some(bonding),
        keys,
        rate: Bitrate::from_bytes_per_sec(packets * payload as u64),
        payload,
        start: chance.millis(500),
    }
}

/// One file or two, between two additional hosts whose routes share the first sender's links.
fn draw_files(chance: &mut Random, plan: &mut Plan) {
    for _ in 0..2 {
        plan.hosts.push(draw_host(chance));
    }
    let transmission = chance.pick(&[Transmission::Stream, Transmission::Messages]);
    for _ in 0..=chance.below(2) {
        plan.streams.push(draw_file(chance, transmission));
    }
}

fn draw_file(chance: &mut Random, transmission: Transmission) -> Stream {
    let mut config = Config::file()
        .with_transmission(transmission)
        .with_connect_timeout(SECS(30))
        .and_then(|config| config.with_peer_idle_timeout(SECS(60)))
        .expect("in range");
    let mut room = 25_600;
    for end in 0..2 {
        if chance.one_in(3) {
            let packets = chance.pick(&[64, 300, 2_000]);
            let buffer = BufferSize::Packets(packets);
            config = if end == 0 {
                config.with_send_buffer(buffer)
            } else {
                config.with_receive_buffer(buffer)
            };
            room = room.min(packets);
        }
    }
    let (mut config, keys) = extras::with_shared_keys(chance, config);
    if transmission == Transmission::Stream && chance.one_in(4) {
        let arq = chance.pick(&["always", "onreq"]);
        let filter = format!("fec,cols:{},arq:{arq}", 2 + chance.below(10));
        config = config.with_packet_filter(&filter).expect("a filter");
    }
    let payload = chance.pick(&[24, 188, 1_456, 1_457, 5_000, 30_000]);
    let rate = draw_file_rate(chance, room, payload);
    if chance.one_in(4) {
        let limit = Bitrate::from_bits_per_sec(rate.as_bits_per_sec() * 4 + 1_000_000);
        config = config.with_max_bandwidth(MaxBandwidth::Absolute(limit));
    }
    Stream {
        host: 0,
        reversed: chance.one_in(4),
        srt: Some((config.clone(), config, chance.pick(&[End::Sender, End::Receiver]))),
        bonding: None,
        keys,
        rate,
        payload,
        start: chance.millis(500),
    }
}

/// At most a third of the rate that the smaller buffer allows at the longest round trip.
fn draw_file_rate(chance: &mut Random, room: usize, payload: usize) -> Bitrate {
    let packets = payload.div_ceil(1_440);
    let messages = (room as u64 * 1_000 / 350 / 3 / packets as u64).clamp(1, 1_000);
    let bytes = messages * payload as u64;
    let most = Bitrate::from_bytes_per_sec(bytes);
    let rate =
        Bitrate::from_bits_per_sec(chance.pick(&[200_000, 1_000_000, 5_000_000, 20_000_000]));
    rate.min(most)
}
