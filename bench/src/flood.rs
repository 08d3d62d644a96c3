//! Requests of callers in masses: complete handshakes from many ports, by an attacker who receives
//! at his addresses, so that his cookies are valid; or first requests only, from many addresses.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "an attacker has sockets and a clock of its own"
)]

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::thread::sleep;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use punctual_proto::{Config, Endpoint, EndpointConfig};
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::quic_flood;

/// The requests that a flood consists of.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Kind {
    /// Both requests of a caller.
    Handshakes,
    /// The same; each second request has a key message with a salt of its own.
    EncryptedHandshakes,
    /// First requests, each port at an address of its own; nobody reads the answers.
    Inductions,
    /// First packets of QUIC handshakes that fail in TLS, because the listener does not speak their
    /// protocol.
    QuicFailing,
    /// QUIC handshakes that prove their address and then end without a word.
    QuicHalfOpen,
}

impl Kind {
    /// Whether it floods a listener over QUIC.
    pub(crate) const fn is_quic(self) -> bool {
        matches!(self, Self::QuicFailing | Self::QuicHalfOpen)
    }
}

/// A flood of requests: their kind, rate and time, and the listener that they go to.
#[derive(Args, Clone, Debug)]
pub(crate) struct Flood {
    /// UDP port of the listener on 127.0.0.1.
    #[arg(long)]
    pub(crate) port: u16,
    /// Requests a second.
    #[arg(long)]
    pub(crate) rate: u32,
    #[arg(long, value_enum)]
    pub(crate) kind: Kind,
    /// For how long.
    #[arg(long)]
    pub(crate) seconds: f64,
}

/// The attacker's report.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(crate) struct FloodReport {
    /// Second requests that were sent, each with its listener's cookie; of other floods the first
    /// requests.
    pub(crate) requests: u64,
    pub(crate) seconds: f64,
}

impl Flood {
    /// The flags that say this.
    pub(crate) fn flags(&self) -> Vec<String> {
        let kind = self.kind.to_possible_value().map(|kind| kind.get_name().to_owned());
        vec![
            format!("--port={}", self.port),
            format!("--rate={}", self.rate),
            format!("--kind={}", kind.unwrap_or_default()),
            format!("--seconds={}", self.seconds),
        ]
    }
}

/// Prints `started`, floods, and prints the report.
pub(crate) fn run(flood: &Flood) -> Result<()> {
    if flood.kind.is_quic() {
        return quic_flood::run(flood);
    }
    let completes = flood.kind != Kind::Inductions;
    let mut requests = Requests::record(flood.kind == Kind::EncryptedHandshakes)?;
    let host = |number| if completes { Ipv4Addr::LOCALHOST } else { host(number) };
    let ports =
        (0..PORTS).map(|number| open(host(number), flood.port)).collect::<Result<Vec<_>>>()?;
    println!("started");
    let start = Instant::now();
    let end = start + Duration::from_secs_f64(flood.seconds);
    let (mut asked, mut report) = (0_u64, FloodReport::default());
    let mut answer = [0; 2_048];
    while Instant::now() < end {
        let due = start.elapsed().as_micros() * u128::from(flood.rate) / 1_000_000;
        let due = u64::try_from(due)?.min(asked + AT_ONCE);
        for number in asked..due {
            let port = &ports[usize::try_from(number % PORTS)?];
            // The datagrams that have come to this port since its last turn.
            while completes && let Ok(size) = port.recv(&mut answer) {
                if let Some(conclusion) = requests.answer(&answer[..size]) {
                    report.requests += u64::from(port.send(conclusion).is_ok());
                }
            }
            let begun = port.send(&requests.induction).is_ok();
            report.requests += u64::from(begun && !completes);
        }
        if asked == due {
            sleep(Duration::from_micros(500));
        }
        asked = due;
    }
    report.seconds = start.elapsed().as_secs_f64();
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}

/// The loopback address of a host.
pub(crate) fn host(number: u64) -> Ipv4Addr {
    let [.., high, low] = number.to_be_bytes();
    Ipv4Addr::new(127, 1, high, low)
}

/// Opens a port that calls the listener.
pub(crate) fn open(host: Ipv4Addr, port: u16) -> Result<UdpSocket> {
    let socket = UdpSocket::bind((host, 0))?;
    socket.connect((Ipv4Addr::LOCALHOST, port))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// The two requests of a caller, to be made anybody's.
struct Requests {
    induction: Vec<u8>,
    conclusion: Vec<u8>,
    /// The position of the key message's salt, if there is one.
    salt: Option<usize>,
    callers: u32,
}

impl Requests {
    /// Records a call of ours at a listener of ours.
    fn record(encrypted: bool) -> Result<Self> {
        let config = match encrypted {
            true => Config::default().with_passphrase("an attacker does not know it")?,
            false => Config::default(),
        };
        let now = punctual::now();
        let [here, there] = [1, 2].map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        let mut listener = Endpoint::new(EndpointConfig::new([1; 32]), now);
        listener.listen(Some(config.clone()));
        let mut caller = Endpoint::new(EndpointConfig::new([2; 32]), now);
        caller.connect(now, there, config)?;
        let mut requests: Vec<Vec<u8>> = Vec::new();
        for millis in 0..CALL {
            let now = now + Duration::from_millis(millis);
            caller.handle_timeout(now);
            if let Some(request) = sent(&mut caller, now) {
                listener.handle_datagram(now, here, request.clone().into());
                requests.push(request);
            }
            if let Some(answer) = sent(&mut listener, now) {
                caller.handle_datagram(now, there, answer.into());
            }
        }
        requests.truncate(2);
        let conclusion = requests.pop().unwrap_or_default();
        let induction = requests.pop().unwrap_or_default();
        let salt = salt_of(&conclusion);
        Ok(Self { induction, conclusion, salt, callers: 0 })
    }

    /// A new caller's second request, if `datagram` answers the first.
    fn answer(&mut self, datagram: &[u8]) -> Option<&[u8]> {
        let is_induction = datagram.get(..2)? == [0x80, 0] && datagram.get(36..40)? == [0, 0, 0, 1];
        let cookie = datagram.get(44..48).filter(|_| is_induction)?;
        self.callers = self.callers.wrapping_add(1);
        let number = self.callers.to_be_bytes();
        self.conclusion[44..48].copy_from_slice(cookie);
        self.conclusion[40..44].copy_from_slice(&(self.callers & 0x3FFF_FFFF).to_be_bytes());
        if let Some(salt) = self.salt {
            self.conclusion[salt + 12..salt + 16].copy_from_slice(&number);
        }
        Some(&self.conclusion)
    }
}

/// The next datagram of an endpoint.
fn sent(endpoint: &mut Endpoint, now: punctual::Instant) -> Option<Vec<u8>> {
    let mut buffer = Vec::new();
    endpoint.poll_transmit(now, 1, &mut buffer).map(|_| buffer)
}

/// The position of the key message's salt in a conclusion, if it has one.
fn salt_of(conclusion: &[u8]) -> Option<usize> {
    let half =
        |at: usize| conclusion.get(at..at + 2).map(|two| u16::from_be_bytes([two[0], two[1]]));
    let mut at = EXTENSIONS;
    while half(at)? != KEY_REQUEST {
        at += 4 + 4 * usize::from(half(at + 2)?);
    }
    Some(at + 4 + SALT)
}

/// Milliseconds that a call without a way takes at most.
const CALL: u64 = 20;
/// Ports that the callers come from, each again and again.
const PORTS: u64 = 1_000;
/// Handshakes that are begun without looking at the clock.
const AT_ONCE: u64 = 100;
/// The position of a handshake's extensions in its datagram.
const EXTENSIONS: usize = 64;
/// The extension that brings a key.
const KEY_REQUEST: u16 = 3;
/// The position of the salt in a key message.
const SALT: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_requests_are_taken_as_a_new_callers() {
        for encrypted in [false, true] {
            let requests = Requests::record(encrypted).unwrap();
            assert_eq!(requests.induction[36..40], [0, 0, 0, 1]);
            assert_eq!(requests.conclusion[36..40], [0xFF; 4]);
            assert_eq!(requests.salt.is_some(), encrypted);
        }
    }
}
