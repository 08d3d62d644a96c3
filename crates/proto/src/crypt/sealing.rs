//! Encryption of sent packets, and the announcement of new keys.

use std::collections::VecDeque;
use std::time::Duration;

use punctual_crypto::{KeyMessage, KeySet, PacketCipher, Parity, StreamKey};
use punctual_units::Instant;
use punctual_wire::{KeyFlag, SeqNo};

use super::{Suite, flag};
use crate::chance::Chance;
use crate::config::Config;
use crate::encryption::KeyState;

/// Originals after which a key is replaced even though the peer never acknowledged the next one:
/// half of the sequence numbers, none of which may be used twice with one key.
const MOST_PACKETS: u64 = 1 << 30;
/// Repetitions of a key message at a pace of 1.5 round trips. libsrt stops after them; here the
/// later ones have longer and longer pauses.
const QUICK_REPEATS: u32 = 10;
/// Least and longest time between repetitions.
const LEAST_REPEAT: Duration = Duration::from_millis(20);
const LONGEST_REPEAT: Duration = Duration::from_secs(1);

/// The sending direction: its keys from the key of the oldest packet in flight to the next key.
#[derive(Debug)]
pub(crate) struct Sealing {
    pub(crate) state: KeyState,
    keys: Option<Box<SealingKeys>>,
}

#[derive(Debug)]
struct SealingKeys {
    suite: Suite,
    chance: Chance,
    /// The oldest first; the last one is in use.
    generations: VecDeque<Generation>,
    next: Option<Next>,
    /// Originals sent under the key in use.
    sent: u64,
    /// Originals after which the next key is taken into use.
    refresh: u64,
    /// Originals after which the next key is announced.
    announce: u64,
    /// Keys taken into use after the first.
    refreshes: u64,
}

/// A key and the first packet that is sent under it.
#[derive(Debug)]
struct Generation {
    first: SeqNo,
    parity: Parity,
    key: StreamKey,
    cipher: PacketCipher,
}

/// The next key, which was announced or is about to be.
#[derive(Debug)]
struct Next {
    parity: Parity,
    key: StreamKey,
    cipher: PacketCipher,
    /// The key message. The peer acknowledges it by an answer with the same bytes.
    message: Vec<u8>,
    answered: bool,
    /// Whether the message is to be sent now.
    owed: bool,
    /// When the message is to be repeated.
    due: Instant,
    repeats: u32,
}

impl Sealing {
    /// The state of an end that sends in the clear.
    pub(crate) const fn clear(state: KeyState) -> Self {
        Self { state, keys: None }
    }

    /// Packets from `first` on are encrypted with `key`; later keys are drawn from `chance`.
    pub(crate) fn new(
        state: KeyState,
        suite: Suite,
        key: StreamKey,
        chance: Chance,
        first: SeqNo,
        config: &Config,
    ) -> Self {
        let cipher = suite.cipher(&key);
        let refresh = u64::from(config.key_refresh_rate());
        let announce = refresh - u64::from(config.effective_key_pre_announce());
        let parity = Parity::Even;
        let generations = VecDeque::from([Generation { first, parity, key, cipher }]);
        let keys = SealingKeys {
            suite,
            chance,
            generations,
            next: None,
            sent: 0,
            refresh,
            announce,
            refreshes: 0,
        };
        Self { state, keys: Some(Box::new(keys)) }
    }

    pub(crate) fn suite(&self) -> Option<&Suite> {
        self.keys.as_ref().map(|keys| &keys.suite)
    }

    /// The key flag of the packet `seq`. A retransmission has that of its original.
    pub(crate) fn flag(&self, seq: SeqNo) -> KeyFlag {
        self.keys.as_ref().map_or(KeyFlag::Clear, |keys| flag(keys.generation(seq).parity))
    }

    /// Encrypts the packet `seq`, which was written to `out` from `start` on. The result for a
    /// retransmission equals its original.
    pub(crate) fn seal(&self, seq: SeqNo, out: &mut Vec<u8>, start: usize) {
        if let Some(keys) = &self.keys {
            keys.generation(seq).cipher.seal(out, start);
        }
    }

    /// An original was sent; `oldest` is the first packet that may still be retransmitted.
    pub(crate) fn sent_original(&mut self, now: Instant, seq: SeqNo, oldest: SeqNo) {
        if let Some(keys) = &mut self.keys {
            keys.sent += 1;
            if keys.sent >= keys.announce {
                keys.refresh(now, seq, oldest);
            }
        }
    }

    /// Whether a key message is to be sent now.
    pub(crate) fn request_is_due(&self) -> bool {
        self.keys.as_ref().and_then(|keys| keys.next.as_ref()).is_some_and(|next| next.owed)
    }

    /// When the key message is to be repeated; `None` if no key is announced.
    pub(crate) fn next_request(&self) -> Option<Instant> {
        let next = self.keys.as_ref()?.next.as_ref()?;
        (!next.answered && !next.owed).then_some(next.due)
    }

    /// The key message was not answered in time.
    pub(crate) fn repeat_request(&mut self) {
        if let Some(next) = self.keys.as_mut().and_then(|keys| keys.next.as_mut()) {
            next.owed = !next.answered;
        }
    }

    /// The key message that is sent at `now`.
    pub(crate) fn take_request(&mut self, now: Instant, rtt: Duration) -> Option<&[u8]> {
        let next = self.keys.as_mut()?.next.as_mut()?;
        if !std::mem::take(&mut next.owed) {
            return None;
        }
        let pace = (rtt * 3 / 2).max(LEAST_REPEAT);
        let slower = next.repeats.saturating_sub(QUICK_REPEATS).min(6);
        next.due = now + (pace * (1 << slower)).min(LONGEST_REPEAT.max(pace));
        next.repeats += 1;
        Some(&next.message)
    }

    /// The peer answered a key message. Returns `false` for an answer other than the message
    /// itself, which changes nothing: the message is repeated.
    pub(crate) fn handle_answer(&mut self, body: &[u8]) -> bool {
        let Some(next) = self.keys.as_mut().and_then(|keys| keys.next.as_mut()) else {
            return false;
        };
        let same = body == next.message;
        next.answered |= same;
        next.owed &= !same;
        same
    }

    /// Keys taken into use after the first.
    pub(crate) fn refreshes(&self) -> u64 {
        self.keys.as_ref().map_or(0, |keys| keys.refreshes)
    }
}

impl SealingKeys {
    /// The key of packet `seq`: the newest whose packets begin no later.
    fn generation(&self, seq: SeqNo) -> &Generation {
        let newest =
            self.generations.iter().rev().find(|generation| !seq.is_before(generation.first));
        newest.unwrap_or(&self.generations[0])
    }

    /// Announces the next key, or switches to it, when due.
    fn refresh(&mut self, now: Instant, seq: SeqNo, oldest: SeqNo) {
        // libsrt takes the next key into use at its time, acknowledged or not; where the message
        // was lost, the peer cannot read the packets that follow. Here the old key, which the peer
        // has, stays in use until the peer has acknowledged the next one.
        let ripe = self.sent >= self.refresh;
        match &self.next {
            None => {
                while self.generations.get(1).is_some_and(|second| !oldest.is_before(second.first))
                {
                    self.generations.pop_front();
                }
                // The peer keeps two keys, and the next one replaces the one before the present
                // one. So it waits until no packet under that one can be retransmitted.
                if self.generations.len() == 1 {
                    self.announce(now);
                }
                return;
            }
            Some(next) if ripe && (next.answered || self.sent >= MOST_PACKETS) => {}
            Some(_) => return,
        }
        if let Some(Next { parity, key, cipher, .. }) = self.next.take() {
            self.generations.push_back(Generation { first: seq.next(), parity, key, cipher });
            self.sent = 0;
            self.refreshes += 1;
        }
    }

    fn announce(&mut self, now: Instant) {
        let Some(current) = self.generations.back() else { return };
        let chance = &mut self.chance;
        let key = StreamKey::generate(self.suite.length(), |bytes| chance.fill(bytes));
        let parity = current.parity.other();
        let both = KeySet::one(current.parity, current.key.clone()).with(parity, key.clone());
        let suite = &self.suite;
        let message = KeyMessage::wrap(suite.mode, suite.salt, &both, &suite.kek)
            .expect("all keys of a connection have one length")
            .to_bytes();
        let cipher = suite.cipher(&key);
        self.next = Some(Next {
            parity,
            key,
            cipher,
            message,
            answered: false,
            owed: true,
            due: now,
            repeats: 0,
        });
    }
}

#[cfg(test)]
#[path = "sealing_tests.rs"]
mod tests;
