//! A connection whose handshake is under way.

use std::time::Duration;

use bytes::Bytes;
use punctual_units::Instant;
use punctual_wire::{DataHeader, Handshake, SocketId, Timestamp};

use super::failed::Failed;
use crate::config::Config;
use crate::error::CloseReason;
use crate::handshake::caller::Caller;
use crate::handshake::rendezvous::{Rendezvous, TIMEOUT_FACTOR};
use crate::handshake::repetition::Repetition;
use crate::handshake::{REPEAT, Step};
use crate::path::Path;

/// Data packets that are kept if they overtake the end of the handshake.
const KEPT: usize = 64;

/// A connection whose handshake is under way: when requests go out, and early data packets.
#[derive(Debug)]
pub(super) struct Handshaking {
    role: HandshakeRole,
    is_request_due: bool,
    /// When the next repetition is due.
    next_request: Instant,
    repetition: Repetition,
    /// When this end gives up.
    expires: Instant,
    early: Vec<(DataHeader, Bytes)>,
}

/// The role of this end.
#[derive(Debug)]
pub(super) enum HandshakeRole {
    /// Calls a listener.
    Caller(Caller),
    /// Meets an end that calls this one.
    Rendezvous(Rendezvous),
}

impl Handshaking {
    /// A handshake that begins at `now`.
    pub(super) fn new(now: Instant, role: HandshakeRole, config: &Config) -> Self {
        let repetition = match role {
            HandshakeRole::Caller(_) => Repetition::EARLY,
            // The other end may come much later.
            HandshakeRole::Rendezvous(_) => Repetition::STEADY,
        };
        Self {
            is_request_due: true,
            next_request: now,
            repetition,
            expires: now + role.timeout(config),
            role,
            early: Vec::new(),
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) is to be called.
    pub(super) fn next_timeout(&self) -> Instant {
        self.next_request.min(self.expires)
    }

    /// Makes the request due again when it is time. Fails with the reason when this end gives up.
    pub(super) fn handle_timeout(
        &mut self,
        now: Instant,
        config: &Config,
    ) -> Result<(), CloseReason> {
        if now >= self.expires {
            tracing::trace!(timer = "ConnectTimeout", late = ?(now - self.expires), "timer");
            return Err(self.role.no_answer(config));
        }
        if now >= self.next_request {
            tracing::trace!(timer = "Handshake", late = ?(now - self.next_request), "timer");
            self.is_request_due = true;
            self.next_request = now + self.repetition.next();
        }
        Ok(())
    }

    /// Whether this is a rendezvous.
    pub(super) const fn is_rendezvous(&self) -> bool {
        matches!(self.role, HandshakeRole::Rendezvous(_))
    }

    /// Whether the request is to be sent now.
    pub(super) const fn is_request_due(&self) -> bool {
        self.is_request_due
    }

    /// The request that is to be sent now, and its destination socket.
    pub(super) fn take_request(
        &mut self,
        now: Instant,
        config: &Config,
        path: &Path,
    ) -> Option<(Handshake, SocketId)> {
        if !std::mem::take(&mut self.is_request_due) {
            return None;
        }
        Some(match &mut self.role {
            HandshakeRole::Caller(caller) => {
                (caller.request(now, config, path), SocketId::LISTENER)
            }
            HandshakeRole::Rendezvous(rendezvous) => rendezvous.request(config, path),
        })
    }

    /// Sends the next request now and repeats it at `pace`; `None` keeps the pace.
    pub(super) const fn request_now(&mut self, now: Instant, pace: Option<Repetition>) {
        if let Some(pace) = pace {
            self.repetition = pace;
        }
        self.next_request = now;
    }

    /// Sends the next repetition now instead of at its time; the repetitions after it keep their
    /// times. Nothing happens while one was sent ahead of its time already.
    pub(super) fn request_in_advance(&mut self, now: Instant) {
        if self.next_request <= now + REPEAT {
            self.is_request_due = true;
            self.next_request += REPEAT;
        }
    }

    /// Takes in a handshake that came to the socket `dest`.
    pub(super) fn handle_handshake(
        &mut self,
        now: Instant,
        timestamp: Timestamp,
        handshake: &Handshake,
        dest: SocketId,
        config: &Config,
        path: &Path,
    ) -> Step {
        match &mut self.role {
            HandshakeRole::Caller(caller) => caller.handle(now, timestamp, handshake, config, path),
            HandshakeRole::Rendezvous(rendezvous) => {
                rendezvous.handle_handshake(handshake, dest);
                rendezvous.handle(now, timestamp, handshake, config, path)
            }
        }
    }

    /// Takes in another packet, which a peer sends only over an established connection.
    pub(super) fn handle_traffic(&mut self, config: &Config, path: &Path) -> Step {
        match &mut self.role {
            HandshakeRole::Caller(_) => Step::Ignore,
            HandshakeRole::Rendezvous(rendezvous) => rendezvous.handle_traffic(config, path),
        }
    }

    /// Ends the handshake because this end gives it up.
    pub(super) fn give_up(&self, reason: CloseReason, config: &Config, path: &Path) -> Failed {
        match &self.role {
            HandshakeRole::Caller(caller) => {
                Failed::given_up(reason, None, caller.withdrawal(config, path))
            }
            HandshakeRole::Rendezvous(rendezvous) => {
                Failed::new(reason, rendezvous.half_open_peer())
            }
        }
    }

    /// Keeps a data packet that came before the handshake was complete.
    pub(super) fn keep(&mut self, header: DataHeader, payload: Bytes) {
        if self.early.len() < KEPT {
            self.early.push((header, payload));
        }
    }

    /// The data packets that came before the handshake was complete.
    pub(super) fn take_kept(&mut self) -> Vec<(DataHeader, Bytes)> {
        std::mem::take(&mut self.early)
    }
}

impl HandshakeRole {
    /// The time after which this end gives up.
    fn timeout(&self, config: &Config) -> Duration {
        match self {
            Self::Caller(_) => config.connect_timeout(),
            Self::Rendezvous(_) => config.connect_timeout() * TIMEOUT_FACTOR,
        }
    }

    /// The reason when no answer came in that time.
    fn no_answer(&self, config: &Config) -> CloseReason {
        let timeout = self.timeout(config);
        match self {
            Self::Caller(caller) if caller.is_induced() => CloseReason::ConclusionTimeout(timeout),
            Self::Caller(_) | Self::Rendezvous(_) => CloseReason::ConnectTimeout(timeout),
        }
    }
}

#[cfg(test)]
mod tests {
    use punctual_wire::SeqNo;

    use super::*;
    use crate::chance::Chance;
    use crate::connection::testing::data_header;
    use crate::path::PathId;

    const PATH: Path = Path::usual(PathId::numbered(1));
    const SOCKET: SocketId = SocketId::new(5);

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    fn call(config: &Config) -> Handshaking {
        let caller = Caller::new(SOCKET, SeqNo::new(1), Chance::new([0; 32]));
        Handshaking::new(at(0), HandshakeRole::Caller(caller), config)
    }

    #[test]
    fn a_request_is_sent_at_once_and_repeated_until_the_call_expires() {
        let config = Config::default();
        let mut calling = call(&config);
        assert!(calling.take_request(at(0), &config, &PATH).is_some());
        assert!(calling.take_request(at(0), &config, &PATH).is_none());
        let mut repetitions = 0;
        let reason = loop {
            let now = calling.next_timeout();
            if let Err(reason) = calling.handle_timeout(now, &config) {
                assert_eq!(now, at(0) + config.connect_timeout());
                break reason;
            }
            repetitions += usize::from(calling.take_request(now, &config, &PATH).is_some());
        };
        assert!(repetitions > 10, "{repetitions}");
        assert!(matches!(reason, CloseReason::ConnectTimeout(_)));
    }

    #[test]
    fn a_request_in_advance_replaces_the_next_repetition() {
        let config = Config::default();
        let mut calling = call(&config);
        calling.take_request(at(0), &config, &PATH);
        calling.request_now(at(0), Some(Repetition::STEADY));
        assert!(calling.handle_timeout(at(0), &config).is_ok());
        calling.take_request(at(0), &config, &PATH);
        let due = calling.next_timeout();
        calling.request_in_advance(at(1));
        assert!(calling.take_request(at(1), &config, &PATH).is_some());
        assert_eq!(calling.next_timeout(), due + REPEAT);
        calling.request_in_advance(at(2));
        assert!(!calling.is_request_due(), "one was sent ahead of its time already");
    }

    #[test]
    fn early_data_packets_are_kept_up_to_a_limit() {
        let mut calling = call(&Config::default());
        let header = data_header();
        for _ in 0..KEPT + 3 {
            calling.keep(header, Bytes::from_static(b"early"));
        }
        assert_eq!(calling.take_kept().len(), KEPT);
    }
}
