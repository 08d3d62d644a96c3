use std::time::Duration;

use punctual_units::Instant;

use super::super::TrafficStatistics;
use super::super::control::{AckSummary, CongestionControl};
use super::Packet;
use super::delivery_rate::FlowDeliveryRate;
use super::rack::{Rack, probe_timeout};
use super::rate_reduction::RateReduction;
use super::recovery::Recovery;
use super::retransmission_timer::TcpRetransmissionTimer;
use super::segments::Segments;
use super::source::Segmenter;
use super::transmissions::{Sent, Transmissions};

/// The sender of a TCP flow: it finds losses, and sends as much as its congestion control lets it.
#[derive(Debug)]
pub(super) struct Sender {
    packet: u64,
    max_window: u64,
    control: Box<dyn CongestionControl>,
    source: Segmenter,
    transmissions: Transmissions,
    segments: Segments,
    recovery: Recovery,
    reduction: Option<RateReduction>,
    timer: TcpRetransmissionTimer,
    /// A flow of [`Traffic::TcpLike`](super::super::Traffic::TcpLike) has none.
    rack: Option<Rack>,
    rate: FlowDeliveryRate,
    pacer: Pacer,
    window_use: WindowUse,
    totals: Totals,
}

/// Whether the flow uses its whole window.
#[derive(Debug, Default)]
struct WindowUse {
    /// The number of the next packet when the window was full last.
    full_at: u32,
    /// The newest packet that is known to have arrived.
    newest_arrival: u32,
}

/// Spaces packets in time.
#[derive(Debug)]
struct Pacer {
    /// The next packet may leave then.
    next: Instant,
    /// When the flow can send again, if it is not the window that it waits for.
    wake: Option<Instant>,
}

#[derive(Debug, Default)]
struct Totals {
    /// Segments that the sender knows to have arrived.
    acknowledged: u64,
    lost: u64,
    retransmitted: u64,
    probes: u64,
    reductions: u64,
    timeouts: u64,
}

/// The news of an answer, or of a timer.
#[derive(Debug, Default)]
struct News {
    packets: u64,
    growing: u64,
    lost: u64,
    newest_lost: Option<u32>,
    rtt: Option<Duration>,
}

impl Sender {
    /// A sender of packets of `packet` bytes.
    pub(super) fn new(
        packet: u64,
        max_window: u64,
        control: Box<dyn CongestionControl>,
        source: Segmenter,
    ) -> Self {
        Self {
            packet,
            max_window: max_window.max(packet),
            control,
            source,
            transmissions: Transmissions::default(),
            segments: Segments::default(),
            recovery: Recovery::selective(),
            reduction: None,
            timer: TcpRetransmissionTimer::new(LEAST_VARIANCE),
            rack: Some(Rack::default()),
            rate: FlowDeliveryRate::new(),
            pacer: Pacer { next: Instant::ORIGIN, wake: None },
            window_use: WindowUse::default(),
            totals: Totals::default(),
        }
    }

    /// The sender of a flow of [`Traffic::TcpLike`](super::super::Traffic::TcpLike).
    pub(super) fn simple(
        packet: u64,
        max_window: u64,
        control: Box<dyn CongestionControl>,
    ) -> Self {
        Self {
            recovery: Recovery::simple(),
            rack: None,
            timer: TcpRetransmissionTimer::new(Duration::ZERO),
            ..Self::new(packet, max_window, control, Segmenter::Endless)
        }
    }

    /// A packet that may leave now.
    pub(super) fn poll_send(&mut self, now: Instant) -> Option<Packet> {
        self.pacer.wake = None;
        if self.rack.as_ref().is_some_and(Rack::is_probe_due) {
            let probe = self.send_probe(now);
            self.rack.as_mut()?.probe_sent(probe.map(|packet| packet.transmission));
            if probe.is_some() {
                return probe;
            }
        }
        let lost = self.segments.first_lost();
        if self.flight() + self.packet > self.window() {
            if lost.is_some() || self.source.has(now) {
                self.window_use.full_at = self.transmissions.next_number();
            }
            return None;
        }
        if lost.is_none() && !self.source.has(now) {
            self.rate.on_source_empty(self.flight());
            self.pacer.wake = self.source.next(now);
            return None;
        }
        let pacing_rate = self.control.pacing_rate();
        if pacing_rate.is_some() && now < self.pacer.next {
            self.pacer.wake = Some(self.pacer.next);
            return None;
        }
        let segment = lost.unwrap_or_else(|| {
            self.source.take(now);
            self.segments.next_new()
        });
        if let Some(reduction) = &mut self.reduction {
            reduction.on_send();
        }
        let packet = self.send(now, segment);
        self.schedule_probe(now);
        if let Some(rate) = self.control.pacing_rate() {
            self.pacer.next = self.pacer.next.max(now) + rate.time_for(self.packet);
        }
        Some(packet)
    }

    /// When it is to be called.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let rack = self.rack.as_ref().and_then(Rack::poll_timeout);
        [self.timer.due(), rack, self.pacer.wake].into_iter().flatten().min()
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if self.rack.as_ref().is_some_and(|rack| rack.is_late(now)) {
            self.conclude(now, self.flight(), News::default());
        }
        if self.rack.as_mut().is_some_and(|rack| rack.take_probe(now)) {
            self.timer.start(now);
        }
        if self.timer.due().is_none_or(|at| at > now) {
            return;
        }
        match self.flight() {
            0 => self.timer.stop(),
            flight => self.time_out(now, flight),
        }
    }

    /// An answer arrived, which tells of these packets; the last one is marked.
    pub(super) fn handle_answer(
        &mut self,
        now: Instant,
        arrived: impl Iterator<Item = (Packet, bool)>,
    ) {
        let prior_flight = self.flight();
        let mut news = News::default();
        for (packet, is_last) in arrived {
            self.acknowledge(now, packet, is_last, &mut news);
        }
        self.conclude(now, prior_flight, news);
        if self.flight() > 0 {
            self.timer.start(now);
        } else {
            self.timer.stop();
        }
        self.schedule_probe(now);
    }

    pub(super) fn tell(&self, statistics: &mut TrafficStatistics) {
        statistics.goodput_bytes = self.totals.acknowledged * self.packet;
        statistics.lost = self.totals.lost;
        statistics.retransmitted = self.totals.retransmitted;
        statistics.probes = self.totals.probes;
        statistics.reductions = self.totals.reductions;
        statistics.timeouts = self.totals.timeouts;
        statistics.window = self.control.window();
        statistics.pacing_rate = self.control.pacing_rate();
        statistics.rtt = self.timer.rtt();
    }

    /// Bytes in flight, as far as the sender knows.
    fn flight(&self) -> u64 {
        self.transmissions.open() * self.packet
    }

    fn window(&self) -> u64 {
        let window = self.control.window().min(self.max_window);
        match &self.reduction {
            Some(reduction) => window.min(reduction.limit() * self.packet).max(self.packet),
            None => window,
        }
    }

    /// The next transmission, and the next new segment.
    fn next(&self) -> Packet {
        Packet { transmission: self.transmissions.next_number(), segment: self.segments.next_new() }
    }

    fn send(&mut self, now: Instant, segment: u32) -> Packet {
        let is_idle = self.transmissions.open() == 0;
        if is_idle && self.rate.is_app_limited() {
            self.control.on_restart();
        }
        let snapshot = self.rate.on_send(now, self.packet, self.flight());
        self.totals.retransmitted += u64::from(segment != self.segments.next_new());
        self.segments.send(segment);
        let packet = self.transmissions.send(now, segment, snapshot);
        if self.transmissions.has_one() || self.timer.due().is_none_or(|at| at <= now) {
            self.timer.start(now);
        }
        packet
    }

    /// The tail loss probe: a new segment, or the last one again.
    fn send_probe(&mut self, now: Instant) -> Option<Packet> {
        let segment = if self.source.take(now) {
            self.segments.next_new()
        } else {
            self.segments.last_unknown()?
        };
        self.totals.probes += 1;
        Some(self.send(now, segment))
    }

    /// The next probe's time, if there may be one (RFC 8985 section 7.2).
    fn schedule_probe(&mut self, now: Instant) {
        let Some(rack) = &mut self.rack else { return };
        let rtt = self.timer.rtt();
        let in_flight = self.transmissions.open();
        let may_probe = self.recovery.is_open() && in_flight > 0 && !rtt.is_zero();
        let at = now + probe_timeout(rtt, in_flight);
        let at = self.timer.due().map_or(at, |due| due.min(at));
        rack.schedule_probe(may_probe.then_some(at));
    }

    fn acknowledge(&mut self, now: Instant, packet: Packet, is_last: bool, news: &mut News) {
        let sent = self.transmissions.arrive(packet.transmission);
        if sent.is_none() && self.rack.is_none() {
            return;
        }
        let is_first = self.segments.arrive(packet.segment);
        self.totals.acknowledged += u64::from(is_first);
        let Some(sent) = sent else {
            // It was taken for lost and came late.
            if is_first {
                news.packets += 1;
                self.rate.on_late_arrival(now, self.packet);
            }
            return;
        };
        if is_last {
            let sample = now - sent.at;
            self.timer.sample(sample);
            news.rtt = Some(sample);
        }
        self.timer.reset_backoff();
        self.rate.on_arrival(now, self.packet, sent.at, sent.snapshot);
        if let Some(rack) = &mut self.rack {
            rack.on_arrival(now, packet.transmission, sent.at);
        }
        news.packets += 1;
        news.growing += u64::from(self.recovery.lets_grow(packet));
        self.window_use.newest_arrival = packet.transmission;
    }

    /// Finds losses, and tells the congestion control what happened.
    fn conclude(&mut self, now: Instant, prior_flight: u64, mut news: News) {
        self.find_losses(now, &mut news);
        let ack = AckSummary {
            now,
            packets: news.packets,
            growing: news.growing,
            lost: news.lost,
            prior_flight,
            flight: self.flight(),
            rtt: news.rtt,
            smoothed_rtt: self.timer.rtt(),
            delivered: self.rate.delivered(),
            rate: self.rate.sample(self.timer.least_rtt()),
            window_limited: self.window_use.full_at > self.window_use.newest_arrival,
        };
        self.control.on_ack(&ack);
        if news.newest_lost.is_some_and(|number| self.recovery.begins_with(number)) {
            self.control.on_loss(&ack);
            self.recovery.begin(self.next());
            self.totals.reductions += 1;
            if self.recovery.is_fast() && self.control.reduces_in_proportion() {
                self.reduction = Some(RateReduction::new(prior_flight / self.packet));
            }
        }
        if self.recovery.ends(self.segments.first()) {
            self.reduction = None;
            self.control.on_recovered();
        }
        if let Some(reduction) = &mut self.reduction {
            let target = self.control.window() / self.packet;
            reduction.on_ack(news.packets, self.transmissions.open(), target);
        }
    }

    fn find_losses(&mut self, now: Instant, news: &mut News) {
        while let Some(lost) = self.transmissions.lose_overtaken(REORDERING) {
            self.lose(lost, news);
        }
        let Some(tolerance) =
            self.rack.as_ref().and_then(|rack| rack.tolerance(self.timer.least_rtt()))
        else {
            return;
        };
        let wait = loop {
            match self.transmissions.lose_late(now, tolerance) {
                Ok(Some(lost)) => self.lose(lost, news),
                Ok(None) => break None,
                Err(at) => break Some(at),
            }
        };
        if let Some(rack) = &mut self.rack {
            rack.wait_until(wait);
        }
    }

    fn lose(&mut self, (number, sent): (u32, Sent), news: &mut News) {
        self.totals.lost += 1;
        self.rate.on_loss(self.packet);
        self.segments.lose(sent.segment);
        news.lost += 1;
        news.newest_lost = Some(number);
    }

    /// Nothing came back for too long: all that is in flight counts as lost.
    fn time_out(&mut self, now: Instant, flight: u64) {
        self.totals.timeouts += 1;
        // A flow of `Traffic::TcpLike` halves its threshold each time.
        let repeated = self.rack.is_some() && self.timer.has_backed_off();
        self.timer.back_off();
        self.control.on_timeout(now, flight, repeated);
        self.recovery.time_out(self.next());
        self.reduction = None;
        if let Some(rack) = &mut self.rack {
            rack.on_timeout();
        }
        while let Some(lost) = self.transmissions.lose_first() {
            self.lose(lost, &mut News::default());
        }
        self.timer.start(now);
    }
}

/// Packets (RFC 5681).
const REORDERING: u32 = 3;
/// As in Linux, `TCP_RTO_MIN`: the timeout is the round trip and at least that.
const LEAST_VARIANCE: Duration = Duration::from_millis(200);
