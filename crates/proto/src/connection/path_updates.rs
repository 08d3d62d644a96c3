//! Path updates: the peer's address changes while the connection is established, because a NAT
//! rebinds or a phone goes from Wi-Fi to mobile. SRT drops packets from a new address. Two ends of
//! this implementation agree in the handshake on following each other
//! ([`PATH_UPDATE`](punctual_wire::HsFlags::PATH_UPDATE)).
//!
//! An end that gets a packet for a connection from another address than its peer's sends a
//! *challenge* there, and otherwise ignores the packet. The peer answers the challenge. The
//! connection moves only when the right answer comes from the very address that was challenged.
//! Retransmission brings the packets that were ignored.
//!
//! - The nonce of a challenge is a keyed hash of the address, so that no state is kept for it. It
//!   is valid from that address only, for some seconds, and until the next move.
//! - Challenge and answer carry a tag under a key that both ends have from their handshake: socket
//!   IDs, first sequence numbers and cookie. An attacker off the path knows none of them, and can
//!   neither answer a challenge nor have one answered.
//! - An answer goes to the validated address only. So no attacker can relay a challenge and become
//!   the peer by the peer's own answer. For the same reason two ends that both move within one
//!   round trip lose each other.
//! - A challenge is no longer than the packets that caused it, and the number of addresses under
//!   challenge is limited.
//!
//! An attacker on the path has full control of a connection in the clear, as without path updates.

use std::hash::Hasher;
use std::time::Duration;

use punctual_units::Instant;
use punctual_wire::{SeqNo, SocketId};
use siphasher::sip::SipHasher24;

use crate::handshake::Negotiated;
use crate::path::PathId;

/// Commands of extension packets between two ends that know path updates. libsrt's are below 16.
pub(crate) const CHALLENGE: u16 = 0x5001;
pub(crate) const ANSWER: u16 = 0x5002;
/// An empty packet, which shows the peer by which path it reaches this end. An idle connection has
/// it in place of keepalives: it is long enough to be answered by a challenge.
pub(crate) const PROBE: u16 = 0x5003;

/// The body of any of them: a nonce, and a tag that its maker knows the key.
pub(crate) type Body = [u8; 16];

/// Bytes of such a packet with its SRT header.
const PACKET: usize = 32;
/// Addresses that may be under challenge at once.
const CANDIDATES: usize = 4;
/// The time after a move in which packets from the old address are still taken.
const GRACE: Duration = Duration::from_secs(1);
/// The time without a packet in a stream after which a receiver sends a probe.
pub(crate) const QUIET: Duration = Duration::from_millis(50);
/// The longest pause between probes after a stream. Each pause is twice as long as the one before
/// it.
const LAST_PAUSE: Duration = Duration::from_millis(800);

/// The peer's addresses besides the validated one.
#[derive(Debug)]
pub(crate) struct PathUpdates {
    key: [u8; 16],
    own: SocketId,
    peer: SocketId,
    changes: u64,
    candidates: Vec<Candidate>,
    /// The address before the last move, and until when packets from it are taken.
    previous: Option<(PathId, Instant)>,
    pause: Duration,
}

/// An address that sends packets for this connection and has not proved to be the peer's.
#[derive(Debug)]
struct Candidate {
    path: PathId,
    /// Bytes that came from there, less those of the challenges sent there.
    credit: usize,
    /// When it was last challenged; before that, when its first packet came.
    at: Instant,
    challenged: bool,
}

impl PathUpdates {
    /// The state of a connection whose ends both support path updates.
    pub(crate) fn new(own: SocketId, negotiated: &Negotiated) -> Self {
        Self {
            key: key(own, negotiated),
            own,
            peer: negotiated.fixed.peer_socket_id,
            changes: 0,
            candidates: Vec::new(),
            previous: None,
            pause: QUIET,
        }
    }

    /// The peer's socket ID.
    pub(crate) const fn peer(&self) -> SocketId {
        self.peer
    }

    /// The number of moves of the peer.
    pub(crate) const fn changes(&self) -> u64 {
        self.changes
    }

    /// Whether a packet from `path` was in flight when the peer moved.
    pub(crate) fn was_peer(&self, now: Instant, path: PathId) -> bool {
        self.previous.is_some_and(|(previous, until)| previous == path && now < until)
    }

    /// A datagram of `size` bytes came from `path`. Returns whether a challenge is to be sent
    /// there; an answer takes `wait` at most.
    pub(crate) fn challenges(
        &mut self,
        now: Instant,
        path: PathId,
        size: usize,
        wait: Duration,
    ) -> bool {
        let timeout = wait.clamp(Duration::from_millis(20), Duration::from_millis(250));
        let Some(candidate) = self.candidate(now, path, timeout) else { return false };
        candidate.credit = (candidate.credit + size).min(2 * PACKET);
        let waits = candidate.challenged && now < candidate.at + timeout;
        if waits || candidate.credit < PACKET {
            return false;
        }
        candidate.credit -= PACKET;
        candidate.challenged = true;
        candidate.at = now;
        true
    }

    /// The entry of `path`; `None` while too many others are under challenge.
    fn candidate(
        &mut self,
        now: Instant,
        path: PathId,
        timeout: Duration,
    ) -> Option<&mut Candidate> {
        let known = self.candidates.iter().position(|candidate| candidate.path == path);
        let new = Candidate { path, credit: 0, at: now, challenged: false };
        let index = match known {
            Some(index) => index,
            None if self.candidates.len() < CANDIDATES => {
                self.candidates.push(new);
                self.candidates.len() - 1
            }
            None => {
                let is_over = |candidate: &Candidate| now >= candidate.at + timeout;
                let index = self.candidates.iter().position(is_over)?;
                self.candidates[index] = new;
                index
            }
        };
        self.candidates.get_mut(index)
    }

    /// The challenge with this nonce.
    pub(crate) fn challenge(&self, nonce: u64) -> Body {
        body(nonce, self.tag(CHALLENGE, self.own, nonce))
    }

    /// The answer to a challenge; `None` if the challenge is not the peer's.
    pub(crate) fn answer(&self, challenge: &[u8]) -> Option<Body> {
        let (nonce, tag) = parse(challenge)?;
        (tag == self.tag(CHALLENGE, self.peer, nonce))
            .then(|| body(nonce, self.tag(ANSWER, self.own, nonce)))
    }

    /// Whether this is the peer's answer to the challenge with this nonce.
    pub(crate) fn is_answered(&self, nonce: u64, answer: &[u8]) -> bool {
        parse(answer) == Some((nonce, self.tag(ANSWER, self.peer, nonce)))
    }

    /// The peer has moved away from `from`.
    pub(crate) fn moved(&mut self, now: Instant, from: PathId) {
        self.changes += 1;
        self.candidates.clear();
        self.previous = Some((from, now + GRACE));
    }

    /// An ACK of a stream is sent, which shows the peer this end's path. Returns the time after
    /// which a probe may be needed.
    pub(crate) const fn begin_quiet(&mut self) -> Duration {
        self.pause = QUIET;
        QUIET
    }

    /// A probe is sent. Returns the pause before the next one, if another one may be needed.
    pub(crate) fn next_quiet(&mut self) -> Option<Duration> {
        self.pause *= 2;
        (self.pause <= LAST_PAUSE).then_some(self.pause)
    }

    /// The tag of a packet of this kind, made by the end with the socket ID `maker`.
    fn tag(&self, kind: u16, maker: SocketId, nonce: u64) -> u64 {
        let mut hasher = SipHasher24::new_with_key(&self.key);
        hasher.write(&kind.to_be_bytes());
        hasher.write(&maker.value().to_be_bytes());
        hasher.write(&nonce.to_be_bytes());
        hasher.finish()
    }
}

/// The key of the tags, which only the two ends know: socket IDs, first sequence numbers of both
/// directions (caller and listener have one) and cookie, in the same order at both ends.
fn key(own: SocketId, negotiated: &Negotiated) -> [u8; 16] {
    let (own, peer) = (own.value(), negotiated.fixed.peer_socket_id.value());
    let [send, receive] = negotiated.handshake_isns.map(SeqNo::value);
    let words = [
        own.min(peer),
        own.max(peer),
        send.min(receive),
        send.max(receive) ^ negotiated.fixed.cookie,
    ];
    let mut key = [0; 16];
    for (place, word) in key.chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_be_bytes());
    }
    key
}

fn body(nonce: u64, tag: u64) -> Body {
    (u128::from(nonce) << 64 | u128::from(tag)).to_be_bytes()
}

fn parse(body: &[u8]) -> Option<(u64, u64)> {
    let (nonce, rest) = body.split_first_chunk()?;
    let (tag, _) = rest.split_first_chunk()?;
    Some((u64::from_be_bytes(*nonce), u64::from_be_bytes(*tag)))
}
