use std::time::Duration;

use punctual_units::Bitrate;
use thiserror::Error;

use crate::ids::HostId;

/// Something that cannot be put into a world.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum WorldError {
    /// A route without a link would take no time at all.
    #[error("a route needs at least one link")]
    EmptyRoute,
    /// A route leads over too many links.
    #[error("a route of {0} links is too long; it may have up to 255")]
    LongRoute(usize),
    /// The hosts of a stream are not joined.
    #[error("there is no route from {from:?} to {to:?}; set_route makes one")]
    NoRoute {
        /// Where the packets start.
        from: HostId,
        /// Where they are to go.
        to: HostId,
    },
    /// A host does not stream to itself.
    #[error("a stream leads from one host to another, not from {0:?} to itself")]
    SameHost(HostId),
    /// A message of this size cannot be sent.
    #[error("a message of {payload} bytes cannot be sent; it must have {min} to {max} bytes")]
    Payload {
        /// Bytes of the payload.
        payload: usize,
        /// Bytes of the shortest message, which can be told from others and checked.
        min: usize,
        /// Bytes of the longest message.
        max: usize,
    },
    /// A port accepts connections of one kind.
    #[error("{0:?} is called by a stream of another transmission; each needs a separate host")]
    Transmission(HostId),
    /// One end of a stream is live and the other a file, or a group is to carry a file.
    #[error("both ends of a stream must have the same transmission, and those of a group be live")]
    Ends,
    /// The hosts of a stream do not carry it.
    #[error(
        "{0:?} and {1:?} do not carry the stream; both need the same carriage: SRT over UDP or \
         over QUIC for SRT, QUIC for messages over bare QUIC"
    )]
    Carriage(HostId, HostId),
    /// Two hosts have a stream over bare QUIC already.
    #[error("{0:?} and {1:?} have a stream over bare QUIC already; each needs separate hosts")]
    SharedQuic(HostId, HostId),
    /// The links of a group end at two clocks, which one machine does not have.
    #[error("{0:?} and {1:?} are ports of one end of a group and must have the same clock")]
    Clocks(HostId, HostId),
    /// Statistics cannot be written down without a pause.
    #[error("the period of a series must be longer than zero")]
    ZeroPeriod,
    /// Nothing is sent that fast.
    #[error("a stream of {0} is too fast; its rate must be less than 1 Tb/s")]
    Rate(Bitrate),
    /// A rate schedule's times must rise.
    #[error("the step at {0:?} of a rate schedule does not come after the one before it")]
    StepOrder(Duration),
    /// A clock whose rate is zero or negative.
    #[error("a clock's drift is {0} ppm; it must lie within -100000 to 100000 ppm")]
    Drift(i32),
    /// A packet of this size cannot be sent as cross traffic.
    #[error("a packet of cross traffic has {0} bytes; it must have 40 to 65535")]
    TrafficPacket(u16),
    /// A packet of this size has no room for data of TCP.
    #[error("a TCP packet has {0} bytes; it must have 53 to 65535, of which 52 are headers")]
    TcpPacket(u16),
    /// On-off traffic that never is on, or never off.
    #[error("on and off must both last longer than zero on average")]
    ZeroPhase,
}
