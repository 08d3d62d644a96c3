use std::fmt;

/// Why a connection was refused: the number in a rejecting handshake's request type, 1000 and up.
///
/// 1000 to 1999 are the protocol's own reasons; from 2000 an application's: a predefined one (2000
/// + an HTTP-like number, as in libsrt's access control) or its own from 3000.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct RejectReason(u32);

impl RejectReason {
    /// No reason known.
    pub const UNKNOWN: Self = Self(1000);
    /// The system refused something.
    pub const SYSTEM: Self = Self(1001);
    /// The peer refused.
    pub const PEER: Self = Self(1002);
    /// Out of resources.
    pub const RESOURCE: Self = Self(1003);
    /// The handshake is malformed.
    pub const ROGUE: Self = Self(1004);
    /// The listener's backlog is full.
    pub const BACKLOG: Self = Self(1005);
    /// Internal error.
    pub const INTERNAL: Self = Self(1006);
    /// The listener is closing.
    pub const CLOSE: Self = Self(1007);
    /// The peer's version is too old.
    pub const VERSION: Self = Self(1008);
    /// Rendezvous cookies collide.
    pub const RENDEZVOUS_COOKIE: Self = Self(1009);
    /// Wrong passphrase.
    pub const BAD_SECRET: Self = Self(1010);
    /// One side wants encryption, the other not.
    pub const UNSECURE: Self = Self(1011);
    /// Message and stream mode do not mix.
    pub const MESSAGE_API: Self = Self(1012);
    /// Different congestion controls.
    pub const CONGESTION: Self = Self(1013);
    /// Packet filters do not fit.
    pub const FILTER: Self = Self(1014);
    /// Groups do not fit.
    pub const GROUP: Self = Self(1015);
    /// No answer in time. Local: never on the wire.
    pub const TIMEOUT: Self = Self(1016);
    /// Different cipher modes.
    pub const CRYPTO: Self = Self(1017);
    /// The application refused without saying why.
    pub const FALLBACK: Self = Self(2000);
    /// Application: bad request.
    pub const BAD_REQUEST: Self = Self(2400);
    /// Application: unauthorized.
    pub const UNAUTHORIZED: Self = Self(2401);
    /// Application: overload.
    pub const OVERLOAD: Self = Self(2402);
    /// Application: forbidden.
    pub const FORBIDDEN: Self = Self(2403);
    /// Application: no such stream.
    pub const NOT_FOUND: Self = Self(2404);

    /// The reason with this number on the wire, or `None` below 1000.
    pub const fn from_wire(code: u32) -> Option<Self> {
        if code >= 1000 && code <= 0x7FFF_FFFF { Some(Self(code)) } else { None }
    }

    /// An application's reason, numbered as in libsrt's API (1000 and up): 1404 is "not found".
    pub const fn from_api(code: u32) -> Option<Self> {
        if code >= 1000 && code <= 0x7FFF_0000 { Some(Self(code + 1000)) } else { None }
    }

    /// The number on the wire.
    pub const fn code(self) -> u32 {
        self.0
    }

    /// What the number says, in words.
    const fn meaning(self) -> &'static str {
        match self.0 {
            1001 => "a system call failed",
            1002 => "the peer refused",
            1003 => "out of resources",
            1004 => "malformed handshake",
            1005 => "the listener's backlog is full",
            1006 => "internal error",
            1007 => "the listener is closing",
            1008 => "unsupported version",
            1009 => "rendezvous cookies collide",
            1010 => "wrong passphrase",
            1011 => "one side wants encryption, the other does not",
            1012 => "one side is in message mode, the other in stream mode",
            1013 => "different congestion controls",
            1014 => "packet filters do not fit",
            1015 => "groups do not fit",
            1016 => "no answer in time",
            1017 => "different cipher modes",
            2000 => "refused by the application",
            2001 => "a key of the stream ID is not supported",
            2002 => "bad path or file name",
            2003 => "no such host",
            2400 => "bad request",
            2401 => "unauthorized",
            2402 => "overload",
            2403 => "forbidden",
            2404 => "no such stream",
            2405 => "mode not supported",
            2406 => "not acceptable",
            2409 => "conflict with another user of the stream",
            2415 => "media type not supported",
            2423 => "locked",
            2424 => "failed dependency",
            2500 => "internal error of the server",
            2501 => "not implemented by the server",
            2502 => "bad gateway",
            2503 => "service unavailable",
            2504 => "gateway timed out",
            2505 => "version not supported by the server",
            2507 => "no room for the stream",
            3000.. => "refused by the application, for a reason of its own",
            _ => "unknown reason",
        }
    }
}

impl fmt::Display for RejectReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (rejection code {})", self.meaning(), self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_the_api_are_1000_less() {
        assert_eq!(RejectReason::from_api(1404), Some(RejectReason::NOT_FOUND));
        assert_eq!(RejectReason::from_api(1000), Some(RejectReason::FALLBACK));
        assert_eq!(RejectReason::from_api(999), None);
        assert_eq!(RejectReason::from_api(u32::MAX), None);
    }

    #[test]
    fn numbers_on_the_wire_start_at_1000() {
        assert_eq!(RejectReason::from_wire(999), None);
        assert_eq!(RejectReason::from_wire(1000), Some(RejectReason::UNKNOWN));
        assert_eq!(RejectReason::from_wire(0xFFFF_FFFF), None);
    }

    #[test]
    fn shows_meaning_and_number() {
        let shown = |code| RejectReason::from_wire(code).unwrap().to_string();
        assert_eq!(shown(2404), "no such stream (rejection code 2404)");
        assert_eq!(shown(1500), "unknown reason (rejection code 1500)");
    }
}
