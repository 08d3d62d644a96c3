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
    /// Application: a key of the stream ID is not supported.
    pub const KEY_NOT_SUPPORTED: Self = Self(2001);
    /// Application: bad path or file name.
    pub const FILE_PATH: Self = Self(2002);
    /// Application: no such host.
    pub const HOST_NOT_FOUND: Self = Self(2003);
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
    /// Application: the stream cannot be used in this mode, to send or to receive.
    pub const BAD_MODE: Self = Self(2405);
    /// Application: what was asked for cannot be given as it was asked for.
    pub const UNACCEPTABLE: Self = Self(2406);
    /// Application: another user has the stream, say as its sender.
    pub const CONFLICT: Self = Self(2409);
    /// Application: the media type is not supported.
    pub const UNSUPPORTED_MEDIA: Self = Self(2415);
    /// Application: the stream is locked.
    pub const LOCKED: Self = Self(2423);
    /// Application: what the stream depends on failed.
    pub const FAILED_DEPENDENCY: Self = Self(2424);
    /// Application: internal error of the server.
    pub const SERVER_ERROR: Self = Self(2500);
    /// Application: the server does not know how.
    pub const NOT_IMPLEMENTED: Self = Self(2501);
    /// Application: a server behind this one failed.
    pub const BAD_GATEWAY: Self = Self(2502);
    /// Application: out of service for the time being.
    pub const UNAVAILABLE: Self = Self(2503);
    /// Application: a server behind this one, or whoever decides, did not answer in time.
    pub const GATEWAY_TIMEOUT: Self = Self(2504);
    /// Application: the version is not supported by the server.
    pub const VERSION_NOT_SUPPORTED: Self = Self(2505);
    /// Application: no room for the stream.
    pub const NO_ROOM: Self = Self(2507);

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

    /// The meaning of the number, in words.
    const fn meaning(self) -> &'static str {
        match self.0 {
            1000 => "refused without a reason",
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
            code if code >= 2000 => "refused by the application, for a reason that has no name",
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

    #[test]
    fn every_defined_number_has_words_of_its_own() {
        let predefined = [
            2000..=2003,
            2400..=2406,
            2409..=2409,
            2415..=2415,
            2423..=2424,
            2500..=2505,
            2507..=2507,
        ];
        let defined = (1000..=1017).chain(predefined.into_iter().flatten());
        let mut words: Vec<&str> =
            defined.map(|code| RejectReason::from_wire(code).unwrap().meaning()).collect();
        assert!(words.iter().all(|words| *words != "unknown reason" && !words.contains("no name")));
        let count = words.len();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), count);
    }
}
