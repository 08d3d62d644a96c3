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
        let Some((updates, wait)) = connection.path_updates() else { return Reaction::Ignore };
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
            Self::Other { size } if updates.challenges(now, path, size, wait) => {
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

#[cfg(test)]
mod tests {
    use punctual_wire::{Packet, SocketId};

    use super::*;
    use crate::connection::path_updates::PathUpdates;
    use crate::endpoint::testing::{accepted_with_updates, host};
    use crate::path::Path;

    const NOW: Instant = Instant::from_millis(9_000);
    const LARGE: OffPathPacket<'_> = OffPathPacket::Other { size: 1_332 };

    fn react(connection: &mut Connection, packet: OffPathPacket<'_>, path: PathId) -> Reaction {
        packet.react(NOW, path, connection, &CookieKey::new([5; 16], NOW))
    }

    fn pair() -> (Connection, PathUpdates) {
        accepted_with_updates(NOW, host(1), SocketId::new(3))
    }

    fn connection() -> Connection {
        pair().0
    }

    /// The body of the challenge that another packet by `path` causes.
    fn challenge(connection: &mut Connection, path: PathId) -> Vec<u8> {
        match react(connection, LARGE, path) {
            Reaction::Challenge(datagram) => datagram[16..].to_vec(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn another_path_is_challenged_by_no_more_bytes_than_came() {
        let mut connection = connection();
        let small = OffPathPacket::Other { size: 16 };
        assert_eq!(react(&mut connection, small, host(2)), Reaction::Ignore);
        let Reaction::Challenge(datagram) = react(&mut connection, LARGE, host(2)) else {
            panic!("a challenge");
        };
        assert_eq!(datagram.len(), 32);
        let Ok(Packet::Control(challenge)) = Packet::parse(&datagram) else {
            panic!("a control packet");
        };
        assert_eq!(challenge.dest, SocketId::new(7));
    }

    #[test]
    fn the_peers_answer_moves_the_connection_by_the_challenged_path_only() {
        let (mut connection, peer) = pair();
        let challenge = challenge(&mut connection, host(2));
        let answer = peer.answer(&challenge).expect("the challenge is genuine");
        let answer = OffPathPacket::Answer(&answer);
        assert_eq!(react(&mut connection, answer, host(3)), Reaction::Ignore);
        assert_eq!(react(&mut connection, answer, host(2)), Reaction::Move);
        let moved = Path { id: host(4), ..connection.path };
        connection.move_to(NOW, moved);
        let late = react(&mut connection, answer, host(2));
        assert_eq!(late, Reaction::Ignore, "the challenge was made before the move");
    }

    #[test]
    fn an_answer_that_is_not_the_peers_moves_nothing() {
        let mut connection = connection();
        let challenge = challenge(&mut connection, host(2));
        for answer in [&challenge[..], &[0; 16], &[]] {
            let reaction = react(&mut connection, OffPathPacket::Answer(answer), host(2));
            assert_eq!(reaction, Reaction::Ignore);
        }
    }

    #[test]
    fn packets_by_the_old_path_are_taken_in_after_a_move() {
        let mut connection = connection();
        let moved = Path { id: host(2), ..connection.path };
        connection.move_to(NOW, moved);
        assert_eq!(react(&mut connection, LARGE, host(1)), Reaction::TakeIn);
        assert!(matches!(react(&mut connection, LARGE, host(3)), Reaction::Challenge(_)));
    }

    #[test]
    fn paths_of_a_carriage_that_follows_the_peer_itself_are_ignored() {
        let mut connection = connection();
        connection.path.properties.moves = false;
        assert_eq!(react(&mut connection, LARGE, host(2)), Reaction::Ignore);
    }
}
