//! The numbers of SRT's headers, each its own type with its own wrapping.

use std::fmt;

/// Packet sequence number: 31 bits, wrapping from 0x7FFF_FFFF to 0 (draft section 3.1).
///
/// There is no total order on a circle, hence no `Ord`: ask [`SeqNo::is_before`] or
/// [`SeqNo::distance_from`], which hold for numbers less than 2^30 apart.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct SeqNo(u32);

impl SeqNo {
    /// The largest number; the next one is 0.
    pub const MAX: Self = Self(0x7FFF_FFFF);

    /// The number in the low 31 bits of `value`.
    pub const fn new(value: u32) -> Self {
        Self(value & Self::MAX.0)
    }

    /// The number as an integer, 0 to 2^31 - 1.
    pub const fn value(self) -> u32 {
        self.0
    }

    /// The number after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        self.plus(1)
    }

    /// The number `n` places on.
    #[must_use]
    pub const fn plus(self, n: u32) -> Self {
        Self::new(self.0.wrapping_add(n))
    }

    /// The number `n` places back.
    #[must_use]
    pub const fn minus(self, n: u32) -> Self {
        Self::new(self.0.wrapping_sub(n))
    }

    /// Signed steps from `other` to this number by the shorter way round, -2^30 to 2^30 - 1.
    pub const fn distance_from(self, other: Self) -> i32 {
        (self.0.wrapping_sub(other.0) << 1).cast_signed() >> 1
    }

    /// Whether this number comes before `other`.
    pub const fn is_before(self, other: Self) -> bool {
        self.distance_from(other) < 0
    }

    /// Whether this number comes after `other`.
    pub const fn is_after(self, other: Self) -> bool {
        self.distance_from(other) > 0
    }

    /// Whether this number is one of those from `first` to `last`.
    pub const fn is_within(self, first: Self, last: Self) -> bool {
        !self.is_before(first) && !self.is_after(last)
    }
}

impl fmt::Display for SeqNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Message number: 26 bits, from 1, wrapping from 0x3FF_FFFF to 1 (draft section 3.1).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct MsgNo(u32);

impl MsgNo {
    /// Marks a packet of the packet filter, and "unknown" in a drop request; no message has it.
    pub const CONTROL: Self = Self(0);
    /// The first message's number.
    pub const FIRST: Self = Self(1);
    /// The largest number; the next one is 1.
    pub const MAX: Self = Self(0x03FF_FFFF);

    /// The number in the low 26 bits of `value`.
    pub const fn new(value: u32) -> Self {
        Self(value & Self::MAX.0)
    }

    /// The number as an integer, 0 to 2^26 - 1.
    pub const fn value(self) -> u32 {
        self.0
    }

    /// The number of the message after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        if self.0 == Self::MAX.0 { Self::FIRST } else { Self(self.0 + 1) }
    }
}

/// ACK number: 31 bits, from 1; 0 marks a light ACK, which nobody acknowledges.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct AckNo(u32);

impl AckNo {
    /// The number of the first full or small ACK.
    pub const FIRST: Self = Self(1);

    /// The number in the low 31 bits of `value`.
    pub const fn new(value: u32) -> Self {
        Self(value & 0x7FFF_FFFF)
    }

    /// The number as an integer, 0 to 2^31 - 1.
    pub const fn value(self) -> u32 {
        self.0
    }

    /// The number of the next full or small ACK: never 0.
    #[must_use]
    pub const fn next(self) -> Self {
        if self.0 >= 0x7FFF_FFFF { Self::FIRST } else { Self(self.0 + 1) }
    }
}

/// SRT socket ID of a connection's end; 0 addresses the listener (draft section 3).
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct SocketId(u32);

impl SocketId {
    /// The destination of a handshake before the peer's ID is known.
    pub const LISTENER: Self = Self(0);

    /// The ID `value`.
    pub const fn new(value: u32) -> Self {
        Self(value)
    }

    /// The ID as an integer.
    pub const fn value(self) -> u32 {
        self.0
    }
}

impl fmt::Display for SocketId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Microseconds since the sender's start, wrapping after 2^32 µs, 71 min 35 s (draft section 3).
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Timestamp(u32);

impl Timestamp {
    /// The timestamp `micros` µs.
    pub const fn from_micros(micros: u32) -> Self {
        Self(micros)
    }

    /// Microseconds as on the wire.
    pub const fn as_micros(self) -> u32 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequence_numbers_wrap() {
        assert_eq!(SeqNo::MAX.next(), SeqNo::new(0));
        assert_eq!(SeqNo::new(0).minus(1), SeqNo::MAX);
        assert_eq!(SeqNo::new(2).distance_from(SeqNo::MAX), 3);
        assert_eq!(SeqNo::MAX.distance_from(SeqNo::new(2)), -3);
        assert!(SeqNo::MAX.is_before(SeqNo::new(0)));
        assert!(SeqNo::new(5).is_after(SeqNo::new(4)));
    }

    #[test]
    fn message_and_ack_numbers_skip_zero() {
        assert_eq!(MsgNo::MAX.next(), MsgNo::FIRST);
        assert_eq!(AckNo::new(0x7FFF_FFFF).next(), AckNo::FIRST);
    }
}
