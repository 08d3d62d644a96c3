//! The sending end: the stream, its packets, loss recovery and congestion control.

use std::ops::Range;
use std::time::Duration;

use punctual_units::Instant;

use crate::ack_policy::{AckPolicy, Demand};
use crate::config::SenderConfig;
use crate::congestion::{Cause, CongestionControl, PathView};
use crate::delivery_rate::{DeliverySnapshot, PathDeliveryRate};
use crate::flight::{Flight, Kind, SentPacket, State, as_u64};
use crate::journal::{Event, Journal, Sample};
use crate::loss::{Detector, LossVerdict};
use crate::pacer::{PacedPath, Pacer};
use crate::packet::{AckFrame, AckRequest, Content, Packet, Step};
use crate::pmtud::Pmtud;
use crate::stream::SendStream;
use crate::timing::PathTiming;

/// The sender of the stream.
#[derive(Debug)]
pub(crate) struct Sender {
    config: SenderConfig,
    flight: Flight,
    stream: SendStream,
    timing: PathTiming,
    detector: Detector,
    pmtud: Pmtud,
    pacer: Pacer,
    rate: PathDeliveryRate,
    control: Box<dyn CongestionControl>,
    acks: AckRequests,
    limits: ApplicationLimits,
    /// Probes of a timeout that are to be sent in spite of the window.
    probes: u32,
    /// Whether the handshake is over, so that losses are congestion.
    is_ready: bool,
    /// When the pacer lets the next packet go.
    paced_until: Option<Instant>,
    journal: Journal,
}

/// The acknowledgements that were asked for.
#[derive(Clone, Copy, Debug)]
struct AckRequests {
    latest: AckRequest,
    is_wanted: bool,
}

/// When the application, not the window, limited the sender.
#[derive(Clone, Copy, Debug, Default)]
struct ApplicationLimits {
    /// When there was nothing to send the last time.
    idle: Instant,
    /// When the newest acknowledged packet with data was sent.
    data_sent: Instant,
}

impl Sender {
    pub(crate) fn new(config: SenderConfig) -> Self {
        let max_ack_delay = config.acks.max_delay();
        let timing = PathTiming::new(
            config.estimator,
            config.timer,
            max_ack_delay,
            config.initial_round_trip,
        );
        let control = config.control.build();
        let pmtud = Pmtud::new(config.base_mtu, config.greatest_mtu);
        let pace = PacedPath {
            window: control.window(),
            mtu: as_u64(pmtud.current()),
            smoothed: config.initial_round_trip,
        };
        let latest = AckRequest { packets: 2, delay: Duration::MAX };
        Self {
            detector: Detector::new(config.detection),
            pacer: Pacer::new(pace),
            flight: Flight::default(),
            stream: SendStream::default(),
            rate: PathDeliveryRate::default(),
            acks: AckRequests { latest, is_wanted: false },
            limits: ApplicationLimits::default(),
            probes: 0,
            is_ready: false,
            paced_until: None,
            journal: Journal::default(),
            timing,
            control,
            pmtud,
            config,
        }
    }

    /// A packet of the handshake.
    pub(crate) fn handshake(&mut self, now: Instant, bytes: usize, step: Option<Step>) -> Packet {
        let content = step.map_or(Content::None, Content::Handshake);
        self.send(now, bytes, Kind::Ordinary, Vec::new(), content)
    }

    /// A probe for the path MTU, if one is wanted.
    pub(crate) fn probe_mtu(&mut self, now: Instant) -> Option<Packet> {
        let probe = self.pmtud.next_probe(self.stream.queued())?;
        self.pmtud.probed(probe.bytes);
        Some(self.send(now, probe.bytes, Kind::MtuProbe, Vec::new(), Content::None))
    }

    /// The handshake is over.
    pub(crate) fn ready(&mut self) {
        self.is_ready = true;
        self.acks.is_wanted = matches!(self.config.acks, AckPolicy::Negotiated { .. });
    }

    /// The application has this many bytes to send.
    pub(crate) fn write(&mut self, now: Instant, bytes: u64) {
        self.limits.idle = now;
        self.stream.write(bytes);
    }

    /// The measurements of the run.
    pub(crate) fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Notes an event of the run.
    pub(crate) fn note(&mut self, now: Instant, event: Event) {
        self.journal.note(now, event);
    }

    /// Samples of the round-trip time, and updates of the estimate.
    pub(crate) fn round_trips(&self) -> (u64, u64) {
        self.timing.counts()
    }

    /// When [`poll`](Self::poll) is to be called next, after it had nothing to send.
    pub(crate) fn timeout(&self) -> Option<Instant> {
        match (self.detector.due(), self.paced_until) {
            _ if self.detector.has_given_up() => None,
            (Some(due), Some(paced)) => Some(due.min(paced)),
            (due, paced) => due.or(paced),
        }
    }

    /// An acknowledgement came.
    pub(crate) fn acknowledge(&mut self, now: Instant, ack: &AckFrame) {
        let mut newest: Option<(u64, Instant, DeliverySnapshot)> = None;
        let mut measures = false;
        let largest = ack.ranges.first().map(|range| *range.end());
        for number in ack.ranges.iter().cloned().flat_map(Iterator::rev) {
            let Some(before) = self.flight.acknowledge(now, number) else { continue };
            if before == State::Acknowledged {
                continue;
            }
            let Some(packet) = self.flight.packet(number) else { continue };
            measures |= largest == Some(number);
            newest.get_or_insert((number, packet.sent, packet.stamp));
            self.detector.acknowledged();
            self.arrived(now, number, before);
        }
        if let Some((number, sent, stamp)) = newest {
            // Without an acknowledgement of the greatest number there is no sample (RFC 9002
            // section 5.1).
            if measures {
                let delay = if self.is_ready { ack.delay } else { Duration::ZERO };
                self.timing.acknowledged(now, number, sent, delay);
                let view = self.view(now);
                self.notify(now, |control| control.measured_round_trip(&view));
            }
            self.rate.sample(now, sent, stamp);
            let view = self.view(now);
            self.notify(now, |control| control.measured_rate(&view));
            self.acks.is_wanted |= self.config.acks.is_negotiated() && self.is_ready;
            self.sample(now);
        }
    }

    /// A packet arrived at the other end.
    fn arrived(&mut self, now: Instant, number: u64, before: State) {
        let Some(packet) = self.flight.packet(number) else { return };
        let (bytes, sent, is_repeated) = (packet.bytes, packet.sent, packet.is_repeated);
        let has_data = !packet.stream.is_empty();
        self.stream.acknowledge(&packet.stream);
        if before == State::Lost || is_repeated {
            self.journal.counts.spurious += 1;
        }
        let mtu_before = self.pmtud.current();
        self.pmtud.acknowledged(bytes);
        if self.pmtud.current() != mtu_before {
            self.journal.note(now, Event::MtuRaised(self.pmtud.current()));
        }
        if has_data {
            self.limits.data_sent = self.limits.data_sent.max(sent);
        }
        let content = as_u64(bytes.saturating_sub(TAG));
        if before == State::InFlight {
            self.rate.acknowledged(content);
            let view = self.view(now);
            self.notify(now, |control| control.acknowledged(&view, content));
        } else {
            let view = self.view(now);
            self.notify(now, |control| control.was_not_lost(&view));
        }
    }

    /// The next packet to send, if one may be sent now.
    pub(crate) fn poll(&mut self, now: Instant) -> Option<Packet> {
        self.paced_until = None;
        if !self.is_ready || self.detector.has_given_up() {
            return None;
        }
        self.detect_losses(now);
        if !self.pacer.is_open(now) {
            let wants = self.stream.is_ready() || self.probes > 0;
            if wants && (self.has_room() || self.probes > 0) {
                self.paced_until = Some(self.pacer.opens(now));
            }
            return None;
        }
        if self.probes > 0 {
            return self.send_probe(now);
        }
        if !self.has_room() {
            return None;
        }
        let mtu_probe = self.pmtud.next_probe(self.stream.queued());
        let fits = self.control.window() > self.flight.bytes();
        if mtu_probe.is_some_and(|probe| probe.is_urgent) {
            return if fits { self.probe_mtu(now) } else { None };
        }
        if let Some(packet) = self.send_data(now, self.pmtud.current()) {
            return Some(packet);
        }
        self.limits.idle = now;
        self.rate.limited();
        if fits && mtu_probe.is_some() { self.probe_mtu(now) } else { None }
    }

    /// One packet may be sent beyond the window, as long as the window is not exceeded before.
    fn has_room(&self) -> bool {
        self.control.window() >= self.flight.bytes()
    }

    fn send_data(&mut self, now: Instant, bytes: usize) -> Option<Packet> {
        let room = as_u64(bytes.saturating_sub(OVERHEAD));
        let parts = self.stream.take(room);
        if parts.is_empty() {
            return None;
        }
        Some(self.send_parts(now, parts))
    }

    fn send_parts(&mut self, now: Instant, parts: Vec<Range<u64>>) -> Packet {
        let length: u64 = parts.iter().map(|part| part.end - part.start).sum();
        let headers = 8 * (parts.len() - 1);
        let bytes = usize::try_from(length).unwrap_or(usize::MAX) + headers + OVERHEAD;
        let content = Content::Stream(parts.clone());
        self.send(now, bytes, Kind::Ordinary, parts, content)
    }

    /// A probe of a timeout: data that was lost or is new, or that is still in flight, or a PING.
    fn send_probe(&mut self, now: Instant) -> Option<Packet> {
        self.probes -= 1;
        let bytes = match self.config.probes_at_base_mtu {
            true => self.pmtud.base(),
            false => self.pmtud.current(),
        };
        if let Some(packet) = self.send_data(now, bytes) {
            return Some(packet);
        }
        let repeated = self.flight.repeat_oldest().map(|parts| self.stream.missing(&parts));
        if let Some(parts) = repeated.filter(|parts| !parts.is_empty()) {
            // More than fits is sent again by the next probe.
            let room = as_u64(bytes.saturating_sub(OVERHEAD));
            let first = parts[0].start..parts[0].end.min(parts[0].start + room);
            self.journal.counts.repeated += 1;
            return Some(self.send_parts(now, vec![first]));
        }
        Some(self.send(now, PING_BYTES, Kind::Ordinary, Vec::new(), Content::None))
    }

    fn send(
        &mut self,
        now: Instant,
        bytes: usize,
        kind: Kind,
        stream: Vec<Range<u64>>,
        content: Content,
    ) -> Packet {
        let number = self.flight.next_number();
        let stamp = self.rate.stamp();
        let (state, is_repeated) = (State::InFlight, false);
        self.timing.sent(now, number);
        self.pacer.sent(now);
        self.journal.counts.sent += 1;
        let ack_request = if stream.is_empty() { None } else { self.ack_request() };
        let packet =
            SentPacket { number, bytes, sent: now, kind, stream, stamp, state, is_repeated };
        self.flight.sent(packet);
        let (ack_eliciting, ack, is_damaged) = (true, None, false);
        Packet { bytes, number, ack_eliciting, content, ack, ack_request, is_damaged }
    }

    /// The request that goes with the next packet, if the receiver is to change.
    fn ack_request(&mut self) -> Option<AckRequest> {
        if !std::mem::take(&mut self.acks.is_wanted) {
            return None;
        }
        let demand = Demand {
            window: self.control.window(),
            mtu: as_u64(self.pmtud.current()),
            knows_path: self.control.knows_path(),
            smoothed: self.timing.estimate().smoothed,
            least: self.timing.least(),
            rate: self.rate.rate(),
        };
        let (packets, delay) = demand.request();
        // Acknowledgements become rarer, never more frequent.
        let request = AckRequest { packets: packets.max(self.acks.latest.packets), delay };
        let is_new = request != self.acks.latest;
        self.acks.latest = request;
        is_new.then_some(request)
    }

    fn detect_losses(&mut self, now: Instant) {
        let mut first_lost: Option<Instant> = None;
        while self.probes == 0 {
            match self.detector.check(now, &mut self.flight, &self.timing) {
                LossVerdict::Nothing => return,
                LossVerdict::Lost(number) => {
                    let sent = self.flight.packet(number).map_or(now, |packet| packet.sent);
                    let first = *first_lost.get_or_insert(sent);
                    // RFC 9002 section 7.6: persistent congestion.
                    let span = sent.saturating_since(first);
                    let persists = self.config.is_rfc9002() && span > self.timing.timeout() * 3;
                    let cause = if persists { Cause::Timeout } else { Cause::Acknowledgement };
                    self.lose(now, number, cause);
                }
                LossVerdict::LostByTimeout(number) => {
                    if self.lose(now, number, Cause::Timeout) {
                        self.timed_out(now);
                    }
                }
                LossVerdict::ProbeTimeout => self.timed_out(now),
            }
        }
    }

    fn timed_out(&mut self, now: Instant) {
        self.probes = self.detector.probes();
        self.journal.note(now, Event::ProbeTimeout(self.detector.timeouts()));
        if self.detector.has_given_up() {
            self.journal.note(now, Event::GaveUp);
        }
        let resets =
            self.config.timeouts_reset_mtu.is_some_and(|most| self.detector.timeouts() >= most);
        if resets && self.pmtud.current() > self.pmtud.base() {
            self.pmtud.reset();
            self.journal.note(now, Event::MtuReset);
        }
        self.sample(now);
    }

    /// Declares a packet lost. False if it was a probe for the path MTU, whose loss says nothing
    /// about congestion.
    fn lose(&mut self, now: Instant, number: u64, cause: Cause) -> bool {
        let Some(packet) = self.flight.lose(number) else { return false };
        let (bytes, is_probe, stream) =
            (packet.bytes, packet.kind == Kind::MtuProbe, packet.stream.clone());
        if is_probe {
            self.pmtud.probe_lost(bytes);
            self.journal.note(now, Event::MtuProbeLost(bytes));
            return false;
        }
        self.stream.lose(&stream);
        self.journal.counts.lost += 1;
        self.journal.counts.lost_bytes += as_u64(bytes.saturating_sub(TAG));
        if self.is_ready && self.pmtud.lost(bytes) {
            self.journal.note(now, Event::MtuReset);
        }
        if self.is_ready {
            let view = self.view(now);
            self.notify(now, |control| control.lost(&view, number, cause));
        }
        self.pacer.lost();
        true
    }

    /// Tells the congestion control something, and follows its pace.
    fn notify(&mut self, now: Instant, tell: impl FnOnce(&mut dyn CongestionControl)) {
        let knew_path = self.control.knows_path();
        tell(self.control.as_mut());
        if !knew_path && self.control.knows_path() {
            self.journal.note(now, Event::SlowStartLeft);
        }
        let pace = PacedPath {
            window: self.control.window(),
            mtu: as_u64(self.pmtud.current()),
            smoothed: self.timing.estimate().smoothed,
        };
        self.pacer.set(self.control.pacing(), pace);
        if self.control.wants_train() {
            self.pacer.gather();
        }
    }

    fn view(&self, now: Instant) -> PathView {
        PathView {
            now,
            mtu: as_u64(self.pmtud.current()),
            smoothed: self.timing.estimate().smoothed,
            least: self.timing.least(),
            latest: self.timing.latest(),
            in_flight: self.flight.bytes(),
            next_number: self.flight.next_number(),
            highest_acknowledged: self.flight.highest().map_or(0, |highest| highest.number),
            rate: self.rate.rate(),
            peak_rate: self.rate.peak(),
            delivered: self.rate.delivered(),
            delivered_before: self.rate.delivered_before(),
            is_rate_limited: self.rate.is_limited(),
            is_app_limited: self.limits.data_sent < self.limits.idle,
            bytes_lost: self.journal.counts.lost_bytes,
        }
    }

    fn sample(&mut self, now: Instant) {
        let estimate = self.timing.estimate();
        self.journal.sample(Sample {
            at: now,
            latest: self.timing.latest(),
            smoothed: estimate.smoothed,
            variance: estimate.variance,
            timeout: self.timing.timeout(),
            window: self.control.window(),
            in_flight: self.flight.bytes(),
            mtu: self.pmtud.current(),
        });
    }
}

/// Bytes of a packet's header, of the frame around the stream's bytes, and of the tag.
pub(crate) const OVERHEAD: usize = 36;
/// Bytes of the tag that authenticates a packet (RFC 9001 section 5.3).
const TAG: usize = 16;
/// Bytes of a packet with a PING alone.
const PING_BYTES: usize = 32;
