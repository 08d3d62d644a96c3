use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

/// One of the two ends of a [`TunEmulator`](crate::TunEmulator).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Side {
    /// 10.73.0.1 and fd73::1.
    Left,
    /// 10.73.0.2 and fd73::2.
    Right,
}

impl Side {
    /// The other one.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Left => Self::Right,
            Self::Right => Self::Left,
        }
    }

    /// Its IPv4 address, in 10.73.0.0/24.
    pub fn ipv4(self) -> Ipv4Addr {
        Ipv4Addr::new(10, 73, 0, self.number())
    }

    /// Its IPv6 address, in fd73::/64.
    pub fn ipv6(self) -> Ipv6Addr {
        Ipv6Addr::new(0xfd73, 0, 0, 0, 0, 0, 0, self.number().into())
    }

    pub(super) fn place(self) -> usize {
        match self {
            Self::Left => 0,
            Self::Right => 1,
        }
    }

    fn number(self) -> u8 {
        match self {
            Self::Left => 1,
            Self::Right => 2,
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Left => "left",
            Self::Right => "right",
        })
    }
}
