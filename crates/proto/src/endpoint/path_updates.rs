//! Packets for a connection that came by another path than its peer's: see
//! `connection/path_updates.rs`.

use punctual_units::Instant;
use punctual_wire::{Control, ControlPacket};

use super::Endpoint;
use crate::connection::path_updates;
use crate::path::{Path, PathId};

/// The meaning of a packet that came by another path than the peer's.
#[derive(Clone, Copy, Debug)]
pub(super) enum OffPathPacket<'a> {
    /// The answer to a challenge.
    Answer(&'a [u8]),
    /// Any other packet, of `size` bytes.
    Other { size: usize },
}

impl<'a> OffPathPacket<'a> {
    pub(super) const fn of(control: &Control<'a>, size: usize) -> Self {
        match control {
            Control::Extension { command: path_updates::ANSWER, body } => Self::Answer(body),
            _ => Self::Other { size },
        }
    }
}

impl Endpoint {
    /// A packet for the connection `index` came by `path`, which is not its peer's. Returns whether
    /// the connection takes it in all the same.
    #[cold]
    pub(super) fn handle_stray(
        &mut self,
        now: Instant,
        path: PathId,
        index: usize,
        stray: OffPathPacket<'_>,
    ) -> bool {
        let connection = &mut self.connections[index].connection;
        let (from, own, timestamp) =
            (connection.path, connection.socket_id, connection.timestamp(now));
        let Some((updates, rtt)) = connection.path_updates() else { return false };
        if !from.properties.moves || !from.id.may_become(path) {
            return false;
        }
        // A move invalidates the challenges before it.
        let purpose = [own.value().into(), updates.changes()];
        let nonces = || self.listener.nonces(now, path, purpose);
        match stray {
            OffPathPacket::Answer(answer) => {
                if nonces().iter().any(|&nonce| updates.is_answered(nonce, answer)) {
                    connection.move_to(now, Path { id: path, ..from });
                    self.settle(now, index);
                }
                false
            }
            OffPathPacket::Other { .. } if updates.was_peer(now, path) => true,
            OffPathPacket::Other { size } => {
                if updates.challenges(now, path, size, rtt) {
                    let [nonce, _] = nonces();
                    let body = updates.challenge(nonce);
                    let dest = updates.peer();
                    let control =
                        Control::Extension { command: path_updates::CHALLENGE, body: &body };
                    let mut datagram = Vec::new();
                    ControlPacket { timestamp, dest, control }.emit(&mut datagram);
                    self.outbox.reply(path, datagram);
                }
                false
            }
        }
    }
}
