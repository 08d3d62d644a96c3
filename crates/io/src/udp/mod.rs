//! UDP sockets that send and receive many datagrams a call.

mod arrival;
mod buffers;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod control;
mod gather;
mod options;
mod readiness;
mod send_buffer;

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use quinn_udp::{RecvMeta, UdpSocketState};
use socket2::{SockRef, Socket};

pub use self::buffers::{Datagram, ReceiveBuffers, Received};
pub use self::gather::Gather;
use self::readiness::Readiness;
pub use self::readiness::Room;
pub use self::send_buffer::SendBatch;

/// A bound UDP socket in tokio's reactor.
///
/// It differs from tokio's own in three ways:
///
/// - It sends and receives several datagrams a call, where the system can.
/// - The reactor watches for datagrams alone. One that watches for room to send as well is woken
///   each time the kernel has passed on a datagram, once for each that is sent. Here [`Room`]
///   watches for room, and exists only while the socket has none.
/// - It can be told not to watch for datagrams either ([`Gather`]).
///
/// Addresses that go in and come out are canonical: IPv4 is IPv4 even on a socket that serves both
/// families.
#[derive(Debug)]
pub struct UdpSocket {
    readiness: Readiness,
    batching: UdpSocketState,
    local: SocketAddr,
    /// Most datagrams in one call to send; 1 once a network device turned out not to cut.
    max_segments: AtomicUsize,
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    keeps_tos: bool,
}

impl UdpSocket {
    /// Takes over a bound socket. Must be called within a tokio runtime.
    ///
    /// # Errors
    ///
    /// There is no runtime, or what the system says.
    pub fn new(socket: Socket, options: UdpOptions) -> io::Result<Self> {
        tokio::runtime::Handle::try_current().map_err(io::Error::other)?;
        socket.set_nonblocking(true)?;
        let batching = UdpSocketState::new((&socket).into())?;
        let local = local_addr(&socket)?;
        options::allow_fragmentation(&socket, local.is_ipv6());
        let cuts = cfg!(any(target_os = "linux", target_os = "android")) || !options.keeps_tos;
        let max_segments = if cuts { batching.max_gso_segments().min(MAX_SEGMENTS) } else { 1 };
        Ok(Self {
            readiness: match options.pausable {
                true => Readiness::pausable(socket)?,
                false => Readiness::always(socket)?,
            },
            batching,
            local,
            max_segments: AtomicUsize::new(max_segments),
            #[cfg(not(any(target_os = "linux", target_os = "android")))]
            keeps_tos: options.keeps_tos,
        })
    }

    /// The address that the socket is bound to.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// The socket, for its options.
    pub fn options(&self) -> SockRef<'_> {
        self.readiness.socket()
    }

    /// An error if datagrams cannot be sent from this socket to `remote` for its family.
    pub fn check_family(&self, remote: SocketAddr) -> io::Result<()> {
        let reachable = match (canonical(remote), self.local) {
            (SocketAddr::V6(_), local) => local.is_ipv6(),
            (SocketAddr::V4(_), SocketAddr::V4(_)) => true,
            (SocketAddr::V4(_), SocketAddr::V6(local)) => {
                local.ip().is_unspecified() && !self.options().only_v6()?
            }
        };
        if reachable {
            return Ok(());
        }
        let message = format!("{remote} cannot be reached from a port bound to {}", self.local);
        Err(io::Error::new(io::ErrorKind::InvalidInput, message))
    }

    /// The most datagrams that the system takes in one call.
    pub fn max_segments(&self) -> usize {
        self.max_segments.load(Ordering::Relaxed)
    }

    /// Ready if there may be something to receive; else the task is woken when there is, unless the
    /// socket is not [watched](Gather).
    pub fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.readiness.poll(cx)
    }

    /// Sets whether the reactor reports datagrams from now on; see [`Gather`].
    fn set_watched(&self, watched: bool) {
        self.readiness.set_watched(watched);
    }

    /// Receives what is there without waiting, up to one batch. Errors that the system reports on
    /// the way, such as a peer's ICMP messages, go to `report`.
    fn receive(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        metas: &mut [RecvMeta],
        report: &mut impl FnMut(&io::Error),
    ) -> Batch {
        let batch = self.readiness.read(cx, || {
            let received = self.receive_now(buffers, metas, report);
            // An incomplete batch emptied the socket.
            Batch { received, drained: received < buffers.len() }
        });
        for meta in &mut metas[..batch.received] {
            meta.addr = canonical(meta.addr);
        }
        batch
    }

    fn receive_now(
        &self,
        buffers: &mut [IoSliceMut<'_>],
        metas: &mut [RecvMeta],
        report: &mut impl FnMut(&io::Error),
    ) -> usize {
        for _ in 0..RECEIVE_ATTEMPTS {
            match self.batching.recv((&*self.options()).into(), buffers, metas) {
                Ok(received) => return received,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return 0,
                // It is gone now, but datagrams may wait behind it.
                Err(error) => report(&error),
            }
        }
        0
    }

    /// Sends to `remote`, or to the peer of a connected socket, from the front of `contents`: one
    /// datagram, or several of `segment_size` bytes of which the last may be shorter. Returns the
    /// bytes that it sent, which are all of them or whole datagrams. `source` is the local address
    /// to send from, if it matters.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if the socket has no [room](Self::room), or what
    /// the system says of the first datagram. An error with a `source` may mean that this machine
    /// does not have that address any more.
    pub fn send(
        &self,
        remote: Option<SocketAddr>,
        contents: &[u8],
        segment_size: usize,
        source: Option<IpAddr>,
    ) -> io::Result<usize> {
        // Elsewhere than on Linux a connected socket has no call that cuts.
        let cuts = cfg!(any(target_os = "linux", target_os = "android")) || remote.is_some();
        let segments = if cuts { self.max_segments() } else { 1 };
        let size = contents.len().min(segment_size.saturating_mul(segments));
        let mut sent = self.send_segments(remote, &contents[..size], segment_size, source);
        if sent.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
            // It was an earlier datagram that nobody took. The system reports it at the next call,
            // and sends nothing of that call.
            sent = self.send_segments(remote, &contents[..size], segment_size, source);
        }
        match sent {
            Ok(()) => Ok(size),
            Err(error)
                if error.kind() == io::ErrorKind::WouldBlock
                    || source.is_some()
                    || size <= segment_size =>
            {
                Err(error)
            }
            Err(error) => self.send_first(&error, remote, contents, segment_size),
        }
    }

    /// Sends one datagram of a batch that the system refused because the device or the path cannot
    /// cut it.
    #[cold]
    fn send_first(
        &self,
        refusal: &io::Error,
        remote: Option<SocketAddr>,
        contents: &[u8],
        segment_size: usize,
    ) -> io::Result<usize> {
        if is_io_error(refusal) {
            tracing::info!(error = %refusal, "this device cuts no datagrams: they go one by one");
            self.max_segments.store(1, Ordering::Relaxed);
        }
        self.send_segments(remote, &contents[..segment_size], segment_size, None)?;
        Ok(segment_size)
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn send_segments(
        &self,
        remote: Option<SocketAddr>,
        contents: &[u8],
        segment_size: usize,
        source: Option<IpAddr>,
    ) -> io::Result<()> {
        let segment_size = (contents.len() > segment_size)
            .then(|| u16::try_from(segment_size).map_err(io::Error::other))
            .transpose()?;
        let remote = remote.map(|remote| self.outward(remote));
        control::send(&self.options(), remote, contents, segment_size, source)
    }

    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    fn send_segments(
        &self,
        remote: Option<SocketAddr>,
        contents: &[u8],
        segment_size: usize,
        src_ip: Option<IpAddr>,
    ) -> io::Result<()> {
        let Some(destination) = remote.map(|remote| self.outward(remote)) else {
            return self.options().send(contents).map(drop);
        };
        if self.keeps_tos {
            // quinn-udp writes a traffic class of its own into every datagram.
            return self.options().send_to(contents, &destination.into()).map(drop);
        }
        let segment_size = (contents.len() > segment_size).then_some(segment_size);
        let transmit =
            quinn_udp::Transmit { destination, ecn: None, contents, segment_size, src_ip };
        self.batching.try_send((&*self.options()).into(), &transmit)
    }

    /// Watches for room to send, for a socket that has just had none.
    ///
    /// # Errors
    ///
    /// The error that the system reports.
    pub fn room(&self) -> io::Result<Room> {
        self.readiness.room()
    }

    /// `address` as the socket takes it: an IPv6 socket takes IPv4 addresses in mapped form.
    fn outward(&self, address: SocketAddr) -> SocketAddr {
        match address {
            SocketAddr::V4(v4) if self.local.is_ipv6() => {
                SocketAddr::from((v4.ip().to_ipv6_mapped(), v4.port()))
            }
            address => address,
        }
    }
}

/// Options of a [`UdpSocket`].
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct UdpOptions {
    /// The type of service that was set stays in each datagram, also on a system that batches only
    /// with another one. Linux does both.
    pub keeps_tos: bool,
    /// [`Gather`] may pause the reactor's watch. That costs a descriptor more.
    pub pausable: bool,
}

/// The outcome of one call to receive.
#[derive(Clone, Copy, Debug)]
struct Batch {
    /// Buffers that were filled.
    received: usize,
    /// Whether nothing was left in the socket.
    drained: bool,
}

/// `address` as applications know it: an IPv4 address that came as a mapped IPv6 address is IPv4,
/// and there is no flow label.
pub fn canonical(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(_) => address,
        SocketAddr::V6(v6) => match v6.ip().to_ipv4_mapped() {
            Some(ip) => SocketAddr::from((ip, v6.port())),
            None => SocketAddrV6::new(*v6.ip(), v6.port(), 0, v6.scope_id()).into(),
        },
    }
}

fn local_addr(socket: &Socket) -> io::Result<SocketAddr> {
    let address = socket.local_addr()?.as_socket();
    address.map(canonical).ok_or_else(|| io::Error::other("this is not a socket of IP"))
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn is_io_error(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EIO)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn is_io_error(_error: &io::Error) -> bool {
    // quinn-udp stops cutting by itself.
    false
}

/// Most datagrams sent in one call: as many of an MTU of 1500 as fit a UDP packet of 64 KiB, which
/// is the size up to which the kernel cuts.
const MAX_SEGMENTS: usize = 65_507 / 1_472;
/// Errors in a row after which a socket counts as empty, so that a broken one does not spin.
const RECEIVE_ATTEMPTS: usize = 4;

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::Arc;

    use bytes::Bytes;
    use socket2::{Domain, Type};

    use super::*;

    pub(super) fn bound(local: &str) -> UdpSocket {
        bound_with(local, UdpOptions::default())
    }

    pub(super) fn bound_with(local: &str, options: UdpOptions) -> UdpSocket {
        let local: SocketAddr = local.parse().unwrap();
        let socket = Socket::new(Domain::for_address(local), Type::DGRAM, None).unwrap();
        socket.bind(&local.into()).unwrap();
        UdpSocket::new(socket, options).unwrap()
    }

    /// Waits for this number of datagrams.
    pub(super) async fn received(socket: &UdpSocket, count: usize) -> Vec<Bytes> {
        let mut buffers = ReceiveBuffers::default();
        let mut datagrams = Vec::new();
        while datagrams.len() < count {
            let take = |datagram: Datagram| datagrams.push(datagram.payload);
            buffers.wait(socket, take, |error| panic!("{error}")).await;
        }
        datagrams
    }

    #[tokio::test]
    async fn a_batch_that_cannot_be_cut_goes_one_by_one() {
        let (from, to) = (bound("127.0.0.1:0"), bound("127.0.0.1:0"));
        // More in one call than a UDP packet can be cut from.
        let mut contents = &[7; 70_000][..];
        while !contents.is_empty() {
            let sent = from.send(Some(to.local_addr()), contents, 20_000, None).unwrap();
            contents = &contents[sent..];
        }
        let sizes: Vec<usize> = received(&to, 4).await.iter().map(Bytes::len).collect();
        assert_eq!(sizes, [20_000, 20_000, 20_000, 10_000]);
    }

    #[tokio::test]
    async fn a_datagram_that_nobody_took_costs_no_other() {
        let (from, to) = (bound("127.0.0.1:0"), bound("127.0.0.1:0"));
        let address = to.local_addr();
        from.options().connect(&address.into()).unwrap();
        drop(to);
        from.send(None, &[1; 100], 100, None).unwrap();
        // The system reports it now.
        assert_eq!(from.send(None, &[2; 300], 100, None).unwrap(), 300);
        let to = bound(&address.to_string());
        // And of the three here.
        from.send(None, &[3; 300], 100, None).unwrap();
        assert_eq!(received(&to, 3).await, vec![Bytes::from_static(&[3; 100]); 3]);
    }

    #[tokio::test]
    async fn a_source_that_this_machine_does_not_have_is_an_error() {
        let (from, to) = (bound("0.0.0.0:0"), bound("127.0.0.1:0"));
        // An address for documentation: nobody has it.
        let source = Some("192.0.2.1".parse().unwrap());
        assert!(from.send(Some(to.local_addr()), &[1; 25], 10, source).is_err());
    }

    #[tokio::test]
    async fn sending_does_not_wake_a_task_that_waits_for_datagrams() {
        let (from, to) = (Arc::new(bound("127.0.0.1:0")), bound("127.0.0.1:0"));
        let polls = Arc::new(AtomicUsize::new(0));
        let watch = tokio::spawn({
            let (from, polls) = (Arc::clone(&from), Arc::clone(&polls));
            poll_fn(move |cx| {
                polls.fetch_add(1, Ordering::Relaxed);
                from.poll_readable(cx)
            })
        });
        for _ in 0..50 {
            from.send(Some(to.local_addr()), &[1; 100], 100, None).unwrap();
            received(&to, 1).await;
        }
        assert_eq!(polls.load(Ordering::Relaxed), 1);
        // It does wake up for a datagram.
        to.send(Some(from.local_addr()), &[1; 100], 100, None).unwrap();
        watch.await.unwrap();
    }

    #[test]
    fn outside_a_runtime_it_says_so() {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
        socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        assert!(UdpSocket::new(socket, UdpOptions::default()).is_err());
    }
}
