//! `udp://host:port?…` and `rtp://host:port?…`: datagrams to or from an address, a multicast group or a port.

use std::net::IpAddr;

use crate::error::ValueError;
use crate::key::{KeyEffect, UriKey, buffer_bytes, number, switch};
use crate::place::split_host_port;

/// A UDP address or port, whose datagrams may be RTP packets. The command decides whether it is a
/// source or a destination.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct UdpTarget {
    /// The destination, the local address to receive at, or the multicast group; empty for every
    /// IPv4 address.
    pub host: String,
    /// The port to send to or to receive at.
    pub port: u16,
    /// The address or the name of the interface to use.
    pub adapter: Option<String>,
    /// The local port of a sender.
    pub local_port: Option<u16>,
    /// The addresses of the senders to accept in a multicast group (SSM); empty for all.
    pub sources: Vec<IpAddr>,
    /// The time to live of the datagrams.
    pub ttl: Option<u32>,
    /// Whether multicast datagrams are delivered on the sending machine, too.
    pub multicast_loop: Option<bool>,
    /// Whether other programs may bind the same port.
    pub reuse: bool,
    /// Whether the datagrams are RTP packets with a transport stream (`rtp://`).
    pub rtp: bool,
    /// The type of service of the datagrams.
    pub tos: Option<u32>,
    /// The size of the socket's send buffer, bytes.
    pub send_buffer: Option<usize>,
    /// The size of the socket's receive buffer, bytes.
    pub receive_buffer: Option<usize>,
}

impl UdpTarget {
    /// Whether the host is the address of a multicast group.
    pub fn is_multicast(&self) -> bool {
        let address = self.host.split('%').next().unwrap_or(&self.host);
        address.parse::<IpAddr>().is_ok_and(|address| address.is_multicast())
    }
}

/// The keys of a `udp://` URI.
pub(crate) const UDP_KEYS: &[UriKey<UdpTarget>] = &[
    UriKey {
        name: "adapter",
        aliases: &["localaddr", "interface", "iface"],
        value: "address or name of an interface; default: the system's choice",
        unit: "",
        applies_to: None,
        default: None,
        about: "the local address, or the interface that the datagrams take",
        effect: KeyEffect::Set(|target, value| set(&mut target.adapter, Ok(value.to_owned()))),
    },
    UriKey {
        name: "port",
        aliases: &["localport", "localrtpport"],
        value: "1 to 65535; default: the system's choice",
        unit: "",
        applies_to: None,
        default: None,
        about: "the local port of a sender",
        effect: KeyEffect::Set(|target, value| set(&mut target.local_port, port(value))),
    },
    UriKey {
        name: "bind",
        aliases: &[],
        value: "ADDRESS[:PORT]",
        unit: "",
        applies_to: None,
        default: None,
        about: "the local address and port of a sender",
        effect: KeyEffect::Set(|target, value| {
            let (host, port) = split_host_port(value)?;
            target.adapter = Some(host.to_owned()).filter(|host| !host.is_empty());
            target.local_port = port.filter(|port| *port != 0);
            Ok(())
        }),
    },
    UriKey {
        name: "source",
        aliases: &["sources"],
        value: "addresses, separated by commas; default: all senders",
        unit: "",
        applies_to: None,
        default: None,
        about: "the senders to accept in a multicast group (SSM)",
        effect: KeyEffect::Set(sources),
    },
    UriKey {
        name: "reuse",
        aliases: &["reuse_socket"],
        value: "switch; default off, for multicast on",
        unit: "",
        applies_to: None,
        default: None,
        about: "let other programs bind the same port; the last one gets unicast datagrams",
        effect: KeyEffect::Set(|target, value| {
            target.reuse = switch(value)?;
            Ok(())
        }),
    },
    UriKey {
        name: "ttl",
        aliases: &[],
        value: "1 to 255; default: the system's, 1 for multicast",
        unit: "",
        applies_to: None,
        default: None,
        about: "time to live of the datagrams",
        effect: KeyEffect::Set(|target, value| set(&mut target.ttl, number(value, 1, 255))),
    },
    UriKey {
        name: "mcloop",
        aliases: &["loop"],
        value: "switch; default on",
        unit: "",
        applies_to: None,
        default: None,
        about: "deliver multicast on the sending machine, too",
        effect: KeyEffect::Set(|target, value| set(&mut target.multicast_loop, switch(value))),
    },
    UriKey {
        name: "iptos",
        aliases: &["tos"],
        value: "0 to 255, or 0xB8; default: the system's",
        unit: "",
        applies_to: None,
        default: None,
        about: "type of service of the datagrams",
        effect: KeyEffect::Set(|target, value| set(&mut target.tos, number(value, 0, 255))),
    },
    UriKey {
        name: "sndbuf",
        aliases: &[],
        value: "1 byte to 1 GiB; default: the system's",
        unit: "",
        applies_to: None,
        default: None,
        about: "the socket's send buffer",
        effect: KeyEffect::Set(|target, value| set(&mut target.send_buffer, buffer_bytes(value))),
    },
    UriKey {
        name: "rcvbuf",
        aliases: &["buffer_size"],
        value: "1 byte to 1 GiB; default: the system's",
        unit: "",
        applies_to: None,
        default: None,
        about: "the socket's receive buffer",
        effect: KeyEffect::Set(|target, value| {
            set(&mut target.receive_buffer, buffer_bytes(value))
        }),
    },
    ignored("blocking"),
    ignored("fifo_size"),
    ignored("overrun_nonfatal"),
    ignored("rtpheadersize"),
    ignored("rtcpport"),
    ignored("localrtcpport"),
    UriKey {
        name: "pkt_size",
        aliases: &[],
        value: "",
        unit: "",
        applies_to: None,
        default: None,
        about: "",
        effect: KeyEffect::Refused {
            harmless: &["1316"],
            reason: "the size of messages is an option of the command: `--msgsize`",
        },
    },
];

const fn ignored(name: &'static str) -> UriKey<UdpTarget> {
    UriKey::new(name, &[], "", "", KeyEffect::Ignored)
}

fn set<T>(place: &mut Option<T>, value: Result<T, ValueError>) -> Result<(), ValueError> {
    *place = Some(value?);
    Ok(())
}

fn port(value: &str) -> Result<u16, ValueError> {
    value
        .parse()
        .ok()
        .filter(|port| *port != 0)
        .ok_or_else(|| ValueError("it must be 1 to 65535".to_owned()))
}

fn sources(target: &mut UdpTarget, value: &str) -> Result<(), ValueError> {
    target.sources = value
        .split(',')
        .map(|address| {
            let wrong = || ValueError(format!("`{address}` is not an IP address"));
            address.trim().parse().map_err(|_| wrong())
        })
        .collect::<Result<_, _>>()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(rest: &str) -> Result<UdpTarget, String> {
        let parts = crate::parts::Parts::parse(rest, rest).map_err(|error| error.to_string())?;
        crate::targets::udp(&parts).map_err(|error| error.problem.to_string())
    }

    #[test]
    fn multicast_groups_are_recognised() {
        assert!(parse("@239.1.1.1:1234").unwrap().is_multicast());
        assert!(parse("[ff3e::1]:1234").unwrap().is_multicast());
        assert!(!parse("10.0.0.1:1234").unwrap().is_multicast());
        assert!(!parse(":1234").unwrap().is_multicast());
    }

    #[test]
    fn every_key_sets_its_field() {
        let target = parse(
            "232.1.1.1:1234?adapter=eth0&source=10.0.0.1,10.0.0.2&ttl=4&mcloop=0&iptos=0x20\
             &sndbuf=1MiB&rcvbuf=65536&port=5000",
        )
        .unwrap();
        assert_eq!(target.adapter.as_deref(), Some("eth0"));
        assert_eq!(target.sources.len(), 2);
        assert_eq!((target.ttl, target.tos), (Some(4), Some(32)));
        assert_eq!(target.multicast_loop, Some(false));
        assert_eq!((target.send_buffer, target.receive_buffer), (Some(1 << 20), Some(65_536)));
        assert_eq!(target.local_port, Some(5_000));
        let target = parse("10.0.0.1:1?bind=10.0.0.2:7").unwrap();
        assert_eq!((target.adapter.as_deref(), target.local_port), (Some("10.0.0.2"), Some(7)));
        assert!(parse(":1?reuse=1").unwrap().reuse && !parse(":1").unwrap().reuse);
        parse(":1?fifo_size=1000000&overrun_nonfatal=1&reuse=1&pkt_size=1316").unwrap();
    }

    #[test]
    fn errors_name_wrong_keys_and_values() {
        assert!(parse("h:1?tttl=3").unwrap_err().contains("did you mean `ttl`"));
        assert!(parse("h:1?ttl=256").unwrap_err().contains("1 to 255"));
        assert!(parse("h:1?port=0").unwrap_err().contains("1 to 65535"));
        assert!(parse("h:1?mcloop=maybe").unwrap_err().contains("switch"));
        assert!(parse("239.1.1.1:1?source=nobody").unwrap_err().contains("`nobody` is not an IP"));
        assert!(parse("10.0.0.1:1?source=10.0.0.2").unwrap_err().contains("multicast group"));
        assert!(parse("h:1?pkt_size=188").unwrap_err().contains("--msgsize"));
        assert!(parse("h").unwrap_err().contains("port is missing"));
    }
}
