use std::time::Duration;

use punctual_metrics::{MeterReport, Quantiles};
use punctual_proto::{CloseReason, LinkState, Statistics};
use punctual_units::Instant;

use super::{End, Stream};
use crate::ground::Ground;

/// The outcome of a stream.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StreamOutcome {
    /// Messages that the sending application handed over.
    pub messages_sent: u64,
    /// Payload bytes of those.
    pub bytes_sent: u64,
    /// Messages that a full send buffer refused: a live source does not wait, it loses them.
    /// Refused messages have no number, so that the receiver does not miss them.
    pub messages_refused: u64,
    /// Messages that the receiving application read, whatever was wrong with them.
    pub messages_received: u64,
    /// Payload bytes of those.
    pub bytes_received: u64,
    /// How long the application of a file has been waiting to hand over a due message.
    pub behind: Duration,
    /// The sending end's statistics; all zero for a bare UDP stream. Those of a group count each
    /// message once, and the links' have the rest.
    pub sender: Statistics,
    /// The receiving end's statistics; all zero for a bare UDP stream.
    pub receiver: Statistics,
    /// The links of a group, in the order of their definition; of other streams none.
    pub links: Vec<LinkOutcome>,
    /// Number of times that another link took over in a backup group.
    pub switches: u64,
    /// How the stream arrived, over the whole run; minimum, maximum and delay factor too. Times are
    /// the world's, so the hosts' clocks have no part in them.
    pub metrics: MeterReport,
    /// From the sending application to the receiving one, each message, microseconds of the world.
    pub latency_us: Quantiles,
    /// Defects of the messages that were read.
    pub integrity: StreamIntegrity,
    /// A sample each period, if the stream was to be recorded.
    pub series: Vec<StreamSample>,
    /// Why the connection ended, by the end that noticed first; `None` while it is established.
    pub closed: Option<CloseReason>,
    /// When the sender could send, since the world's start; `None` if it never could.
    pub connected_at: Option<Duration>,
}

/// A link of a group: its last connection, if it has one.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LinkOutcome {
    /// The state at the sending end; `Gone` until it is called again.
    pub state: LinkState,
    /// Number of calls.
    pub calls: u64,
    /// The sending end's statistics.
    pub sender: Statistics,
    /// The receiving end's statistics.
    pub receiver: Statistics,
}

/// Defects of the messages that an application read. Over SRT everything but `late` is a fault of
/// the protocol; a bare UDP stream shows the duplication and reordering of the links.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct StreamIntegrity {
    /// Messages with other content than was sent, or of another stream.
    pub damaged: u64,
    /// Messages that were read before.
    pub doubled: u64,
    /// Messages read after one that was sent later.
    pub disordered: u64,
    /// Messages read before they were due.
    pub early: u64,
    /// Messages read after they were due.
    pub late: u64,
    /// The greatest lateness of those, after the due time.
    pub late_max: Duration,
}

/// A stream at one moment.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StreamSample {
    /// Time since the stream's `start`.
    pub at: Duration,
    /// Messages that the application handed over so far.
    pub messages_sent: u64,
    /// Messages refused so far.
    pub messages_refused: u64,
    /// The sending end's statistics so far.
    pub sender: Statistics,
    /// The receiving end's statistics so far.
    pub receiver: Statistics,
    /// How the stream arrived: minimum, maximum and delay factor in this period, the rest so far.
    pub metrics: MeterReport,
    /// The greatest lateness of a message of this period, after its due time.
    pub late_max: Duration,
}

impl StreamOutcome {
    /// The outcome of a stream so far.
    pub(crate) fn of(stream: &Stream, ground: &Ground) -> Self {
        let [sender, receiver] = stream.statistics(ground);
        let bond = stream.bond.as_ref();
        Self {
            messages_sent: stream.sending.sent(),
            bytes_sent: stream.sending.sent() * stream.config.payload as u64,
            messages_refused: stream.sending.refused(),
            behind: stream.sending.behind(ground.now()),
            messages_received: stream.receiving.messages,
            bytes_received: stream.receiving.bytes,
            sender,
            receiver,
            links: bond.map(|bond| bond.outcomes(ground)).unwrap_or_default(),
            switches: bond.map_or(0, |it| it.end(End::Sender).group().switches()),
            metrics: stream.receiving.report(),
            latency_us: stream.receiving.latency_us.clone(),
            integrity: stream.receiving.integrity,
            series: stream.series.clone(),
            closed: stream.closed.clone(),
            connected_at: stream.sending.begun().map(|at| at - Instant::ORIGIN),
        }
    }
}

impl StreamSample {
    /// A sample of a stream now, which ends a period of its metrics.
    pub(super) fn take(stream: &mut Stream, ground: &Ground) -> Self {
        let [sender, receiver] = stream.statistics(ground);
        let (metrics, late_max) = stream.receiving.end_period();
        Self {
            at: ground.now() - stream.start(),
            messages_sent: stream.sending.sent(),
            messages_refused: stream.sending.refused(),
            sender,
            receiver,
            metrics,
            late_max,
        }
    }
}
