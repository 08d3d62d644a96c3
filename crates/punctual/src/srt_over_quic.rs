//! SRT over QUIC: the options of a port, and its protocol machine.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use punctual_proto::{Endpoint, Event, PathId, WakeUp};
use punctual_quic::{ClientTls, QuicInfo, ServerTls, SrtEndpoint, SrtEvent, TransportConfig};
use punctual_units::Instant;

use crate::error::Error;
use crate::outbox::Batch;

/// The options of a port whose SRT packets travel in QUIC
/// ([`Carriage::Quic`](crate::Carriage::Quic)).
#[derive(Clone, Debug, Default)]
pub struct QuicConfig {
    /// The identity with which the port listens; without one it can only call.
    pub server: Option<ServerTls>,
    /// The certificates that the port trusts when it calls; without them it can only listen.
    pub client: Option<ClientTls>,
    /// The name that a server's certificate must be for. Default: the IP address that is called.
    pub server_name: Option<String>,
    /// The options of QUIC connections.
    pub transport: TransportConfig,
}

/// SRT over QUIC on one UDP port.
#[derive(Debug)]
pub(crate) struct QuicMachine {
    srt: SrtEndpoint,
    config: Arc<QuicConfig>,
    ended: EndedPaths,
}

/// The last state of the QUIC connections that have ended lately: an SRT connection can be asked
/// for its statistics after its end, too.
#[derive(Debug, Default)]
struct EndedPaths(VecDeque<(PathId, QuicInfo)>);

impl EndedPaths {
    const MOST: usize = 64;

    fn add(&mut self, path: PathId, info: QuicInfo) {
        if self.0.len() == Self::MOST {
            self.0.pop_front();
        }
        self.0.push_back((path, info));
    }

    fn get(&self, path: PathId) -> Option<QuicInfo> {
        let found = self.0.iter().find(|(ended, _)| *ended == path);
        found.map(|(_, info)| info.clone())
    }
}

impl QuicMachine {
    /// A machine with this SRT endpoint; `seed` is from the system's source of randomness.
    pub(crate) fn new(endpoint: Endpoint, config: Arc<QuicConfig>, seed: [u8; 32]) -> Self {
        let mut quic = punctual_quic::QuicEndpointConfig::new(seed, epoch());
        quic.transport = config.transport;
        Self {
            srt: SrtEndpoint::new(punctual_quic::QuicEndpoint::new(quic), endpoint),
            config,
            ended: EndedPaths::default(),
        }
    }

    pub(crate) const fn endpoint(&mut self) -> &mut Endpoint {
        self.srt.srt()
    }

    pub(crate) fn listen(&mut self, listens: bool) -> Result<(), Error> {
        if !listens {
            self.srt.quic().listen(None)?;
            return Ok(());
        }
        let Some(server) = &self.config.server else { return Err(Error::NoIdentity) };
        Ok(self.srt.quic().listen(Some(server))?)
    }

    /// The path to the server at `remote`: a QUIC connection that exists already, or a new one.
    pub(crate) fn path_to(&mut self, now: Instant, remote: SocketAddr) -> Result<PathId, Error> {
        if let Some(path) = self.srt.path_to(remote) {
            return Ok(path);
        }
        let QuicConfig { client, server_name, transport, .. } = &*self.config;
        let Some(client) = client else { return Err(Error::NoTrust) };
        let address = remote.ip().to_string();
        let name = server_name.as_deref().unwrap_or(&address);
        Ok(self.srt.open(now, remote, name, client, transport)?)
    }

    pub(crate) fn remote(&self, path: PathId) -> Option<SocketAddr> {
        self.srt.remote(path)
    }

    /// The state and statistics of the QUIC connection of a path.
    pub(crate) fn info(&mut self, path: PathId) -> Option<QuicInfo> {
        match self.srt.carrier(path) {
            Some(id) => self.srt.quic().info(id),
            None => self.ended.get(path),
        }
    }

    pub(crate) fn handle_datagram(&mut self, now: Instant, from: SocketAddr, datagram: Bytes) {
        self.srt.handle_datagram(now, from, None, BytesMut::from(datagram));
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.srt.handle_timeout(now);
    }

    pub(crate) fn poll_timeout(&self) -> WakeUp {
        self.srt.poll_timeout()
    }

    pub(crate) fn poll_transmit(
        &mut self,
        now: Instant,
        max_segments: usize,
        buffer: &mut Vec<u8>,
    ) -> Option<Batch> {
        let transmit = self.srt.poll_transmit(now, max_segments, buffer)?;
        let punctual_quic::QuicTransmit { remote, size, segment_size, .. } = transmit;
        Some(Batch { remote, size, segment_size })
    }

    pub(crate) fn has_events(&self) -> bool {
        self.srt.has_events()
    }

    /// The next event of SRT. Events of QUIC go to the log.
    pub(crate) fn poll_event(&mut self) -> Option<Event> {
        loop {
            match self.srt.poll_event()? {
                SrtEvent::Srt(event) => return Some(event),
                SrtEvent::Quic(event) => {
                    if let punctual_quic::Event::Closed(id, _) = event
                        && let Some(info) = self.srt.as_quic().info(id)
                    {
                        self.ended.add(SrtEndpoint::path(id), info);
                    }
                    log(&event);
                }
            }
        }
    }

    pub(crate) fn shut_down(&mut self, now: Instant) -> bool {
        self.srt.close_all(now)
    }
}

/// Bytes of an SRT packet with seven packets of MPEG-TS, the usual size of live streams.
const SRT_PACKET: usize = 16 + 7 * 188;

/// Logs an event of a QUIC connection.
pub(crate) fn log(event: &punctual_quic::Event) {
    use punctual_quic::Event;
    match event {
        Event::Established(_, protocol) => tracing::debug!(%protocol, "QUIC is established"),
        Event::Readable(_) => {}
        Event::LargestDatagram(_, largest) if *largest < SRT_PACKET => {
            tracing::info!("the path carries QUIC datagrams of {largest} bytes at most");
        }
        Event::LargestDatagram(_, largest) => {
            tracing::debug!("the path carries QUIC datagrams of {largest} bytes at most");
        }
        Event::Moved(_, remote) => tracing::info!(%remote, "the peer has moved"),
        Event::Closed(_, reason) => tracing::debug!(%reason, "a QUIC connection has ended"),
    }
}

/// The epoch of QUIC's time.
#[expect(clippy::disallowed_methods, reason = "this crate owns the clock")]
pub(crate) fn epoch() -> std::time::Instant {
    std::time::Instant::now()
}
