//! Names to local addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::net::lookup_host;

use crate::failure::Failure;

/// The local address `host`, of the same family as `like` if that is given; every IPv4 address of
/// this machine for an empty host. A name with addresses of both families gives its IPv4 address.
pub async fn resolve(host: &str, port: u16, like: Option<IpAddr>) -> Result<SocketAddr, Failure> {
    if host.is_empty() {
        return Ok(SocketAddr::new(unspecified(like), port));
    }
    let found = lookup_host((host, port)).await.map_err(|error| {
        Failure::runtime(format!("cannot find the address of `{host}`: {error}"))
    })?;
    let mut found: Vec<SocketAddr> = found.collect();
    found.sort_by_key(SocketAddr::is_ipv6);
    found
        .into_iter()
        .find(|address| like.is_none_or(|like| like.is_ipv4() == address.is_ipv4()))
        .ok_or_else(|| {
            let family = if like.is_some_and(|like| like.is_ipv6()) { "IPv6" } else { "IPv4" };
            Failure::runtime(format!("`{host}` has no {family} address"))
        })
}

/// The number of the interface of this name. One that does not exist may come later.
pub(crate) async fn interface_index(name: &str) -> Result<u32, Failure> {
    // The resolver turns an interface's name into its number, as the zone of a link-local address.
    let zoned = lookup_host((format!("fe80::1%{name}"), 0)).await.ok().and_then(|mut found| {
        found.find_map(|address| match address {
            SocketAddr::V6(address) => Some(address.scope_id()).filter(|index| *index != 0),
            SocketAddr::V4(_) => None,
        })
    });
    zoned.ok_or_else(|| {
        Failure::runtime(format!("adapter={name}: this machine has no interface of that name"))
    })
}

/// Every address of this machine, of the family of `like`.
pub(crate) fn unspecified(like: Option<IpAddr>) -> IpAddr {
    match like {
        Some(IpAddr::V6(_)) => Ipv6Addr::UNSPECIFIED.into(),
        Some(IpAddr::V4(_)) | None => Ipv4Addr::UNSPECIFIED.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_address_resolves_to_itself_and_nothing_to_every_address() {
        assert_eq!(resolve("", 42, None).await.unwrap(), "0.0.0.0:42".parse().unwrap());
        let v6 = Some(Ipv6Addr::LOCALHOST.into());
        assert_eq!(resolve("", 42, v6).await.unwrap(), "[::]:42".parse().unwrap());
        assert_eq!(resolve("127.0.0.1", 42, None).await.unwrap(), "127.0.0.1:42".parse().unwrap());
        assert_eq!(resolve("::1", 42, None).await.unwrap(), "[::1]:42".parse().unwrap());
        let error = resolve("127.0.0.1", 42, v6).await.unwrap_err();
        assert!(error.to_string().contains("no IPv6 address"));
    }
}
