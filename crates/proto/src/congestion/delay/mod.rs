//! Congestion control by delay, for streams of bytes and files: losses do not lower the rate.

mod arrival_rate;
mod competing;
mod contact;
mod drain;
mod growth;
mod limits;
mod longer_path;
mod pipe;
mod queue;
mod queue_owner;
mod reported_capacity;
mod solo;
mod start;
mod window_trial;

use std::time::Duration;

use punctual_units::{Bitrate, Instant};
use punctual_wire::SeqNo;

use self::arrival_rate::ArrivalRate;
use self::competing::Competing;
use self::contact::Contact;
use self::drain::Drain;
use self::growth::Growth;
use self::limits::RateBounds;
use self::pipe::Pipe;
use self::queue::QueueDelay;
use self::queue_owner::{Owner, QueueOwner, Sender};
use self::reported_capacity::Capacity;
use self::solo::Solo;
use self::start::SlowStart;
use self::window_trial::TrialView;
use crate::config::{Config, RatePolicy};
use crate::policy::congestion::{CongestionControl, PathState};
use crate::report_times::ACK_PERIOD;
use crate::wake_up::WakeUp;

/// Sends at the rate of the path with a short queue of its own, and as one flow of CUBIC beside
/// others that fill the queue.
///
/// It sets a window for the packets in the network, which excludes packets that are known to be
/// lost, and paces them at the window per round trip. `docs/stream.md` explains the law.
#[derive(Debug)]
pub(crate) struct DelayControl {
    limits: RateBounds,
    pipe: Pipe,
    queue: QueueDelay,
    arrivals: ArrivalRate,
    phase: DelayPhase,
    queue_owner: QueueOwner,
    drain: Drain,
    /// The largest number of packets in the network.
    window: f64,
    /// The largest one since others were last noticed.
    largest_window: f64,
    /// The greatest queueing delay of the last seconds: that of a full queue.
    deepest_queue: DecayingMost,
    packet_size: u32,
    contact: Contact,
}

#[derive(Debug)]
enum DelayPhase {
    Start(SlowStart),
    Solo(Growth),
    Competing(Competing),
}

/// The greatest value of the last time, which fades.
#[derive(Debug, Default)]
struct DecayingMost {
    value: Duration,
    updated: Option<Instant>,
}

/// The first window, packets (RFC 6928 permits ten in a burst; these are paced).
const FIRST_WINDOW: f64 = 32.0;
const LEAST_WINDOW: f64 = 4.0;
/// The burst after a pause (RFC 9002 section 7.7: up to the initial window of section 7.2).
const BURST: u32 = 10;
/// A window of which less is used does not grow.
const USED: f64 = 0.8;
/// A window does not grow beyond this multiple of the one that fills the path at the rate of the
/// arrivals: if many more are sent than arrive, the rest is lost in a full queue.
const MOST_PER_ARRIVAL: f64 = 2.0;
/// The factor by which packets are sent faster than the window allows in the long run: the window,
/// not the pace, limits the packets in the network.
const PACE: f64 = 1.05;
/// A steady round trip is noticeably long if it exceeds the least one by this share of the target
/// of the queueing delay: the own queue is not steady, because it is drained every ten seconds.
const NOTICEABLE: u32 = 4;
/// A loss lowers the window if the queueing delay exceeds this share of the greatest one.
const FULL_QUEUE: f64 = 0.6;

impl DelayControl {
    /// For packets of `packet_size` bytes, headers included.
    pub(crate) fn new(config: &Config, packet_size: u32) -> Self {
        Self {
            limits: RateBounds::new(config),
            pipe: Pipe::default(),
            queue: QueueDelay::default(),
            arrivals: ArrivalRate::default(),
            phase: DelayPhase::Start(SlowStart::new()),
            queue_owner: QueueOwner::new(),
            drain: Drain::default(),
            window: FIRST_WINDOW,
            largest_window: FIRST_WINDOW,
            deepest_queue: DecayingMost::default(),
            packet_size,
            contact: Contact::new(),
        }
    }

    fn solo(&self) -> Solo {
        let target = self.limits.queue_target(self.queue.base());
        Solo::new(target, self.limits.shares(), self.packet_size, self.queue.noise())
    }

    fn path_view(&self) -> TrialView {
        let rate = self.arrivals.per_second();
        TrialView {
            base: self.queue.base(),
            queue: self.queue.delay(),
            target: self.limits.queue_target(self.queue.base()),
            rate,
        }
    }

    /// Takes in a report of a receiver that knows no round trip yet. It measures one with its first
    /// ACK and reports it with a later one, a round trip later.
    fn follow_first_arrivals(&mut self, now: Instant, path: &PathState) {
        let Some(total) = path.arrived else { return };
        let before = self.pipe.arrived();
        self.pipe.report(total);
        let (new, solo) = (self.pipe.arrived() - before, self.solo());
        let DelayPhase::Start(start) = &mut self.phase else { return };
        let Some(began) = self.pipe.oldest_sent() else { return };
        let rtt = start.reported(now, began);
        let full = solo.full_window(f64::from(path.capacity), rtt);
        start.choose_factor(self.window, full, rtt, Duration::ZERO);
        self.window += start.growth() * new as f64;
    }

    /// Takes in a report of the receiver.
    fn follow_report(&mut self, now: Instant, path: &PathState) {
        let elapsed = self.contact.reported(now, path.rtt.bound().max(path.latest_rtt));
        let before = self.pipe.arrived();
        if let Some(total) = path.arrived {
            self.pipe.report(total);
            self.arrivals.count(now, self.pipe.arrived(), path.rtt.smoothed);
        } else {
            self.arrivals.report(path.delivery_rate);
        }
        self.pipe.bound(now, self.queue.base(), self.contact.longest_in_network());
        self.deepest_queue.update(now, self.queue.delay());
        let new = self.pipe.arrived() - before;
        if let DelayPhase::Start(start) = &mut self.phase {
            start.arrived(new);
        }
        let waits = self.follow_capacity(now, path);
        self.follow(now, elapsed, if waits { 0 } else { new });
    }

    /// Moves the window after a report; `elapsed` is the time since the one before, in which `new`
    /// packets arrived.
    fn follow(&mut self, now: Instant, elapsed: Duration, new: u64) {
        let path = self.path_view();
        let is_used = self.pipe.take_most() as f64 >= USED * self.window;
        let base_fall = self.queue.take_fall();
        match self.phase {
            DelayPhase::Start(_) => self.follow_start(now, &path, is_used, new),
            DelayPhase::Solo(_) => {
                // Over a path that has become shorter, the rate stays.
                self.window *= base_fall;
                self.follow_solo(now, elapsed, &path, is_used);
            }
            DelayPhase::Competing(_) => self.follow_competing(now, &path, is_used),
        }
        self.window = self.window.max(LEAST_WINDOW);
    }

    fn follow_start(&mut self, now: Instant, path: &TrialView, is_used: bool, new: u64) {
        let DelayPhase::Start(start) = &mut self.phase else { return };
        if start.ends(now, path.base, path.queue, path.rate, is_used) {
            self.window = self.full_window(path);
            self.phase = DelayPhase::Solo(Growth::after_queue(now, path.base));
        } else if is_used {
            self.window += start.growth() * new as f64;
        }
    }

    /// Ends the slow start before it overshoots, at the window that fills a path of the capacity
    /// which the receiver reports. Returns whether the window waits there.
    fn follow_capacity(&mut self, now: Instant, path: &PathState) -> bool {
        let (base, arrived) = (self.queue.base(), self.pipe.arrived());
        let (arriving, solo) = (self.arrivals.per_second(), self.solo());
        let full = |rate| solo.full_window(rate, base);
        let DelayPhase::Start(start) = &mut self.phase else { return false };
        match start.capacity().follow(now, base, path.capacity, arrived, arriving) {
            Capacity::Steady(rate) if self.window >= full(rate) => {
                self.window = self.window.min(full(rate.max(arriving)));
                self.phase = DelayPhase::Solo(Growth::after_capacity(now, base));
                false
            }
            Capacity::Moving(rate) if self.window >= full(rate) => {
                start.capacity().waits(now, base)
            }
            _ => {
                let newest_queue = path.latest_rtt.saturating_sub(base);
                let full = full(f64::from(path.capacity));
                start.choose_factor(self.window, full, base, newest_queue);
                false
            }
        }
    }

    fn follow_solo(&mut self, now: Instant, elapsed: Duration, path: &TrialView, is_used: bool) {
        let DelayPhase::Solo(growth) = &self.phase else { return };
        if growth.settles(now) {
            self.window = self.window.max(self.full_window(path));
        }
        if self.drain.follow(now, path.base, path.queue) {
            self.window = self.full_window(path);
        }
        if self.drain.is_under_way() || self.follow_queue_owner(now, path, is_used) {
            return;
        }
        self.follow_law(now, elapsed, path, is_used);
        self.largest_window = self.largest_window.max(self.window);
    }

    /// Looks whose the queue is. Returns whether that decides on the window now.
    fn follow_queue_owner(&mut self, now: Instant, path: &TrialView, is_used: bool) -> bool {
        let own = self.solo().own_delay(self.queue_owner.reference_rate().max(path.rate));
        let sender = Sender { window: self.window, is_used, own };
        match self.queue_owner.of_sender_alone(now, path, sender) {
            Some(Owner::Others) if self.limits.competes() => {
                let (most, shares) = (self.largest_window, self.limits.shares());
                self.phase = DelayPhase::Competing(Competing::new(now, self.window, most, shares));
            }
            Some(Owner::Nobody) => {
                self.queue.path_is_longer();
                let rate = self.queue_owner.reference_rate();
                self.window = self.window.max(rate * path.round_trip().as_secs_f64());
            }
            // The link has become slower.
            Some(Owner::Sender) => self.window = self.window.min(self.full_window(path)),
            Some(Owner::Others) => return false,
            None => return self.queue_owner.left().is_some(),
        }
        true
    }

    /// Moves the window by the law of a sender that is alone.
    fn follow_law(&mut self, now: Instant, elapsed: Duration, path: &TrialView, is_used: bool) {
        let solo = self.solo();
        let DelayPhase::Solo(growth) = &mut self.phase else { return };
        growth.follow(now, path.round_trip(), path.queue, solo.own_delay(path.rate));
        let own = growth.accelerate(solo.own_queue(path.rate), self.window);
        let next = solo.follow(self.window, elapsed, path.base, path.queue, own);
        let may_follow = if next > self.window {
            is_used && next <= MOST_PER_ARRIVAL * self.full_window(path)
        } else {
            // While more packets are in the network than the window holds, the queue that is
            // reported is older than the window. NAKs, which measure round trips toward a peer of
            // another implementation, may be rarer than round trips.
            let is_over = self.pipe.packets() as f64 <= self.window + self.unreported();
            is_over && !self.queue.is_stale(now)
        };
        if may_follow {
            self.window = next;
        }
    }

    fn follow_competing(&mut self, now: Instant, path: &TrialView, is_used: bool) {
        let DelayPhase::Competing(competing) = &mut self.phase else { return };
        if is_used {
            self.window = competing.window(now, path.round_trip());
        }
        match self.queue_owner.of_competing_sender(now, path) {
            None | Some(Owner::Others) => return,
            Some(Owner::Sender) => self.window = self.full_window(path),
            Some(Owner::Nobody) => self.queue.path_is_longer(),
        }
        self.largest_window = self.window;
        self.phase = DelayPhase::Solo(Growth::new());
    }

    /// The window that fills the path at its present rate, with the sender's own queue.
    fn full_window(&self, path: &TrialView) -> f64 {
        self.solo().full_window(path.rate, path.base)
    }

    /// The window that applies now.
    fn effective_window(&self) -> f64 {
        let share = match self.phase {
            DelayPhase::Start(_) => None,
            DelayPhase::Competing(_) => self.queue_owner.left(),
            DelayPhase::Solo(_) => {
                let drain = || self.drain.share(self.queue.base(), self.queue.delay());
                self.queue_owner.left().or_else(drain)
            }
        };
        share.map_or(self.window, |share| (share * self.window).max(LEAST_WINDOW))
    }

    /// The number of packets that may have arrived since the last report: reports come each 10 ms.
    fn unreported(&self) -> f64 {
        self.arrivals.per_second() * ACK_PERIOD.as_secs_f64()
    }

    fn packets_per_second(&self) -> f64 {
        let window = self.effective_window();
        let DelayPhase::Start(start) = &self.phase else {
            let time = self.queue.round_trip() + ACK_PERIOD;
            return PACE * (window + self.unreported()) / time.as_secs_f64();
        };
        let rtt = match self.queue.is_known() {
            true => self.queue.round_trip(),
            false => start.first_report().unwrap_or(punctual_rtt::Rtt::INITIAL.smoothed),
        };
        start.pace() * window / rtt.as_secs_f64().max(1e-3)
    }

    fn sending_rate(&self) -> Bitrate {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        let bytes = (self.packets_per_second() * f64::from(self.packet_size)) as u64;
        self.limits.clamp(Bitrate::from_bytes_per_sec(bytes))
    }

    /// The instant at which a packet may be sent although the window is full: when reports must
    /// have been lost, when the oldest packets in the network must have left it, or as the least
    /// rate demands.
    fn next_despite_window(&self) -> Instant {
        let beyond = self.pipe.packets() as f64 - self.effective_window();
        let without_reports = self.contact.next_without_reports(beyond / self.unreported());
        let by_time = self.contact.next_despite_window(|| {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive")]
            let fits = ((self.effective_window() + self.unreported()) as u64).saturating_sub(1);
            self.pipe.since(fits)
        });
        let by_least_rate = match self.limits.least {
            Bitrate::ZERO => None,
            least => Some(self.contact.last_sent() + least.time_for(self.packet_size.into())),
        };
        without_reports.into_iter().chain(by_least_rate).fold(by_time, Instant::min)
    }
}

impl CongestionControl for DelayControl {
    fn period(&self) -> Duration {
        self.sending_rate().time_for(self.packet_size.into())
    }

    fn rate(&self) -> Option<Bitrate> {
        Some(self.sending_rate())
    }

    fn window(&self) -> u32 {
        u32::MAX
    }

    fn max_bandwidth(&self) -> Bitrate {
        self.sending_rate()
    }

    fn burst(&self) -> u32 {
        BURST
    }

    fn opens(&self) -> WakeUp {
        let window = self.effective_window() + self.unreported();
        if self.limits.policy == RatePolicy::Fixed || (self.pipe.packets() as f64) < window {
            WakeUp::Now
        } else {
            WakeUp::At(self.next_despite_window())
        }
    }

    fn sent(&mut self, now: Instant) {
        self.pipe.sent(now);
        self.contact.sent(now);
    }

    fn acknowledged(&mut self, now: Instant, _packets: u32, path: &PathState) {
        if path.latest_rtt.is_zero() {
            self.follow_first_arrivals(now, path);
        } else {
            self.follow_report(now, path);
        }
    }

    fn round_trip(&mut self, now: Instant, path: &PathState) {
        let long = self.limits.queue_target(path.base_rtt) / NOTICEABLE;
        self.queue.sample(now, path.latest_rtt, path.base_rtt, long);
    }

    fn lost(&mut self, now: Instant, first: SeqNo, path: &PathState) {
        self.pipe.lost(path.newly_lost);
        if path.arrived.is_some_and(|total| self.pipe.reports_more(total)) {
            self.follow_report(now, path);
        }
        let competing = match &mut self.phase {
            DelayPhase::Start(start) => return start.lost(path.newly_lost),
            DelayPhase::Solo(_) => return,
            DelayPhase::Competing(competing) => competing,
        };
        let full = self.deepest_queue.value.mul_f64(FULL_QUEUE);
        if competing.is_new(first) && self.queue.delay() >= full {
            let window = competing.handle_loss(now, self.window, path.next_new);
            self.window = window.max(LEAST_WINDOW);
        }
    }

    fn timed_out(&mut self, _now: Instant, _path: &PathState) {
        self.pipe.clear();
    }

    fn configured(&mut self, config: &Config) {
        self.limits = RateBounds::new(config);
    }
}

impl DecayingMost {
    fn update(&mut self, now: Instant, value: Duration) {
        /// It halves in this time.
        const HALF_LIFE: f64 = 20.0;
        let elapsed = self.updated.map_or(0.0, |at| now.saturating_since(at).as_secs_f64());
        self.updated = Some(now);
        self.value = self.value.mul_f64(libm::exp2(-elapsed / HALF_LIFE)).max(value);
    }
}
