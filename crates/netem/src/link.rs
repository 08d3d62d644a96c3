use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

use punctual_units::Instant;

use crate::bottleneck::Bottleneck;
use crate::config::{Jitter, LinkConfig, Reorder};
use crate::generators::{Generators, happens};
use crate::loss::{Loss, LossCause, LossState};
use crate::packet::Packet;
use crate::profile::LinkProfile;
use crate::schedule::Schedule;
use crate::service::Service;
use crate::statistics::LinkStatistics;

/// One direction of a network link.
///
/// - in: [`send`](Self::send), [`set_config`](Self::set_config)
/// - out: [`recv`](Self::recv), [`poll_timeout`](Self::poll_timeout)
///
/// Instants must not go backwards from call to call; one that does counts as the latest that was
/// given.
#[derive(Clone, Debug)]
pub struct Link<P> {
    config: LinkConfig,
    /// Its changes over time, if there are any.
    schedule: Option<Box<Schedule>>,
    /// Time zero, once the link has started.
    zero: Option<Instant>,
    chance: Generators,
    loss: LossState,
    bottleneck: Bottleneck<QueuedPacket<P>>,
    /// Packets past the bottleneck that arrive in the order of their departure.
    flights: VecDeque<PacketInFlight<P>>,
    /// Packets that arrive before one that departed earlier.
    overtaking: BinaryHeap<PacketInFlight<P>>,
    /// The latest instant given.
    now: Instant,
    /// Packets that left the bottleneck, which numbers them in their order.
    departed: u64,
    /// The latest arrival of a packet that keeps its order.
    latest_arrival: Instant,
    /// One more than the largest number delivered.
    delivered_up_to: u64,
    statistics: LinkStatistics,
}

/// A packet that comes out of a link.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Arrival<P> {
    /// When it arrives. Earlier than the instant given to [`Link::recv`] if that is late.
    pub at: Instant,
    /// The packet.
    pub packet: P,
}

/// A packet in the bottleneck.
#[derive(Clone, Debug)]
struct QueuedPacket<P> {
    /// `None` if it was too long: then only its bytes are transmitted.
    packet: Option<P>,
    ticket: Ticket,
}

/// Where in the generators a packet finds what chance says about it.
#[derive(Clone, Copy, Debug)]
struct Ticket {
    /// Counted from 0 as packets enter the link.
    number: u64,
    /// Whether it is the copy of the packet of this number.
    copy: bool,
}

/// A packet past the bottleneck.
#[derive(Clone, Debug)]
struct PacketInFlight<P> {
    at: Instant,
    number: u64,
    packet: P,
}

impl<P: Packet> Link<P> {
    /// An empty link. Links that are to differ in their chance need different seeds; any will do.
    pub fn new(profile: impl Into<LinkProfile>, seed: u64) -> Self {
        let profile = profile.into();
        let config = profile.config.clone();
        let schedule = Schedule::new(profile);
        let service = match &schedule {
            Some(schedule) => schedule.service(&config).0,
            None => Service::Rate(config.rate),
        };
        Self {
            schedule,
            zero: None,
            chance: Generators::new(seed),
            loss: LossState::default(),
            bottleneck: Bottleneck::new(service, config.discipline),
            flights: VecDeque::new(),
            overtaking: BinaryHeap::new(),
            now: Instant::ORIGIN,
            departed: 0,
            latest_arrival: Instant::ORIGIN,
            delivered_up_to: 0,
            statistics: LinkStatistics::default(),
            config,
        }
    }

    /// Starts the link: this instant is its time zero, from which its timeline, its trace and
    /// [timed losses](Loss::Timed) count.
    ///
    /// A link that is not started starts with the first call that gives it an instant. Once it has
    /// started, this only brings it up to date.
    pub fn start(&mut self, now: Instant) {
        self.advance(now);
    }

    /// Time zero of the timeline and the trace; `None` before the link has started.
    pub fn started(&self) -> Option<Instant> {
        self.zero
    }

    /// Puts a packet into the link.
    pub fn send(&mut self, now: Instant, packet: P) {
        self.advance(now);
        let number = self.statistics.sent;
        self.statistics.sent += 1;
        self.statistics.sent_bytes += packet.len() as u64;
        if let Some(cause) = self.lost(number) {
            self.statistics.count_lost(cause);
            return;
        }
        let ticket = Ticket { number, copy: false };
        let duplicate = self.config.duplicate;
        if duplicate > 0.0 && happens(duplicate, self.chance.duplicate.one(number)) {
            self.statistics.duplicated += 1;
            self.enqueue(packet.clone(), ticket);
            self.enqueue(packet, Ticket { number, copy: true });
        } else {
            self.enqueue(packet, ticket);
        }
    }

    /// When [`recv`](Self::recv) should be called next; `None` if nothing will come without a
    /// [`send`](Self::send) or a [`set_config`](Self::set_config).
    ///
    /// Never later than the next arrival. It is the very instant of it unless packets wait for
    /// transmission and either a change of the link's timeline or trace comes before the first of
    /// them arrives, or there is jitter or reordering: then `recv` may have nothing yet.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let flying = self.flights.front().map(|flight| flight.at);
        let overtaking = self.overtaking.peek().map(|flight| flight.at);
        earlier(earlier(self.next_departing(), flying), overtaking)
    }

    /// The next packet that has arrived by `now`: in the order of arrival, and of departure where
    /// that is the same.
    pub fn recv(&mut self, now: Instant) -> Option<Arrival<P>> {
        self.advance(now);
        let PacketInFlight { at, number, packet } = self.land()?;
        self.statistics.delivered += 1;
        self.statistics.delivered_bytes += packet.len() as u64;
        if number < self.delivered_up_to {
            self.statistics.reordered += 1;
        }
        self.delivered_up_to = self.delivered_up_to.max(number + 1);
        Some(Arrival { at, packet })
    }

    /// Goes on with another configuration.
    ///
    /// Waiting packets stay in the queue, even if they exceed the new limit, and are transmitted at
    /// the new rate; transmitted packets arrive at their times. Ramps of the timeline that are
    /// under way end here; a stall or an outage lasts as long as before, and later changes of the
    /// timeline and the trace are made.
    pub fn set_config(&mut self, now: Instant, config: LinkConfig) {
        self.advance(now);
        let rate_changed = config.rate != self.config.rate;
        self.config = config;
        if let Some(schedule) = &mut self.schedule {
            schedule.forget_slopes(rate_changed);
        }
        self.reconfigure(self.now);
        self.advance(now);
    }

    /// The configuration in force at the latest instant given. While the link has a trace or a
    /// timeline, it may differ from call to call.
    pub fn config(&self) -> &LinkConfig {
        &self.config
    }

    /// Packets in the link: in the queue, being transmitted, and on their way.
    pub fn in_flight(&self) -> usize {
        self.bottleneck.len() + self.flights.len() + self.overtaking.len()
    }

    /// The totals of the link so far.
    pub fn statistics(&self) -> &LinkStatistics {
        &self.statistics
    }

    /// Sends on their way the packets that are transmitted by `now`, and makes the changes that are
    /// due, each at its time.
    fn advance(&mut self, now: Instant) {
        self.now = self.now.max(now);
        if self.zero.is_none() {
            self.zero = Some(self.now);
            if let Some(schedule) = &mut self.schedule {
                schedule.start(self.now);
            }
        }
        if self.schedule.is_some() {
            self.advance_through_changes();
        } else if self.bottleneck.is_due(self.now) {
            self.depart(self.now);
        }
    }

    fn advance_through_changes(&mut self) {
        loop {
            let Some(schedule) = &self.schedule else { return };
            let change = schedule.next_change().filter(|&at| at <= self.now);
            self.depart(change.unwrap_or(self.now));
            let Some(schedule) = &mut self.schedule else { return };
            let Some(at) = change else {
                schedule.follow_slopes(self.now, &mut self.config);
                return;
            };
            schedule.follow_slopes(at, &mut self.config);
            schedule.make_next_change(self.now, &mut self.config);
            self.reconfigure(at);
        }
    }

    /// Tells the bottleneck the parameters from `at` on.
    fn reconfigure(&mut self, at: Instant) {
        let (service, stalled) = match &mut self.schedule {
            Some(schedule) => {
                if self.bottleneck.len() == 0 && schedule.is_draining() {
                    schedule.has_drained();
                }
                schedule.service(&self.config)
            }
            None => (Service::Rate(self.config.rate), false),
        };
        self.bottleneck.set_service(at, service, stalled);
        self.bottleneck.set_discipline(self.config.discipline);
    }

    /// Sends on their way the packets that are transmitted by `until`; no change is due before.
    fn depart(&mut self, until: Instant) {
        while let Some((departure, QueuedPacket { packet, ticket })) = self.bottleneck.pop(until) {
            if let Some(schedule) = &self.schedule {
                schedule.follow_slopes(departure, &mut self.config);
                if self.bottleneck.len() == 0 && schedule.is_draining() {
                    self.reconfigure(departure);
                }
            }
            match packet {
                Some(packet) => self.fly(departure, ticket, packet),
                None => self.statistics.dropped_by_mtu += 1,
            }
        }
        self.statistics.queue_delay_max = self.bottleneck.queue_delay_max();
        self.statistics.dropped_by_codel = self.bottleneck.dropped_by_codel();
    }

    /// The cause by which the packet of this number, which enters now, is lost, if it is.
    fn lost(&mut self, number: u64) -> Option<LossCause> {
        if self.schedule.as_ref().is_some_and(|schedule| schedule.is_outage(self.now)) {
            return Some(LossCause::Outage);
        }
        if matches!(self.config.loss, Loss::None) {
            self.loss.forget();
            return None;
        }
        let age = self.now - self.zero.unwrap_or(self.now);
        self.loss.lost(&self.config.loss, number, age, &mut self.chance.loss)
    }

    fn enqueue(&mut self, mut packet: P, ticket: Ticket) {
        let bytes = self.config.bytes(packet.len());
        if !self.bottleneck.admits(self.now, bytes, self.config.queue) {
            self.statistics.dropped_by_queue += 1;
            return;
        }
        let Ticket { number, copy } = ticket;
        if self.config.corrupt > 0.0 {
            let draws = if copy { &mut self.chance.copy } else { &mut self.chance.original };
            let [whether, place] = draws.corrupt.two(number);
            if happens(self.config.corrupt, whether) {
                packet.corrupt(place);
                self.statistics.corrupted += 1;
            }
        }
        let too_long = self.config.mtu.is_some_and(|mtu| packet.len() > mtu);
        if !self.bottleneck.is_open() {
            let packet = (!too_long).then_some(packet);
            self.bottleneck.push(self.now, bytes, QueuedPacket { packet, ticket });
            if self.bottleneck.is_due(self.now) {
                self.depart(self.now);
            }
        } else if too_long {
            self.statistics.dropped_by_mtu += 1;
        } else {
            self.fly(self.now, ticket, packet);
        }
    }

    /// Sends on its way a packet that is transmitted at `departure`.
    fn fly(&mut self, departure: Instant, ticket: Ticket, packet: P) {
        let at = self.arrival(departure, ticket);
        let flight = PacketInFlight { at, number: self.departed, packet };
        self.departed += 1;
        if self.flights.back().is_none_or(|last| last.at <= at) {
            self.flights.push_back(flight);
        } else {
            self.overtaking.push(flight);
        }
    }

    /// When a packet arrives that is transmitted at `departure`.
    fn arrival(&mut self, departure: Instant, Ticket { number, copy }: Ticket) -> Instant {
        let draws = if copy { &mut self.chance.copy } else { &mut self.chance.original };
        let delay = match self.config.jitter {
            Jitter::None => self.config.delay,
            _ => self.config.jittered_delay(draws.jitter.two(number)),
        };
        match self.config.reorder {
            Reorder::Ahead { share, by } if happens(share, draws.reorder.one(number)) => {
                departure + delay.saturating_sub(by)
            }
            Reorder::Late { share, by } if happens(share, draws.reorder.one(number)) => {
                departure + delay.saturating_add(by)
            }
            _ => {
                let mut arrival = departure + delay;
                if self.config.keep_order {
                    arrival = arrival.max(self.latest_arrival);
                }
                self.latest_arrival = self.latest_arrival.max(arrival);
                arrival
            }
        }
    }

    /// The least instant at which the first packet of the bottleneck may arrive, or at which
    /// something changes before it leaves, or before one behind it may overtake it.
    fn next_departing(&self) -> Option<Instant> {
        if self.bottleneck.len() == 0 {
            return None;
        }
        let departure = self.bottleneck.next_departure();
        let change = self.schedule.as_ref().and_then(|schedule| schedule.next_change());
        let Some(departure) = departure.filter(|&at| change.is_none_or(|change| at <= change))
        else {
            return change;
        };
        let ordered = self.config.keep_order && self.config.reorder == Reorder::None;
        let delay = match &self.schedule {
            Some(schedule) => {
                let (here, least) = schedule.delays_at(departure, &self.config);
                // If the delay falls faster than time passes, a later packet may overtake.
                if ordered { here } else { least }
            }
            None => self.config.delay,
        };
        let mut arrival = departure + self.config.min_delay_of(delay);
        if ordered {
            arrival = arrival.max(self.latest_arrival);
        }
        // A packet behind may leave after the change, with less delay.
        let behind = self.bottleneck.len() > 1;
        earlier(Some(arrival), change.filter(|_| behind))
    }

    /// Takes out the flight that has landed first by now.
    fn land(&mut self) -> Option<PacketInFlight<P>> {
        let first = self.flights.front();
        let overtaker = self.overtaking.peek();
        let overtaken = match (first, overtaker) {
            (Some(first), Some(overtaker)) => overtaker > first,
            (None, Some(_)) => true,
            _ => false,
        };
        let next = if overtaken { overtaker } else { first }?;
        if next.at > self.now {
            return None;
        }
        if overtaken { self.overtaking.pop() } else { self.flights.pop_front() }
    }
}

fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

impl<P> Ord for PacketInFlight<P> {
    /// The earliest is the greatest, because `BinaryHeap` gives the greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

impl<P> PartialOrd for PacketInFlight<P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<P> Eq for PacketInFlight<P> {}

impl<P> PartialEq for PacketInFlight<P> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
