use std::time::Duration;

use bytes::Bytes;
use punctual_units::Instant;
use punctual_wire::{DataHeader, Handshake, SocketId, Timestamp};

use super::timer::Timer;
use super::{Connection, State};
use crate::config::Config;
use crate::error::CloseReason;
use crate::handshake::caller::Caller;
use crate::handshake::rendezvous::{Rendezvous, TIMEOUT_FACTOR};
use crate::handshake::repetition::Repetition;
use crate::handshake::{REPEAT, Step};
use crate::path::PathId;

impl Connection {
    /// Sends the next request now, and repeats it at `pace` if that is another one.
    pub(super) fn request_now(&mut self, now: Instant, pace: Option<Repetition>) {
        if let (State::Handshaking(calling), Some(pace)) = (&mut self.state, pace) {
            calling.set_pace(pace);
        }
        self.timers.set(Timer::Handshake, now);
    }

    /// Sends the next repetition now and moves those behind it by none: the one after it comes when
    /// it would have come anyway. Nothing happens while one is ahead already.
    pub(super) fn request_in_advance(&mut self, now: Instant) {
        if let State::Handshaking(calling) = &mut self.state
            && let Some(due) = self.timers.at(Timer::Handshake).filter(|&due| due <= now + REPEAT)
        {
            calling.request_due = true;
            self.timers.set(Timer::Handshake, due + REPEAT);
        }
    }
}

/// Packets that may overtake the end of the handshake and are kept until it comes.
const KEPT: usize = 64;

/// A connection whose handshake is under way.
#[derive(Debug)]
pub(crate) struct Handshaking {
    role: Role,
    pub(crate) request_due: bool,
    repetition: Repetition,
    early: Vec<(DataHeader, Bytes)>,
}

/// Whom this end calls.
#[derive(Debug)]
pub(crate) enum Role {
    /// A listener.
    Caller(Caller),
    /// An end that calls this one.
    Rendezvous(Rendezvous),
}

impl Handshaking {
    pub(crate) const fn new(role: Role) -> Self {
        let repetition = match role {
            Role::Caller(_) => Repetition::EARLY,
            // The other end may come much later.
            Role::Rendezvous(_) => Repetition::STEADY,
        };
        Self { role, request_due: true, repetition, early: Vec::new() }
    }

    /// The request is due; the time until it is due again.
    pub(crate) fn repeat(&mut self) -> Duration {
        self.request_due = true;
        self.repetition.next()
    }

    /// Repeats what is said at this pace from now on.
    pub(crate) const fn set_pace(&mut self, pace: Repetition) {
        self.repetition = pace;
    }

    /// Why it is given up when nobody has answered for as long as this end tries.
    pub(crate) fn no_answer(&self, config: &Config) -> CloseReason {
        let timeout = self.timeout(config);
        match &self.role {
            Role::Caller(caller) if caller.is_induced() => CloseReason::ConclusionTimeout(timeout),
            Role::Caller(_) | Role::Rendezvous(_) => CloseReason::ConnectTimeout(timeout),
        }
    }

    /// Whether this is a rendezvous.
    pub(crate) const fn is_rendezvous(&self) -> bool {
        matches!(self.role, Role::Rendezvous(_))
    }

    /// How long this end tries.
    pub(crate) fn timeout(&self, config: &Config) -> Duration {
        match self.role {
            Role::Caller(_) => config.connect_timeout(),
            Role::Rendezvous(_) => config.connect_timeout() * TIMEOUT_FACTOR,
        }
    }

    /// The request that is sent now, and repeated, and its destination socket.
    pub(crate) fn request(
        &mut self,
        now: Instant,
        config: &Config,
        path: PathId,
    ) -> (Handshake, SocketId) {
        match &mut self.role {
            Role::Caller(caller) => (caller.request(now, config, path), SocketId::LISTENER),
            Role::Rendezvous(rendezvous) => rendezvous.request(config, path),
        }
    }

    /// A handshake came to the socket `dest`, from the peer or in its name.
    pub(crate) fn hear(&mut self, handshake: &Handshake, dest: SocketId) {
        if let Role::Rendezvous(rendezvous) = &mut self.role {
            rendezvous.hear(handshake, dest);
        }
    }

    /// Takes in a handshake of the peer's.
    pub(crate) fn handle(
        &mut self,
        now: Instant,
        timestamp: Timestamp,
        handshake: &Handshake,
        config: &Config,
        path: PathId,
    ) -> Step {
        match &mut self.role {
            Role::Caller(caller) => caller.handle(now, timestamp, handshake, config),
            Role::Rendezvous(rendezvous) => {
                rendezvous.handle(now, timestamp, handshake, config, path)
            }
        }
    }

    /// Something came that only a peer sends for which the connection stands.
    pub(crate) fn handle_traffic(&mut self, config: &Config, path: PathId) -> Step {
        match &mut self.role {
            Role::Caller(_) => Step::Ignore,
            Role::Rendezvous(rendezvous) => rendezvous.handle_traffic(config, path),
        }
    }

    /// The peer's socket, if the peer may take the connection for standing.
    pub(crate) fn half_open_peer(&self) -> Option<SocketId> {
        match &self.role {
            Role::Caller(_) => None,
            Role::Rendezvous(rendezvous) => rendezvous.half_open_peer(),
        }
    }

    /// The handshake that tells a listener that this end has given up its call.
    pub(crate) fn withdrawal(&self, config: &Config, path: PathId) -> Option<Box<Handshake>> {
        match &self.role {
            Role::Caller(caller) => caller.withdrawal(config, path),
            Role::Rendezvous(_) => None,
        }
    }

    /// Keeps a data packet that came before the handshake was complete.
    pub(crate) fn keep(&mut self, header: DataHeader, payload: Bytes) {
        if self.early.len() < KEPT {
            self.early.push((header, payload));
        }
    }

    pub(crate) fn kept(self) -> impl Iterator<Item = (DataHeader, Bytes)> {
        self.early.into_iter()
    }
}
