//! UDP ports and the calls that start from them.

use std::net::SocketAddr;
use std::sync::Arc;

use punctual_io::UdpSocket;
use punctual_proto::Config;

use crate::calls;
use crate::config::PortConfig;
use crate::error::Error;
use crate::listener::Listener;
use crate::shared::Handle;
use crate::socket::Socket;
use crate::statistics::PortStatistics;

/// A UDP port from which calls are made. Clones share it.
///
/// Connections of one port to one listener share a 4-tuple, so their datagrams are sent in common
/// batches: many streams to one peer cost far less than with one port for each, which is what
/// [`Socket::connect`] uses.
///
/// The port stays open until its last clone is dropped and its connections are closed.
///
/// ```
/// use punctual::{Config, Listener, Port, PortConfig};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), punctual::Error> {
/// let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), Config::default()).await?;
/// let port = Port::bind(PortConfig::default()).await?;
/// for number in 0..3 {
///     let config = Config::default().with_stream_id(format!("camera {number}"))?;
///     let (caller, accepted) =
///         tokio::try_join!(port.connect(listener.local_addr(), config), listener.accept())?;
///     assert_eq!(accepted.stream_id(), format!("camera {number}"));
///     assert_eq!(caller.local_addr().port(), port.local_addr().port());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Port {
    /// The port's sockets, which are several if a listener has opened it. Calls use the first.
    shards: Arc<[Handle]>,
}

impl Port {
    /// Opens a UDP port. Must be called within a tokio runtime, which runs the port's driver.
    ///
    /// Errors: an option out of range, or an error of the system, for example that the address is
    /// in use.
    pub async fn bind(config: PortConfig) -> Result<Self, Error> {
        Ok(Self::of(vec![calls::bind(&config)?]))
    }

    /// Calls the listener at `remote` and waits for the answer.
    ///
    /// Errors: [`Error::Closed`] with the reason if the peer refuses or does not answer within the
    /// [connect timeout](Config::connect_timeout); [`Error::Connect`] and [`Error::Io`] if
    /// `remote` cannot be called from here; [`Error::Config`] if options contradict each other
    /// ([`Config::check`]).
    ///
    /// Cancel safe: dropping the call takes it back.
    pub async fn connect(&self, remote: SocketAddr, config: Config) -> Result<Socket, Error> {
        let socket = self.begin_connect(remote, config)?;
        socket.connected().await?;
        Ok(socket)
    }

    /// Connects by rendezvous (draft section 4.3.2) to the end at `remote`, which calls this port
    /// at about the same time, and waits until the connection is established. Neither end listens,
    /// so two ends can connect whose firewalls permit only outgoing calls.
    ///
    /// Both ends must know both ports: `remote` is the port that the other end has bound, and the
    /// other end calls the one that this port is bound to.
    ///
    /// Errors: [`Error::Closed`] with the reason if the other end refuses, has incompatible
    /// options, or does not call within ten times the [connect timeout](Config::connect_timeout);
    /// [`Error::Connect`] and [`Error::Io`] if `remote` cannot be called from here, or a rendezvous
    /// with it is under way already.
    ///
    /// Cancel safe: dropping it ends the attempt.
    ///
    /// ```
    /// use punctual::{Config, Port, PortConfig};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), punctual::Error> {
    /// let local = Some("127.0.0.1:0".parse().unwrap());
    /// let here = Port::bind(PortConfig { local, ..PortConfig::default() }).await?;
    /// let there = Port::bind(PortConfig { local, ..PortConfig::default() }).await?;
    /// let (socket, _) = tokio::try_join!(
    ///     here.rendezvous(there.local_addr(), Config::default()),
    ///     there.rendezvous(here.local_addr(), Config::default()),
    /// )?;
    /// assert_eq!(socket.peer_addr(), there.local_addr());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn rendezvous(&self, remote: SocketAddr, config: Config) -> Result<Socket, Error> {
        let socket = self.begin_rendezvous(remote, config)?;
        socket.connected().await?;
        Ok(socket)
    }

    /// Calls the listener at `remote` as [`connect`](Self::connect) does, and does not wait for the
    /// answer: the socket's [`phase`](Socket::phase) tells of it. Errors as `connect`, except those
    /// of the answer.
    pub fn begin_connect(&self, remote: SocketAddr, config: Config) -> Result<Socket, Error> {
        calls::connect(self.handle(), remote, config).map(Socket::new)
    }

    /// Begins a [`rendezvous`](Self::rendezvous) and does not wait for its end: the socket's
    /// [`phase`](Socket::phase) tells of it.
    pub fn begin_rendezvous(&self, remote: SocketAddr, config: Config) -> Result<Socket, Error> {
        calls::rendezvous(self.handle(), remote, config).map(Socket::new)
    }

    /// Listens at this port; accepted connections get these options. Errors: options that
    /// contradict each other; a port whose carriage is QUIC and that has no identity.
    pub fn listen(&self, connection: Config) -> Result<Listener, Error> {
        Listener::at(self, connection)
    }

    /// Takes over a UDP socket that is bound.
    pub(crate) fn open(udp: &Arc<UdpSocket>, config: &PortConfig) -> Result<Self, Error> {
        Ok(Self::of(vec![calls::open(udp, config)?]))
    }

    /// The port of these sockets, at least one.
    pub(crate) fn of(shards: Vec<Handle>) -> Self {
        Self { shards: shards.into() }
    }

    /// The handle of the socket that calls, which keeps the port open.
    pub(crate) fn handle(&self) -> &Handle {
        &self.shards[0]
    }

    /// The handles of all sockets.
    pub(crate) fn shards(&self) -> Vec<Handle> {
        self.shards.to_vec()
    }

    /// The local address. The IP address is unspecified if the port was bound to all addresses.
    pub fn local_addr(&self) -> SocketAddr {
        self.handle().shared().udp.local_addr()
    }

    /// The time to live, or hop limit, of outgoing datagrams. Errors: that of the system.
    pub fn ttl(&self) -> std::io::Result<u32> {
        let udp = &self.handle().shared().udp;
        match udp.local_addr() {
            SocketAddr::V4(_) => udp.options().ttl_v4(),
            SocketAddr::V6(_) => udp.options().unicast_hops_v6(),
        }
    }

    /// The type of service, or traffic class, of outgoing datagrams. Errors: that of the system.
    pub fn tos(&self) -> std::io::Result<u32> {
        let udp = &self.handle().shared().udp;
        match udp.local_addr() {
            SocketAddr::V4(_) => udp.options().tos_v4(),
            #[cfg(unix)]
            SocketAddr::V6(_) => udp.options().tclass_v6(),
            #[cfg(not(unix))]
            SocketAddr::V6(_) => Err(std::io::ErrorKind::Unsupported.into()),
        }
    }

    /// The statistics of the port.
    pub fn statistics(&self) -> PortStatistics {
        *self.handle().shared().statistics()
    }
}
