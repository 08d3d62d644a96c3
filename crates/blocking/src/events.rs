//! Events of sockets, as a set of bits.

use std::ops::{BitAnd, BitOr, BitOrAssign, Not};

/// A set of events. The bits are those of Linux's epoll, and so of libsrt's `SRT_EPOLL_…`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Events(pub u32);

impl Events {
    /// No event.
    pub const NONE: Self = Self(0);
    /// There is something to receive, or a call to accept.
    pub const IN: Self = Self(0x1);
    /// There is room to send.
    pub const OUT: Self = Self(0x4);
    /// The connection is broken, or could not be made.
    pub const ERR: Self = Self(0x8);
    /// A group has changed: it has a new link, or has lost one.
    pub const UPDATE: Self = Self(0x10);
    /// Not an event but a wish: events are reported once when they come, not while they last.
    pub const EDGE: Self = Self(1 << 31);
    /// The end of a connection, in which each of the three is reported.
    pub const BROKEN: Self = Self(0x1 | 0x4 | 0x8);

    /// Whether the set holds one of these events.
    pub const fn any(self, of: Self) -> bool {
        self.0 & of.0 != 0
    }

    /// Whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl BitOr for Events {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Events {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl BitAnd for Events {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl Not for Events {
    type Output = Self;

    fn not(self) -> Self {
        Self(!self.0)
    }
}
