//! UDP ports that are bound and not driven yet.

use std::mem::MaybeUninit;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::{io, thread};

use punctual_io::canonical;
use socket2::Socket;
use tokio::runtime::Handle;

use crate::config::{ListenerConfig, PortConfig};
use crate::error::Error;
use crate::listener::Listener;
use crate::port::Port;
use crate::udp;

/// A UDP port that is bound, and that becomes a [`Port`] or a [`Listener`] later: a program may
/// bind an address before it knows what it is for, and only a listener is worth several sockets.
///
/// Datagrams that arrive before wait in the system's buffer.
#[derive(Debug)]
pub struct ReservedPort {
    socket: Socket,
    config: PortConfig,
    local: SocketAddr,
}

impl ReservedPort {
    /// Binds a UDP port. Errors: as [`Port::bind`].
    pub fn bind(config: PortConfig) -> Result<Self, Error> {
        let socket = udp::reserve(&config, false)?;
        Self::new(socket, config)
    }

    /// Takes over a UDP socket that is bound. Of `config`, the options that are set when a socket
    /// is bound have an effect on further sockets of a listener alone.
    pub fn adopt(socket: UdpSocket, config: PortConfig) -> Result<Self, Error> {
        Self::new(socket.into(), config)
    }

    fn new(socket: Socket, mut config: PortConfig) -> Result<Self, Error> {
        let local = socket.local_addr()?.as_socket();
        let not_ip = || io::Error::new(io::ErrorKind::Unsupported, "not a socket of IP");
        let local = local.ok_or_else(not_ip)?;
        config.local = Some(local);
        Ok(Self { socket, config, local })
    }

    /// The local address. The IP address is unspecified if the port is bound to all addresses.
    pub fn local_addr(&self) -> SocketAddr {
        canonical(self.local)
    }

    /// The time to live, or hop limit, of outgoing datagrams. Errors: that of the system.
    pub fn ttl(&self) -> io::Result<u32> {
        match self.local {
            SocketAddr::V4(_) => self.socket.ttl_v4(),
            SocketAddr::V6(_) => self.socket.unicast_hops_v6(),
        }
    }

    /// The type of service, or traffic class, of outgoing datagrams. Errors: that of the system.
    pub fn tos(&self) -> io::Result<u32> {
        match self.local {
            SocketAddr::V4(_) => self.socket.tos_v4(),
            #[cfg(unix)]
            SocketAddr::V6(_) => self.socket.tclass_v6(),
            #[cfg(not(unix))]
            SocketAddr::V6(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Drives the port, for calls. Must be called within a tokio runtime. Errors: those of the
    /// system.
    pub fn into_port(self) -> Result<Port, Error> {
        let udp = Arc::new(udp::adopt(self.socket, &self.config)?);
        Port::open(&udp, &self.config)
    }

    /// Listens at the port, with these options except those of the port, and with as many sockets
    /// as `config.shards` says. Where the system does not let sockets share a port, there is one.
    /// Must be called within a tokio runtime. Errors: as [`Listener::bind_with`].
    pub fn listen(self, config: ListenerConfig) -> Result<Listener, Error> {
        self.listen_on(config, &[Handle::current()])
    }

    /// Listens as [`listen`](Self::listen) does, and gives the sockets to these runtimes, at least
    /// one, in turn.
    pub fn listen_on(
        self,
        mut config: ListenerConfig,
        runtimes: &[Handle],
    ) -> Result<Listener, Error> {
        let shards = match config.shards {
            0 => thread::available_parallelism().map_or(1, usize::from),
            shards => shards,
        };
        let mut reserved = Vec::new();
        if shards > 1 && udp::let_share(&self.socket).is_ok() {
            for _ in 1..shards {
                match udp::reserve(&self.config, true) {
                    Ok(socket) => reserved.push(socket),
                    Err(error) => tracing::debug!("a listener has fewer sockets: {error}"),
                }
            }
        }
        if !reserved.is_empty() {
            discard_all(&self.socket)?;
        }
        reserved.insert(0, self.socket);
        let mut sockets = Vec::new();
        for (socket, runtime) in reserved.into_iter().zip(runtimes.iter().cycle()) {
            let _entered = runtime.enter();
            sockets.push(Arc::new(udp::adopt(socket, &self.config)?));
        }
        config.port = self.config;
        Listener::on(&sockets.into(), &config, runtimes)
    }
}

/// Discards the datagrams that came before other sockets shared the port. The system gives a
/// caller's later datagrams to another socket, which does not know the cookie that this one would
/// answer with; a caller that gets no answer begins again.
fn discard_all(socket: &Socket) -> io::Result<()> {
    socket.set_nonblocking(true)?;
    let mut nothing = [MaybeUninit::uninit(); 1];
    for _ in 0..MOST_DISCARDED {
        match socket.recv(&mut nothing) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            // An error that an earlier datagram caused, such as a port that is unreachable.
            Err(_) => {}
        }
    }
    Ok(())
}

/// More datagrams than a buffer of the system holds.
const MOST_DISCARDED: usize = 65_536;

#[cfg(test)]
mod tests {
    use punctual_proto::Config;

    use super::*;
    use crate::socket::Socket as Connection;

    #[tokio::test]
    async fn a_reserved_port_listens_with_several_sockets_and_calls() {
        let local = Some("127.0.0.1:0".parse().unwrap());
        let config = PortConfig { local, ..PortConfig::default() };
        let reserved = ReservedPort::bind(config.clone()).unwrap();
        let address = reserved.local_addr();
        let shards = ListenerConfig { shards: 3, ..ListenerConfig::default() };
        let listener = reserved.listen(shards).unwrap();
        let port = ReservedPort::bind(config).unwrap().into_port().unwrap();
        for _ in 0..6 {
            let call = port.connect(address, Config::default());
            let (caller, accepted) = tokio::try_join!(call, listener.accept()).unwrap();
            assert_eq!(caller.peer_addr(), accepted.local_addr());
        }
        // The listener's port calls, too.
        let other = Listener::bind("127.0.0.1:0".parse().unwrap(), Config::default());
        let other = other.await.unwrap();
        let port = listener.port();
        let call = port.connect(other.local_addr(), Config::default());
        let (caller, _accepted) = tokio::try_join!(call, other.accept()).unwrap();
        assert_eq!(Connection::local_addr(&caller), address);
    }

    /// The first datagram of a caller may come before the port has all its sockets.
    #[tokio::test]
    async fn callers_from_before_the_port_listens_are_answered() {
        let local = Some("127.0.0.1:0".parse().unwrap());
        let reserved = ReservedPort::bind(PortConfig { local, ..PortConfig::default() }).unwrap();
        let address = reserved.local_addr();
        let calls: Vec<_> =
            (0..8).map(|_| tokio::spawn(Connection::connect(address, Config::default()))).collect();
        reserved.socket.set_nonblocking(true).unwrap();
        while reserved.socket.peek_sender().is_err() {
            tokio::task::yield_now().await;
        }
        let shards = ListenerConfig { shards: 4, ..ListenerConfig::default() };
        let listener = reserved.listen(shards).unwrap();
        for _ in &calls {
            listener.accept().await.unwrap();
        }
        for call in calls {
            call.await.unwrap().unwrap();
        }
    }

    #[tokio::test]
    async fn a_port_whose_listener_is_dropped_listens_again_with_all_sockets() {
        let local = Some("127.0.0.1:0".parse().unwrap());
        let reserved = ReservedPort::bind(PortConfig { local, ..PortConfig::default() }).unwrap();
        let shards = ListenerConfig { shards: 3, ..ListenerConfig::default() };
        let listener = reserved.listen(shards).unwrap();
        let port = listener.port();
        drop(listener);
        let listener = port.listen(Config::default()).unwrap();
        // The system gives the callers, who have other ports, to different sockets.
        for _ in 0..12 {
            let call = Connection::connect(port.local_addr(), Config::default());
            tokio::try_join!(call, listener.accept()).unwrap();
        }
    }
}
