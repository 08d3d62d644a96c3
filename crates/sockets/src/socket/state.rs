//! The stage of a socket, with its rules.

use std::sync::Arc;
use std::time::Instant;

use punctual::{CloseReason, KeyState, OptionPhase, RejectReason};
use punctual_blocking::now;

use super::connecting::{ConnectHook, Connecting};
use super::listening::{ListenHook, Listening};
use super::members::GroupMembers;
use super::statistics::StatisticsBaseline;
use crate::code::{Code, Failure};
use crate::options::{OptionNumber, Options, phase};
use crate::ports::LocalPort;

/// The state of a socket: libsrt's `SRT_SOCKSTATUS`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(i32)]
pub enum SocketState {
    /// Created.
    Init = 1,
    /// Bound.
    Opened = 2,
    /// Waits for calls.
    Listening = 3,
    /// Calls.
    Connecting = 4,
    /// Connected.
    Connected = 5,
    /// The connection has ended, or could not be made.
    Broken = 6,
    /// Closed, and its number is still known.
    Closed = 8,
    /// There is no such socket.
    Nonexistent = 9,
}

/// The stage of a socket, and everything that changes with it.
#[derive(Debug)]
pub(super) struct State {
    pub(super) stage: Stage,
    pub(super) options: Options,
    pub(super) local: Option<Arc<LocalPort>>,
    pub(super) connect_hook: Option<ConnectHook>,
    pub(super) listen_hook: Option<ListenHook>,
    pub(super) baseline: StatisticsBaseline,
    /// The error of a call whose thread waits for the answer.
    pub(super) failure: Option<Failure>,
    /// The states of the keys that a failed call has left.
    pub(super) failed_keys: FailedKeys,
    /// The links, if the socket is a group.
    pub(super) members: Option<GroupMembers>,
}

/// The states of the keys after a failed call, as libsrt tells them.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct FailedKeys {
    /// Of what would have been sent.
    pub(super) send: KeyState,
    /// Of what would have been received.
    pub(super) receive: KeyState,
}

impl FailedKeys {
    /// The states after a call that has failed for this reason, of an end with a passphrase or
    /// without.
    pub(super) const fn of(reason: &CloseReason, has_passphrase: bool) -> Self {
        let (send, receive) = match reason {
            _ if !has_passphrase => (KeyState::Unsecured, KeyState::Unsecured),
            // The peer has accepted, and this end has not.
            CloseReason::Incompatible(RejectReason::BAD_SECRET) => {
                (KeyState::BadSecret, KeyState::BadSecret)
            }
            CloseReason::Incompatible(RejectReason::UNSECURE) => {
                (KeyState::NoSecret, KeyState::Unsecured)
            }
            // The peer has refused without a word on the key.
            CloseReason::Rejected(_) => (KeyState::Securing, KeyState::Unsecured),
            _ => (KeyState::Unsecured, KeyState::Unsecured),
        };
        Self { send, receive }
    }
}

/// The stage of a socket, with what belongs to it.
#[derive(Debug)]
pub(super) enum Stage {
    Init,
    Opened,
    Listening(Arc<Listening>),
    Connecting(Connecting),
    /// A link that its group calls.
    Joining,
    Connected,
    /// Broken since this instant.
    Broken(Instant),
    /// Closed since this instant.
    Closed(Instant),
}

impl Stage {
    pub(super) const fn state(&self) -> SocketState {
        match self {
            Self::Init => SocketState::Init,
            Self::Opened => SocketState::Opened,
            Self::Listening(_) => SocketState::Listening,
            Self::Connecting(_) | Self::Joining => SocketState::Connecting,
            Self::Connected => SocketState::Connected,
            Self::Broken(_) => SocketState::Broken,
            Self::Closed(_) => SocketState::Closed,
        }
    }
}

impl State {
    /// The state of a new socket with these options.
    pub(super) fn new(options: Options) -> Self {
        Self {
            stage: Stage::Init,
            options,
            local: None,
            connect_hook: None,
            listen_hook: None,
            baseline: StatisticsBaseline::default(),
            failure: None,
            failed_keys: FailedKeys::default(),
            members: None,
        }
    }

    /// Fails if the socket is closed, bound or connected: a hook may have told the program of it
    /// before.
    pub(super) fn check_untouched(&self) -> Result<(), Failure> {
        match self.stage {
            Stage::Init => Ok(()),
            _ => Err(Code::InvalidOperation.into()),
        }
    }

    /// Fails if no option can be set any more.
    pub(super) fn check_settable(&self) -> Result<(), Failure> {
        match self.stage {
            Stage::Broken(_) if self.members.is_none() => Err(Code::ConnectionLost.into()),
            Stage::Closed(_) => Err(Code::InvalidSocket.into()),
            _ => Ok(()),
        }
    }

    /// Fails if an option cannot be set at this stage.
    pub(super) fn check_phase(&self, number: OptionNumber) -> Result<(), Failure> {
        let last = phase(number).ok_or(Code::InvalidParameter)?;
        match (&self.stage, last) {
            (Stage::Init, _) | (_, OptionPhase::AnyTime) => Ok(()),
            (_, OptionPhase::BeforeBinding) => Err(Code::Bound.into()),
            (Stage::Opened, OptionPhase::BeforeConnecting) => Ok(()),
            (_, OptionPhase::BeforeConnecting) => Err(Code::Connected.into()),
        }
    }

    /// The socket is bound to this port.
    pub(super) fn bound(&mut self, local: Arc<LocalPort>) {
        self.local = Some(local);
        self.stage = Stage::Opened;
    }

    /// The call has been accepted. Returns it.
    pub(super) fn end_call(&mut self) -> Option<Connecting> {
        match std::mem::replace(&mut self.stage, Stage::Connected) {
            Stage::Connecting(call) => Some(call),
            other => {
                self.stage = other;
                None
            }
        }
    }

    /// The call has failed with this error. A socket whose call blocks can call again. Returns the
    /// call.
    pub(super) fn fail_call(&mut self, code: Code) -> Option<Connecting> {
        let call = self.end_call()?;
        self.failure = Some(code.into());
        self.stage = if call.blocks { Stage::Opened } else { Stage::Broken(now()) };
        Some(call)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(stage: Stage) -> State {
        State { stage, ..State::new(Options::default()) }
    }

    #[test]
    fn options_close_one_phase_after_the_other() {
        let code = |stage, number| at(stage).check_phase(number).err().map(|it| it.code);
        let numbers = [OptionNumber::MSS, OptionNumber::LATENCY, OptionNumber::SNDSYN];
        assert_eq!(numbers.map(|it| code(Stage::Init, it)), [None; 3]);
        assert_eq!(numbers.map(|it| code(Stage::Opened, it)), [Some(Code::Bound), None, None]);
        let connected = [Some(Code::Bound), Some(Code::Connected), None];
        assert_eq!(numbers.map(|it| code(Stage::Connected, it)), connected);
    }

    #[test]
    fn a_broken_and_a_closed_socket_take_no_options() {
        let code = |stage| at(stage).check_settable().err().map(|it| it.code);
        assert_eq!(code(Stage::Connected), None);
        assert_eq!(code(Stage::Broken(now())), Some(Code::ConnectionLost));
        assert_eq!(code(Stage::Closed(now())), Some(Code::InvalidSocket));
    }

    #[test]
    fn a_failed_call_says_what_has_become_of_its_key() {
        let states = |reason: CloseReason, has_passphrase| {
            let FailedKeys { send, receive } = FailedKeys::of(&reason, has_passphrase);
            [send as u64, receive as u64]
        };
        let wrong = CloseReason::Incompatible(RejectReason::BAD_SECRET);
        let without = CloseReason::Incompatible(RejectReason::UNSECURE);
        let refused = CloseReason::Rejected(RejectReason::BAD_SECRET);
        assert_eq!(states(wrong.clone(), true), [4, 4]);
        assert_eq!(states(without, true), [3, 0]);
        assert_eq!(states(refused, true), [1, 0]);
        assert_eq!(states(CloseReason::Local, true), [0, 0]);
        assert_eq!(states(wrong, false), [0, 0]);
    }

    #[test]
    fn only_a_call_ends_in_a_connection_or_fails() {
        let mut state = at(Stage::Closed(now()));
        assert!(state.end_call().is_none() && state.fail_call(Code::NoServer).is_none());
        assert_eq!((state.stage.state(), state.failure.is_none()), (SocketState::Closed, true));
    }
}
