//! Ends that would feed themselves.

use std::net::{SocketAddr, UdpSocket};

use punctual_uri::{Mode, Target, UdpTarget, Uri};
use tokio::net::lookup_host;

use crate::end::port_owner::PortTransport;
use crate::end::resolve::unspecified;
use crate::failure::Failure;

/// Checks that what goes to `destination` does not come back through `source`, or the other way
/// round. A host whose address cannot be found is no fault here.
///
/// # Errors
///
/// One of both ends receives at the address to which the other one sends.
pub async fn check_loop(source: &Uri, destination: &Uri) -> Result<(), Failure> {
    let (Some(one), Some(other)) = (EndPort::of(source, true), EndPort::of(destination, false))
    else {
        return Ok(());
    };
    let (from, to) = if one.listens { (&other, &one) } else { (&one, &other) };
    let meet = one.listens != other.listens && one.port == other.port;
    if !meet || one.transport != other.transport || is_bridged(source, destination) {
        return Ok(());
    }
    let (from, to) = (from.addresses().await, to.addresses().await);
    if from.iter().any(|from| to.iter().any(|to| reaches(*from, *to))) {
        return Err(Failure::usage(format!(
            "{source} and {destination} are the same port: what the route sends there comes back \
             to it"
        )));
    }
    Ok(())
}

/// Whether what is sent to `target` arrives at a port of this machine that is bound to `listener`.
pub fn reaches(target: SocketAddr, listener: SocketAddr) -> bool {
    let (ip, own) = (target.ip().to_canonical(), listener.ip().to_canonical());
    if target.port() != listener.port() {
        return false;
    }
    if ip == own {
        return true;
    }
    if ip.is_unspecified() {
        // The system sends it to itself.
        return own.is_loopback() || own.is_unspecified();
    }
    let takes_family = ip.is_ipv4() == own.is_ipv4() || own.is_ipv6();
    own.is_unspecified() && takes_family && is_own(target)
}

/// Whether the address is one of this machine: only then a socket can be bound to it.
fn is_own(mut address: SocketAddr) -> bool {
    address.set_port(0);
    !address.ip().is_multicast() && UdpSocket::bind(address).is_ok()
}

/// Whether both ends are one multicast group at different interfaces, or the sender's own datagrams
/// are kept out.
fn is_bridged(source: &Uri, destination: &Uri) -> bool {
    let (Target::Udp(source), Target::Udp(destination)) = (&source.target, &destination.target)
    else {
        return false;
    };
    let UdpTarget { multicast_loop, adapter, .. } = destination;
    *multicast_loop == Some(false)
        || !source.sources.is_empty()
        || source.is_multicast() && source.adapter != *adapter
}

/// The port at which an end receives, or to which it sends.
struct EndPort<'a> {
    transport: PortTransport,
    listens: bool,
    host: &'a str,
    port: u16,
}

impl<'a> EndPort<'a> {
    fn of(uri: &'a Uri, is_source: bool) -> Option<Self> {
        let place = |transport, listens, host: &'a String, port| {
            Some(Self { transport, listens, host, port })
        };
        match &uri.target {
            Target::File(_) | Target::Stdio => None,
            Target::Srt(it) if it.mode == Mode::Rendezvous => None,
            Target::Srt(it) => {
                place(PortTransport::Udp, it.mode == Mode::Listener, &it.host, it.port)
            }
            Target::Tcp(it) => place(PortTransport::Tcp, it.listen, &it.host, it.port),
            Target::Udp(it) => place(PortTransport::Udp, is_source, &it.host, it.port),
        }
    }

    async fn addresses(&self) -> Vec<SocketAddr> {
        match self.host {
            "" => vec![(unspecified(None), self.port).into()],
            host => match lookup_host((host, self.port)).await {
                Ok(found) => found.collect(),
                Err(_) => Vec::new(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn is_loop(source: &str, destination: &str) -> bool {
        let [source, destination] = [source, destination].map(|uri| uri.parse().unwrap());
        check_loop(&source, &destination).await.is_err()
    }

    #[tokio::test]
    async fn a_route_onto_itself_is_recognised_in_every_spelling() {
        for (source, destination) in [
            ("udp://127.0.0.1:5000", "udp://127.0.0.1:5000"),
            ("udp://:5000", "udp://127.0.0.1:5000"),
            ("udp://:5000", "udp://127.9.9.9:5000"),
            ("udp://:5000", "udp://localhost:5000"),
            ("udp://:5000", "udp://0.0.0.0:5000"),
            ("udp://[::]:5000", "udp://127.0.0.1:5000"),
            ("udp://[::1]:5000", "udp://[::1]:5000"),
            ("udp://@239.1.1.1:5000", "udp://239.1.1.1:5000"),
            ("udp://:5000", "srt://127.0.0.1:5000"),
            ("srt://:5000", "srt://127.0.0.1:5000"),
            ("srt://127.0.0.1:5000", "srt://:5000"),
            ("tcp://127.0.0.1:5000", "tcp://:5000"),
        ] {
            assert!(is_loop(source, destination).await, "{source} {destination}");
        }
    }

    #[tokio::test]
    async fn other_routes_are_no_loops() {
        for (source, destination) in [
            ("udp://127.0.0.1:5000", "udp://127.0.0.1:5001"),
            ("udp://127.0.0.1:5000", "udp://127.0.0.2:5000"),
            ("udp://:5000", "udp://192.0.2.1:5000"),
            ("udp://:5000", "tcp://127.0.0.1:5000"),
            ("srt://127.0.0.1:5000", "srt://127.0.0.1:5000"),
            ("udp://@239.1.1.1:5000", "udp://239.1.1.2:5000"),
            ("udp://@239.1.1.1:5000?adapter=eth0", "udp://239.1.1.1:5000?adapter=eth1"),
            ("udp://@239.1.1.1:5000", "udp://239.1.1.1:5000?mcloop=0"),
            ("udp://:5000", "udp://no-such-host.invalid:5000"),
            ("udp://:5000", "out.ts"),
        ] {
            assert!(!is_loop(source, destination).await, "{source} {destination}");
        }
    }
}
