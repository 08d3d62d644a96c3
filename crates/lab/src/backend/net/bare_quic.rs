//! One end of a connection of QUIC without SRT, at a UDP socket: it carries messages in datagrams.

use std::io;
use std::net::SocketAddr;

use bytes::{Bytes, BytesMut};
use punctual::quic::{ClientTls, ServerTls, TransportConfig};
use punctual::{Timer, now};
use punctual_proto::WakeUp;
use punctual_quic::{ConnectionId, Event, QuicEndpoint, QuicEndpointConfig, QuicSendError};
use tokio::net::UdpSocket;
use tokio::sync::mpsc::Receiver;

use crate::backend::real::LOOPBACK;

/// An end of one connection.
pub(super) struct End {
    endpoint: QuicEndpoint,
    socket: UdpSocket,
    timer: Timer,
    connection: Option<ConnectionId>,
}

/// Something that has happened at an end.
pub(super) enum Happened {
    /// The handshake is complete.
    Connected,
    /// A message arrived.
    Arrived(Bytes),
}

impl End {
    /// An end that waits for a call.
    pub(super) async fn listen(tls: &ServerTls, transport: TransportConfig) -> io::Result<Self> {
        let mut end = Self::bind(1, transport).await?;
        end.endpoint.listen(Some(tls)).map_err(io::Error::other)?;
        Ok(end)
    }

    /// An end that calls `remote`.
    pub(super) async fn call(
        remote: SocketAddr,
        tls: &ClientTls,
        transport: TransportConfig,
    ) -> io::Result<Self> {
        let mut end = Self::bind(2, transport).await?;
        let name = remote.ip().to_string();
        let id = end.endpoint.connect(now(), remote, &name, tls, &transport);
        end.connection = Some(id.map_err(io::Error::other)?);
        Ok(end)
    }

    #[expect(clippy::disallowed_methods, reason = "any instant serves as the epoch")]
    async fn bind(role: u8, transport: TransportConfig) -> io::Result<Self> {
        // No secret has to be kept on this machine.
        let seed = [role; 32];
        let mut config = QuicEndpointConfig::new(seed, std::time::Instant::now());
        config.transport = transport;
        Ok(Self {
            endpoint: QuicEndpoint::new(config),
            socket: UdpSocket::bind(LOOPBACK).await?,
            timer: Timer::new()?,
            connection: None,
        })
    }

    /// The local address.
    pub(super) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Carries the messages from `outgoing` until there are no more, and tells `happened` what
    /// happens meanwhile. Returns the number of datagrams that waited too long for congestion
    /// control and were dropped.
    ///
    /// # Errors
    ///
    /// The connection has ended, or an error of the system.
    pub(super) async fn run(
        mut self,
        mut outgoing: Receiver<Bytes>,
        mut happened: impl FnMut(Happened),
    ) -> io::Result<u64> {
        let mut datagram = vec![0; MOST_BYTES];
        let mut is_connected = false;
        loop {
            while let Some(event) = self.endpoint.poll_event() {
                match event {
                    Event::Established(id, _) => {
                        self.connection = Some(id);
                        is_connected = true;
                        happened(Happened::Connected);
                    }
                    Event::Readable(id) => {
                        while let Some(message) = self.endpoint.recv_datagram(id) {
                            happened(Happened::Arrived(message));
                        }
                    }
                    Event::Closed(_, reason) => return Err(io::Error::other(reason.to_string())),
                    Event::LargestDatagram(..) | Event::Moved(..) => {}
                }
            }
            self.transmit().await?;
            let Self { endpoint, socket, timer, .. } = &mut self;
            let wake_up = endpoint.poll_timeout();
            tokio::select! {
                received = socket.recv_from(&mut datagram) => {
                    let (size, from) = received?;
                    let content = BytesMut::from(&datagram[..size]);
                    endpoint.handle_datagram(now(), from, None, content);
                }
                message = outgoing.recv(), if is_connected => match message {
                    Some(message) => self.send(message)?,
                    None => return Ok(self.dropped()),
                },
                () = sleep(timer, wake_up) => endpoint.handle_timeout(now()),
            }
        }
    }

    fn send(&mut self, message: Bytes) -> io::Result<()> {
        let Some(id) = self.connection else { return Ok(()) };
        match self.endpoint.send_datagram(id, message) {
            // The end of the connection is an event.
            Ok(()) | Err(QuicSendError::Closed) => Ok(()),
            Err(error @ QuicSendError::TooLong { .. }) => Err(io::Error::other(error)),
        }
    }

    async fn transmit(&mut self) -> io::Result<()> {
        let mut packet = Vec::new();
        while let Some(transmit) = self.endpoint.poll_transmit(now(), 1, &mut packet) {
            self.socket.send_to(&packet, transmit.remote).await?;
            packet.clear();
        }
        Ok(())
    }

    fn dropped(&self) -> u64 {
        let info = self.connection.and_then(|id| self.endpoint.info(id));
        info.map_or(0, |info| info.datagrams_dropped)
    }
}

async fn sleep(timer: &mut Timer, wake_up: WakeUp) {
    match wake_up {
        WakeUp::Now => {}
        WakeUp::At(at) => timer.sleep_until(at).await,
        WakeUp::Never => std::future::pending().await,
    }
}

/// The largest UDP payload.
const MOST_BYTES: usize = 65_535;
