//! The pace at which files and pipes are read.

use punctual::Bitrate;

/// The pace at which files and pipes are read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pacing {
    /// The pace; `None` for that of the clock in a file of MPEG-TS, and no other.
    pub pace: Option<FilePace>,
    /// Whether a file is repeated.
    pub repeat: bool,
    /// Whether a destination loses what comes faster than it plays.
    pub to_live: bool,
    /// Whether a destination is in the network, to which a transport stream goes in whole packets.
    pub to_network: bool,
    /// The option of the program that sets the pace, which messages name.
    pub option: Option<&'static str>,
}

/// The pace at which a file is sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FilePace {
    /// As fast as possible.
    None,
    /// At the pace of its program clock references.
    Pcr,
    /// At a bit rate.
    Rate(Bitrate),
}
