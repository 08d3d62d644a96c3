//! Floods of complete handshakes: the work that they cause is limited, and other callers still
//! connect.

use std::net::SocketAddr;

use bytes::Bytes;
use punctual_proto::{Config, Endpoint, Event};
use punctual_testbed::datagrams;
use punctual_units::Instant;

use crate::node::endpoint_config;
use crate::random::Random;
use crate::{MS, latency};

const START: Instant = Instant::from_millis(1_000);

/// The two requests of a caller with a passphrase, as a template for other callers.
struct Requests {
    induction: Vec<u8>,
    conclusion: Vec<u8>,
}

impl Requests {
    fn record(caller: Config) -> Self {
        let mut listener = listener(caller.clone());
        let mut calling = Endpoint::new(endpoint_config(7, 1), START);
        calling.connect(START, from(1, 1), caller).expect("it can be called");
        let mut requests = Vec::new();
        for milli in 0.. {
            let now = START + MS(milli);
            calling.handle_timeout(now);
            for (_, request) in datagrams(&mut calling, now) {
                listener.handle_datagram(now, from(9, 9), request.clone().into());
                requests.push(request);
            }
            let Ok([induction, conclusion]) = <[_; 2]>::try_from(requests.clone()) else {
                for (_, answer) in datagrams(&mut listener, now) {
                    calling.handle_datagram(now, from(1, 1), answer.into());
                }
                continue;
            };
            return Self { induction, conclusion };
        }
        unreachable!("a caller sends its second request once the first is answered")
    }

    /// Requests a cookie from the address `remote`, and sends a conclusion with it as the caller
    /// `caller`.
    fn call(&self, now: Instant, listener: &mut Endpoint, remote: SocketAddr, caller: u32) {
        listener.handle_datagram(now, remote, self.induction.clone().into());
        let answer = datagrams(listener, now).pop().expect("an induction is answered").1;
        let mut conclusion = self.conclusion.clone();
        conclusion[40..44].copy_from_slice(&caller.to_be_bytes());
        conclusion[44..48].copy_from_slice(&answer[44..48]);
        let salt = self.salt();
        conclusion[salt + 12..salt + 16].copy_from_slice(&caller.to_be_bytes());
        listener.handle_datagram(now, remote, conclusion.into());
    }

    /// The offset of the salt in the key message.
    fn salt(&self) -> usize {
        let (mut at, conclusion) = (64, &self.conclusion);
        let half = |at: usize| u16::from_be_bytes([conclusion[at], conclusion[at + 1]]);
        while half(at) != 3 {
            at += 4 + 4 * usize::from(half(at + 2));
        }
        at + 4 + 16
    }
}

fn encrypted() -> Config {
    latency(120).with_passphrase("a passphrase of callers").expect("it is long enough")
}

fn listener(config: Config) -> Endpoint {
    let limits = endpoint_config(7, 2);
    let mut listener = Endpoint::new(
        punctual_proto::EndpointConfig { key_derivations: Some(500), ..limits },
        START,
    );
    listener.listen(Some(config));
    listener
}

fn from(host: u8, port: u16) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, host], port))
}

/// The work that was caused by a flood of callers with passphrases, each with its own salt.
#[derive(Default)]
struct Caused {
    derivations: u32,
    reported: u32,
}

/// 20 callers per millisecond from `hosts` addresses; each reported one is rejected at once. From
/// the millisecond `honest` on, a caller from another address repeats its call until it is
/// reported. Returns the work, and the milliseconds until that caller was reported.
fn flood(millis: u64, hosts: u8, honest: u64) -> (Caused, Option<u64>) {
    let requests = Requests::record(encrypted());
    let mut listener = listener(encrypted());
    let (mut caused, mut chance, mut waited) = (Caused::default(), Random(3), None);
    for milli in 0..millis {
        let now = START + MS(milli);
        for _ in 0..20 {
            let remote =
                from((chance.next_u32() % u32::from(hosts)) as u8, chance.next_u32() as u16);
            requests.call(now, &mut listener, remote, chance.next_u32() >> 2);
        }
        if milli >= honest && waited.is_none() && (milli - honest).is_multiple_of(20) {
            requests.call(now, &mut listener, from(200, 1), 77);
        }
        listener.handle_timeout(now);
        while let Some(job) = listener.poll_key_derivation(now) {
            caused.derivations += 1;
            listener.handle_derived_key(job.run());
        }
        while let Some(event) = listener.poll_event() {
            if let Event::Incoming(incoming) = event {
                caused.reported += 1;
                if incoming.path == from(200, 1) {
                    waited = Some(milli - honest);
                }
                listener.reject(incoming.id, punctual_proto::RejectReason::PEER);
            }
        }
        datagrams(&mut listener, now);
    }
    (caused, waited)
}

#[test]
fn a_flood_of_callers_causes_no_more_key_derivations_than_allowed() {
    let (caused, _) = flood(2_000, 200, u64::MAX);
    assert!((900..=1_032).contains(&caused.derivations), "{}", caused.derivations);
    assert_eq!(caused.reported, caused.derivations);
}

#[test]
fn a_flood_from_one_address_does_not_keep_others_out() {
    let (_, waited) = flood(1_000, 1, 500);
    assert!(waited.is_some_and(|waited| waited <= 200), "{waited:?}");
}

#[test]
fn a_listener_accepts_a_limited_number_of_new_callers_per_second() {
    let requests = Requests::record(encrypted());
    let mut listener = Endpoint::new(endpoint_config(7, 2), START);
    listener.listen(Some(encrypted()));
    let (mut chance, mut reported) = (Random(4), 0);
    for milli in 0..3_000 {
        let now = START + MS(milli);
        for _ in 0..20 {
            let remote =
                SocketAddr::from((chance.next_u32().to_be_bytes(), chance.next_u32() as u16));
            requests.call(now, &mut listener, remote, chance.next_u32() >> 2);
        }
        datagrams(&mut listener, now);
        while let Some(event) = listener.poll_event() {
            if let Event::Incoming(incoming) = event {
                reported += 1;
                listener.reject(incoming.id, punctual_proto::RejectReason::PEER);
            }
        }
    }
    assert!((3_000..=3_250).contains(&reported), "{reported}");
}

#[test]
fn a_key_derived_in_advance_is_used_for_the_caller() {
    let mut listener = listener(encrypted());
    let mut caller = Endpoint::new(endpoint_config(7, 1), START);
    let id = caller.connect(START, from(1, 1), encrypted()).expect("it can be called");
    let mut connected = false;
    for milli in 0..50 {
        let now = START + MS(milli);
        for (_, datagram) in datagrams(&mut caller, now) {
            listener.handle_datagram(now, from(2, 2), Bytes::from(datagram));
        }
        if let Some(job) = listener.poll_key_derivation(now) {
            assert!(listener.poll_event().is_none(), "no event before the key is derived");
            listener.handle_derived_key(job.run());
        }
        while let Some(event) = listener.poll_event() {
            if let Event::Incoming(incoming) = event {
                assert!(listener.key_derivation_for(incoming.id, &encrypted()).is_none());
                let other = latency(120).with_passphrase("the passphrase of others").unwrap();
                assert!(listener.key_derivation_for(incoming.id, &other).is_some());
                listener.accept(now, incoming.id, None).expect("it fits");
            }
        }
        for (_, datagram) in datagrams(&mut listener, now) {
            caller.handle_datagram(now, from(1, 1), Bytes::from(datagram));
        }
        caller.handle_timeout(now);
        while let Some(event) = caller.poll_event() {
            connected |= matches!(event, Event::Connected(it) if it == id);
        }
    }
    assert!(connected);
}
