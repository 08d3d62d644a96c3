//! The sending half of a connection: from the application's messages to paced packets, and the
//! handling of the peer's ACKs and NAKs.

mod ack_order;
pub(crate) mod budget;
pub(crate) mod buffer;
mod counts;
pub(crate) mod deadline;
pub(crate) mod drop_request;
mod flow_window;
mod mode;
mod nak_budget;
mod nak_filter;
pub(crate) mod pacer;
pub(crate) mod playout;
mod redundant_retransmits;
mod repeats;
mod retransmission;
pub(crate) mod retransmit;
mod retransmit_timer;
mod returned_losses;
mod room_wait;
mod sent_numbers;
mod timeout;
mod unreported_loss;

use std::time::Duration;

use bytes::Bytes;
use punctual_rtt::Rtt;
use punctual_units::Instant;
use punctual_wire::{
    Ack, DataHeader, DropRequest, KeyFlag, LossList, MsgNo, SeqNo, SocketId, Timestamp,
};

use self::budget::Rates;
use self::buffer::SendBuffer;
use self::counts::{BusyTime, SendCounts};
use self::drop_request::DropRequests;
use self::flow_window::FlowWindow;
use self::mode::{LossRecovery, SendMode};
use self::nak_filter::NakFilter;
use self::pacer::Pacer;
use self::retransmission::{RateLimits, Retransmission, Situation};
use self::retransmit_timer::RetransmitTimer;
use self::returned_losses::ReturnedLosses;
use self::room_wait::RoomWait;
use self::timeout::Timeout;
use crate::config::Config;
use crate::congestion::Controller;
use crate::connection::output::timestamp;
use crate::crypt::Crypt;
use crate::event::SendOptions;
use crate::filter::SendFilter;
use crate::group::GroupMessage;
use crate::handshake::Negotiated;
use crate::measured_path::{ArrivalSource, MeasuredPath, Packets};
use crate::policy::congestion::PathState;
use crate::probe_pairs::{PROBE_INTERVAL, capacity};
use crate::statistics::Statistics;
use crate::transmission::Transmission;
use crate::wake_up::WakeUp;

/// The verdict on an ACK or a NAK: whether an honest peer can have sent it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Verdict {
    /// It changed the state.
    Advanced,
    /// It changed nothing.
    Repeated,
    /// It is the copy of a NAK that was handled before.
    Duplicate,
    /// It names packets that were never sent; those were ignored.
    Invalid,
}

/// The sending half. It routes between its parts, each of which owns its own state.
#[derive(Debug)]
pub(crate) struct SendHalf {
    mode: SendMode,
    buffer: SendBuffer,
    pacer: Pacer,
    control: Controller,
    flow: FlowWindow,
    timer: RetransmitTimer,
    naks: NakFilter,
    retransmission: Retransmission,
    drop_requests: DropRequests,
    returned: ReturnedLosses,
    filter: Option<Box<dyn SendFilter>>,
    path: MeasuredPath,
    wait: RoomWait,
    busy: BusyTime,
    counts: SendCounts,
}

impl SendHalf {
    /// For packets with `overhead` bytes of headers.
    pub(crate) fn new(
        config: &Config,
        negotiated: &Negotiated,
        overhead: usize,
        now: Instant,
    ) -> Self {
        let control = Controller::new(config, negotiated, overhead);
        let isn = negotiated.fixed.send_isn;
        Self {
            mode: SendMode::new(config, negotiated),
            buffer: SendBuffer::new(isn, config.send_buffer().packets()),
            pacer: Pacer::new(control.pace()),
            flow: FlowWindow::new(
                now,
                isn,
                negotiated.fixed.peer_flow_window,
                control.get().window(),
            ),
            control,
            timer: RetransmitTimer::new(now),
            naks: NakFilter::new(now),
            retransmission: Retransmission::new(
                retransmit::policy(config, negotiated),
                RateLimits::of(config, negotiated),
            ),
            drop_requests: DropRequests::default(),
            returned: ReturnedLosses::default(),
            filter: negotiated.filter.map(|fec| fec.sender(isn)),
            path: MeasuredPath::new(isn, arrival_source(config, negotiated)),
            wait: RoomWait::default(),
            busy: BusyTime::default(),
            counts: SendCounts::new(overhead),
        }
    }

    /// Applies the options that may change while the connection runs.
    pub(crate) fn configure(&mut self, config: &Config, negotiated: &Negotiated) {
        self.mode = SendMode::new(config, negotiated);
        self.control.configure(config);
        self.retransmission.set_limits(RateLimits::of(config, negotiated));
        self.follow_control();
    }

    /// Packets have `overhead` bytes of headers from now on.
    pub(crate) const fn set_overhead(&mut self, overhead: usize) {
        self.counts.set_overhead(overhead);
    }

    /// Gives the first message this number.
    pub(crate) const fn count_from(&mut self, msgno: MsgNo) {
        self.buffer.count_from(msgno);
    }

    /// Takes a message of one packet; `false` if there is no room.
    pub(crate) fn submit(&mut self, now: Instant, payload: Bytes, options: SendOptions) -> bool {
        self.drop_late(now);
        if self.buffer.is_full() {
            self.refuse(1);
            return false;
        }
        self.begin_busy(now);
        self.control.submitted(now, payload.len() + self.counts.overhead());
        let origin = options.origin_at(now);
        self.buffer.push(payload, origin, options.ttl.map(|ttl| now + ttl), options.in_order);
        true
    }

    /// Takes a message with the numbers of its group; `false` if there is no room. The numbers that
    /// are left out are announced to the peer, which gets them over other links.
    pub(crate) fn submit_numbered(&mut self, now: Instant, message: GroupMessage) -> bool {
        self.drop_late(now);
        if self.buffer.is_full() {
            return false;
        }
        let Ok(left_out) = self.buffer.renumber(message.seq, message.msgno) else { return false };
        if let Some((first, last)) = left_out {
            self.drop_requests.push(DropRequest { msgno: MsgNo::CONTROL, first, last });
        }
        if self.buffer.is_empty() {
            self.flow.restart(message.seq);
        }
        self.begin_busy(now);
        self.control.submitted(now, message.payload.len() + self.counts.overhead());
        let GroupMessage { payload, origin, expires, in_order, .. } = message;
        self.buffer.push(payload, origin, expires, in_order);
        true
    }

    /// Takes a message of several packets of at most `max` bytes; `false` if there is no room.
    #[inline(never)]
    pub(crate) fn submit_parts(
        &mut self,
        now: Instant,
        payload: Bytes,
        max: usize,
        options: SendOptions,
    ) -> bool {
        self.drop_late(now);
        let packets = payload.len().div_ceil(max);
        if self.buffer.room() < packets {
            self.refuse(packets);
            return false;
        }
        self.begin_busy(now);
        let origin = options.origin_at(now);
        let expires = options.ttl.map(|ttl| now + ttl);
        self.buffer.push_parts(payload, max, origin, expires, options.in_order);
        true
    }

    /// Takes bytes of a stream from the front of `data`, up to the room there is, in packets of at
    /// most `max`; returns their number.
    pub(crate) fn submit_stream(&mut self, now: Instant, data: &mut Bytes, max: usize) -> usize {
        let taken = data.len().min(self.buffer.room().saturating_mul(max));
        if taken == 0 {
            self.refuse(1);
            return 0;
        }
        self.begin_busy(now);
        self.buffer.push_parts(data.split_to(taken), max, now, None, true);
        taken
    }

    /// The largest number of packets in one message: the capacity of this end's buffer or of the
    /// peer's. libsrt's holds one packet less than its size.
    pub(crate) fn message_packets(&self, peer_window: u32) -> usize {
        self.buffer.limit().min(peer_window.saturating_sub(1).max(1) as usize)
    }

    /// Returns whether there is room for a message that was refused, and takes the mark back.
    pub(crate) fn becomes_writable(&mut self) -> bool {
        self.wait.ends(|| self.buffer.room())
    }

    /// The application waits for room, which [`becomes_writable`](Self::becomes_writable) reports.
    pub(crate) const fn await_room(&mut self) {
        self.wait.begin();
    }

    /// The sequence number of the next message's first packet, and its message number.
    pub(crate) const fn next_message(&self) -> (SeqNo, MsgNo) {
        self.buffer.next_message()
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// The room in packets.
    pub(crate) const fn room(&self) -> usize {
        self.buffer.limit().saturating_sub(self.buffer.packets())
    }

    /// The instant since which there has always been a packet to acknowledge.
    pub(crate) const fn waiting_since(&self) -> Option<Instant> {
        self.busy.since()
    }

    /// The arrival of the peer's last ACK or NAK.
    pub(crate) const fn last_response(&self) -> Instant {
        self.timer.last_response()
    }

    /// All packets before this one have been acknowledged.
    pub(crate) const fn acknowledged(&self) -> SeqNo {
        self.flow.acknowledged()
    }

    /// The instant at which a packet may be sent; never while there is none, or while the peer's
    /// buffer is full.
    pub(crate) fn next_send(&self) -> WakeUp {
        let has_new = self.buffer.has_new();
        let original = if self.filter_packet_is_due() || has_new && self.window_is_open() {
            WakeUp::Now
        } else if has_new {
            self.window_probe()
        } else {
            WakeUp::Never
        };
        original
            .min(self.retransmission.next(&self.buffer))
            .max(self.pacer.next())
            .max(self.control.opens())
    }

    /// Writes the next packet at `now`, if there is one.
    pub(crate) fn write_packet(
        &mut self,
        now: Instant,
        start: Instant,
        dest: SocketId,
        rtt: Rtt,
        mut crypt: Option<&mut Crypt>,
        out: &mut Vec<u8>,
    ) -> bool {
        if !self.control.opens().is_due(now) {
            // The time until the network has room again is not made up for by a burst.
            self.pacer.rest(1);
            return false;
        }
        if !self.pacer.allows(now) {
            return false;
        }
        if self.filter_packet_is_due() {
            return self.write_filter_packet(now, out);
        }
        let Some((seq, retransmitted)) = self.choose(now, rtt) else {
            self.pacer.rest(self.control.burst());
            return false;
        };
        let Some(packet) = self.buffer.get(seq) else { return false };
        let header = DataHeader {
            seq,
            position: packet.position,
            in_order: packet.in_order,
            key: crypt.as_ref().map_or(KeyFlag::Clear, |crypt| crypt.sealing.flag(seq)),
            retransmitted,
            msgno: packet.msgno,
            timestamp: timestamp(start, packet.origin),
            dest,
        };
        let begin = out.len();
        out.extend_from_slice(&header.to_bytes());
        out.extend_from_slice(&packet.payload);
        let payload = packet.payload.len();
        if let Some(crypt) = &mut crypt {
            crypt.sealing.seal(seq, out, begin);
            if !retransmitted {
                crypt.sealing.sent_original(now, seq, self.buffer.first());
            }
        }
        if !retransmitted && let Some(filter) = &mut self.filter {
            filter.feed(&header, &out[begin + DataHeader::LEN..]);
        }
        self.account(now, seq, payload, retransmitted);
        true
    }

    /// Whether a packet of the filter waits. It is sent before all others, so that it arrives right
    /// after its group of packets.
    #[inline]
    fn filter_packet_is_due(&self) -> bool {
        self.filter.as_ref().is_some_and(|filter| filter.has_parity_due())
    }

    #[inline(never)]
    fn write_filter_packet(&mut self, now: Instant, out: &mut Vec<u8>) -> bool {
        let before = out.len();
        if !self.filter.as_mut().is_some_and(|filter| filter.write(out)) {
            return false;
        }
        let payload = out.len() - before - DataHeader::LEN;
        self.counts.sent_filter_packet(payload);
        self.control.sent(now, payload + self.counts.overhead());
        self.pacer.sent(now, payload + self.counts.overhead(), false);
        true
    }

    /// Takes in an ACK.
    pub(crate) fn handle_ack(&mut self, now: Instant, ack: &Ack, rtt: Rtt) -> Verdict {
        let next = ack.next();
        if !self.buffer.sent().may_be_next(next) {
            return Verdict::Invalid;
        }
        self.timer.handle_ack(now);
        // An ACK before the packets that this end dropped still reports the peer's room, for which
        // the sender may wait.
        let before = self.buffer.first();
        self.flow.handle_ack(now, ack, before);
        let advanced = self.buffer.acknowledge(next);
        let packets = next.distance_from(before).max(0).unsigned_abs();
        let totals = self.totals();
        let is_measured = self.path.acknowledged(now, ack, packets, rtt, totals);
        let path = self.path_state(now, rtt, 0);
        if is_measured {
            self.control.get_mut().round_trip(now, &path);
        }
        self.control.get_mut().acknowledged(now, packets, &path);
        self.follow_control();
        if !advanced {
            return Verdict::Repeated;
        }
        self.flow.count_ack(ack);
        self.timer.progressed(now);
        self.note_idle(now);
        Verdict::Advanced
    }

    /// Queues the packets that the peer reports lost, and announces the dropped ones among them.
    pub(crate) fn handle_nak(
        &mut self,
        now: Instant,
        timestamp: Timestamp,
        list: &LossList<'_>,
        rtt: Rtt,
    ) -> Verdict {
        self.timer.handle_nak(now);
        if self.naks.is_duplicate(timestamp, list, &self.buffer) {
            return Verdict::Duplicate;
        }
        self.naks.begin(now, self.buffer.flight());
        let mut verdict = Verdict::Repeated;
        let (mut first_lost, mut newly_lost) = (None, 0);
        let reportable = nak_filter::reportable(&self.buffer);
        for range in list.ranges() {
            if !reportable.contains_both(range) {
                verdict = Verdict::Invalid;
                continue;
            }
            let Some((first, last)) = self.naks.limit(&self.buffer, range) else { continue };
            let added = self.report_lost(now, first, last, rtt);
            let totals = self.totals();
            if self.path.lost(now, (first, last), rtt, totals) {
                let path = self.path_state(now, rtt, 0);
                self.control.get_mut().round_trip(now, &path);
            }
            if added > 0 {
                newly_lost += added;
                first_lost = first_lost.or(Some(first));
                if verdict == Verdict::Repeated {
                    verdict = Verdict::Advanced;
                }
            }
        }
        if let Some(first) = first_lost {
            let path = self.path_state(now, rtt, newly_lost);
            self.control.get_mut().lost(now, first, &path);
            self.follow_control();
        }
        self.returned.take_from(&mut self.buffer, &mut self.drop_requests);
        self.note_idle(now);
        verdict
    }

    /// The instant at which the retransmission timeout expires, if an answer takes `wait` at most.
    pub(crate) fn next_timeout(&self, wait: Duration) -> Option<Instant> {
        self.timer.next(self.mode.recovery, self.buffer.flight(), self.oldest_sent(), wait)
    }

    /// The instant by which the oldest packet in flight was sent for the last time, if the peer
    /// reports each loss once and no loss waits for its retransmission.
    fn oldest_sent(&self) -> Option<Instant> {
        if !self.finds_unreported_losses() || self.buffer.has_lost() {
            return None;
        }
        let retransmitted = self.buffer.oldest()?.last_retransmit;
        retransmitted.or_else(|| self.timer.sent_by(self.buffer.first()))
    }

    /// Whether this end waits for everything to arrive, and the peer reports each loss once.
    fn finds_unreported_losses(&self) -> bool {
        self.mode.delivery.is_reliable() && self.mode.recovery == LossRecovery::Timeout
    }

    /// The retransmission timeout expired.
    pub(crate) fn handle_timeout(&mut self, now: Instant, rtt: Rtt) {
        Timeout::new(self, now, rtt).handle();
        let path = self.path_state(now, rtt, 0);
        self.control.get_mut().timed_out(now, &path);
        self.follow_control();
    }

    /// Drops messages that are too old, or past their time to live.
    #[inline(always)]
    pub(crate) fn drop_late(&mut self, now: Instant) {
        if self.next_drop().is_some_and(|at| at <= now) {
            self.drop_due(now);
        }
    }

    /// The instant at which `drop_late` has to be called.
    pub(crate) fn next_drop(&self) -> Option<Instant> {
        let age = self.mode.delivery.drop_age();
        let late = age.and_then(|age| {
            let origin = self.buffer.oldest()?.origin.as_nanos();
            Some(Instant::from_nanos(origin.saturating_add(age + 1)))
        });
        match (late, self.buffer.next_expiry()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    pub(crate) fn next_drop_request(&mut self) -> Option<DropRequest> {
        self.drop_requests.pop()
    }

    pub(crate) fn has_drop_request(&self) -> bool {
        !self.drop_requests.is_empty()
    }

    /// Returns losses to the group from now on, which retransmits them over its best link.
    pub(crate) const fn return_losses(&mut self) {
        self.returned.turn_on();
    }

    /// Whether losses wait for the group.
    pub(crate) const fn has_returned(&self) -> bool {
        !self.returned.is_empty()
    }

    /// The packets that were reported lost since the last call.
    pub(crate) fn take_returned(&mut self) -> Vec<SeqNo> {
        self.returned.take()
    }

    /// Forgets all packets that wait to be sent or acknowledged: other links carry them.
    pub(crate) fn forget_all(&mut self, now: Instant) {
        self.buffer.acknowledge(self.buffer.end());
        self.note_idle(now);
    }

    pub(crate) fn fill_statistics(&self, now: Instant, mss: usize, statistics: &mut Statistics) {
        self.retransmission.fill_statistics(self.counts.overhead(), statistics);
        self.counts.fill_statistics(statistics);
        self.flow.fill_statistics(statistics);
        self.path.fill_statistics(statistics);
        statistics.naks_received = self.naks.received();
        statistics.send_busy = self.busy.total(now);
        statistics.send_period = self.control.get().period();
        statistics.flight_size = self.buffer.flight();
        statistics.max_bandwidth = self.control.get().max_bandwidth();
        statistics.send_buffer_available =
            ((self.buffer.limit() - self.buffer.packets()) * mss) as u64;
        statistics.send_buffer_packets = u32::try_from(self.buffer.packets()).unwrap_or(u32::MAX);
        statistics.send_buffer_bytes = self.buffer.bytes();
        statistics.send_buffer_span = self.buffer.span_in_time();
        if self.path.capacity() > 0 {
            statistics.link_capacity = capacity(self.path.capacity(), mss);
        }
    }

    const fn refuse(&mut self, packets: usize) {
        self.wait.refused(packets);
        self.control.refused();
    }

    fn begin_busy(&mut self, now: Instant) {
        if self.buffer.is_empty() {
            self.busy.begin(now);
            self.timer.restart(now);
        }
    }

    fn note_idle(&mut self, now: Instant) {
        if self.buffer.is_empty() {
            self.busy.end(now);
        }
    }

    fn choose(&mut self, now: Instant, rtt: Rtt) -> Option<(SeqNo, bool)> {
        let original =
            self.buffer.has_new() && (self.window_is_open() || self.window_probe().is_due(now));
        if original && self.mode.delivery.sends_originals_first() {
            return self.buffer.take_new().map(|seq| (seq, false));
        }
        // Unlike libsrt's, retransmissions are sent while the peer's full buffer holds originals
        // back: only they can empty it.
        let situation = Situation {
            rtt,
            newest_rtt: self.path.newest_rtt().unwrap_or(rtt.smoothed),
            mode: &self.mode,
            timer: &self.timer,
            originals: self.counts.originals(),
            overhead: self.counts.overhead(),
            rates: rates(&self.control),
            arriving: self.control.as_rate(self.path.arriving()),
        };
        if let Some(seq) = self.retransmission.choose(now, &mut self.buffer, &situation) {
            return Some((seq, true));
        }
        if original { self.buffer.take_new().map(|seq| (seq, false)) } else { None }
    }

    fn account(&mut self, now: Instant, seq: SeqNo, payload: usize, retransmitted: bool) {
        if retransmitted {
            self.retransmission.sent(now, payload, self.counts.overhead(), rates(&self.control));
            self.path.sent_retransmission(now);
        } else {
            self.timer.sent_original(now, self.buffer.flight() == 1);
            if self.mode.delivery.is_reliable() {
                let (next_new, oldest) = (self.buffer.next_new(), self.buffer.first());
                self.timer.sent_originals(now, next_new, oldest);
            }
            self.path.sent_original(now, seq);
            self.counts.sent_original(payload);
        }
        let probe = !retransmitted && seq.value().is_multiple_of(PROBE_INTERVAL);
        let bytes = payload + self.counts.overhead();
        self.control.sent(now, bytes);
        self.pacer.sent(now, bytes, probe && self.buffer.has_new());
    }

    /// Queues the packets in flight from `first` to `last`, and announces the dropped ones among
    /// them. Returns the number of packets that are new in the loss list.
    fn report_lost(&mut self, now: Instant, first: SeqNo, last: SeqNo, rtt: Rtt) -> u64 {
        let drop_requests = &mut self.drop_requests;
        // Acknowledged packets of a file may still be in the peer's buffer: it might forget them
        // because of an announcement.
        let arrived = self.mode.delivery.is_reliable().then_some(self.flow.acknowledged());
        let added = self.buffer.report_lost(first, last, |first, last| {
            let first = match arrived {
                Some(arrived) if last.is_before(arrived) => return,
                Some(arrived) if first.is_before(arrived) => arrived,
                _ => first,
            };
            drop_requests.asked(now, first, last, rtt.smoothed);
        });
        self.retransmission.count_lost(added);
        added
    }

    #[cold]
    fn drop_due(&mut self, now: Instant) {
        if let Some(age) = self.mode.delivery.drop_age() {
            let dropped = self.buffer.drop_before(now - Duration::from_nanos(age));
            self.counts.dropped(&dropped);
        }
        while let Some((request, dropped)) = self.buffer.drop_expired(now) {
            self.counts.dropped(&dropped);
            self.drop_requests.push(request);
        }
        self.note_idle(now);
    }

    fn window_is_open(&self) -> bool {
        self.flow.is_open(self.buffer.flight())
    }

    /// The instant at which a live packet is sent although the peer's buffer is full: with no
    /// packet in flight the peer has no other reason to report room, and its report may have been
    /// lost.
    #[cold]
    fn window_probe(&self) -> WakeUp {
        let stuck = self.mode.delivery.sends_originals_first() && self.buffer.flight() == 0;
        if stuck { WakeUp::At(self.timer.window_probe()) } else { WakeUp::Never }
    }

    /// The packets that were sent and reported lost since the connection began.
    const fn totals(&self) -> Packets {
        Packets::new(self.counts.originals(), self.retransmission.lost())
    }

    /// The path as congestion control sees it, after a NAK that added `newly_lost` packets to the
    /// loss list.
    fn path_state(&self, now: Instant, rtt: Rtt, newly_lost: u64) -> PathState {
        let round_trips = self.path.round_trips();
        PathState {
            rtt,
            latest_rtt: round_trips.latest(),
            base_rtt: round_trips.least(),
            in_flight: self.buffer.flight(),
            arrived: self.path.arrived(),
            packet_size: self.control.packet_size(),
            newly_lost,
            blocked: self.blocked(now, rtt),
            delivery_rate: self.path.delivery(),
            capacity: self.path.capacity(),
            in_loss_list: self.buffer.lost(),
            next_new: self.buffer.next_new(),
        }
    }

    /// The time for which the oldest packet in flight has been missing: packets behind it arrive,
    /// and are not acknowledged.
    fn blocked(&self, now: Instant, rtt: Rtt) -> Duration {
        if !self.mode.delivery.is_reliable() || self.buffer.flight() == 0 {
            return Duration::ZERO;
        }
        let sent = self.timer.sent_by(self.buffer.first());
        sent.map_or(Duration::ZERO, |sent| now - (sent + rtt.bound()))
    }

    /// Applies the decisions of congestion control.
    fn follow_control(&mut self) {
        self.pacer.set_pace(self.control.pace());
        self.flow.limit(self.control.get().window());
    }
}

/// How this end learns what has arrived at the peer.
fn arrival_source(config: &Config, negotiated: &Negotiated) -> ArrivalSource {
    match (negotiated.peer.counted_arrivals, config.transmission()) {
        (true, Transmission::Live) => ArrivalSource::ReportsOfLive,
        (true, _) => ArrivalSource::Reports,
        (false, Transmission::Live) => ArrivalSource::InferenceOfLive,
        (false, _) => ArrivalSource::Inference,
    }
}

/// The rates of the stream that limit retransmissions.
fn rates(control: &Controller) -> Rates {
    Rates { input: control.input(), limit: control.get().max_bandwidth() }
}
