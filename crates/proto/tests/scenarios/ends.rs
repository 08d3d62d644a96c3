//! The ends of short streams over links with losses: the last message arrives like any other.

use std::time::Duration;

use punctual_netem::{LinkConfig, Loss};
use punctual_proto::{Config, GroupKind};

use crate::bond::TestBond;
use crate::files;
use crate::pair::{Pair, Side};
use crate::random::Random;
use crate::{MS, SECS, latency, link};

/// The interval between the messages of a stream of about 4 Mb/s.
const INTERVAL: Duration = Duration::from_micros(2_600);

/// A link of this round trip that loses a tenth of the packets each way.
fn lossy(round_trip: u64) -> LinkConfig {
    let link = LinkConfig::default().with_delay(MS(round_trip / 2));
    link.with_loss(Loss::Random(0.1)).expect("a share")
}

/// Sends a short stream over one connection with these options, with a pause in it, closes the
/// connection, and asserts that everything arrived.
fn single_stream(seed: u64, config: &Config) {
    let mut chance = Random(seed);
    let mut pair = Pair::symmetric(seed, link());
    pair.connect(config.clone(), config.clone());
    for side in [Side::Caller, Side::Listener] {
        pair.set_link(side, lossy(30));
    }
    let side = [Side::Caller, Side::Listener][seed as usize % 2];
    for _ in 0..2 {
        pair.stream(side, 1 + chance.below(150), INTERVAL);
        pair.run_for(MS(chance.below(2_000).into()));
    }
    pair.stream(side, 1 + chance.below(150), INTERVAL);
    pair.close(side);
    pair.run_for(SECS(4));
    pair.assert_complete(side);
}

/// Sends a short stream of bytes, closes the connection, and asserts that everything arrived.
fn byte_stream(seed: u64, config: &Config) {
    let mut pair = files::connected(seed, link(), config);
    for side in [Side::Caller, Side::Listener] {
        pair.set_link(side, lossy(30));
    }
    let data = files::contents(1 + Random(seed).below(200_000) as usize, seed);
    files::write_all(&mut pair, &data, || 1_316);
    pair.close(Side::Caller);
    pair.run_for(SECS(60));
    assert_eq!(files::read(&pair), data);
}

/// Sends a short stream over a group with two links of these round trips, closes the group, and
/// asserts that everything arrived.
fn group_stream(seed: u64, kind: GroupKind, trips: [u64; 2]) {
    let mut chance = Random(seed);
    let config: Config = latency(1_000).with_linger(SECS(3));
    let mut bond = TestBond::new(seed, kind, &config, &[link(), link()]);
    bond.connect(&[2, 1]);
    for (path, trip) in trips.into_iter().enumerate() {
        bond.set_path(path, &lossy(trip));
    }
    let side = [Side::Caller, Side::Listener][seed as usize % 2];
    bond.stream(side, 1 + chance.below(150), INTERVAL);
    bond.close(side);
    bond.run_for(SECS(4));
    bond.assert_complete(side);
    assert!(!bond.end(side).group().is_up(), "the group has ended");
}

#[test]
fn the_end_of_a_short_stream_arrives_with_each_filter() {
    let filters = [
        "",
        "fec,cols:10",
        "fec,cols:10,rows:5",
        "fec,cols:10,rows:-5,layout:even",
        "fec,cols:100,rows:20",
        "fec,cols:10,rows:5,arq:always",
    ];
    for filter in filters {
        let config = latency(1_000).with_linger(SECS(3)).with_packet_filter(filter);
        let config = config.expect("a legal filter");
        for seed in 0..100 {
            single_stream(seed, &config);
        }
    }
}

#[test]
fn the_end_of_a_short_stream_of_bytes_arrives() {
    for filter in ["", "fec,cols:10,rows:5"] {
        let config = Config::file().with_packet_filter(filter).expect("a legal filter");
        for seed in 0..100 {
            byte_stream(seed, &config);
        }
    }
}

#[test]
fn the_end_of_a_short_stream_arrives_over_groups_of_each_kind() {
    for kind in [GroupKind::Broadcast, GroupKind::Backup, GroupKind::Balance] {
        for trips in [[30, 30], [30, 300]] {
            for seed in 0..100 {
                group_stream(seed, kind, trips);
            }
        }
    }
}
