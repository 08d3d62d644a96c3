//! Fair shares of a driver's turn for its peers.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

use punctual_io::Datagram;

/// The largest number of datagrams of one peer in a turn. Of any kind, they take a few milliseconds
/// at most.
const SHARE: usize = 256;
/// The largest number for a peer that is alone: at high rates, larger turns are cheaper.
const SHARE_ALONE: usize = 1_024;
/// The largest number of datagrams that wait for a later turn.
const WAITING: usize = 8_192;

/// Limits each peer to its share of a turn of the driver.
///
/// Further datagrams of a peer wait for the next turn, in their order; datagrams of other peers and
/// due work come first. If a peer keeps sending more than can be handled, its excess datagrams are
/// dropped, as the system would drop them; those of other peers are not.
#[derive(Debug, Default)]
pub(crate) struct Shares {
    waiting: VecDeque<Datagram>,
    served: HashMap<SocketAddr, usize>,
    dropped: u64,
}

impl Shares {
    /// Whether datagrams wait for the next turn.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The total of dropped datagrams.
    pub(crate) const fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Passes waiting datagrams and then those of `came` to `take`, up to each peer's share.
    pub(crate) fn serve(&mut self, came: &mut Vec<Datagram>, mut take: impl FnMut(Datagram)) {
        if self.waiting.is_empty() && came.len() <= SHARE {
            came.drain(..).for_each(take);
            return;
        }
        if self.is_alone(came) {
            self.serve_alone(came, take);
            return;
        }
        let waited = self.waiting.len();
        self.served.clear();
        // Datagrams of one peer come in runs: the peer is looked up once per run.
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
            if served < SHARE {
                served += 1;
                take(datagram);
            } else {
                self.hold(datagram);
            }
            run = Some((remote, served));
        }
    }

    /// Serves the only peer.
    fn serve_alone(&mut self, came: &mut Vec<Datagram>, mut take: impl FnMut(Datagram)) {
        let from_waiting = self.waiting.len().min(SHARE_ALONE);
        self.waiting.drain(..from_waiting).for_each(&mut take);
        let left = came.len().min(SHARE_ALONE - from_waiting);
        came.drain(..left).for_each(take);
        came.drain(..).for_each(|datagram| self.hold(datagram));
    }

    /// Lets a datagram wait for a later turn, if there is room.
    fn hold(&mut self, datagram: Datagram) {
        if self.waiting.len() < WAITING {
            self.waiting.push_back(datagram);
        } else {
            self.dropped += 1;
        }
    }

    /// Whether all datagrams are of one peer.
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
    fn a_flood_delays_no_other_peer_and_loses_only_its_own() {
        let mut shares = Shares::default();
        let (mut honest, mut flood) = (Vec::new(), Vec::new());
        for turn in 0..100 {
            let mut came = from(1, turn * 1_000..turn * 1_000 + 1_000);
            came.extend(from(2, turn..turn + 1));
            shares.serve(&mut came, |datagram| {
                let taken = if datagram.from == peer(2) { &mut honest } else { &mut flood };
                taken.push(datagram.payload);
            });
            assert_eq!(honest.len(), turn as usize + 1, "served in the same turn");
        }
        assert_eq!(flood.len(), 100 * SHARE);
        assert!(flood.is_sorted(), "in order");
        assert_eq!(shares.dropped(), 100_000 - 100 * SHARE as u64 - WAITING as u64);
    }

    #[test]
    fn waiting_datagrams_are_served_when_no_more_come() {
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
