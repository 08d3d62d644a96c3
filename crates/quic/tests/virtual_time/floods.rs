//! Strangers at a listener beside an honest stream: floods of calls that fail, that stay half open,
//! and that carry anything but SRT.

use std::net::SocketAddr;

use bytes::BytesMut;
use punctual_netem::LinkConfig;
use punctual_proto::Config;
use punctual_quic::tls::simulated::InsecureSimulatedClient;
use punctual_quic::{ConnectionId, Event, Protocol, QuicEndpoint, TransportConfig};

use crate::bed::{Bed, LISTENER, MS, address, quic_endpoint};

const SRT: [Protocol; 2] = [Protocol::SrtWithStreams, Protocol::Srt];

/// Another caller, whose packets arrive at once.
struct Stranger {
    quic: QuicEndpoint,
    address: SocketAddr,
    retries: usize,
}

impl Stranger {
    fn new(host: u8) -> Self {
        let quic = quic_endpoint(1_000 + u64::from(host), TransportConfig::default());
        Self { quic, address: address(host, 999), retries: 0 }
    }

    fn call(&mut self, bed: &mut Bed, protocols: &[Protocol]) -> ConnectionId {
        let tls = InsecureSimulatedClient(protocols.to_vec());
        let (remote, transport) = (bed.ends[LISTENER].address, TransportConfig::default());
        let id = self.quic.connect_insecure_simulated(bed.now, remote, tls, &transport);
        let id = id.expect("an address");
        self.send(bed);
        id
    }

    fn send(&mut self, bed: &mut Bed) {
        let mut buffer = Vec::new();
        while self.quic.poll_transmit(bed.now, 1, &mut buffer).is_some() {
            bed.arrives_from(self.address, &std::mem::take(&mut buffer));
        }
    }

    /// Answers the demand for a proof of the address, and with `all` everything else.
    fn answer(&mut self, bed: &mut Bed, all: bool) {
        let listener = bed.ends[LISTENER].address;
        for (to, datagram) in std::mem::take(&mut bed.to_strangers) {
            let is_retry = datagram[0] & 0xF0 == 0xF0;
            self.retries += usize::from(is_retry);
            if to == self.address && (all || is_retry) {
                self.quic.handle_datagram(bed.now, listener, None, BytesMut::from(&datagram[..]));
            }
        }
        self.send(bed);
    }
}

fn link() -> LinkConfig {
    LinkConfig { delay: MS(20), ..LinkConfig::default() }
}

/// The honest stream has arrived whole, and nothing is left of the strangers.
fn expect_no_harm(mut bed: Bed) {
    bed.run_for(MS(33_000));
    assert_eq!(bed.numbers(), (0..1_000).collect::<Vec<_>>());
    let machine = &mut bed.ends[LISTENER].machine;
    assert_eq!(machine.quic().connection_count(), 1);
    assert_eq!(machine.srt().connections().count(), 1);
}

#[test]
fn callers_whose_handshake_fails_have_to_prove_their_addresses() {
    let mut bed = Bed::connected(1, &link(), &Config::default());
    bed.stream(1_000, 1_316, MS(1));
    let mut stranger = Stranger::new(66);
    for _ in 0..1_000 {
        stranger.call(&mut bed, &[Protocol::Datagrams]);
        bed.run_for(MS(1));
        stranger.answer(&mut bed, false);
        stranger.quic = quic_endpoint(stranger.retries as u64 + 5_000, TransportConfig::default());
    }
    assert!(stranger.retries > 700, "{} of 1000", stranger.retries);
    expect_no_harm(bed);
}

#[test]
fn half_open_calls_of_a_host_take_few_places_and_end_by_themselves() {
    let mut bed = Bed::connected(2, &link(), &Config::default());
    bed.stream(1_000, 1_316, MS(1));
    let mut stranger = Stranger::new(66);
    let mut most = 0;
    for _ in 0..3_000 {
        stranger.call(&mut bed, &SRT);
        bed.run_for(MS(1) / 2);
        stranger.answer(&mut bed, false);
        most = most.max(bed.ends[LISTENER].machine.quic().connection_count());
    }
    assert!((100..=1 + 64 + 64).contains(&most), "{most} connections");
    // An honest caller of another host is served meanwhile.
    let mut other = Stranger::new(77);
    let id = other.call(&mut bed, &SRT);
    for _ in 0..20 {
        bed.run_for(MS(1));
        other.answer(&mut bed, true);
    }
    let events: Vec<_> = std::iter::from_fn(|| other.quic.poll_event()).collect();
    assert!(matches!(events[0], Event::Established(established, _) if established == id));
    expect_no_harm(bed);
}

#[test]
fn half_open_calls_of_many_hosts_make_way_for_new_ones() {
    let mut bed = Bed::connected(3, &link(), &Config::default());
    bed.stream(1_000, 1_316, MS(1));
    for host in 10..200 {
        let mut stranger = Stranger::new(host);
        for _ in 0..10 {
            stranger.call(&mut bed, &SRT);
            bed.run_for(MS(1) / 2);
            stranger.answer(&mut bed, false);
        }
    }
    let count = bed.ends[LISTENER].machine.quic().connection_count();
    assert!((500..=513).contains(&count), "{count} connections");
    bed.run_for(MS(50));
    let mut other = Stranger::new(250);
    other.call(&mut bed, &SRT);
    for _ in 0..20 {
        bed.run_for(MS(1));
        other.answer(&mut bed, true);
    }
    assert!(matches!(other.quic.poll_event(), Some(Event::Established(..))));
    expect_no_harm(bed);
}

#[test]
fn idle_connections_and_garbage_leave_nothing_behind() {
    let mut bed = Bed::connected(4, &link(), &Config::default());
    bed.stream(1_000, 1_316, MS(1));
    let mut stranger = Stranger::new(66);
    let ids: Vec<_> = (0..20)
        .map(|_| {
            let id = stranger.call(&mut bed, &SRT);
            for _ in 0..4 {
                bed.run_for(MS(1));
                stranger.answer(&mut bed, true);
            }
            id
        })
        .collect();
    let established = std::iter::from_fn(|| stranger.quic.poll_event())
        .filter(|event| matches!(event, Event::Established(..)));
    assert_eq!(established.count(), 20);
    // The first half is idle.
    for &id in &ids[10..] {
        for length in 1..100_u8 {
            let garbage = vec![length; usize::from(length) * 10];
            let _ = stranger.quic.send_datagram(id, garbage.clone().into());
            let _ = stranger.quic.send_message(id, garbage.into());
        }
        stranger.send(&mut bed);
        bed.run_for(MS(1));
        stranger.answer(&mut bed, true);
    }
    assert!(bed.ends[LISTENER].machine.poll_event().is_none(), "nobody reads the garbage");
    expect_no_harm(bed);
}

#[test]
fn connections_over_which_no_stream_is_called_end_within_ten_seconds() {
    let mut bed = Bed::connected(7, &link(), &Config::default());
    bed.stream(1_000, 1_316, MS(1));
    let mut strangers: Vec<_> = (10..40).map(Stranger::new).collect();
    for stranger in &mut strangers {
        stranger.call(&mut bed, &SRT);
        for _ in 0..10 {
            bed.run_for(MS(1));
            stranger.answer(&mut bed, true);
        }
    }
    assert_eq!(bed.ends[LISTENER].machine.quic().connection_count(), 31);
    bed.run_for(MS(10_000));
    assert_eq!(bed.ends[LISTENER].machine.quic().connection_count(), 1, "that of the stream");
    expect_no_harm(bed);
}
