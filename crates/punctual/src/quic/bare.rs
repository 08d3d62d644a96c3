//! Messages over QUIC without SRT.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use punctual_io::canonical;
use punctual_quic::{ConnectionId, ConnectionInfo, Protocol, SendError};

use crate::config::{Carriage, PortConfig};
use crate::error::Error;
use crate::quic::QuicConfig;
use crate::quic::bare_driver::{Handle, State, start};
use crate::udp;

/// Accepts connections that carry messages over QUIC without SRT.
///
/// The caller chooses how they travel, by the protocol that it offers: [`Protocol::Datagrams`],
/// each message a DATAGRAM frame, which may be lost; [`Protocol::Streams`], each message on a
/// stream of its own, reliable and in no order; [`Protocol::Stream`], all messages on one stream,
/// reliable and in order.
///
/// ```
/// use std::sync::Arc;
///
/// use punctual::quic::{
///     ClientTls, Identity, MESSAGE_PROTOCOLS, Protocol, QuicConfig, QuicConnection, QuicListener,
///     ServerTls, Trust,
/// };
/// use punctual::{Carriage, PortConfig};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), punctual::Error> {
/// let identity = Identity::self_signed(&["localhost"])?;
/// let trust = Trust::Pinned(identity.hash().expect("it has a certificate"));
///
/// let server = Some(ServerTls::new(identity, MESSAGE_PROTOCOLS));
/// let carriage = Carriage::Quic(Arc::new(QuicConfig { server, ..QuicConfig::default() }));
/// let local = Some("127.0.0.1:0".parse().unwrap());
/// let listener = QuicListener::bind(PortConfig { local, carriage, ..Default::default() }).await?;
///
/// let client = Some(ClientTls::new(trust, &[Protocol::Stream]));
/// let carriage = Carriage::Quic(Arc::new(QuicConfig { client, ..QuicConfig::default() }));
/// let port = PortConfig { carriage, ..PortConfig::default() };
/// let call = QuicConnection::connect(port, listener.local_addr());
/// let (caller, accepted) = tokio::try_join!(call, listener.accept())?;
/// for message in ["first", "second"] {
///     caller.send(message.into()).await?;
/// }
/// assert_eq!(accepted.recv().await?, "first");
/// assert_eq!(accepted.recv().await?, "second");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct QuicListener {
    handle: Handle,
}

/// A connection that carries messages over QUIC without SRT. Clones share it; when the last one is
/// dropped, the connection is closed at once.
#[derive(Clone, Debug)]
pub struct QuicConnection {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    handle: Handle,
    id: ConnectionId,
}

impl QuicListener {
    /// Opens a UDP port and listens at it.
    ///
    /// # Errors
    ///
    /// The carriage of the port is not QUIC, it has no certificate, or an error of the system.
    pub async fn bind(port: PortConfig) -> Result<Self, Error> {
        let (handle, config) = open(&port)?;
        let server = config.server.as_ref().ok_or(Error::NoIdentity)?;
        handle.act(|state, _| state.endpoint.listen(Some(server)))?;
        handle.accept_callers();
        Ok(Self { handle })
    }

    /// Waits for the next connection.
    ///
    /// Cancel safe.
    ///
    /// # Errors
    ///
    /// [`Error::Stopped`].
    pub async fn accept(&self) -> Result<QuicConnection, Error> {
        loop {
            let changed = self.handle.accepted().notified();
            let (next, stopped) = self.handle.act(|state, _| (state.next_caller(), state.stopped));
            match next {
                Some(id) => return Ok(QuicConnection::new(self.handle.clone(), id)),
                None if stopped => return Err(Error::Stopped),
                None => changed.await,
            }
        }
    }

    /// The local address.
    pub fn local_addr(&self) -> SocketAddr {
        self.handle.local_addr()
    }
}

impl QuicConnection {
    /// Calls the listener at `remote` from a UDP port of its own, and waits until the connection is
    /// established.
    ///
    /// Cancel safe: dropping the call takes it back.
    ///
    /// # Errors
    ///
    /// The carriage of the port is not QUIC, it trusts no certificates, the address cannot be
    /// called, or [`Error::QuicClosed`] with the reason.
    pub async fn connect(port: PortConfig, remote: SocketAddr) -> Result<Self, Error> {
        let (handle, config) = open(&port)?;
        let client = config.client.as_ref().ok_or(Error::NoTrust)?;
        let remote = canonical(remote);
        handle.check_family(remote)?;
        let address = remote.ip().to_string();
        let name = config.server_name.as_deref().unwrap_or(&address);
        let id = handle.act(|state, now| {
            state.endpoint.connect(now, remote, name, client, &config.transport)
        })?;
        handle.act(|state, _| state.add(id));
        let connection = Self::new(handle, id);
        connection.wait(|state, id| state.endpoint.info(id)?.protocol.map(|_| ())).await?;
        Ok(connection)
    }

    fn new(handle: Handle, id: ConnectionId) -> Self {
        Self { inner: Arc::new(Inner { handle, id }) }
    }

    /// Sends a message. Over streams this waits while more than about 10 MB of messages are under
    /// way. Datagrams never wait: if congestion control holds too many back, the oldest ones are
    /// dropped and counted ([`datagrams_dropped`](crate::quic::QuicInfo::datagrams_dropped)).
    ///
    /// Cancel safe: a message is sent whole or not at all.
    ///
    /// # Errors
    ///
    /// [`Error::Size`] if the message is too long, [`Error::QuicClosed`] after the end.
    pub async fn send(&self, message: Bytes) -> Result<(), Error> {
        let is_datagram = self.protocol() == Some(Protocol::Datagrams);
        let mut message = Some(message);
        self.wait(|state, id| {
            let sent = if is_datagram {
                state.endpoint.send_datagram(id, message.take()?)
            } else if state.has_room(id) {
                state.endpoint.send_message(id, message.take()?)
            } else {
                return None;
            };
            match sent {
                Ok(()) => Some(Ok(())),
                Err(SendError::TooLong { size, largest }) => {
                    Some(Err(Error::Size { size, max: largest }))
                }
                // After the end its reason is known.
                Err(SendError::Closed) => None,
            }
        })
        .await?
    }

    /// Waits for the next message.
    ///
    /// Cancel safe.
    ///
    /// # Errors
    ///
    /// [`Error::QuicClosed`] after the end, when all messages that arrived have been read.
    pub async fn recv(&self) -> Result<Bytes, Error> {
        self.wait(State::recv).await
    }

    /// A message that has arrived already.
    pub fn try_recv(&self) -> Option<Bytes> {
        self.inner.handle.act(|state, _| state.recv(self.inner.id))
    }

    /// Closes the connection after the messages so far: those on streams have arrived then, those
    /// in datagrams have been sent. Waits for up to ten seconds.
    pub async fn close(&self) {
        let id = self.inner.id;
        let flushed = async {
            self.inner.handle.act(|state, _| state.endpoint.finish(id));
            while !self.inner.handle.act(|state, _| state.endpoint.is_flushed(id)) {
                tokio::time::sleep(FLUSH_CHECK).await;
            }
        };
        let _ = tokio::time::timeout(LINGER, flushed).await;
        self.inner.handle.act(|state, now| state.endpoint.close(now, id, 0, "the end"));
        // The program may end right after this, so the peer must have been told by then.
        let _ = tokio::time::timeout(LINGER, self.wait_until_left()).await;
    }

    /// Waits until the socket has taken the last packets of the connection, which was closed.
    async fn wait_until_left(&self) {
        let Inner { handle, id } = &*self.inner;
        let Some(signal) = handle.act(|state, _| state.signal(*id)) else { return };
        loop {
            let changed = signal.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if handle.act(|state, _| state.stopped || state.has_left(*id)) {
                return;
            }
            changed.await;
        }
    }

    /// The protocol that both ends speak.
    pub fn protocol(&self) -> Option<Protocol> {
        self.info()?.protocol
    }

    /// The state and the statistics of the connection, after its end those at its end.
    pub fn info(&self) -> Option<ConnectionInfo> {
        self.inner.handle.act(|state, _| state.info(self.inner.id))
    }

    /// The local address.
    pub fn local_addr(&self) -> SocketAddr {
        self.inner.handle.local_addr()
    }

    /// Waits until `ready` has a result, or the connection has ended.
    async fn wait<R>(
        &self,
        mut ready: impl FnMut(&mut State, ConnectionId) -> Option<R>,
    ) -> Result<R, Error> {
        let Inner { handle, id } = &*self.inner;
        let signal = handle.act(|state, _| state.signal(*id)).ok_or(Error::Stopped)?;
        loop {
            let changed = signal.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let (result, end) = handle.act(|state, _| (ready(state, *id), state.end(*id)));
            match (result, end) {
                (Some(result), _) => return Ok(result),
                (None, Some(end)) => return Err(end),
                (None, None) => changed.await,
            }
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let id = self.id;
        self.handle.act(|state, now| {
            state.endpoint.close(now, id, 0, "");
            state.forget(id);
        });
    }
}

/// Opens the port and starts its driver.
fn open(port: &PortConfig) -> Result<(Handle, Arc<QuicConfig>), Error> {
    let Carriage::Quic(config) = &port.carriage else { return Err(Error::NotQuic) };
    let udp = Arc::new(udp::bind(port, false)?);
    Ok((start(udp, config.transport)?, Arc::clone(config)))
}

/// The longest time that `close` waits for messages under way, and how often it checks them.
const LINGER: Duration = Duration::from_secs(10);
const FLUSH_CHECK: Duration = Duration::from_millis(2);
