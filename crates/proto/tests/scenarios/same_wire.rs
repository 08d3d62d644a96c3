//! Compares the datagrams of whole sessions with those of earlier versions: a change of the code
//! that is not meant to change the protocol's behaviour changes no byte and no instant.
//!
//! An intended change writes new digests, and its commit message says so:

use std::fmt::Write;
use std::time::Duration;

use bytes::Bytes;
use punctual_netem::{Jitter, LinkConfig, Reorder};
use punctual_proto::{
    Config, CryptoMode, GroupKind, RetransmitAlgorithm, SendError, SendOptions, Transmission,
};

use crate::bond::TestBond;
use crate::pair::{Pair, Side};
use crate::record::Record;
use crate::{MS, SECS, lossy};

/// The number of compared sessions of each kind.
const SEEDS: u64 = 6;

/// Options of the recorded sessions, whose receivers of live streams do not tell their newest
/// packet.
fn latency(ms: u64) -> Config {
    crate::latency(ms).with_live_reports(false)
}

/// A link that loses, delays and reorders, differently for each seed.
fn bad_link(seed: u64) -> LinkConfig {
    lossy(0.02 * (1 + seed % 5) as f64)
        .with_delay(MS(10 + 15 * (seed % 3)))
        .with_jitter(Jitter::Normal { std_dev: MS(seed % 4) })
        .with_reorder(Reorder::Late { share: 0.01, by: MS(9) })
        .expect("a share")
}

/// Streams both ways, the second way half as fast, and closes.
fn live(seed: u64, config: &Config) -> Vec<Record> {
    let mut pair = Pair::symmetric(seed, bad_link(seed)).with_drift(Side::Listener, 40);
    let record = pair.record();
    pair.connect(config.clone(), config.clone());
    for number in 0..1_500 {
        pair.send_next(Side::Caller);
        if number % 2 == 0 {
            pair.send_next(Side::Listener);
        }
        pair.run_for(MS(2));
    }
    pair.black_out(&[Side::Caller, Side::Listener], MS(400));
    pair.stream(Side::Caller, 300, MS(3));
    pair.run_for(SECS(3));
    pair.close(Side::Caller);
    pair.run_for(SECS(1));
    vec![record]
}

fn algorithm(algorithm: RetransmitAlgorithm) -> Config {
    latency(160).with_retransmit_algorithm(algorithm)
}

fn encrypted(mode: CryptoMode) -> Config {
    let config = latency(160).with_crypto_mode(mode).with_passphrase("correct horse");
    let config = config.expect("a legal length");
    let config = config.with_key_refresh_rate(500).expect("in range");
    config.with_key_pre_announce(200).expect("in range")
}

fn rendezvous(seed: u64) -> Vec<Record> {
    let mut pair = Pair::symmetric(seed, bad_link(seed));
    let record = pair.record();
    let first = if seed.is_multiple_of(2) { Side::Caller } else { Side::Listener };
    pair.meet(first, MS(70 * seed), [latency(120), latency(200)]);
    pair.stream(Side::Caller, 300, MS(2));
    pair.stream(Side::Listener, 300, MS(2));
    pair.run_for(SECS(1));
    vec![record]
}

fn file(seed: u64, transmission: Transmission) -> Vec<Record> {
    let mut pair = Pair::symmetric(seed, bad_link(seed));
    let record = pair.record();
    let config = Config::file().with_transmission(transmission);
    pair.connect(config.clone(), config);
    let size = 60_000 + 30_000 * seed as usize;
    let mut rest = Bytes::from((0..size).map(|at| (at % 251) as u8).collect::<Vec<u8>>());
    while !rest.is_empty() {
        let taken = match transmission {
            Transmission::Stream => pair.write(Side::Caller, &mut rest).map(drop),
            _ => {
                let message = rest.slice(..rest.len().min(7_000));
                let length = message.len();
                let sent = pair.send(Side::Caller, message, SendOptions::default());
                sent.map(|()| drop(rest.split_to(length)))
            }
        };
        if taken == Err(SendError::Full) {
            pair.run_for(MS(5));
        }
    }
    pair.close(Side::Caller);
    pair.run_for(SECS(20));
    vec![record]
}

fn group(seed: u64, kind: GroupKind) -> Vec<Record> {
    let paths = [bad_link(seed), bad_link(seed + 1)];
    let mut bond = TestBond::new(seed, kind, &latency(300), &paths);
    bond.connect(&[2, 1]);
    bond.stream(Side::Caller, 400, MS(2));
    bond.cut(0);
    bond.stream(Side::Caller, 400, MS(2));
    bond.set_path(0, &paths[0]);
    bond.stream(Side::Caller, 400, MS(2));
    bond.run_for(SECS(2));
    bond.records.clone()
}

/// The sessions by their names.
fn sessions(seed: u64) -> Vec<(&'static str, Vec<Record>)> {
    use RetransmitAlgorithm::{Aggressive, Deadline, Efficient};
    let filtered = latency(300).with_packet_filter("fec,cols:8,rows:4,layout:staircase");
    let messages = latency(160).with_tsbpd(false);
    vec![
        ("live, aggressive", live(seed, &algorithm(Aggressive))),
        ("live, efficient", live(seed, &algorithm(Efficient))),
        ("live, deadline-aware", live(seed, &algorithm(Deadline))),
        ("live, without delivery by timestamps", live(seed, &messages)),
        ("live, AES-CTR", live(seed, &encrypted(CryptoMode::Ctr))),
        ("live, AES-GCM", live(seed, &encrypted(CryptoMode::Gcm))),
        ("live, packet filter", live(seed, &filtered.expect("a legal filter"))),
        ("rendezvous", rendezvous(seed)),
        ("file, a stream of bytes", file(seed, Transmission::Stream)),
        ("file, messages", file(seed, Transmission::Messages)),
        ("group, broadcast", group(seed, GroupKind::Broadcast)),
        ("group, backup", group(seed, GroupKind::Backup)),
        ("group, balance", group(seed, GroupKind::Balance)),
    ]
}

/// FNV-1a, 64 bits: enough to detect any unintended change.
struct Digest(u64);

impl Digest {
    fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn add_datagram(&mut self, at: Duration, side: Side, datagram: &[u8]) {
        self.add(&(at.as_nanos() as u64).to_be_bytes());
        self.add(&[side as u8]);
        self.add(datagram);
    }
}

/// A line for each session: its name and seed, the number of datagrams, and their digest.
fn digests() -> String {
    let mut lines = String::new();
    for seed in 1..=SEEDS {
        for (name, records) in sessions(seed) {
            let (mut datagrams, mut digest) = (0, Digest(0xcbf2_9ce4_8422_2325));
            for record in &records {
                datagrams += record.len();
                record.each(|at, side, datagram| digest.add_datagram(at, side, datagram));
            }
            let digest = digest.0;
            writeln!(lines, "{name}, seed {seed}: {datagrams} datagrams, {digest:016x}")
                .expect("a string takes everything");
        }
    }
    lines
}

#[test]
fn sessions_put_the_same_bytes_on_the_wire_as_before() {
    let now = digests();
    if std::env::var_os("PUNCTUAL_WRITE_DIGESTS").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scenarios/same_wire.txt");
        std::fs::write(path, &now).expect("the digests can be written");
        return;
    }
    let before = include_str!("same_wire.txt");
    let changed: Vec<_> =
        before.lines().zip(now.lines()).filter(|(before, now)| before != now).collect();
    assert!(changed.is_empty(), "before and now: {changed:#?}");
    assert_eq!(before.lines().count(), now.lines().count());
}
