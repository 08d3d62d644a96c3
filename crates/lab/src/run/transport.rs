//! How the streams of a run are carried.

/// How the streams of a run are carried.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct RunTransport {
    /// The carriage of the stream that is observed.
    pub observed: MessageCarriage,
    /// The carriages of the streams that share the links at the same time, one each, the observed
    /// one included. Empty if all streams of the run are carried alike.
    pub together: Vec<MessageCarriage>,
    /// The congestion control of QUIC; `None` for the default of each carriage.
    pub congestion: Option<QuicCongestion>,
}

impl RunTransport {
    /// Bytes of the largest message that each of the streams can carry.
    pub(crate) fn max_payload(&self) -> usize {
        let all = self.together.iter().chain([&self.observed]);
        all.map(|carriage| carriage.max_payload()).min().unwrap_or_default()
    }
}

/// How messages are carried.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum MessageCarriage {
    /// An SRT connection over UDP; the sender calls.
    #[default]
    Srt,
    /// Bare UDP datagrams.
    Udp,
    /// An SRT connection over QUIC; the sender calls.
    SrtOverQuic,
    /// Bare QUIC datagrams; the sender calls.
    Quic,
}

impl MessageCarriage {
    const ALL: [Self; 4] = [Self::Srt, Self::Udp, Self::SrtOverQuic, Self::Quic];

    /// The name in plans.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Srt => "srt",
            Self::Udp => "udp",
            Self::SrtOverQuic => "srt+quic",
            Self::Quic => "quic",
        }
    }

    /// Whether it is SRT, over UDP or over QUIC.
    pub const fn is_srt(self) -> bool {
        matches!(self, Self::Srt | Self::SrtOverQuic)
    }

    /// Whether it needs QUIC.
    pub const fn is_quic(self) -> bool {
        matches!(self, Self::SrtOverQuic | Self::Quic)
    }

    pub(crate) fn names() -> [&'static str; 4] {
        Self::ALL.map(Self::name)
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|carriage| carriage.name() == name)
    }

    const fn max_payload(self) -> usize {
        match self {
            Self::Srt => 1_456,
            Self::Udp => 1_472,
            // The largest UDP payload without the headers of QUIC and, for SRT, those of SRT.
            Self::SrtOverQuic => 1_398,
            Self::Quic => 1_414,
        }
    }
}

/// A congestion control of QUIC.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum QuicCongestion {
    /// No limit.
    None,
    /// CUBIC.
    Cubic,
    /// `NewReno`.
    NewReno,
    /// BBR.
    Bbr,
}

impl QuicCongestion {
    const ALL: [(Self, &'static str); 4] = [
        (Self::None, "none"),
        (Self::Cubic, "cubic"),
        (Self::NewReno, "newreno"),
        (Self::Bbr, "bbr"),
    ];

    pub(crate) fn names() -> [&'static str; 4] {
        Self::ALL.map(|(_, name)| name)
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(_, known)| *known == name).map(|(it, _)| it)
    }
}
