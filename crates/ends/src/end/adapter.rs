//! The local address or the interface that an end of a stream uses.

use std::net::{IpAddr, SocketAddr};
#[cfg(target_os = "linux")]
use std::os::fd::AsFd;

#[cfg(target_os = "linux")]
use socket2::SockRef;

use crate::end::resolve::{interface_index, resolve, unspecified};
use crate::failure::Failure;

/// The value of a key `adapter`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Adapter {
    /// An address of this machine.
    Address(IpAddr),
    /// An interface, by its name and its number.
    Interface { name: String, index: u32 },
}

/// The local part of an end: its address, and the interface that its packets must take.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct LocalEnd {
    /// The address; the unspecified one for the system's choice.
    pub(crate) ip: IpAddr,
    /// The name of the interface, if there is one.
    pub(crate) interface: Option<String>,
}

impl Adapter {
    /// The address or the interface that `text` names, for packets of the same IP version as
    /// `like`.
    ///
    /// # Errors
    ///
    /// An address of the other version is a fault of the command line. An interface that does not
    /// exist may come: at boot, or when a device is plugged in.
    pub(crate) async fn find(text: &str, like: IpAddr) -> Result<Self, Failure> {
        match text.parse::<IpAddr>() {
            Ok(address) if address.is_ipv4() == like.is_ipv4() => {
                return Ok(Self::Address(address));
            }
            Ok(address) => {
                let fault = format!("adapter={address} is of another IP version than {like}");
                return Err(Failure::usage(fault));
            }
            Err(_) => {}
        }
        let missing = match interface_index(text).await {
            Ok(index) => return Ok(Self::Interface { name: text.to_owned(), index }),
            Err(missing) => missing,
        };
        match resolve(text, 0, Some(like)).await {
            Ok(found) => Ok(Self::Address(found.ip())),
            Err(_) => Err(missing),
        }
    }
}

impl LocalEnd {
    /// The local part of an end whose packets go to `remote`, or come to it: what `adapter` says,
    /// or else the system's choice.
    pub(crate) async fn find(adapter: Option<&str>, remote: IpAddr) -> Result<Self, Failure> {
        let any = unspecified(Some(remote));
        Ok(match adapter {
            None => Self { ip: any, interface: None },
            Some(text) => match Adapter::find(text, remote).await? {
                Adapter::Address(ip) => Self { ip, interface: None },
                Adapter::Interface { name, .. } => Self { ip: any, interface: Some(name) },
            },
        })
    }

    /// Limits a socket to the interface, if there is one.
    #[cfg(target_os = "linux")]
    pub(crate) fn limit(&self, socket: &impl AsFd) -> Result<(), Failure> {
        let Some(interface) = &self.interface else { return Ok(()) };
        SockRef::from(socket).bind_device(Some(interface.as_bytes())).map_err(|error| {
            Failure::runtime(format!("cannot use the interface {interface}: {error}"))
        })
    }

    /// Limits a socket to the interface, which this system cannot.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn limit<S>(&self, _socket: &S) -> Result<(), Failure> {
        let unlimited = Failure::usage("the adapter is given by its address on this system");
        if self.interface.is_none() { Ok(()) } else { Err(unlimited) }
    }
}

/// The same address, at this interface if it is link-local and names none: without an interface
/// `fe80::1` is no peer, and its answers come from `fe80::1%eth0`.
pub(crate) async fn at_interface(
    mut address: SocketAddr,
    interface: Option<&str>,
) -> Result<SocketAddr, Failure> {
    if let (SocketAddr::V6(v6), Some(name)) = (&mut address, interface)
        && v6.ip().is_unicast_link_local()
        && v6.scope_id() == 0
    {
        v6.set_scope_id(interface_index(name).await?);
    }
    Ok(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    const V4: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
    const V6: IpAddr = IpAddr::V6(std::net::Ipv6Addr::LOCALHOST);

    #[tokio::test]
    async fn an_adapter_is_an_address_or_an_interface() {
        assert_eq!(Adapter::find("127.0.0.2", V4).await.unwrap().ip(), "127.0.0.2".parse().ok());
        assert_eq!(Adapter::find("localhost", V4).await.unwrap().ip(), Some(V4));
        let failure = Adapter::find("::1", V4).await.unwrap_err();
        assert!(failure.is_usage() && failure.to_string().contains("another IP version"));
        let failure = Adapter::find("nosuch0", V6).await.unwrap_err();
        assert!(!failure.is_usage(), "it may come later");
        assert!(failure.to_string().contains("no interface of that name"), "{failure}");
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_link_local_peer_is_at_the_interface_of_its_port() {
        let end = LocalEnd::find(Some("lo"), V6).await.unwrap();
        assert_eq!(end, LocalEnd { ip: unspecified(Some(V6)), interface: Some("lo".to_owned()) });
        let zone = |address: SocketAddr| match address {
            SocketAddr::V6(address) => address.scope_id(),
            SocketAddr::V4(_) => 0,
        };
        let at_lo = |text: &str| {
            let address = text.parse().unwrap();
            async move { zone(at_interface(address, Some("lo")).await.unwrap()) }
        };
        assert_eq!(at_lo("[fe80::1]:1").await, 1);
        assert_eq!(at_lo("[fe80::1%7]:1").await, 7);
        assert_eq!(at_lo("[::1]:1").await, 0);
    }

    impl Adapter {
        fn ip(&self) -> Option<IpAddr> {
            match self {
                Self::Address(ip) => Some(*ip),
                Self::Interface { .. } => None,
            }
        }
    }
}
