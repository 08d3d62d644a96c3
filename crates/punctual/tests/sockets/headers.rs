//! The effect of the port's options on IP headers, read from the datagrams that arrive: type of
//! service and time to live, of both ends, in both families.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::os::fd::AsRawFd;

use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt,
};
use tokio::io::Interest;
use tokio::net::UdpSocket;
use tokio::sync::mpsc;

use crate::common::{message, prompt, within};
use punctual::{Listener, ListenerConfig, Port, PortConfig};

/// Type of service, or traffic class; and time to live, or hop limit.
type Marks = (u32, u32);

const CALLERS: Marks = (0xB8, 7);
const LISTENERS: Marks = (0x88, 9);

#[tokio::test]
async fn datagrams_of_ipv4_carry_type_of_service_and_time_to_live() {
    assert_marked("127.0.0.1:0", "127.0.0.1:0").await;
}

#[tokio::test]
async fn datagrams_of_ipv6_carry_traffic_class_and_hop_limit() {
    assert_marked("[::1]:0", "[::1]:0").await;
}

#[tokio::test]
async fn datagrams_of_ipv4_carry_them_too_from_ports_of_both_families() {
    assert_marked("[::]:0", "127.0.0.1:0").await;
}

/// Streams both ways between ports bound to `local` through a relay at `between`, and looks at the
/// header of each datagram that the relay gets.
async fn assert_marked(local: &str, between: &str) {
    let local: SocketAddr = local.parse().unwrap();
    let between: SocketAddr = between.parse().unwrap();
    if UdpSocket::bind(local).await.is_err() {
        return; // A system without IPv6.
    }
    let port = |(tos, ttl): Marks| PortConfig {
        local: Some(local),
        tos: Some(tos),
        ttl: Some(ttl),
        ..PortConfig::default()
    };
    let listener = ListenerConfig { port: port(LISTENERS), connection: prompt(), ..<_>::default() };
    let listener = Listener::bind_with(listener).await.unwrap();
    let behind = SocketAddr::new(between.ip(), listener.local_addr().port());
    let (tell, mut seen) = mpsc::unbounded_channel();
    let relay = Relay::bind(between, behind, tell).await.unwrap();
    let address = relay.socket.local_addr().unwrap();
    let relay = tokio::spawn(relay.run());

    let port = Port::bind(port(CALLERS)).await.unwrap();
    let call = port.connect(address, prompt());
    let (a, b) = within(async { tokio::try_join!(call, listener.accept()) }).await.unwrap();
    for socket in [&a, &b] {
        // Back to back, so that several are sent in one call.
        for n in 0..COUNT {
            socket.send(message(n)).await.unwrap();
        }
    }
    for socket in [&a, &b] {
        for n in 0..COUNT {
            assert_eq!(within(socket.recv()).await.unwrap().payload, message(n));
        }
    }
    relay.abort();

    let mut counts = [0; 2];
    while let Ok((from_listener, marks)) = seen.try_recv() {
        assert_eq!(marks, if from_listener { LISTENERS } else { CALLERS });
        counts[usize::from(from_listener)] += 1;
    }
    assert!(counts.iter().all(|&count| count > COUNT), "handshakes, data, acknowledgements");
}

const COUNT: u32 = 40;

/// Carries datagrams between one caller and a listener, and reports the marks of each.
struct Relay {
    socket: UdpSocket,
    listener: SocketAddr,
    /// With whether it came from the listener.
    tell: mpsc::UnboundedSender<(bool, Marks)>,
}

impl Relay {
    async fn bind(
        local: SocketAddr,
        listener: SocketAddr,
        tell: mpsc::UnboundedSender<(bool, Marks)>,
    ) -> io::Result<Self> {
        let socket = UdpSocket::bind(local).await?;
        if local.is_ipv4() {
            setsockopt(&socket, sockopt::IpRecvTos, &true)?;
            setsockopt(&socket, sockopt::Ipv4RecvTtl, &true)?;
        } else {
            setsockopt(&socket, sockopt::Ipv6RecvTClass, &true)?;
            setsockopt(&socket, sockopt::Ipv6RecvHopLimit, &true)?;
        }
        Ok(Self { socket, listener, tell })
    }

    async fn run(self) {
        let mut caller = None;
        loop {
            let (datagram, from, marks) =
                self.socket.async_io(Interest::READABLE, || receive(&self.socket)).await.unwrap();
            let from_listener = from == self.listener;
            let _ = self.tell.send((from_listener, marks));
            if !from_listener {
                caller = Some(from);
            }
            let to = if from_listener { caller } else { Some(self.listener) };
            if let Some(to) = to {
                let _ = self.socket.send_to(&datagram, to).await;
            }
        }
    }
}

fn receive(socket: &UdpSocket) -> io::Result<(Vec<u8>, SocketAddr, Marks)> {
    let mut datagram = vec![0; 2_048];
    let mut buffers = [IoSliceMut::new(&mut datagram)];
    let mut control = nix::cmsg_space!(i32, i32);
    let received = recvmsg::<SockaddrStorage>(
        socket.as_raw_fd(),
        &mut buffers,
        Some(&mut control),
        MsgFlags::empty(),
    )?;
    let (mut class, mut hops) = (None, None);
    for message in received.cmsgs()? {
        match message {
            ControlMessageOwned::Ipv4Tos(tos) => class = Some(tos.into()),
            ControlMessageOwned::Ipv6TClass(tos) => class = u32::try_from(tos).ok(),
            ControlMessageOwned::Ipv4Ttl(ttl) | ControlMessageOwned::Ipv6HopLimit(ttl) => {
                hops = u32::try_from(ttl).ok();
            }
            _ => {}
        }
    }
    let from = received.address.expect("UDP has addresses");
    let from = from.as_sockaddr_in().map(|ipv4| SocketAddr::V4((*ipv4).into())).or_else(|| {
        let ipv6 = from.as_sockaddr_in6()?;
        Some(SocketAddr::from((ipv6.ip(), ipv6.port())))
    });
    let length = received.bytes;
    datagram.truncate(length);
    let marks = class.zip(hops).expect("the system tells both");
    Ok((datagram, from.expect("an IP address"), marks))
}
