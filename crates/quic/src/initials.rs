//! The limit on the first packets of callers.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use punctual_units::Instant;

/// Initial packets that are handled a second. Keys are derived for each, which takes some tens of
/// microseconds; an honest handshake has about four.
const PER_SECOND: u32 = 2_000;
/// Initial packets that may come at once.
const BURST: u32 = PER_SECOND / 2;
/// The part of the burst that only hosts get that have sent few packets.
const RESERVE: u32 = BURST / 2;
/// Initial packets of a host, in a second, that may use the reserve.
const FEW: u32 = 16;

/// Limits the Initial packets that are handled, so that a flood of them leaves time for the packets
/// of connections. Honest callers repeat theirs.
#[derive(Debug, Default)]
pub(crate) struct Initials {
    /// When the whole burst is restored.
    whole_at: Instant,
    /// The start of the second in which the packets of hosts are counted.
    since: Instant,
    /// Packets of this second that were handled, by host. The limit bounds their number.
    handled: BTreeMap<IpAddr, u32>,
}

impl Initials {
    /// Whether a datagram is to be handled: it begins with no Initial packet, or the limit permits
    /// it.
    pub(crate) fn admits(&mut self, now: Instant, remote: SocketAddr, datagram: &[u8]) -> bool {
        // A long header of version 1 (RFC 9000, section 17.2.2).
        if datagram.first().is_none_or(|first| first & 0xF0 != 0xC0) {
            return true;
        }
        if now.saturating_since(self.since) >= Duration::from_secs(1) {
            self.since = now;
            self.handled.clear();
        }
        let host = host_of(remote);
        let handled = self.handled.get(&host).copied().unwrap_or_default();
        let limit = if handled < FEW { BURST } else { BURST - RESERVE };
        let interval = Duration::from_secs(1) / PER_SECOND;
        if self.whole_at.saturating_since(now) + interval > interval * limit {
            return false;
        }
        self.whole_at = self.whole_at.max(now) + interval;
        self.handled.insert(host, handled + 1);
        true
    }
}

/// The host of an address: with IPv6 its network of 64 bits, of which a host may have any address.
pub(crate) fn host_of(remote: SocketAddr) -> IpAddr {
    match remote.ip().to_canonical() {
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64).into(),
        ip => ip,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INITIAL: &[u8] = &[0xC3, 0, 0, 0, 1];

    fn of(host: u8) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, host], 443))
    }

    #[test]
    fn a_flood_is_limited_and_does_not_keep_other_hosts_out() {
        let mut initials = Initials::default();
        let (mut flood, mut others) = (0, 0);
        for millis in 9_000..14_000 {
            let now = Instant::from_millis(millis);
            flood += (0..20).filter(|_| initials.admits(now, of(1), INITIAL)).count();
            if millis % 20 == 0 {
                let host = u8::try_from(2 + millis / 20 % 50).expect("it is below 52");
                others += usize::from(initials.admits(now, of(host), INITIAL));
            }
        }
        assert!((9_000..=11_000).contains(&(flood + others)), "{flood} and {others}");
        assert_eq!(others, 250);
    }

    #[test]
    fn packets_of_connections_are_not_limited() {
        let mut initials = Initials::default();
        let short = [0x43, 1, 2, 3];
        let handshake = [0xE3, 0, 0, 0, 1];
        for _ in 0..10_000 {
            for packet in [&short[..], &handshake, &[]] {
                assert!(initials.admits(Instant::from_millis(1), of(1), packet));
            }
        }
    }
}
