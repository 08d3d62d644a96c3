//! A peer whose address changes while the connection stands: a NAT that rebinds, a phone that goes
//! from Wi-Fi to mobile. SRT drops what comes from a new address; two ends of this implementation
//! tell each other in the handshake that they can do better ([`HsFlags::PATH_UPDATE`]).
//!
//! Whoever gets a packet for a connection from another address than its peer's sends a *challenge*
//! there, and goes on as before. The peer answers it from wherever it is by now, and only when the
//! right answer comes back from the very address that was challenged does the connection move. What
//! came from there before is not looked at; retransmission brings it.
//!
//! - The nonce of a challenge is a keyed hash of the address, so nothing is kept for it, and it is
//!   good from that address only, for some seconds, and until the next move.
//! - Challenge and answer carry a tag under a key that both ends have from their handshake: socket
//!   IDs, first sequence numbers and cookie. Who is off the path knows none of them: he can neither
//!   answer a challenge nor have one answered.
//! - An answer goes to the validated address only. So nobody can pass a challenge on and become the
//!   peer by the peer's own answer; nor can two ends find each other that move within one round
//!   trip of each other.
//! - A challenge is no longer than what it answers, and only so many addresses are challenged at
//!   once, whatever anybody sends.
//!
//! Who is on the path can do as before what he likes with a connection in the clear.

use std::hash::Hasher;
use std::time::Duration;

use punctual_rtt::Rtt;
use punctual_units::Instant;
use punctual_wire::{SeqNo, SocketId};
use siphasher::sip::SipHasher24;

use crate::handshake::Negotiated;
use crate::path::PathId;

/// Commands of extension packets between two ends that know path updates. libsrt's are below 16.
pub(crate) const CHALLENGE: u16 = 0x5001;
pub(crate) const ANSWER: u16 = 0x5002;
/// Says nothing: it shows the peer where this end is.
pub(crate) const PROBE: u16 = 0x5003;

/// The body of any of them: a nonce, and a tag that its maker knows the key.
pub(crate) type Body = [u8; 16];

/// Bytes of such a packet with its SRT header.
const PACKET: usize = 32;
/// Addresses that may be under challenge at once.
const CANDIDATES: usize = 4;
/// For so long after a move, what was under way from the old address is still taken.
const GRACE: Duration = Duration::from_secs(1);
/// A receiver that hears nothing for so long in a stream shows its peer where it is.
pub(crate) const QUIET: Duration = Duration::from_millis(50);
/// Probes follow each other at twice the pause each time, up to this one: then keepalives do.
const LAST_PAUSE: Duration = Duration::from_millis(800);

/// What a connection knows of its peer's addresses besides the one that counts.
#[derive(Debug)]
pub(crate) struct PathUpdates {
    key: [u8; 16],
    own: SocketId,
    peer: SocketId,
    changes: u64,
    candidates: Vec<Candidate>,
    /// The address before the last move, and until when it is still listened to.
    previous: Option<(PathId, Instant)>,
    pause: Duration,
}

/// An address that packets for this connection come from, and that is not known to be the peer's.
#[derive(Debug)]
struct Candidate {
    path: PathId,
    /// Bytes that came from there and that no challenge has answered yet.
    credit: usize,
    /// When it was last challenged, or else first heard of.
    at: Instant,
    challenged: bool,
}

impl PathUpdates {
    /// The path of a connection whose ends both know path updates.
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

    /// How often the peer's address has changed.
    pub(crate) const fn changes(&self) -> u64 {
        self.changes
    }

    /// Whether a packet from `path` is one that was under way when the peer moved.
    pub(crate) fn was_peer(&self, now: Instant, path: PathId) -> bool {
        self.previous.is_some_and(|(previous, until)| previous == path && now < until)
    }

    /// Whether `path`, from where `size` bytes came, is to be challenged now.
    pub(crate) fn challenges(&mut self, now: Instant, path: PathId, size: usize, rtt: Rtt) -> bool {
        let patience = rtt.bound().clamp(Duration::from_millis(20), Duration::from_millis(250));
        let Some(candidate) = self.candidate(now, path, patience) else { return false };
        candidate.credit = (candidate.credit + size).min(2 * PACKET);
        let waits = candidate.challenged && now < candidate.at + patience;
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
        patience: Duration,
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
                let is_over = |candidate: &Candidate| now >= candidate.at + patience;
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

    /// The answer to the peer's challenge; `None` if it is not the peer's.
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

    /// Something that shows where this end is goes out at `now`, in a stream: when to look whether
    /// the peer still finds it.
    pub(crate) const fn begin_quiet(&mut self) -> Duration {
        self.pause = QUIET;
        QUIET
    }

    /// A probe goes out: the pause until the next one, if there is to be one.
    pub(crate) fn next_quiet(&mut self) -> Option<Duration> {
        self.pause *= 2;
        (self.pause <= LAST_PAUSE).then_some(self.pause)
    }

    /// What proves that the end with the socket ID `maker` made a packet of this kind.
    fn tag(&self, kind: u16, maker: SocketId, nonce: u64) -> u64 {
        let mut hasher = SipHasher24::new_with_key(&self.key);
        hasher.write(&kind.to_be_bytes());
        hasher.write(&maker.value().to_be_bytes());
        hasher.write(&nonce.to_be_bytes());
        hasher.finish()
    }
}

/// What both ends know, and nobody off the path: the two socket IDs, the first sequence numbers of
/// both directions (caller and listener have one) and the cookie, in an order that does not depend
/// on the end.
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
