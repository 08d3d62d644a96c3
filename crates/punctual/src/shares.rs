//! The peers that are served in a turn of the driver.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

use punctual_io::Datagram;

/// Datagrams of one peer in a turn: whatever they are, they take a few milliseconds at most.
const SHARE: usize = 256;
/// The same for a peer that is alone: at high rates, larger turns are cheaper.
const SHARE_ALONE: usize = 1_024;
/// Datagrams that wait for a later turn.
const WAITING: usize = 8_192;

/// Gives each peer no more than its share of a turn of the driver.
///
/// Further datagrams of a peer wait for the next turn, in their order, behind the datagrams that
/// others sent meanwhile and behind due work. If a peer continues to send more than can be handled,
/// its datagrams beyond that are dropped, as the system would drop them, but no other peer's.
#[derive(Debug, Default)]
pub(crate) struct Shares {
    waiting: VecDeque<Datagram>,
    served: HashMap<SocketAddr, usize>,
    dropped: u64,
}

impl Shares {
    /// Whether something waits for the next turn.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Datagrams dropped since the beginning.
    pub(crate) const fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Serves what waited and what `came`, as far as the shares go.
    pub(crate) fn serve(&mut self, came: &mut Vec<Datagram>, mut take: impl FnMut(Datagram)) {
        if self.waiting.is_empty() && came.len() <= SHARE {
            came.drain(..).for_each(take);
            return;
        }
        let share = if self.is_alone(came) { SHARE_ALONE } else { SHARE };
        let waited = self.waiting.len();
        self.served.clear();
        // Datagrams of one peer come in runs: it is looked up once for each.
        let mut run: Option<(SocketAddr, usize)> = None;
        let mut came = came.drain(..);
        for at in 0..waited + came.len() {
            let next = if at < waited { self.waiting.pop_front() } else { came.next() };
            let Some(datagram) = next else { continue };
            let remote = datagram.from;
            let mut served = match run {
                Some((peer, served)) if peer == remote => served,
                _ => {
                    if let Some((peer, served)) = run {
                        self.served.insert(peer, served);
                    }
                    self.served.get(&remote).copied().unwrap_or(0)
                }
            };
            if served < share {
                served += 1;
                take(datagram);
            } else if self.waiting.len() < WAITING {
                self.waiting.push_back(datagram);
            } else {
                self.dropped += 1;
            }
            run = Some((remote, served));
        }
    }

    /// Whether all datagrams are one peer's.
    fn is_alone(&self, came: &[Datagram]) -> bool {
        let mut peers = self.waiting.iter().chain(came).map(|datagram| datagram.from);
        let first = peers.next();
        peers.all(|peer| Some(peer) == first)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use punctual_units::Instant;

    use super::*;

    fn peer(port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], port))
    }

    fn from(port: u16, numbers: std::ops::Range<u32>) -> Vec<Datagram> {
        let datagram = |i: u32| Datagram {
            from: peer(port),
            to: None,
            arrived: Instant::ORIGIN,
            payload: Bytes::copy_from_slice(&i.to_be_bytes()),
        };
        numbers.map(datagram).collect()
    }

    #[test]
    fn a_flood_delays_nobody_else_and_loses_only_its_own() {
        let mut shares = Shares::default();
        let (mut honest, mut flood) = (Vec::new(), Vec::new());
        for turn in 0..100 {
            let mut came = from(1, turn * 1_000..turn * 1_000 + 1_000);
            came.extend(from(2, turn..turn + 1));
            shares.serve(&mut came, |datagram| {
                let taken = if datagram.from == peer(2) { &mut honest } else { &mut flood };
                taken.push(datagram.payload);
            });
            assert_eq!(honest.len(), turn as usize + 1, "served in its turn");
        }
        assert_eq!(flood.len(), 100 * SHARE);
        assert!(flood.is_sorted(), "in its order");
        assert_eq!(shares.dropped(), 100_000 - 100 * SHARE as u64 - WAITING as u64);
    }

    #[test]
    fn what_waits_is_served_when_nothing_more_comes() {
        let mut shares = Shares::default();
        let mut came = from(1, 0..3_000);
        let mut taken = Vec::new();
        let mut turns = 0;
        while turns == 0 || shares.has_waiting() {
            shares.serve(&mut came, |datagram| taken.push(datagram.payload));
            turns += 1;
        }
        assert_eq!((turns, taken.len(), shares.dropped()), (3, 3_000, 0));
        assert!(taken.is_sorted());
    }
}
