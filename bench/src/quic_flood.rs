//! QUIC calls in masses from another host: first packets of handshakes that fail, or handshakes
//! that end half-way.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "an attacker has sockets and a clock of its own"
)]

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::thread::sleep;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use punctual::quic::{ClientTls, Protocol, SRT_PROTOCOLS, TransportConfig, Trust};
use punctual_quic::{QuicEndpoint, QuicEndpointConfig};

use crate::Result;
use crate::flood::{Flood, FloodReport, Kind, host, open};

/// A caller whose handshake has begun.
struct Caller {
    port: UdpSocket,
    endpoint: Option<QuicEndpoint>,
}

/// Prints `started`, floods, and prints the report.
pub(crate) fn run(flood: &Flood) -> Result<()> {
    let fails = flood.kind == Kind::QuicFailing;
    let protocols = if fails { &[Protocol::Datagrams][..] } else { SRT_PROTOCOLS };
    let tls = ClientTls::new(Trust::Insecure, protocols);
    let remote = SocketAddr::from((Ipv4Addr::LOCALHOST, flood.port));
    let mut callers = Vec::new();
    for _ in 0..PORTS {
        callers.push(Caller { port: open(host(0), flood.port)?, endpoint: None });
    }
    // A packet takes longer to make than to send.
    let made = if fails { MADE } else { 0 };
    let made = (0..made).map(|number| Ok(call(number, &tls, remote)?.1));
    let made = made.collect::<Result<Vec<_>>>()?;
    println!("started");
    let start = Instant::now();
    let (mut sent, mut report) = (0_u32, FloodReport::default());
    let mut answer = [0; 2_048];
    while start.elapsed().as_secs_f64() < flood.seconds {
        let due = start.elapsed().as_micros() * u128::from(flood.rate) / 1_000_000;
        let due = u32::try_from(due)?.min(sent + AT_ONCE);
        for number in sent..due {
            let caller = &mut callers[number as usize % PORTS];
            while let Ok(size) = caller.port.recv(&mut answer) {
                caller.answer(remote, &answer[..size]);
            }
            let begun = match made.get(number as usize % MADE as usize) {
                Some(packet) => caller.port.send(packet),
                None => {
                    let (endpoint, packet) = call(number, &tls, remote)?;
                    caller.endpoint = Some(endpoint);
                    caller.port.send(&packet)
                }
            };
            report.requests += u64::from(begun.is_ok());
        }
        if sent == due {
            sleep(Duration::from_micros(500));
        }
        sent = due;
    }
    report.seconds = start.elapsed().as_secs_f64();
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}

impl Caller {
    /// Proves its address if it is asked to, and says nothing else.
    fn answer(&mut self, remote: SocketAddr, datagram: &[u8]) {
        let is_retry = datagram.first().is_some_and(|first| first & 0xF0 == 0xF0);
        let Some(endpoint) = self.endpoint.as_mut().filter(|_| is_retry) else { return };
        let now = punctual::Instant::ORIGIN;
        endpoint.handle_datagram(now, remote, None, BytesMut::from(datagram));
        let mut packet = Vec::new();
        if endpoint.poll_transmit(now, 1, &mut packet).is_some() {
            let _ = self.port.send(&packet);
        }
    }
}

/// A new caller, and its first packet.
fn call(number: u32, tls: &ClientTls, remote: SocketAddr) -> Result<(QuicEndpoint, Vec<u8>)> {
    let mut seed = [7; 32];
    seed[..4].copy_from_slice(&number.to_be_bytes());
    let mut endpoint = QuicEndpoint::new(QuicEndpointConfig::new(seed, Instant::now()));
    let (now, transport) = (punctual::Instant::ORIGIN, TransportConfig::default());
    endpoint.connect(now, remote, "localhost", tls, &transport)?;
    let mut packet = Vec::new();
    endpoint.poll_transmit(now, 1, &mut packet).ok_or("a call begins with a packet")?;
    Ok((endpoint, packet))
}

/// Ports that the callers come from, each again and again.
const PORTS: usize = 128;
/// Packets that are made before the flood and sent in turn.
const MADE: u32 = 20_000;
/// Calls that are begun without looking at the clock.
const AT_ONCE: u32 = 100;
