//! The table of an endpoint's connections.

use std::collections::BTreeMap;
use std::ops::{Index, IndexMut};

use punctual_wire::SocketId;
use rustc_hash::FxHashMap;
use slab::Slab;

use crate::chance::Chance;
use crate::connection::Connection;
use crate::endpoint::Shard;
use crate::endpoint::recent_calls::Call;
use crate::ids::ConnectionId;
use crate::path::PathId;

/// A connection of an endpoint, with the names by which the endpoint finds it.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) id: ConnectionId,
    pub(super) connection: Box<Connection>,
    /// The call that the connection was accepted for.
    pub(super) caller: Option<Call>,
    /// The path that the rendezvous was started with. The peer may have moved since.
    pub(super) rendezvous_by: Option<PathId>,
    /// Whether the connection is queued to write datagrams.
    pub(super) queued: bool,
}

/// The connections of an endpoint: by index, by socket ID, by caller and by rendezvous.
#[derive(Debug)]
pub(super) struct ConnectionTable {
    /// The largest number of connections.
    limit: usize,
    shard: Shard,
    slots: Slab<Slot>,
    next_serial: u64,
    /// This endpoint drew the socket IDs at random, so no attacker can choose colliding ones.
    by_socket: FxHashMap<SocketId, usize>,
    /// Accepted connections, by the caller's path and socket ID.
    by_caller: BTreeMap<(PathId, SocketId), usize>,
    /// The newest rendezvous by each path, under way or not.
    by_rendezvous: BTreeMap<PathId, usize>,
}

impl ConnectionTable {
    /// A table for at most `limit` connections of this endpoint of a port.
    pub(super) fn new(limit: usize, shard: Shard) -> Self {
        Self {
            limit,
            shard,
            slots: Slab::new(),
            next_serial: 0,
            by_socket: FxHashMap::default(),
            by_caller: BTreeMap::new(),
            by_rendezvous: BTreeMap::new(),
        }
    }

    /// Checks that there is room for another connection.
    ///
    /// # Errors
    ///
    /// The largest number of connections.
    pub(super) fn check_room(&self) -> Result<(), usize> {
        if self.slots.len() < self.limit { Ok(()) } else { Err(self.limit) }
    }

    /// A socket ID of 30 random bits. Some peers distinguish connections by it alone, so that it
    /// must not be predictable.
    pub(super) fn draw_socket_id(&self, chance: &mut Chance) -> SocketId {
        loop {
            let id = self.shard.own_id(chance.number());
            if id != SocketId::LISTENER && self.of_socket(id).is_none() {
                return id;
            }
        }
    }

    /// Adds a connection, accepted from `caller` if it was.
    pub(super) fn insert(&mut self, connection: Connection, caller: Option<Call>) -> ConnectionId {
        let socket_id = connection.socket_id;
        let entry = self.slots.vacant_entry();
        let index = entry.key();
        let id = ConnectionId::new(self.next_serial, index);
        self.next_serial += 1;
        entry.insert(Slot {
            id,
            connection: Box::new(connection),
            caller,
            rendezvous_by: None,
            queued: false,
        });
        self.by_socket.insert(socket_id, index);
        if let Some((path, peer, _)) = caller {
            self.by_caller.insert((path, peer), index);
        }
        id
    }

    /// Makes the connection the newest rendezvous by this path.
    pub(super) fn set_rendezvous(&mut self, index: usize, path: PathId) {
        self.by_rendezvous.insert(path, index);
        self.slots[index].rendezvous_by = Some(path);
    }

    /// Removes a connection and its names.
    pub(super) fn remove(&mut self, index: usize) -> Slot {
        let slot = self.slots.remove(index);
        self.by_socket.remove(&slot.connection.socket_id);
        if let Some((path, socket_id, _)) = slot.caller
            && self.by_caller.get(&(path, socket_id)) == Some(&index)
        {
            self.by_caller.remove(&(path, socket_id));
        }
        if let Some(path) = slot.rendezvous_by
            && self.by_rendezvous.get(&path) == Some(&index)
        {
            self.by_rendezvous.remove(&path);
        }
        slot
    }

    /// The index of a connection; `None` if it was removed.
    pub(super) fn index(&self, id: ConnectionId) -> Option<usize> {
        self.slots.get(id.index()).filter(|slot| slot.id == id).map(|_| id.index())
    }

    /// A connection; `None` if it was removed.
    #[inline]
    pub(super) fn get_mut(&mut self, id: ConnectionId) -> Option<&mut Slot> {
        self.slots.get_mut(id.index()).filter(|slot| slot.id == id)
    }

    /// The index of the connection with this socket ID of ours.
    #[inline(always)]
    pub(super) fn of_socket(&self, socket_id: SocketId) -> Option<usize> {
        self.by_socket.get(&socket_id).copied()
    }

    /// The index of the connection that was accepted from this caller.
    pub(super) fn of_caller(&self, path: PathId, socket_id: SocketId) -> Option<usize> {
        self.by_caller.get(&(path, socket_id)).copied()
    }

    /// The index of the newest rendezvous by this path.
    pub(super) fn of_rendezvous(&self, path: PathId) -> Option<usize> {
        self.by_rendezvous.get(&path).copied()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter().map(|(_, slot)| slot)
    }

    /// The indices of all connections.
    pub(super) fn indices(&self) -> Vec<usize> {
        self.slots.iter().map(|(index, _)| index).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Gives back the memory of connections that were removed.
    pub(super) fn shrink(&mut self) {
        self.slots.shrink_to_fit();
        self.by_socket.shrink_to_fit();
    }
}

impl Index<usize> for ConnectionTable {
    type Output = Slot;

    #[inline(always)]
    fn index(&self, index: usize) -> &Slot {
        &self.slots[index]
    }
}

impl IndexMut<usize> for ConnectionTable {
    #[inline(always)]
    fn index_mut(&mut self, index: usize) -> &mut Slot {
        &mut self.slots[index]
    }
}

#[cfg(test)]
mod tests {
    use punctual_units::Instant;
    use punctual_wire::SeqNo;

    use super::*;
    use crate::config::Config;
    use crate::handshake::caller::Caller;
    use crate::path::Path;

    const PEER: PathId = PathId::numbered(7);

    fn connection(socket_id: u32) -> Connection {
        let (id, path) = (SocketId::new(socket_id), Path::usual(PEER));
        let caller = Caller::new(id, SeqNo::new(1), Chance::new([0; 32]));
        Connection::call(Instant::ORIGIN, path, caller, id, Config::default())
    }

    #[test]
    fn a_removed_connection_is_found_by_none_of_its_names() {
        let mut table = ConnectionTable::new(9, Shard::default());
        let call = (PEER, SocketId::new(9), SeqNo::new(1));
        let id = table.insert(connection(1), Some(call));
        let index = table.index(id).expect("it was added");
        table.set_rendezvous(index, PEER);
        let found = |table: &ConnectionTable| {
            [
                table.of_socket(SocketId::new(1)),
                table.of_caller(PEER, SocketId::new(9)),
                table.of_rendezvous(PEER),
                table.index(id),
            ]
        };
        assert_eq!(found(&table), [Some(index); 4]);
        table.remove(index);
        assert_eq!(found(&table), [None; 4]);
        let next = table.insert(connection(1), None);
        assert_eq!(next.index(), index, "the slot is used again");
        assert!(table.index(id).is_none() && id != next);
    }

    #[test]
    fn the_removal_of_an_older_rendezvous_leaves_the_newer_one_its_name() {
        let mut table = ConnectionTable::new(9, Shard::default());
        let [older, newer] = [1, 2].map(|id| table.insert(connection(id), None).index());
        table.set_rendezvous(older, PEER);
        table.set_rendezvous(newer, PEER);
        table.remove(older);
        assert_eq!(table.of_rendezvous(PEER), Some(newer));
    }

    #[test]
    fn a_full_table_has_no_room_until_a_connection_is_removed() {
        let mut table = ConnectionTable::new(2, Shard::default());
        let [first, _] = [1, 2].map(|id| {
            assert_eq!(table.check_room(), Ok(()));
            table.insert(connection(id), None).index()
        });
        assert_eq!(table.check_room(), Err(2));
        table.remove(first);
        assert_eq!(table.check_room(), Ok(()));
    }

    #[test]
    fn a_socket_id_that_is_in_use_is_not_drawn_again() {
        let mut table = ConnectionTable::new(9, Shard::default());
        let chance = || Chance::new([3; 32]);
        let first = table.draw_socket_id(&mut chance());
        table.insert(connection(first.value()), None);
        let second = table.draw_socket_id(&mut chance());
        assert_ne!(first, second);
    }
}
