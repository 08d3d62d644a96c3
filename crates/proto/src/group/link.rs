use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use punctual_rtt::Rtt;
use punctual_units::Instant;
use punctual_wire::{MsgNo, SeqNo};

use crate::agreed_time::AgreedTime;
use crate::handshake::Negotiated;
use crate::handshake::membership::GroupTimebase;
use crate::handshake::terms::TimeBase;

/// The longest time from a data packet to its ACK.
const ACK: Duration = Duration::from_millis(10);

/// The ID of a link in its group. A group uses each ID once.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct LinkId(pub(super) u32);

/// The state of a link of a group.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LinkState {
    /// Its connection is not established yet.
    Joining,
    /// It is on standby: only keepalives are sent over it.
    Idle,
    /// It has just begun to carry the stream, and is not known to be stable yet.
    Activating,
    /// It carries the stream, and the peer answers.
    Stable,
    /// It carries the stream, but the peer does not answer over it.
    Unstable,
    /// It carries the stream, and the peer answers again after a silence. It becomes stable if it
    /// answers for some latencies.
    Wary,
    /// Its connection has ended.
    Gone,
}

impl LinkState {
    /// Whether the connection is established.
    pub const fn is_up(self) -> bool {
        !matches!(self, Self::Joining | Self::Gone)
    }

    /// Whether it carries the stream.
    pub const fn is_active(self) -> bool {
        self.is_up() && !matches!(self, Self::Idle)
    }
}

/// A message with its numbers. They are the same on every link; only in a balancing group the
/// sequence number belongs to one link.
#[derive(Clone, Debug)]
pub struct GroupMessage {
    pub(crate) seq: SeqNo,
    pub(crate) msgno: MsgNo,
    pub(crate) origin: Instant,
    pub(crate) expires: Option<Instant>,
    pub(crate) in_order: bool,
    pub(crate) payload: Bytes,
}

/// An action that the driver carries out at a link.
#[derive(Clone, Debug)]
pub enum LinkAction {
    /// Send the message.
    Submit(GroupMessage),
    /// Report [`Event::Writable`](crate::Event::Writable) when the send buffer has room.
    AwaitRoom,
    /// Empty the send buffer, and inform the peer that the link is on standby.
    Silence,
    /// Deliver by the group's time base instead of the link's own.
    Align(GroupTimebase),
    /// Correct the time of deliveries for this drift of the peer's clock, nanoseconds.
    SetDrift(i64),
}

/// The terms of a new link.
#[derive(Clone, Debug)]
pub struct LinkTerms {
    pub(crate) peer_group: u32,
    pub(crate) send_isn: SeqNo,
    pub(crate) receive_isn: SeqNo,
    pub(crate) base: TimeBase,
    pub(crate) receive_latency: AgreedTime,
    pub(crate) peer_latency: AgreedTime,
    pub(crate) max_payload: usize,
    /// Bytes of the headers of a packet on its path.
    pub(crate) packet_overhead: usize,
}

impl LinkTerms {
    /// The terms of a connection with this room and overhead of a packet; `None` if it is no link.
    pub(crate) fn new(
        negotiated: &Negotiated,
        max_payload: usize,
        packet_overhead: usize,
    ) -> Option<Self> {
        Some(Self {
            peer_group: negotiated.peer_group?,
            send_isn: negotiated.fixed.send_isn,
            receive_isn: negotiated.fixed.receive_isn,
            base: negotiated.fixed.base,
            receive_latency: negotiated.latency.receive.clone(),
            peer_latency: negotiated.latency.peer.clone(),
            max_payload,
            packet_overhead,
        })
    }
}

/// The status of a link.
#[derive(Clone, Debug)]
pub struct LinkStatus {
    /// All numbers before this one have been acknowledged over this link.
    pub(crate) acknowledged: SeqNo,
    /// When the last ACK or NAK came from the peer.
    pub(crate) last_response: Instant,
    /// Since when there have always been unacknowledged packets; `None` if there are none.
    pub(crate) waiting_since: Option<Instant>,
    /// The number of further messages that fit the send buffer.
    pub(crate) room: usize,
    /// The largest payload that the path carries now, bytes.
    pub(crate) max_payload: usize,
    pub(crate) rtt: Rtt,
    /// The link's estimate of the drift of the peer's clock, nanoseconds.
    pub(crate) drift: i64,
}

impl LinkStatus {
    /// When the link becomes unstable unless the peer answers; `None` if no data waits for an ACK.
    pub(super) fn silent_at(&self, min_stability: Duration, latency: Duration) -> Option<Instant> {
        // Messages that another link repeats must still arrive in time. libsrt waits for a whole
        // latency at most.
        let in_time = latency.saturating_sub(self.rtt.smoothed + ACK);
        let most = in_time.max(min_stability);
        let usual = self.rtt.smoothed * 2 + self.rtt.variance * 4;
        let since = self.waiting_since?.max(self.last_response);
        Some(since + usual.clamp(min_stability, most))
    }
}

/// The links of a group.
pub(super) type Links = BTreeMap<LinkId, Link>;
/// The actions for the group's driver, in order.
pub(super) type Actions = VecDeque<(LinkId, LinkAction)>;

/// The group's record of a link.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) weight: u16,
    pub(super) state: LinkState,
    /// When the state began.
    pub(super) since: Instant,
    /// The sequence number of the next message for this link.
    pub(super) cursor: SeqNo,
    /// While the link catches up with the stream: when it gets the next message.
    pub(super) catch_up: Option<Instant>,
    /// Whether the link has ever got a message. Before that its acknowledged number means nothing:
    /// it is the position of the stream when the link was made.
    pub(super) used: bool,
    pub(super) max_payload: usize,
    pub(super) status: Option<LinkStatus>,
}

impl Link {
    pub(super) fn new(weight: u16) -> Self {
        Self {
            weight,
            state: LinkState::Joining,
            since: Instant::ORIGIN,
            cursor: SeqNo::default(),
            catch_up: None,
            used: false,
            max_payload: 0,
            status: None,
        }
    }

    /// The last status, if the link is established.
    pub(super) fn up_status(&self) -> Option<&LinkStatus> {
        self.status.as_ref().filter(|_| self.state.is_up())
    }

    /// Whether its send buffer has room for a message.
    pub(super) fn has_room(&self) -> bool {
        self.status.as_ref().is_none_or(|status| status.room > 0)
    }

    pub(super) fn enter(&mut self, now: Instant, state: LinkState) {
        if self.state != state {
            self.state = state;
            self.since = now;
        }
    }
}
