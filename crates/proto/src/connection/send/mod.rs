//! The sending half of a connection: from the application's messages to paced packets, and what the
//! peer's ACKs and NAKs do to them.

mod ack_order;
mod again;
pub(crate) mod budget;
pub(crate) mod buffer;
mod copies;
pub(crate) mod deadline;
pub(crate) mod drop_request;
mod numbered;
pub(crate) mod pacer;
mod peer_rates;
mod report_budget;
pub(crate) mod retransmit;

use std::time::Duration;

use bytes::Bytes;
use punctual_units::{Bitrate, Instant};
use punctual_wire::{Ack, DataHeader, DropRequest, KeyFlag, MsgNo, SeqNo, SocketId, Timestamp};

use self::ack_order::{AckOrder, Order};
use self::again::Heard;
use self::budget::{Rates, RetransmitBudget};
use self::buffer::SendBuffer;
use self::copies::Copies;
use self::drop_request::DropRequests;
use self::pacer::Pacer;
use self::peer_rates::PeerRates;
use self::report_budget::ReportBudget;
use self::retransmit::RetransmitPolicy;
use crate::config::{Config, MaxBandwidth, PACKET_OVERHEAD, Transmission};
use crate::congestion::{Controller, PathState};
use crate::connection::crypt::Crypt;
use crate::connection::rtt::Rtt;
use crate::connection::share::Share;
use crate::event::SendOptions;
use crate::filter::{Arq, SendFilter};
use crate::handshake::Negotiated;
use crate::statistics::Statistics;

/// Least age at which the sender drops, before the margin (draft section 4.6; libsrt).
const LEAST_DROP_AGE: Duration = Duration::from_secs(1);
const DROP_MARGIN: Duration = Duration::from_millis(20);
/// So long after the peer's last word a closed window is tried.
const WINDOW_PROBE: Duration = Duration::from_millis(50);
/// A packet whose number is divisible by this starts a probe pair.
pub(crate) const PROBE_INTERVAL: u32 = 16;

/// Whether an ACK or NAK could be what an honest peer sends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Verdict {
    /// It moved something on.
    Advanced,
    /// It told nothing new.
    Repeated,
    /// It speaks of packets that were never sent, wholly or in part; that part was ignored.
    Odd,
}

#[derive(Debug)]
pub(crate) struct SendHalf {
    buffer: SendBuffer,
    pacer: Pacer,
    control: Controller,
    policy: Box<dyn RetransmitPolicy>,
    /// Originals that were reported lost.
    reported: Share,
    copies: Copies,
    /// The newest loss reports.
    heard: Heard,
    report_budget: ReportBudget,
    /// How old a packet is that leaves just in time to be played; `None` if the peer waits for all.
    useful_age: Option<Duration>,
    /// Whether the peer asks for what is lost by clocks of its own, not once a period.
    peer_times_requests: bool,
    budget: Option<RetransmitBudget>,
    drop_requests: DropRequests,
    /// What was reported lost and goes back to a group that balances its links.
    returned: Option<Vec<SeqNo>>,
    filter: Option<Box<dyn SendFilter>>,
    flow_window: u32,
    /// Most packets in flight as congestion control has it.
    congestion_window: u32,
    /// The smaller of both windows.
    window: u32,
    /// Which ACK tells of the peer's room now.
    ack_order: AckOrder,
    /// All packets before this one have been acknowledged; the buffer's first may lie behind it.
    acknowledged: SeqNo,
    /// Age at which messages are dropped; `None` if the sender does not drop.
    drop_age: Option<Duration>,
    /// Originals go before retransmissions: the peer drops what is late anyway.
    originals_first: bool,
    /// The peer does not repeat its loss reports, or they are not waited for: silence means loss.
    retransmits_on_silence: bool,
    /// Nothing is given up but messages whose time to live is over: what is gone has arrived.
    reliable: bool,
    /// Nothing is sent again, not even the end of a stream that paused: both ends agreed so.
    never_repeats: bool,
    last_progress: Instant,
    last_original: Instant,
    /// When the peer last answered to data, by an ACK or a NAK.
    last_response: Instant,
    /// When something was last sent again because nothing was acknowledged.
    last_silence: Option<Instant>,
    /// What that was, until the peer reports losses.
    probing: Option<(SeqNo, SeqNo)>,
    /// Packets of a submission for which there was no room; 0 if all were taken.
    refused: usize,
    busy_since: Option<Instant>,
    peer_rates: PeerRates,
    counts: Counts,
}

#[derive(Debug, Default)]
struct Counts {
    sent_unique: u64,
    bytes_unique: u64,
    retransmitted: u64,
    bytes_retransmitted: u64,
    filter_extra: u64,
    bytes_filter_extra: u64,
    /// Reports of single packets that were old news, and that came too late.
    old: u64,
    too_late: u64,
    copies: u64,
    lost: u64,
    dropped: u64,
    bytes_dropped: u64,
    acks: u64,
    acks_expected: u64,
    acks_missed: u64,
    ack_gaps: u64,
    naks: u64,
    busy: Duration,
}

impl SendHalf {
    pub(crate) fn new(config: &Config, negotiated: &Negotiated, now: Instant) -> Self {
        let drops = negotiated.peer_too_late_drop;
        let age = |delay| (negotiated.peer_latency + delay).max(LEAST_DROP_AGE) + DROP_MARGIN;
        let control = Controller::new(config, negotiated);
        let file = config.transmission() != Transmission::Live;
        Self {
            buffer: SendBuffer::new(negotiated.send_isn, config.send_buffer().packets()),
            pacer: Pacer::new(control.pace()),
            congestion_window: control.get().window(),
            window: control.get().window().min(negotiated.peer_flow_window),
            control,
            policy: retransmit::policy(config, negotiated),
            reported: Share::default(),
            copies: Copies::default(),
            heard: Heard::default(),
            report_budget: ReportBudget::new(now),
            useful_age: drops.then_some(negotiated.peer_latency),
            peer_times_requests: negotiated.peer_times_requests,
            budget: RetransmitBudget::new(
                config.max_retransmit_bandwidth(),
                drops && config.max_bandwidth() != MaxBandwidth::Unlimited,
                negotiated.peer_latency,
            ),
            drop_requests: DropRequests::default(),
            returned: None,
            filter: negotiated.filter.map(|fec| fec.sender(negotiated.send_isn)),
            flow_window: negotiated.peer_flow_window,
            ack_order: AckOrder::new(now),
            acknowledged: negotiated.send_isn,
            drop_age: config.send_drop_delay().filter(|_| drops).map(age),
            originals_first: drops,
            retransmits_on_silence: file || !negotiated.peer_periodic_nak,
            reliable: file && !drops,
            never_repeats: negotiated.filter.is_some_and(|fec| fec.arq() == Arq::Never),
            last_progress: now,
            last_original: now,
            last_response: now,
            last_silence: None,
            probing: None,
            refused: 0,
            busy_since: None,
            peer_rates: PeerRates::default(),
            counts: Counts::default(),
        }
    }

    /// Gives the first message this number.
    pub(crate) const fn count_from(&mut self, msgno: MsgNo) {
        self.buffer.count_from(msgno);
    }

    /// Takes a message of one packet; `false` if it finds no room.
    pub(crate) fn submit(&mut self, now: Instant, payload: Bytes, options: SendOptions) -> bool {
        self.drop_late(now);
        if self.buffer.is_full() {
            self.refuse(1);
            return false;
        }
        self.begin_busy(now);
        self.control.submitted(now, payload.len());
        let origin = options.origin.map_or(now, |origin| origin.min(now));
        self.buffer.push(payload, origin, options.ttl.map(|ttl| now + ttl), options.in_order);
        true
    }

    /// Takes a message of several packets of at most `max` bytes; `false` if it finds no room.
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
        let origin = options.origin.map_or(now, |origin| origin.min(now));
        let expires = options.ttl.map(|ttl| now + ttl);
        self.buffer.push_parts(payload, max, origin, expires, options.in_order);
        true
    }

    /// Takes as many bytes of a stream from the front of `data` as there is room for, in packets of
    /// at most `max`; returns how many.
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

    /// Most packets of one message: what both this end's and the peer's buffer can hold. libsrt's
    /// holds one packet less than it says.
    pub(crate) fn message_packets(&self, peer_window: u32) -> usize {
        self.buffer.limit().min(peer_window.saturating_sub(1).max(1) as usize)
    }

    /// Whether what was refused would be taken now; tells once.
    pub(crate) const fn becomes_writable(&mut self) -> bool {
        let writable = self.refused > 0 && self.buffer.room() >= self.refused;
        if writable {
            self.refused = 0;
        }
        writable
    }

    const fn refuse(&mut self, packets: usize) {
        self.refused = packets;
        self.control.refused();
    }

    fn begin_busy(&mut self, now: Instant) {
        if self.buffer.is_empty() {
            self.busy_since = Some(now);
            self.last_progress = now;
        }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// When something may be sent; `None` while there is nothing, or the peer's buffer is full.
    pub(crate) fn next_send(&self) -> Option<Instant> {
        let has_new = self.buffer.has_new();
        let original = if self.filter_owes() || has_new && self.window_is_open() {
            Some(Instant::ORIGIN)
        } else if has_new {
            self.window_probe()
        } else {
            None
        };
        let again = self.next_again();
        let sendable = match (original, again) {
            (Some(a), Some(b)) => a.min(b),
            (a, b) => a.or(b)?,
        };
        let paced =
            if self.pacer.allows(Instant::ORIGIN) { Instant::ORIGIN } else { self.pacer.next() };
        Some(sendable.max(paced))
    }

    /// Writes the packet whose turn it is at `now`, if any.
    pub(crate) fn write_packet(
        &mut self,
        now: Instant,
        start: Instant,
        dest: SocketId,
        rtt: Rtt,
        mut crypt: Option<&mut Crypt>,
        out: &mut Vec<u8>,
    ) -> bool {
        if !self.pacer.allows(now) {
            return false;
        }
        if self.filter_owes() {
            return self.write_filter_packet(now, out);
        }
        let Some((seq, retransmitted)) = self.choose(now, rtt) else {
            self.pacer.rest();
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

    /// Whether a packet of the filter's waits: it goes before everything else, so that it comes
    /// when its group is over.
    #[inline]
    fn filter_owes(&self) -> bool {
        self.filter.as_ref().is_some_and(|filter| filter.owes())
    }

    #[inline(never)]
    fn write_filter_packet(&mut self, now: Instant, out: &mut Vec<u8>) -> bool {
        let before = out.len();
        if !self.filter.as_mut().is_some_and(|filter| filter.write(out)) {
            return false;
        }
        let payload = out.len() - before - DataHeader::LEN;
        self.counts.filter_extra += 1;
        self.counts.bytes_filter_extra += payload as u64;
        self.control.sent(payload);
        self.pacer.sent(now, payload + PACKET_OVERHEAD, false);
        true
    }

    /// The next number of the peer's ACK, its room and its estimates.
    pub(crate) fn handle_ack(&mut self, now: Instant, ack: &Ack, rtt: Rtt) -> Verdict {
        let next = ack.next();
        if next.is_after(self.buffer.highest()) {
            return Verdict::Odd;
        }
        self.last_response = now;
        // Even an ACK for less than what this end gave up tells of room: the sender may wait for
        // it.
        match ack.link() {
            Some(link) if self.is_newest(now, ack) => self.flow_window = link.free_buffer,
            Some(_) => {}
            None => {
                let steps = next.distance_from(self.buffer.first()).max(0);
                self.flow_window = self.flow_window.saturating_sub(steps.unsigned_abs());
            }
        }
        if next.is_after(self.acknowledged) {
            self.acknowledged = next;
        }
        let before = self.buffer.first();
        let advanced = self.buffer.acknowledge(next);
        let packets = next.distance_from(before).max(0).unsigned_abs();
        self.peer_rates.handle_ack(packets, ack.rates());
        let path = self.path(rtt, 0);
        self.control.get_mut().acknowledged(now, packets, &path);
        self.follow_control();
        if !advanced {
            return Verdict::Repeated;
        }
        self.counts.acks += u64::from(ack.number().is_some());
        self.last_progress = now;
        self.last_silence = None;
        self.note_idle(now);
        Verdict::Advanced
    }

    /// Gives up what is too old, or past its TTL.
    #[inline(always)]
    pub(crate) fn drop_late(&mut self, now: Instant) {
        if self.next_drop().is_some_and(|at| at <= now) {
            self.drop_due(now);
        }
    }

    #[cold]
    fn drop_due(&mut self, now: Instant) {
        if let Some(age) = self.drop_age {
            let dropped = self.buffer.drop_before(now - age);
            self.count_dropped(dropped.packets, dropped.bytes);
        }
        while let Some((request, dropped)) = self.buffer.drop_expired(now) {
            self.count_dropped(dropped.packets, dropped.bytes);
            self.drop_requests.push(request);
        }
        self.note_idle(now);
    }

    /// When `drop_late` has something to do.
    pub(crate) fn next_drop(&self) -> Option<Instant> {
        let tick = Duration::from_nanos(1);
        let late = self.drop_age.and_then(|age| Some(self.buffer.oldest()?.origin + age + tick));
        match (late, self.buffer.next_expiry()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// What congestion control is told of the path, when a report added `newly_lost` packets to the
    /// loss list.
    fn path(&self, rtt: Rtt, newly_lost: u64) -> PathState {
        PathState {
            rtt,
            newly_lost,
            repairs: if self.reliable { self.buffer.repairs_of_oldest() } else { 0 },
            delivery_rate: self.peer_rates.delivery(),
            capacity: self.peer_rates.capacity(),
            in_loss_list: self.buffer.lost(),
            next_new: self.buffer.next_new(),
        }
    }

    /// Takes over what congestion control has decided.
    fn follow_control(&mut self) {
        self.pacer.set_pace(self.control.pace());
        let control = self.control.get();
        self.congestion_window = control.window();
        self.window = self.flow_window.min(self.congestion_window);
    }

    pub(crate) fn next_drop_request(&mut self) -> Option<DropRequest> {
        self.drop_requests.pop()
    }

    pub(crate) fn has_drop_request(&self) -> bool {
        !self.drop_requests.is_empty()
    }

    pub(crate) fn fill_statistics(&self, now: Instant, mss: usize, statistics: &mut Statistics) {
        let counts = &self.counts;
        let headers = |packets: u64| packets * PACKET_OVERHEAD as u64;
        statistics.packets_sent_unique = counts.sent_unique;
        statistics.bytes_sent_unique = counts.bytes_unique + headers(counts.sent_unique);
        statistics.packets_retransmitted = counts.retransmitted;
        statistics.bytes_retransmitted = counts.bytes_retransmitted + headers(counts.retransmitted);
        statistics.packets_send_filter_extra = counts.filter_extra;
        statistics.packets_sent = counts.sent_unique + counts.retransmitted + counts.filter_extra;
        statistics.bytes_sent = statistics.bytes_sent_unique
            + statistics.bytes_retransmitted
            + counts.bytes_filter_extra
            + headers(counts.filter_extra);
        statistics.packets_send_lost = counts.lost;
        statistics.packets_send_dropped = counts.dropped;
        statistics.bytes_send_dropped = counts.bytes_dropped + headers(counts.dropped);
        statistics.acks_received = counts.acks;
        statistics.acks_expected = counts.acks_expected;
        statistics.acks_missed = counts.acks_missed;
        statistics.ack_gaps = counts.ack_gaps;
        statistics.naks_received = counts.naks;
        statistics.reports_old = counts.old;
        statistics.reports_too_late = counts.too_late;
        statistics.packets_copied = counts.copies;
        statistics.send_busy =
            counts.busy + self.busy_since.map_or(Duration::ZERO, |since| now - since);
        statistics.send_period = self.control.get().period();
        statistics.flow_window = self.flow_window;
        statistics.congestion_window = self.window;
        statistics.flight_size = self.buffer.flight();
        statistics.max_bandwidth = self.control.get().max_bandwidth();
        statistics.send_buffer_available =
            ((self.buffer.limit() - self.buffer.packets()) * mss) as u64;
        statistics.send_buffer_packets = u32::try_from(self.buffer.packets()).unwrap_or(u32::MAX);
        statistics.send_buffer_bytes = self.buffer.bytes();
        statistics.send_buffer_span = self.buffer.span_in_time();
        if self.peer_rates.capacity() > 0 {
            statistics.link_capacity = capacity(self.peer_rates.capacity(), mss);
        }
    }

    fn choose(&mut self, now: Instant, rtt: Rtt) -> Option<(SeqNo, bool)> {
        let original = self.buffer.has_new()
            && (self.window_is_open() || self.window_probe().is_some_and(|at| at <= now));
        if original && self.originals_first {
            return self.buffer.take_new().map(|seq| (seq, false));
        }
        // Unlike libsrt, retransmissions go out while the peer's full buffer holds originals back:
        // they are what can empty it.
        if let Some(seq) = self.choose_again(now, rtt) {
            return Some((seq, true));
        }
        if original { self.buffer.take_new().map(|seq| (seq, false)) } else { None }
    }

    /// Whether an ACK tells how much room there is now: no later one overtook it. Whatever their
    /// numbers say, one that acknowledges more than all before is newer than those.
    fn is_newest(&mut self, now: Instant, ack: &Ack) -> bool {
        let Some(number) = ack.number() else { return true };
        match self.ack_order.note(now, number) {
            Order::Newest(steps) => {
                self.counts.acks_expected += u64::from(steps);
                self.counts.acks_missed += u64::from(steps.saturating_sub(1));
                self.counts.ack_gaps += u64::from(steps > 1);
                true
            }
            Order::Overtaken => {
                self.counts.acks_missed = self.counts.acks_missed.saturating_sub(1);
                ack.next().is_after(self.acknowledged)
            }
            Order::Leap => false,
        }
    }

    fn window_is_open(&self) -> bool {
        self.buffer.flight() < self.window
    }

    /// When a live packet goes out although the peer has told of no room: with nothing in flight,
    /// nothing else would make it tell again, and it may never have said so.
    #[cold]
    fn window_probe(&self) -> Option<Instant> {
        let stuck = self.originals_first && self.buffer.flight() == 0;
        stuck.then(|| self.last_response + WINDOW_PROBE)
    }

    fn account(&mut self, now: Instant, seq: SeqNo, payload: usize, retransmitted: bool) {
        let counts = &mut self.counts;
        if retransmitted {
            counts.retransmitted += 1;
            counts.bytes_retransmitted += payload as u64;
            if let Some(budget) = &mut self.budget {
                budget.sent(now, payload + PACKET_OVERHEAD, rates(&self.control));
            }
        } else {
            self.last_original = now;
            if self.buffer.flight() == 1 {
                // The first after all before it was acknowledged, or held back by a closed window.
                self.last_progress = now;
            }
            counts.sent_unique += 1;
            counts.bytes_unique += payload as u64;
        }
        let probe = !retransmitted && seq.value().is_multiple_of(PROBE_INTERVAL);
        self.control.sent(payload);
        self.pacer.sent(now, payload + PACKET_OVERHEAD, probe && self.buffer.has_new());
    }

    const fn count_dropped(&mut self, packets: u64, bytes: u64) {
        self.counts.dropped += packets;
        self.counts.bytes_dropped += bytes;
    }

    fn note_idle(&mut self, now: Instant) {
        if self.buffer.is_empty()
            && let Some(since) = self.busy_since.take()
        {
            self.counts.busy += now - since;
        }
    }
}

/// What limits retransmissions by the rate of the stream.
fn rates(control: &Controller) -> Rates {
    Rates { input: control.input(), limit: control.get().max_bandwidth() }
}

/// Microseconds from the connection's start to `at`, as they wrap on the wire.
pub(crate) fn timestamp(start: Instant, at: Instant) -> Timestamp {
    #[expect(clippy::cast_possible_truncation, reason = "timestamps wrap at 2^32 µs")]
    let micros = match at.checked_since(start) {
        Some(since) => since.as_micros() as u32,
        // A message may have originated before the connection.
        None => ((start - at).as_micros() as u32).wrapping_neg(),
    };
    Timestamp::from_micros(micros)
}

/// The bit rate of `packets_per_sec` packets of full size.
pub(crate) fn capacity(packets_per_sec: u32, mss: usize) -> Bitrate {
    Bitrate::from_bytes_per_sec(u64::from(packets_per_sec) * mss as u64)
}
