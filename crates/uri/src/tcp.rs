//! `tcp://host:port?…`: a stream of bytes over TCP.

use crate::error::ValueError;
use crate::key::{KeyEffect, UriKey, buffer_bytes, number, switch};
use crate::limits::{self, Limited, Limits};

/// A TCP peer to connect to, or a port to listen on.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct TcpTarget {
    /// The host to connect to, or the local address to listen on; empty for every IPv4 address.
    pub host: String,
    /// The port to connect to or to listen on.
    pub port: u16,
    /// Whether this end listens.
    pub listen: bool,
    /// The address or the name of the interface to use.
    pub adapter: Option<String>,
    /// The local port of a connection that this end makes.
    pub local_port: Option<u16>,
    /// Whether small writes are sent at once.
    pub no_delay: bool,
    /// The size of the socket's send buffer, bytes.
    pub send_buffer: Option<usize>,
    /// The size of the socket's receive buffer, bytes.
    pub receive_buffer: Option<usize>,
    /// The limits of each connection.
    pub limits: Limits,
}

impl Limited for TcpTarget {
    fn limits(&mut self) -> &mut Limits {
        &mut self.limits
    }
}

/// The keys of a `tcp://` URI.
pub(crate) const TCP_KEYS: &[UriKey<TcpTarget>] = &[
    UriKey {
        name: "listen",
        aliases: &[],
        value: "switch; default on without a host, else off",
        unit: "",
        applies_to: None,
        default: None,
        about: "wait for a connection instead of making one",
        effect: KeyEffect::Set(|target, value| {
            target.listen = switch(value)?;
            Ok(())
        }),
    },
    UriKey::new(
        "adapter",
        &["interface", "iface", "localaddr"],
        "address or name of an interface; default: the system's choice",
        "the local address, or the interface that the connection goes through",
        KeyEffect::Set(|target, value| {
            if value.is_empty() {
                return Err(ValueError("it must be an address or the name of one".to_owned()));
            }
            target.adapter = Some(value.to_owned());
            Ok(())
        }),
    ),
    UriKey::new(
        "port",
        &["localport", "local_port"],
        "1 to 65535; default: the system's choice",
        "the local port of a connection that this end makes",
        KeyEffect::Set(|target, value| {
            target.local_port = u16::try_from(number(value, 1, u16::MAX.into())?).ok();
            Ok(())
        }),
    ),
    limits::io_size(),
    limits::max_size(),
    limits::max_time(),
    limits::max_idle("end when nothing has come, or nothing was to be sent, for this time"),
    UriKey {
        name: "nodelay",
        aliases: &["tcp_nodelay"],
        value: "switch; default on",
        unit: "",
        applies_to: None,
        default: None,
        about: "send small writes at once",
        effect: KeyEffect::Set(|target, value| {
            target.no_delay = switch(value)?;
            Ok(())
        }),
    },
    UriKey {
        name: "sndbuf",
        aliases: &["send_buffer_size"],
        value: "1 byte to 1 GiB; default: the system's",
        unit: "",
        applies_to: None,
        default: None,
        about: "the socket's send buffer",
        effect: KeyEffect::Set(|target, value| {
            target.send_buffer = Some(buffer_bytes(value)?);
            Ok(())
        }),
    },
    UriKey {
        name: "rcvbuf",
        aliases: &["recv_buffer_size"],
        value: "1 byte to 1 GiB; default: the system's",
        unit: "",
        applies_to: None,
        default: None,
        about: "the socket's receive buffer",
        effect: KeyEffect::Set(|target, value| {
            target.receive_buffer = Some(buffer_bytes(value)?);
            Ok(())
        }),
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(rest: &str) -> Result<TcpTarget, String> {
        crate::targets::tcp(&crate::parts::Parts::parse(rest, rest).unwrap())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_host_or_the_key_decides_which_end_listens() {
        assert!(parse(":5000").unwrap().listen);
        assert!(!parse("host:5000").unwrap().listen);
        assert!(parse("10.0.0.1:5000?listen").unwrap().listen);
        assert!(parse("10.0.0.1:5000?listen=1").unwrap().listen);
        assert!(parse(":5000?listen=0").unwrap_err().contains("host is missing"));
    }

    #[test]
    fn limits_and_the_local_address_are_keys() {
        let target =
            parse("h:1?adapter=lo&port=7000&iosize=32KiB&maxsize=1GB&maxtime=1h&maxidle=2s")
                .unwrap();
        assert_eq!((target.adapter.as_deref(), target.local_port), (Some("lo"), Some(7_000)));
        let Limits { max_size, max_time, max_idle, io_size } = target.limits;
        assert_eq!((max_size, io_size), (Some(1_000_000_000), Some(32_768)));
        let seconds = [max_time, max_idle].map(|time| time.map(|time| time.as_secs()));
        assert_eq!(seconds, [Some(3_600), Some(2)]);
        assert_eq!(parse(":1?interface=10.0.0.1").unwrap().adapter.as_deref(), Some("10.0.0.1"));
        assert!(parse(":1?port=7000").unwrap_err().contains("leave `port` out"));
        assert!(parse("h:1?port=0").unwrap_err().contains("1 to 65535"));
        assert!(parse("h:1?maxidle=0").unwrap_err().contains("1 ms and up"));
        assert!(parse("h:1?iosize=2MiB").unwrap_err().contains("188 bytes to 1 MiB"));
        assert!(parse("h:1?maxsize=lots").unwrap_err().contains("maxsize=lots"));
    }

    #[test]
    fn keys_set_their_fields_and_errors_name_wrong_keys() {
        let target = parse("h:1?nodelay=0&sndbuf=64KiB&rcvbuf=1MiB").unwrap();
        assert!(!target.no_delay);
        assert_eq!((target.send_buffer, target.receive_buffer), (Some(65_536), Some(1 << 20)));
        assert!(parse("h:1?listne").unwrap_err().contains("did you mean `listen`"));
        assert!(parse("h:1?sndbuf=0").unwrap_err().contains("1 byte to 1 GiB"));
        assert!(parse("h:1?listen=2").unwrap_err().contains("switch"));
    }
}
