//! The options of an endpoint.

use punctual_wire::{MsgNo, SocketId, destination};

/// The options of an endpoint, which is a UDP port or an end of another carriage.
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// The seed of all random numbers of the endpoint: socket IDs, first sequence numbers, the
    /// cookie's key, and the keys of encryption. In production it comes from the system's random
    /// numbers, is different for each endpoint, and stays secret, since it reveals every key. Tests
    /// use a fixed one.
    pub seed: [u8; 32],
    /// The largest number of callers that wait for the application's answer at the same time;
    /// further callers are rejected with
    /// [`RejectReason::BACKLOG`](punctual_wire::RejectReason::BACKLOG). Default 1024.
    pub backlog: usize,
    /// The largest number of connections at the same time. Default 65,536.
    pub max_connections: usize,
    /// The largest number of new callers of a listener per second; a quarter of them may come at
    /// once. Handshakes beyond that are ignored, and callers repeat them. Half of that quarter is
    /// reserved for addresses that few callers come from. Default 1000.
    pub callers_per_second: u32,
    /// The largest number of keys per second that the driver of the endpoint derives for callers of
    /// a listener with a passphrase, before they become
    /// [`Event::Incoming`](crate::Event::Incoming): see
    /// [`poll_key_derivation`](crate::Endpoint::poll_key_derivation). `None`, the default: a key is
    /// derived when its caller is accepted.
    pub key_derivations: Option<u32>,
    /// The largest number of callers at the same time, including waiting callers and excluding
    /// links of groups; `None` (default) for no limit. Further callers are rejected at once with
    /// [`RejectReason::BACKLOG`](punctual_wire::RejectReason::BACKLOG). Exception: a caller
    /// replaces an earlier one of the same host and with the same stream ID if that one has sent
    /// nothing for 1.2 s or still waits for an answer. So a program that was restarted need not
    /// wait for the idle timeout of its old connection, which ends with
    /// [`CloseReason::Replaced`](crate::CloseReason::Replaced).
    pub max_callers: Option<usize>,
    /// Whether an older caller keeps its connection while it is silent and another caller of its
    /// host and stream ID waits for an answer. By default the older one ends when it has been
    /// silent for 1.2 s, since both may be the same program before and after a restart. Keep
    /// silent callers if decisions take time and many callers of a host have one stream ID.
    pub keep_silent_callers: bool,
    /// The largest number of bytes that received packets take until the application reads them, of
    /// all connections together. When it is reached, packets of connections that take more than an
    /// equal share are ignored ([`Statistics::packets_ignored`](crate::Statistics)). Default: no
    /// limit but that of each connection
    /// ([`receive_buffer`](crate::Config::receive_buffer)).
    pub receive_memory: u64,
    /// This endpoint's place among several endpoints that share a port; see [`Shard`].
    pub shard: Shard,
    /// The number of each connection's first message. Default 1, as in libsrt; 0, which is not a
    /// message number, counts as 1. Tests use a large one to reach the wrap of the 26 bits, which
    /// is 67 million messages away otherwise.
    pub first_message: MsgNo,
}

/// One of several endpoints that share a port. Each generates different socket IDs, so that the ID
/// in a datagram shows its owner even if it arrives at another endpoint: a peer's address may
/// change.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Shard {
    index: u32,
    count: u32,
}

impl Default for Shard {
    /// The only endpoint of its port.
    fn default() -> Self {
        Self { index: 0, count: 1 }
    }
}

impl Shard {
    /// The largest number of endpoints that share a port.
    pub const MOST: u32 = 4_096;

    /// The endpoint `index` of `count`; `None` if `index` is not below `count` or `count` is above
    /// [`MOST`](Self::MOST).
    pub fn new(index: u32, count: u32) -> Option<Self> {
        (index < count && count <= Self::MOST).then_some(Self { index, count })
    }

    /// The index of the endpoint that owns a datagram's connection, if it is not this one; `None`
    /// also for a datagram without a connection.
    pub fn other_owner(self, datagram: &[u8]) -> Option<u32> {
        let dest = destination(datagram).filter(|&dest| dest != SocketId::LISTENER)?;
        let owner = dest.value() % self.count;
        (owner != self.index).then_some(owner)
    }

    /// A socket ID of this endpoint, made from 30 random bits.
    pub(crate) fn own_id(self, random: u32) -> SocketId {
        let random = random & MAX_SOCKET_ID;
        let first = random - random % self.count;
        // The last, incomplete round of IDs does not have one for each endpoint.
        let id = if first + self.index > MAX_SOCKET_ID { self.index } else { first + self.index };
        SocketId::new(id)
    }
}

/// The largest ID of a socket: bit 30 marks a group.
const MAX_SOCKET_ID: u32 = 0x3FFF_FFFF;

impl EndpointConfig {
    /// The default options with this seed.
    pub fn new(seed: [u8; 32]) -> Self {
        Self {
            seed,
            backlog: 1_024,
            max_connections: 65_536,
            callers_per_second: 1_000,
            key_derivations: None,
            max_callers: None,
            keep_silent_callers: false,
            receive_memory: u64::MAX,
            shard: Shard::default(),
            first_message: MsgNo::FIRST,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_socket_id_of_a_datagram_shows_its_shard() {
        assert_eq!(Shard::default().own_id(u32::MAX), SocketId::new(MAX_SOCKET_ID));
        for count in [1, 2, 3, 7, Shard::MOST] {
            let shards: Vec<Shard> = (0..count).filter_map(|i| Shard::new(i, count)).collect();
            for random in [0, 1, 12_345, MAX_SOCKET_ID - 1, u32::MAX] {
                for (i, shard) in (0..).zip(shards.iter().take(8)) {
                    let id = shard.own_id(random).value();
                    assert!(id <= MAX_SOCKET_ID && id % count == i);
                    let datagram = [&[0; 12][..], &id.to_be_bytes()].concat();
                    let is_listener = id == 0;
                    let owner = |other: &Shard| other.other_owner(&datagram);
                    let others = Some(i).filter(|_| !is_listener);
                    assert_eq!(shards.iter().find_map(owner), others.filter(|_| count > 1));
                    assert_eq!(owner(shard), None);
                }
            }
        }
        assert_eq!((Shard::new(2, 2), Shard::new(0, 0)), (None, None));
        assert_eq!(Shard::new(1, 2).and_then(|shard| shard.other_owner(&[0; 15])), None);
    }
}
