//! The receiving half of a connection: from data packets to messages at their time, and the ACKs
//! and NAKs that the sender needs.

pub(crate) mod ack;
mod announced_drops;
pub(crate) mod buffer;
mod counts;
mod delivery;
pub(crate) mod drift;
mod earliness;
mod group_bypass;
mod jump;
mod messages;
mod missing;
pub(crate) mod nak_policy;
mod nak_scheduler;
mod nak_timers;
mod playout;
mod quick_ack;
pub(crate) mod reorder_tolerance;
mod reordering_estimator;
mod response_time;
mod store;
mod timing;
pub(crate) mod tsbpd;
mod unreadable;
mod window;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use punctual_rtt::Rtt;
use punctual_units::Instant;
use punctual_wire::{
    Ack, AckArrivals, AckLink, AckNo, AckRates, DataHeader, DropRequest, LossListBuilder,
    NewestArrival, SeqNo, Timestamp,
};

use self::ack::{AckKind, AckState, Reports};
use self::announced_drops::AnnouncedDrops;
use self::buffer::{Insert, Stored};
use self::counts::ReceiveCounts;
use self::group_bypass::GroupBypass;
use self::jump::{Arrived, JumpDetector, JumpKind, StreamView};
use self::missing::Missing;
use self::nak_scheduler::NakScheduler;
use self::quick_ack::QuickAcks;
use self::store::{HeldPackets, ReceiveStore};
use self::timing::Timing;
use self::unreadable::Unreadable;
use crate::config::Config;
use crate::crypt::Refusal;
use crate::event::Message;
use crate::filter::Arq;
use crate::handshake::Negotiated;
use crate::handshake::membership::GroupTimebase;
use crate::measured_path::ReceivedPath;
use crate::path::Path;
use crate::probe_pairs::capacity;
use crate::statistics::Statistics;
use crate::wake_up::WakeUp;

/// A gap of at least this size counts only when a second packet confirms it.
const SUSPICIOUS_GAP: u32 = 64;
/// Bytes that a packet takes beside its payload: its place in a ring, and its allocation.
pub(crate) const PACKET: u64 = 128;
/// For this time after a packet that could be decrypted, one that cannot has no effect.
const READABLE: Duration = Duration::from_secs(1);

/// A stream pauses when no original comes for twice the usual time between two of them: at least
/// for this time, and at most for a quarter of the latency, so that time for retransmissions is
/// left.
const LEAST_PAUSE: Duration = Duration::from_millis(20);
const LATENCY_OF_PAUSE: u32 = 4;

#[derive(Debug)]
pub(crate) struct ReceiveHalf {
    store: ReceiveStore,
    /// When messages are due.
    timing: Timing,
    /// The messages of a link of a balancing group, which gets each as soon as it arrives.
    bypass: Option<Box<GroupBypass>>,
    naks: NakScheduler,
    acks: AckState,
    /// For files.
    quick_acks: Option<QuickAcks>,
    path: ReceivedPath,
    /// Bytes of the headers of a packet, for the reported rate and for statistics.
    overhead: usize,
    /// The instant at which the connection began.
    started: Instant,
    jumps: JumpDetector,
    /// Packets after the newest one that the sender has dropped.
    drops: AnnouncedDrops,
    unreadable: Unreadable,
    counts: ReceiveCounts,
}

impl ReceiveHalf {
    pub(crate) fn new(config: &Config, negotiated: &Negotiated, path: &Path, now: Instant) -> Self {
        let store = ReceiveStore::new(config, negotiated);
        let full_payload = config.payload_size();
        let is_file = store.delivery().is_file();
        Self {
            store,
            timing: Timing::new(config, negotiated),
            bypass: None,
            naks: NakScheduler::new(config, negotiated, now),
            acks: AckState::new(negotiated.fixed.receive_isn, now, Reports::of(config, negotiated)),
            quick_acks: is_file.then(|| QuickAcks::new(path, negotiated.fixed.mss)),
            path: match is_file {
                true => ReceivedPath::of_file(full_payload),
                false => ReceivedPath::of_live(full_payload),
            },
            overhead: path.properties.packet_overhead(),
            started: now,
            jumps: JumpDetector::default(),
            drops: AnnouncedDrops::default(),
            unreadable: Unreadable::default(),
            counts: ReceiveCounts::default(),
        }
    }

    /// Applies the options that may change while the connection runs.
    pub(crate) fn configure(&mut self, config: &Config, negotiated: &Negotiated) {
        self.timing.trace_clock(config.drift_tracer());
        self.naks.set_reorder_tolerance(config, negotiated);
    }

    /// The properties of the path have changed.
    pub(crate) fn follow_path(&mut self, path: &Path) {
        self.overhead = path.properties.packet_overhead();
        if let Some(acks) = &mut self.quick_acks {
            acks.follow_path(path);
        }
    }

    /// A data packet arrived; the packet before it, of any kind, arrived at `heard_before`. Returns
    /// whether a timer may have changed, or an answer is due.
    #[inline(always)]
    pub(crate) fn handle_data(
        &mut self,
        now: Instant,
        heard_before: Instant,
        header: &DataHeader,
        payload: Bytes,
        rtt: Rtt,
    ) -> bool {
        self.counts.arrived(payload.len(), header.retransmitted);
        self.naks.note_arrival(heard_before);
        self.take_in(now, header, payload, rtt)
    }

    /// A packet arrived, and was ignored.
    pub(crate) const fn ignore(&mut self) {
        self.counts.ignored(1);
    }

    /// Bytes of the packets that wait for the application, with what each takes beside its payload.
    pub(crate) fn held(&self) -> u64 {
        let HeldPackets { packets, bytes } = self.store.held();
        bytes + packets as u64 * PACKET + self.jumps.packets() * (PACKET + 1_456)
    }

    /// A packet of the peer's filter arrived.
    pub(crate) fn handle_filter_packet(&mut self, payload: usize) {
        self.counts.arrived(payload, false);
        self.counts.filter_extra();
        self.path.disturbed();
    }

    /// The filter rebuilt a lost packet.
    #[cold]
    pub(crate) fn handle_rebuilt(
        &mut self,
        now: Instant,
        header: &DataHeader,
        payload: Bytes,
        rtt: Rtt,
    ) {
        self.counts.rebuilt();
        self.take_in(now, header, payload, rtt);
    }

    /// The filter did not rebuild some packets in time: a NAK reports them, if both ends agreed on
    /// that. They are dropped if both ends agreed on no retransmissions and TLPKTDROP is off: the
    /// stream would wait for them without end, as libsrt's does.
    pub(crate) fn handle_filter_loss(&mut self, now: Instant, first: SeqNo, last: SeqNo, rtt: Rtt) {
        let most = self.store.window().last();
        let last = if last.is_after(most) { most } else { last };
        if last.is_before(first) {
            return;
        }
        self.counts.filter_lost(last.distance_from(first).unsigned_abs() + 1);
        match self.naks.arq() {
            Arq::OnRequest => {
                let missing = self.store.missing(&self.timing);
                self.naks.report(now, (first, last), missing, rtt);
            }
            Arq::Never if !self.timing.drops_too_late() && !self.keeps_all() => {
                self.forgo(first, last);
            }
            Arq::Always | Arq::Never => {}
        }
    }

    /// When the stream counts as paused if no original comes; `None` if no packet is missing.
    pub(crate) fn pauses_at(&self, now: Instant) -> Option<Instant> {
        if self.missing().is_empty() {
            return None;
        }
        let latency = self.timing.latency().unwrap_or_default();
        let most = (latency / LATENCY_OF_PAUSE).max(LEAST_PAUSE);
        let pause = (self.path.usual_pause() * 2).clamp(LEAST_PAUSE, most);
        Some(self.path.newest_arrival().unwrap_or(now) + pause)
    }

    /// Takes in a data packet that arrived or was rebuilt.
    #[inline(always)]
    fn take_in(&mut self, now: Instant, header: &DataHeader, payload: Bytes, rtt: Rtt) -> bool {
        let place = self.store.delivery().part(header);
        if self.is_of_file() {
            self.note_file_packet(now, header, payload.len());
        }
        let time = self.timing.plausible_time(now, header.timestamp);
        let stored = Stored { payload, time, place };
        let window = self.store.window();
        let gap = header.seq.distance_from(window.end());
        if !(0..SUSPICIOUS_GAP.cast_signed()).contains(&gap)
            && self.stream().excludes(now, header, &stored)
        {
            let packet = Arrived { seq: header.seq, retransmitted: header.retransmitted, stored };
            self.take_candidate(now, packet, rtt);
            return true;
        }
        if gap >= 0 && self.jumps.is_undecided() && !header.retransmitted {
            self.counts.ignored(self.jumps.discard());
        }
        let joins = gap == 0 && window.has_place_for(header.seq) && self.only_waits();
        // A NAK that waits already needs no further notice.
        let waited = joins && !self.missing().is_empty() && self.naks.is_due();
        self.store(now, header.seq, header.retransmitted, stored, rtt);
        !joins || !waited && self.has_feedback()
    }

    /// Measures the rates of a file, and whether the packet is acknowledged at once.
    #[inline(never)]
    fn note_file_packet(&mut self, now: Instant, header: &DataHeader, payload: usize) {
        self.path.file_packet_arrived(now, header, payload);
        if let Some(acks) = &mut self.quick_acks {
            acks.arrived(payload);
        }
    }

    /// Whether a packet that ends a message or a piece of a stream has arrived and moved the
    /// acknowledgement since the last call.
    pub(crate) fn take_quick_ack(&mut self) -> bool {
        self.quick_acks.as_mut().is_some_and(QuickAcks::take)
            && self.acks.is_news(self.store.acknowledged())
    }

    /// A data packet arrived that cannot be decrypted. Returns whether an answer may be due.
    pub(crate) fn refuse(
        &mut self,
        now: Instant,
        header: &DataHeader,
        payload: usize,
        why: Refusal,
    ) -> bool {
        self.counts.arrived(payload, header.retransmitted);
        self.turn_away(now, header, payload, why)
    }

    /// The filter rebuilt a packet that cannot be decrypted.
    #[cold]
    pub(crate) fn refuse_rebuilt(
        &mut self,
        now: Instant,
        header: &DataHeader,
        payload: usize,
        why: Refusal,
    ) {
        self.counts.rebuilt();
        self.turn_away(now, header, payload, why);
    }

    fn turn_away(
        &mut self,
        now: Instant,
        header: &DataHeader,
        payload: usize,
        why: Refusal,
    ) -> bool {
        self.counts.undecrypted(payload);
        match why {
            Refusal::NotAuthentic => self.counts.not_authentic(),
            Refusal::NotReadable => {}
            Refusal::NoKeys => return self.give_up_unreadable(now, header.seq),
        }
        false
    }

    /// Without a key this packet and those before it can never be decrypted, so none of them needs
    /// a retransmission. A large gap counts only when a second packet confirms it.
    fn give_up_unreadable(&mut self, now: Instant, seq: SeqNo) -> bool {
        let heard = self.path.newest_arrival();
        if heard.is_some_and(|at| now < at + READABLE) {
            // Packets that can be decrypted continue to arrive: this one was forged.
            return false;
        }
        let window = self.store.window();
        let gap = seq.distance_from(window.end());
        if gap >= SUSPICIOUS_GAP.cast_signed() {
            if !self.unreadable.confirms(seq, SUSPICIOUS_GAP) {
                return false;
            }
            if window.is_beyond_room(seq) && self.is_empty() {
                self.jump_ahead(now, seq);
            }
        }
        let first = if gap > 0 { self.store.window().end() } else { seq };
        let given_up = self.store.give_up(first, seq);
        self.counts.dropped(u64::from(given_up.saturating_sub(1)));
        given_up > 0
    }

    /// Whether the next packet in order moves no timer: other packets wait for delivery before it,
    /// and it changes neither the next ACK nor the missing packets.
    fn only_waits(&self) -> bool {
        let missing = self.missing();
        let unmoved = if missing.is_empty() {
            self.acks.counts_down(self.store.window().end())
        } else {
            self.acks.counts_arrivals_down() && missing.are_passed()
        };
        unmoved && !self.is_empty() && self.naks.next_ripe().is_none() && !self.is_of_file()
    }

    /// Counts a control packet that was sent at `timestamp`; `rtt` is the latest sample.
    pub(crate) fn trace_drift(
        &mut self,
        now: Instant,
        timestamp: Timestamp,
        rtt: Option<Duration>,
    ) {
        self.timing.trace_drift(now, timestamp, rtt);
    }

    /// The drift of the peer's clock that this connection traced, nanoseconds.
    pub(crate) fn traced_drift(&self) -> i64 {
        self.timing.traced_drift()
    }

    /// The connection is a link of a group, which sets the correction for the drift from now on;
    /// now it is `nanos`.
    pub(crate) const fn share_drift(&mut self, nanos: i64) {
        self.timing.share_drift(nanos);
        self.counts.is_link(false);
    }

    pub(crate) const fn set_drift(&mut self, nanos: i64) {
        self.timing.set_drift(nanos);
    }

    /// Delivers by the time base of a group from now on, including the packets in the buffer.
    pub(crate) fn align(&mut self, timebase: &GroupTimebase) {
        self.timing.align(timebase);
    }

    /// The sender has dropped these packets. The missing ones among them are dropped here, too;
    /// numbers after the newest packet are remembered until a packet after them arrives. Returns
    /// `false` if the message cannot be true.
    pub(crate) fn handle_drop_request(&mut self, request: &DropRequest) -> bool {
        let DropRequest { first, last, .. } = *request;
        let most = self.store.window().last();
        let is_far = last.is_after(most);
        let stream = self.store.delivery().is_stream();
        if last.is_before(first) || is_far && !self.accepts_out_of_window(request) || stream {
            return false;
        }
        if self.is_of_file() {
            // Its sender may not send a packet after them before they are acknowledged.
            let count = self.store.give_up(first, if is_far { most } else { last });
            self.counts.dropped(u64::from(count));
            return true;
        }
        self.forgo(first, last)
    }

    /// Drops the missing packets from `first` to `last`, now or when a packet after them arrives.
    /// Returns `false` if there is no room to remember that.
    fn forgo(&mut self, first: SeqNo, last: SeqNo) -> bool {
        let window = self.store.window();
        let count = self.store.give_up(first, window.up_to_newest(last));
        self.counts.given_up(count.into(), true);
        let end = window.end();
        if last.is_before(end) {
            return true;
        }
        self.drops.note(if first.is_before(end) { end } else { first }, last)
    }

    /// Whether a DROPREQ beyond the room may come from an honest sender: while its messages were
    /// lost, the sender of a file may have dropped more packets than there is room for. Its message
    /// begins at the acknowledgement, and is repeated from there until this end has followed.
    fn accepts_out_of_window(&self, request: &DropRequest) -> bool {
        self.keeps_all() && request.first == self.store.acknowledged()
    }

    /// An ACKACK arrived. Returns the round-trip time, if its ACK had none yet.
    pub(crate) fn handle_ack_ack(&mut self, now: Instant, number: AckNo) -> Option<Duration> {
        self.acks.acknowledged(now, number)
    }

    /// The next message if it is due at `due_by`, or else the instant of
    /// [`next_delivery`](Self::next_delivery).
    pub(crate) fn recv(&mut self, now: Instant, due_by: Instant) -> Result<Message, WakeUp> {
        self.store.recv(now, due_by, &self.timing, &mut self.counts)
    }

    /// The due time of the packet at the front; never if there is no packet or one before it is
    /// missing.
    pub(crate) fn next_delivery(&mut self) -> WakeUp {
        self.store.next_delivery(&self.timing)
    }

    /// The due time of the second live message, unless it is due at `now` already.
    pub(crate) fn second_delivery_after(&self, now: Instant) -> Option<Instant> {
        self.store.second_delivery_after(now, &self.timing)
    }

    /// Whether nothing is left to be delivered after `recv` has found nothing.
    pub(crate) fn is_drained(&self) -> bool {
        self.is_empty() || self.keeps_all()
    }

    /// Whether a file is incomplete: packets are missing or wait for missing ones.
    pub(crate) fn is_truncated(&self) -> bool {
        let whole = self.is_empty() && self.missing().is_empty();
        self.keeps_all() && !whole
    }

    /// The deadline of missing packets: a packet after them is due then.
    pub(crate) fn next_skip(&self) -> Option<Instant> {
        self.missing().next_skip().map(|(_, at)| at)
    }

    /// Drops the packets that are missing before packets that are due.
    pub(crate) fn skip_late(&mut self, now: Instant) {
        while let Some((behind, at)) = self.missing().next_skip()
            && at <= now
        {
            self.drop_missing(behind.minus(1));
        }
    }

    /// Drops all packets that are missing up to `last`, which lies before the newest packet.
    fn drop_missing(&mut self, last: SeqNo) {
        let dropped = self.store.give_up(self.store.acknowledged(), last);
        self.counts.dropped(dropped.into());
    }

    /// The peer has closed the connection: all missing packets are dropped. Of a file, packets
    /// after a missing one are not delivered.
    pub(crate) fn end(&mut self) {
        if !self.keeps_all() {
            self.drop_missing(self.store.window().end().minus(1));
        }
    }

    /// The instant at which the ACK timer expires, if an ACKACK takes `wait` at most.
    pub(crate) fn next_ack(&self, now: Instant, wait: Duration) -> Option<Instant> {
        self.acks.due(now, self.store.acknowledged(), wait)
    }

    /// Whether an ACK has to be sent before its timer: the buffer was full and has room again.
    pub(crate) fn ack_is_urgent(&self) -> bool {
        self.acks.frees(self.store.window().room())
    }

    /// The full or small ACK, or the report, that is due now, if an ACKACK takes `wait` at most.
    pub(crate) fn make_ack(&mut self, now: Instant, rtt: Rtt, wait: Duration) -> Ack {
        let next = self.store.acknowledged();
        let room = self.store.window().room();
        let given_up = self.counts.never_delivered();
        let (number, kind) = self.acks.send(now, next, room, given_up, wait);
        self.counts.ack_sent();
        let link = AckLink {
            rtt_us: micros(rtt.smoothed),
            rtt_var_us: micros(rtt.variance),
            free_buffer: room,
        };
        match kind {
            AckKind::Small => Ack::Small { number, next, link },
            AckKind::Full | AckKind::Report => {
                let packets_per_sec = self.path.packets_per_sec();
                let bytes = u64::from(packets_per_sec)
                    * (self.counts.mean_payload() + self.overhead as u64);
                let rates = AckRates {
                    packets_per_sec,
                    capacity_pps: self.path.capacity(),
                    bytes_per_sec: Some(u32::try_from(bytes).unwrap_or(u32::MAX)),
                };
                let arrivals = self.acks.reported_rtt().map(|latest_rtt| AckArrivals {
                    packets: self.counts.arrivals(),
                    latest_rtt_us: micros(latest_rtt),
                    given_up: Some(given_up),
                    newest: self.newest_arrival(now).filter(|_| self.acks.tell_newest()),
                });
                Ack::Full { number, next, link, rates, arrivals }
            }
        }
    }

    /// The newest original, as it is reported at `now`.
    fn newest_arrival(&self, now: Instant) -> Option<NewestArrival> {
        let (seq, at) = self.path.newest()?;
        Some(NewestArrival { seq, delay_us: micros(now.saturating_since(at)) })
    }

    /// The light ACK, if one is due.
    pub(crate) fn take_light_ack(&mut self) -> Option<Ack> {
        self.acks.take_light().then(|| Ack::Light { next: self.store.acknowledged() })
    }

    /// Whether a light ACK or a loss report waits to be sent.
    pub(crate) fn has_feedback(&self) -> bool {
        self.acks.light_is_due() || self.naks.is_due()
    }

    /// The NAK that is due, of at most `max_words` words.
    pub(crate) fn take_nak(
        &mut self,
        now: Instant,
        max_words: usize,
        rtt: Rtt,
    ) -> Option<LossListBuilder> {
        let missing = self.store.missing(&self.timing);
        self.naks.take(now, max_words, missing, rtt)
    }

    /// The copy of a NAK that is due, and the instant of the NAK: the copy is the same datagram.
    pub(crate) fn take_nak_copy(
        &mut self,
        now: Instant,
    ) -> Option<(Instant, Arc<LossListBuilder>)> {
        self.naks.take_copy(now)
    }

    /// Whether the copy of a NAK is due.
    pub(crate) fn nak_copy_is_due(&self, now: Instant) -> bool {
        self.naks.copy_is_due(now)
    }

    /// The instant of the next NAK by a timer, unless a packet triggers it earlier.
    pub(crate) fn next_nak(&self, now: Instant, rtt: Rtt) -> Option<Instant> {
        self.naks.next(now, rtt)
    }

    /// A packet of any kind was processed. Returns whether it triggers a periodic NAK.
    pub(crate) fn look_at_nak_timer(&mut self, now: Instant, rtt: Rtt) -> bool {
        let due = self.naks.is_triggered(now);
        if due {
            self.repeat_nak(now, rtt);
        }
        due
    }

    /// The NAK timer expired.
    pub(crate) fn repeat_nak(&mut self, now: Instant, rtt: Rtt) {
        let missing = self.store.missing(&self.timing);
        self.naks.repeat(now, missing, rtt);
    }

    /// The round-trip time was measured: the next periodic NAK may be due earlier.
    pub(crate) fn hurry_nak(&mut self, now: Instant, rtt: Rtt) {
        self.naks.hurry(now, rtt);
    }

    /// The instant at which the wait for a possibly reordered packet ends, or the stream is found
    /// to have jumped.
    pub(crate) fn next_ripe(&self) -> Option<Instant> {
        self.naks.next_ripe().into_iter().chain(self.jumps.next()).min()
    }

    /// Reports losses whose wait for reordered packets has ended, and follows a jump of the stream.
    pub(crate) fn report_ripe_losses(&mut self, now: Instant, rtt: Rtt) {
        let missing = self.store.missing(&self.timing);
        self.naks.report_ripe(now, missing, rtt);
        if self.jumps.next().is_some_and(|at| at <= now) {
            self.follow_jump(now, rtt);
        }
    }

    pub(crate) fn fill_statistics(&self, mss: usize, statistics: &mut Statistics) {
        self.counts.fill(self.overhead, statistics);
        self.naks.fill_statistics(statistics);
        self.store.fill_statistics(mss, &self.timing, statistics);
        self.timing.fill_statistics(statistics);
        let capacity_pps = self.path.capacity();
        if capacity_pps > 0 {
            statistics.link_capacity = capacity(capacity_pps, mss);
        }
    }

    /// The parts by which a jump of the stream is recognised.
    const fn stream(&self) -> StreamView<'_> {
        let Self { store, timing, path, drops, .. } = self;
        StreamView { store, timing, path, drops }
    }

    const fn missing(&self) -> Missing<'_> {
        self.store.missing(&self.timing)
    }

    /// Whether no packet is stored.
    const fn is_empty(&self) -> bool {
        self.store.held().packets == 0
    }

    /// Whether missing packets are never dropped.
    const fn keeps_all(&self) -> bool {
        self.store.delivery().keeps_all()
    }

    /// Whether a packet lies far ahead of the live stream.
    pub(crate) fn is_far_ahead(&self, seq: SeqNo) -> bool {
        !self.is_of_file()
            && seq.distance_from(self.store.window().end()) >= SUSPICIOUS_GAP.cast_signed()
    }

    /// A packet arrived that does not belong to the stream so far.
    #[cold]
    fn take_candidate(&mut self, now: Instant, packet: Arrived, rtt: Rtt) {
        let Self { store, timing, path, drops, jumps, .. } = self;
        let stream = StreamView { store, timing, path, drops };
        self.counts.ignored(jumps.add(now, packet, rtt, stream));
        self.follow_jump(now, rtt);
    }

    /// Follows the stream if it has jumped.
    fn follow_jump(&mut self, now: Instant, rtt: Rtt) {
        let Self { store, timing, path, drops, jumps, .. } = self;
        let stream = StreamView { store, timing, path, drops };
        let Some(jump) = jumps.decide(now, stream) else { return };
        match jump.kind {
            JumpKind::Back => self.jump_back(jump.first),
            JumpKind::BeyondRoom => self.jump_ahead(now, jump.first),
            JumpKind::WithinRoom => {}
        }
        for Arrived { seq, retransmitted, stored } in jump.packets {
            self.store(now, seq, retransmitted, stored, rtt);
        }
    }

    /// Continues at `seq`, before the newest packet: the packets in the buffer were forged.
    fn jump_back(&mut self, seq: SeqNo) {
        self.counts.ignored(self.store.restart(seq));
        self.counts.jumped_back();
        self.drops.clear();
        self.naks.clear();
    }

    /// Continues at `seq`. The packets between count as lost, but no more of them than a packet a
    /// microsecond since the newest one.
    fn jump_ahead(&mut self, now: Instant, seq: SeqNo) {
        let beyond = seq.distance_from(self.store.window().end()).unsigned_abs();
        let silence = now.saturating_since(self.path.newest_arrival().unwrap_or(self.started));
        let existed = u128::from(beyond) <= silence.as_micros();
        let skipped = self.store.jump(seq, if existed { beyond } else { 0 });
        self.counts.jumped_ahead(u64::from(skipped));
        self.drops.clear();
        self.naks.stop_period();
    }

    /// Makes room for `seq`. A sender has dropped every packet that is further back from its newest
    /// one than the length of this end's buffer, so that no such packet will arrive. A NAK would
    /// bring a DROPREQ for them, but `seq` has arrived now.
    #[cold]
    fn evict_for(&mut self, seq: SeqNo) {
        if !self.timing.drops_too_late() {
            return;
        }
        let window = self.store.window();
        let last = window.up_to_newest(window.last_without_room_beside(seq));
        let count = self.store.give_up(self.store.acknowledged(), last);
        self.counts.given_up(count.into(), true);
    }

    #[inline(always)]
    fn store(
        &mut self,
        now: Instant,
        seq: SeqNo,
        retransmitted: bool,
        mut stored: Stored,
        rtt: Rtt,
    ) {
        let window = self.store.window();
        if !window.has_place_for(seq) {
            self.evict_for(seq);
        }
        let payload = stored.payload.len();
        let time = stored.time;
        let previous_end = window.end();
        let diverted = match &mut self.bypass {
            Some(bypass) => bypass.divert(now, seq, &mut stored, &self.timing),
            None => None,
        };
        let insert = self.store.insert(now, seq, stored, &self.timing);
        if let Some(message) = diverted {
            self.pass_to_group(insert, message);
        }
        match insert {
            Insert::Newest { gap } => {
                self.counts.stored(payload);
                self.acks.count_packet(self.store.window().room());
                if gap > 0 || !self.drops.is_empty() {
                    self.skip_numbers(now, previous_end, seq, rtt);
                } else if !retransmitted && self.naks.arrived_in_order() {
                    self.report_ripe_losses(now, rtt);
                }
                if !retransmitted {
                    self.path.newest_arrived(now, seq, payload);
                    self.timing.note_arrival(now, time);
                }
            }
            Insert::Filled => {
                self.counts.stored(payload);
                self.acks.count_packet(self.store.window().room());
                self.path.disturbed();
                if retransmitted {
                    self.naks.retransmission_arrived(now, seq, rtt);
                } else {
                    let late_by = previous_end.distance_from(seq).unsigned_abs() - 1;
                    self.naks.overtaken_arrived(now, seq, late_by);
                    self.counts.reordered();
                }
                if self.missing().is_empty() {
                    self.naks.stop_period();
                }
            }
            Insert::Duplicate => self.counts.duplicate(self.timing.lateness(now, time)),
            Insert::Belated => self.counts.belated(self.timing.lateness(now, time)),
            Insert::NoRoom => self.counts.ignored(1),
        }
    }

    /// Handles the gap between `end` and the newest packet, `seq`: the packets that the sender has
    /// announced as dropped are dropped, and the others are missing.
    #[cold]
    fn skip_numbers(&mut self, now: Instant, end: SeqNo, seq: SeqNo, rtt: Rtt) {
        for (first, last) in self.drops.settle(seq) {
            let count = self.store.give_up(first, last);
            self.counts.given_up(count.into(), false);
        }
        let mut from = end;
        while from.is_before(seq) {
            let missing = self.store.missing(&self.timing);
            let Some((first, last)) = missing.first_run(from, seq) else { break };
            self.counts.lost(u64::from(last.distance_from(first).unsigned_abs()) + 1);
            self.naks.handle_gap(now, (first, last), missing, rtt);
            from = last.next();
        }
        if seq != end {
            self.path.disturbed();
        }
    }

    /// Whether the connection receives a file.
    pub(crate) const fn is_of_file(&self) -> bool {
        self.store.delivery().is_file()
    }

    /// Passes packets to a balancing group as they arrive from now on, due or not.
    pub(crate) fn bypass_to_group(&mut self) {
        if !self.is_of_file() {
            self.bypass.get_or_insert_default();
        }
        self.counts.is_link(true);
    }

    /// Whether messages wait for the group.
    #[inline]
    pub(crate) fn has_bypassed(&self) -> bool {
        self.bypass.as_ref().is_some_and(|bypass| !bypass.is_empty())
    }

    /// The messages that wait for the group.
    pub(crate) fn take_bypassed(&mut self) -> Vec<Message> {
        self.bypass.as_mut().map(|bypass| bypass.take()).unwrap_or_default()
    }

    /// Keeps the diverted message of a packet for the group, if it came for the first time.
    #[inline(never)]
    fn pass_to_group(&mut self, insert: Insert, message: Message) {
        if let (Some(bypass), Insert::Newest { .. } | Insert::Filled) = (&mut self.bypass, insert) {
            bypass.keep(message);
        }
    }
}

fn micros(duration: Duration) -> u32 {
    u32::try_from(duration.as_micros()).unwrap_or(u32::MAX)
}
