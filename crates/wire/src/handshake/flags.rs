use std::ops::BitOr;

/// The features that a peer supports and asks for: the flags of HSREQ and HSRSP (draft section
/// 3.2.1.1.1).
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct HsFlags(u32);

impl HsFlags {
    /// Sends with timestamps for delivery at a set time.
    pub const TSBPD_SEND: Self = Self(0x01);
    /// Delivers at the time that timestamps set.
    pub const TSBPD_RECEIVE: Self = Self(0x02);
    /// Knows encryption. libsrt sets it always, passphrase or not.
    pub const CRYPT: Self = Self(0x04);
    /// Gives up packets that are too late.
    pub const TOO_LATE_DROP: Self = Self(0x08);
    /// Repeats NAKs until the packets arrive.
    pub const PERIODIC_NAK: Self = Self(0x10);
    /// Marks retransmitted packets, and so numbers messages with 26 bits.
    pub const RETRANSMIT_FLAG: Self = Self(0x20);
    /// Carries a stream of bytes, not messages.
    pub const STREAM: Self = Self(0x40);
    /// Knows packet filters; says nothing about using one.
    pub const PACKET_FILTER: Self = Self(0x80);
    /// Resumes a stream of bytes with frames after its connection was lost. This implementation's
    /// own, like the next six.
    pub const RESUME: Self = Self(0x0100_0000);
    /// Keeps the boundaries of messages in a stream of bytes by a frame around each.
    pub const FRAMES: Self = Self(0x0200_0000);
    /// Reports in its ACKs how many packets have arrived and how many it gave up, and reads such
    /// reports.
    pub const COUNTED_ARRIVALS: Self = Self(0x0400_0000);
    /// Sends by deadlines: the peer shall ask for each lost packet by a clock of its own, each
    /// time by several copies of one report.
    pub const DEADLINE: Self = Self(0x0800_0000);
    /// Can ask so, and takes loss reports with one timestamp for one.
    pub const TIMED_REQUESTS: Self = Self(0x1000_0000);
    /// Gives each direction an encryption key of its own. This implementation's own: other peers
    /// pass over flags that they do not know, while some refuse a handshake with a block that they
    /// do not.
    pub const OWN_KEYS: Self = Self(0x2000_0000);
    /// Follows a peer whose address changes. This implementation's own: other peers pass over
    /// flags that they do not know, while some refuse a handshake with a block that they do not.
    pub const PATH_UPDATE: Self = Self(0x4000_0000);

    /// The flags in `bits`, unknown ones included.
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// The flags as on the wire.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Whether all flags of `other` are set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// These flags but those of `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The flags set in either.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOr for HsFlags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        self.union(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn live_flags_of_libsrt() {
        let live = HsFlags::TSBPD_SEND
            | HsFlags::TSBPD_RECEIVE
            | HsFlags::CRYPT
            | HsFlags::TOO_LATE_DROP
            | HsFlags::PERIODIC_NAK
            | HsFlags::RETRANSMIT_FLAG
            | HsFlags::PACKET_FILTER;
        assert_eq!(live.bits(), 0xBF);
        assert!(!live.contains(HsFlags::STREAM));
        assert!(live.contains(HsFlags::TSBPD_SEND | HsFlags::TSBPD_RECEIVE));
        assert!(!HsFlags::CRYPT.contains(HsFlags::CRYPT | HsFlags::STREAM));
    }
}
