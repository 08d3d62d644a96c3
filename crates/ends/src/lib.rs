//! The ends of streams, and what carries a stream from one to others.
//!
//! An [`Opener`] opens the end that a URI names, one [`Connection`] after the other: SRT, UDP, RTP,
//! TCP, a file or a pipe. A connection has a [`Reader`] and a [`Writer`] of messages. [`route`] has
//! the parts that carry messages from a source to several destinations: the fan-out, spools for
//! slow destinations, viewers of a listener, streams that outlive their connections.
//!
//! The user of these parts decides what is carried where, and how the state is shown: a
//! [`RouteObserver`](route::RouteObserver) sees each connection. The crate logs by `tracing`, and
//! writes only to the files that it is given.

#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "sockets and files need clocks and locks"
)]

mod end;
mod failure;
pub mod route;
mod stop;
mod stream_ids;
mod streams;
mod tries;

pub use end::{
    Connection, EndLog, Existing, FilePace, MessageTraffic, Observed, Opener, Pacing,
    PortTransport, Reader, RecordingPlace, ResumedStream, Role, Row, SrtEnd, SrtWriter, StatsEnd,
    Writer, cannot_bind, check_arrival, check_loop, end_stream, is_live, reaches, resolve, srt,
};
pub use failure::{Failure, FailureKind};
pub use stop::Stop;
pub use stream_ids::AllowedStreamIds;
pub use streams::{ConnectionLimits, Streams, carry_all};
pub use tries::Tries;
