//! Packets for a connection that came by another path than its peer's: see
//! `connection/path_updates.rs`.

use punctual_units::Instant;
use punctual_wire::{Control, ControlPacket};

use crate::connection::{Connection, path_updates};
use crate::handshake::cookie::CookieKey;
use crate::path::PathId;

/// The meaning of a packet that came by another path than the peer's.
#[derive(Clone, Copy, Debug)]
pub(super) enum OffPathPacket<'a> {
    /// The answer to a challenge.
    Answer(&'a [u8]),
    /// Any other packet, of `size` bytes.
    Other { size: usize },
}

/// The reaction to such a packet.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Reaction {
    /// The packet is ignored.
    Ignore,
    /// The connection takes the packet in: it was in flight when the peer moved.
    TakeIn,
    /// The peer has proved that it is reached by this path.
    Move,
    /// This datagram, a challenge, is sent by this path.
    Challenge(Vec<u8>),
}

impl<'a> OffPathPacket<'a> {
    pub(super) const fn of(control: &Control<'a>, size: usize) -> Self {
        match control {
            Control::Extension { command: path_updates::ANSWER, body } => Self::Answer(body),
            _ => Self::Other { size },
        }
    }

    /// Decides on the packet, which came by `path` for `connection`.
    pub(super) fn react(
        self,
        now: Instant,
        path: PathId,
        connection: &mut Connection,
        cookies: &CookieKey,
    ) -> Reaction {
        let (from, own, timestamp) =
            (connection.path, connection.socket_id, connection.timestamp(now));
        let Some((updates, rtt)) = connection.path_updates() else { return Reaction::Ignore };
        if !from.properties.moves || !from.id.may_become(path) {
            return Reaction::Ignore;
        }
        // A move invalidates the challenges before it.
        let purpose = [own.value().into(), updates.changes()];
        let nonces = || cookies.nonces(now, path, purpose);
        match self {
            Self::Answer(answer) => {
                let is_answered = |nonce| updates.is_answered(nonce, answer);
                if nonces().into_iter().any(is_answered) {
                    Reaction::Move
                } else {
                    Reaction::Ignore
                }
            }
            Self::Other { .. } if updates.was_peer(now, path) => Reaction::TakeIn,
            Self::Other { size } if updates.challenges(now, path, size, rtt) => {
                let [nonce, _] = nonces();
                let body = updates.challenge(nonce);
                let dest = updates.peer();
                let control = Control::Extension { command: path_updates::CHALLENGE, body: &body };
                let mut datagram = Vec::new();
                ControlPacket { timestamp, dest, control }.emit(&mut datagram);
                Reaction::Challenge(datagram)
            }
            Self::Other { .. } => Reaction::Ignore,
        }
    }
}
