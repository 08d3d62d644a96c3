//! Packets for a connection from elsewhere than its peer: see `connection/path.rs`.

use std::net::SocketAddr;

use punctual_units::Instant;
use punctual_wire::{Control, ControlPacket};

use super::Endpoint;
use crate::connection::path;

/// The meaning of a packet that comes from another address than the peer's.
#[derive(Clone, Copy, Debug)]
pub(super) enum OffPathPacket<'a> {
    /// The answer to a challenge.
    Answer(&'a [u8]),
    /// Nothing, in so many bytes.
    Other { size: usize },
}

impl<'a> OffPathPacket<'a> {
    pub(super) const fn of(control: &Control<'a>, size: usize) -> Self {
        match control {
            Control::Extension { command: path::ANSWER, body } => Self::Answer(body),
            _ => Self::Other { size },
        }
    }
}

impl Endpoint {
    /// A packet for the connection `index` came from `remote`, which is not its peer. Whether it is
    /// to be taken in all the same.
    #[cold]
    pub(super) fn handle_stray(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        index: usize,
        stray: OffPathPacket<'_>,
    ) -> bool {
        let connection = &mut self.connections[index].connection;
        let (from, own, timestamp) =
            (connection.remote, connection.socket_id, connection.timestamp(now));
        let Some((path, rtt)) = connection.path() else { return false };
        // Another family has another room for payload, and no NAT goes from one to the other.
        if from.is_ipv4() != remote.is_ipv4() || remote.port() == 0 {
            return false;
        }
        // A move makes the challenges before it worthless.
        let purpose = [own.value().into(), path.changes()];
        let nonces = || self.listener.nonces(now, remote, purpose);
        match stray {
            OffPathPacket::Answer(answer) => {
                if nonces().iter().any(|&nonce| path.is_answered(nonce, answer)) {
                    connection.move_to(now, remote);
                    self.settle(now, index);
                }
                false
            }
            OffPathPacket::Other { .. } if path.was_peer(now, remote) => true,
            OffPathPacket::Other { size } => {
                if path.challenges(now, remote, size, rtt) {
                    let [nonce, _] = nonces();
                    let body = path.challenge(nonce);
                    let dest = path.peer();
                    let control = Control::Extension { command: path::CHALLENGE, body: &body };
                    let mut datagram = Vec::new();
                    ControlPacket { timestamp, dest, control }.emit(&mut datagram);
                    self.outbox.reply(remote, datagram);
                }
                false
            }
        }
    }
}
