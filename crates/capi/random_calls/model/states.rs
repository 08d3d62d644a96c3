//! The model of a socket's states: which ones are possible after what was done and seen.

use std::fmt;

pub(crate) const INIT: i32 = 1;
pub(crate) const OPENED: i32 = 2;
pub(crate) const LISTENING: i32 = 3;
pub(crate) const CONNECTING: i32 = 4;
pub(crate) const CONNECTED: i32 = 5;
pub(crate) const BROKEN: i32 = 6;
pub(crate) const CLOSED: i32 = 8;
pub(crate) const NONEXISTENT: i32 = 9;

/// A set of states.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(crate) struct States(u16);

impl States {
    pub(crate) fn of(states: &[i32]) -> Self {
        Self(states.iter().fold(0, |set, state| set | 1 << state))
    }

    /// The states that a call and its consequences lead to.
    pub(crate) fn calling() -> Self {
        Self::of(&[CONNECTING]).later()
    }

    /// The states of a connection that was established.
    pub(crate) fn connected() -> Self {
        Self::of(&[CONNECTED]).later()
    }

    pub(crate) fn closed() -> Self {
        Self::of(&[CLOSED, NONEXISTENT])
    }

    pub(crate) fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) fn has(self, state: i32) -> bool {
        (0..16).contains(&state) && self.0 >> state & 1 == 1
    }

    /// Whether each of these states is one of `others`.
    pub(crate) fn are_among(self, others: &[i32]) -> bool {
        self.0 & !Self::of(others).0 == 0
    }

    /// Adds what can happen without a call of the program: answers and ends of connections, and the
    /// collector, which closes broken sockets and forgets closed ones.
    pub(crate) fn later(self) -> Self {
        let mut states = self;
        for (from, to) in [
            (CONNECTING, CONNECTED),
            (CONNECTING, BROKEN),
            (CONNECTED, BROKEN),
            (BROKEN, CLOSED),
            (CLOSED, NONEXISTENT),
        ] {
            if states.has(from) {
                states = states.or(Self::of(&[to]));
            }
        }
        states
    }
}

impl fmt::Debug for States {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries((0..16).filter(|&state| self.has(state))).finish()
    }
}
