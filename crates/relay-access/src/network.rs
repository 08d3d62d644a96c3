use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;
use thiserror::Error;

/// A network, such as `10.0.0.0/8` or `2001:db8::/32`, or a single address.
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
pub struct Network(IpNet);

/// The networks whose callers are let in: those of `allow`, or all if it is empty, without those of
/// `deny`.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Networks {
    allow: Vec<Network>,
    deny: Vec<Network>,
}

/// A text that is no network.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("`{0}` is no network: write an address, or one with a length, such as 10.0.0.0/8")]
pub struct NetworkError(String);

impl Network {
    /// Whether the address belongs to the network. An IPv4 address that is written as an IPv6 one,
    /// as sockets for both do, is the IPv4 address.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(&address.to_canonical())
    }
}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let address = |text: &str| text.parse::<IpAddr>().ok();
        let network = match address(text) {
            Some(address) => Some(IpNet::from(address.to_canonical())),
            None => text.parse::<IpNet>().ok(),
        };
        network.map(Self).ok_or_else(|| NetworkError(text.to_owned()))
    }
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.prefix_len() == self.0.max_prefix_len() {
            true => self.0.addr().fmt(f),
            false => self.0.fmt(f),
        }
    }
}

impl Networks {
    /// The networks of `allow`, or all if it is empty, without those of `deny`.
    pub const fn new(allow: Vec<Network>, deny: Vec<Network>) -> Self {
        Self { allow, deny }
    }

    /// Whether a caller at this address is let in.
    pub fn admit(&self, address: IpAddr) -> bool {
        let has = |networks: &[Network]| networks.iter().any(|network| network.contains(address));
        (self.allow.is_empty() || has(&self.allow)) && !has(&self.deny)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(networks: &[&str]) -> Vec<Network> {
        networks.iter().map(|text| text.parse().expect("a network")).collect()
    }

    #[test]
    fn callers_are_let_in_by_their_networks_and_denial_wins() {
        for (allow, deny, yes, no) in [
            (&[][..], &[][..], &["192.0.2.1", "2001:db8::1"][..], &[][..]),
            (&["10.0.0.0/8"], &["10.1.0.0/16"], &["10.2.0.1", "::ffff:10.2.0.1"], &["10.1.0.1"]),
            (&["10.1.2.3"], &[], &["10.1.2.3"], &["10.1.2.4", "::1", "192.0.2.1"]),
            (&[], &["2001:db8::/32"], &["2001:db9::1", "10.0.0.1"], &["2001:db8:1::1"]),
            (&["::ffff:10.1.2.3"], &[], &["10.1.2.3", "::ffff:10.1.2.3"], &["10.1.2.4"]),
        ] {
            let networks = Networks::new(list(allow), list(deny));
            let admits = |address: &&str| networks.admit(address.parse().expect("an address"));
            assert!(yes.iter().all(admits), "{networks:?}");
            assert!(!no.iter().any(admits), "{networks:?}");
        }
    }

    #[test]
    fn networks_are_shown_as_people_write_them_and_errors_give_an_example() {
        for text in ["10.0.0.0/8", "10.1.2.3", "::1", "2001:db8::/32"] {
            assert_eq!(text.parse::<Network>().expect("a network").to_string(), text);
        }
        for text in ["", "10.0.0.0/33", "localhost", "10.0.0"] {
            let error = text.parse::<Network>().unwrap_err().to_string();
            assert!(error.contains("such as 10.0.0.0/8"), "{error}");
        }
    }
}
