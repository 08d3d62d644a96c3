//! One client: its links, its port towards the target, and its time.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use bytes::{Bytes, BytesMut};
use punctual_io::{ReceiveBuffers, SendBatch, Timer, UdpSocket, now};
use punctual_netem::{LinkEnd, Packet};
use punctual_units::Instant;
use tokio::sync::mpsc;

use crate::EmulatorConfig;
use crate::direction::Direction;
use crate::emulator::{Arrivals, LinkDirection, Shared, lock};
use crate::report::EmulatorReport;
use crate::udp::{bind, send};

/// The links of one client, and how exactly they are kept.
#[derive(Debug)]
pub(super) struct ClientLinks {
    up: Direction<LinkDatagram>,
    down: Direction<LinkDatagram>,
}

/// A datagram on a link.
#[derive(Clone, Debug)]
struct LinkDatagram {
    payload: Bytes,
    /// Bytes of the IP and UDP headers, which take their time on a real link too.
    headers: usize,
}

impl Packet for LinkDatagram {
    fn len(&self) -> usize {
        self.headers + self.payload.len()
    }

    /// Flips a bit of the payload: a damaged header would not arrive.
    fn corrupt(&mut self, entropy: u64) {
        let mut payload = BytesMut::from(&self.payload[..]);
        if let Some(byte) = (entropy >> 3).checked_rem(payload.len() as u64) {
            let byte = usize::try_from(byte).expect("it is less than a length");
            payload[byte] ^= 1 << (entropy & 7);
        }
        self.payload = payload.freeze();
    }
}

impl ClientLinks {
    /// The links of the client that came after `clients` others, with this time zero.
    pub(super) fn new(config: &EmulatorConfig, clients: u64, zero: Instant) -> Self {
        let seed = config.seed.wrapping_add(2 * clients);
        let down = Direction::new(&config.down, seed.wrapping_add(1), zero);
        Self { up: Direction::new(&config.up, seed, zero), down }
    }

    /// Adds their totals to `report`.
    pub(super) fn add_to(&self, report: &mut EmulatorReport) {
        self.up.add_to(&mut report.up);
        self.down.add_to(&mut report.down);
    }
}

/// Packets to be sent, and their due times.
#[derive(Default)]
struct Due {
    times: Vec<Instant>,
    datagrams: Vec<Bytes>,
}

impl Due {
    /// Takes the packets that are due at `now` from `direction`.
    fn take(&mut self, direction: &mut Direction<LinkDatagram>, now: Instant) {
        while let Some(arrival) = direction.link.recv(now) {
            self.times.push(arrival.at);
            self.datagrams.push(arrival.packet.payload);
        }
    }

    /// Forgets the packets, and records in `direction` that they were sent at `sent`.
    fn finish(&mut self, direction: &mut Direction<LinkDatagram>, sent: Instant) {
        self.times.drain(..).for_each(|due| direction.record(due, sent));
        self.datagrams.clear();
    }
}

/// The task of one client.
pub(super) struct Client {
    shared: Arc<Shared>,
    address: SocketAddr,
    links: Arc<Mutex<ClientLinks>>,
    inbox: mpsc::Receiver<Arrivals>,
    /// The client's port towards the target.
    socket: UdpSocket,
    send_buffer: SendBatch,
    timer: Timer,
}

/// The reason why a task woke up.
enum Woken {
    FromClient(Arrivals),
    FromTarget(Vec<Bytes>),
    Time,
    End,
}

impl Client {
    /// A client at `address`, whose datagrams come by `inbox`.
    pub(super) fn new(
        shared: Arc<Shared>,
        address: SocketAddr,
        links: Arc<Mutex<ClientLinks>>,
        inbox: mpsc::Receiver<Arrivals>,
    ) -> io::Result<Self> {
        let any: IpAddr = match shared.config.target {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = bind((any, 0).into())?;
        Ok(Self {
            shared,
            address,
            links,
            inbox,
            socket,
            send_buffer: SendBatch::default(),
            timer: Timer::new()?,
        })
    }

    /// Relays until both ends are silent or the emulator ends.
    pub(super) async fn run(mut self) {
        let headers = if self.shared.config.target.is_ipv4() { 28 } else { 48 };
        let mut buffers = ReceiveBuffers::default();
        let (mut up, mut down) = (Due::default(), Due::default());
        let mut heard = now();
        loop {
            let forget = heard + self.shared.config.client_timeout;
            let woken = self.wait(forget, &mut buffers).await;
            let now = now();
            {
                let mut links = lock(&self.links);
                let ClientLinks { up: to_target, down: to_client } = &mut *links;
                match woken {
                    Woken::FromClient((at, datagrams)) => {
                        heard = now;
                        self.shared.config.note(
                            at,
                            LinkDirection::Up,
                            LinkEnd::Entrance,
                            &datagrams,
                        );
                        for payload in datagrams {
                            to_target.link.send(at, LinkDatagram { payload, headers });
                        }
                    }
                    Woken::FromTarget(datagrams) => {
                        heard = now;
                        self.shared.config.note(
                            now,
                            LinkDirection::Down,
                            LinkEnd::Entrance,
                            &datagrams,
                        );
                        for payload in datagrams {
                            to_client.link.send(now, LinkDatagram { payload, headers });
                        }
                    }
                    Woken::Time if now >= forget => break,
                    Woken::Time => {}
                    Woken::End => return,
                }
                up.take(to_target, now);
                down.take(to_client, now);
            }
            self.send(&mut up, &mut down).await;
        }
        tracing::info!("client {} has gone", self.address);
        self.shared.forget(self.address);
    }

    /// Waits for datagrams, for the next that is due, or until it is time to forget the client.
    async fn wait(&mut self, forget: Instant, buffers: &mut ReceiveBuffers) -> Woken {
        let next = {
            let links = lock(&self.links);
            let times = [links.up.link.poll_timeout(), links.down.link.poll_timeout()];
            times.into_iter().flatten().fold(forget, Instant::min)
        };
        let mut datagrams = Vec::new();
        let target = self.shared.config.target;
        // An address that came from elsewhere than the target is nobody's business.
        let take = |datagram: punctual_io::Datagram| {
            if datagram.from == target {
                datagrams.push(datagram.payload);
            }
        };
        let report = |error: &io::Error| tracing::debug!("from {target}: {error}");
        tokio::select! {
            biased;
            () = self.timer.sleep_until(next) => Woken::Time,
            arrivals = self.inbox.recv() => arrivals.map_or(Woken::End, Woken::FromClient),
            _ = buffers.wait(&self.socket, take, report) => Woken::FromTarget(datagrams),
        }
    }

    /// Sends the due packets, and records how late that was.
    async fn send(&mut self, up: &mut Due, down: &mut Due) {
        let Self { shared, address, links, socket, send_buffer, .. } = self;
        if !up.datagrams.is_empty() {
            send(socket, send_buffer, shared.config.target, &up.datagrams).await;
            let sent = now();
            shared.config.note(sent, LinkDirection::Up, LinkEnd::Exit, &up.datagrams);
            up.finish(&mut lock(links).up, sent);
        }
        if !down.datagrams.is_empty() {
            send(&shared.socket, send_buffer, *address, &down.datagrams).await;
            let sent = now();
            shared.config.note(sent, LinkDirection::Down, LinkEnd::Exit, &down.datagrams);
            down.finish(&mut lock(links).down, sent);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use punctual_netem::LinkConfig;

    use super::*;

    #[test]
    fn due_packets_leave_the_link_and_their_lateness_is_recorded() {
        let profile = LinkConfig::default().with_delay(Duration::from_millis(10)).into();
        let start = Instant::ORIGIN;
        let mut direction = Direction::new(&profile, 1, start);
        direction
            .link
            .send(start, LinkDatagram { payload: Bytes::from_static(b"one"), headers: 28 });
        let mut due = Due::default();
        due.take(&mut direction, start + Duration::from_millis(9));
        assert!(due.datagrams.is_empty());
        due.take(&mut direction, start + Duration::from_millis(12));
        assert_eq!(due.datagrams, ["one"]);
        due.finish(&mut direction, start + Duration::from_millis(13));
        assert!(due.times.is_empty() && due.datagrams.is_empty());
        let mut report = crate::DirectionReport::default();
        direction.add_to(&mut report);
        // Quantiles are exact to some thousandths.
        let late = report.lateness.median().unwrap().abs_diff(3_000_000);
        assert!(late < 10_000, "{late} ns off");
    }
}
