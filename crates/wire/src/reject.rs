use std::fmt;

/// Why a connection was refused: the number in a rejecting handshake's request type, 1000 and up.
///
/// 1000 to 1999 are the protocol's own reasons; from 2000 an application's: a predefined one (2000 +
/// an HTTP-like number, as in libsrt's access control) or its own from 3000.
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
}

impl fmt::Display for RejectReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rejected with code {}", self.0)
    }
}
