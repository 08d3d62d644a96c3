use std::cmp::Ordering;
use std::collections::BinaryHeap;

use punctual_units::Instant;

use crate::bottleneck::Bottleneck;
use crate::chance::{Chance, Fate, happens};
use crate::config::{LinkConfig, Reorder};
use crate::loss::LossState;
use crate::packet::Packet;
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
    chance: Chance,
    loss: LossState,
    bottleneck: Bottleneck<(P, Fate)>,
    flights: BinaryHeap<Flight<P>>,
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

/// A packet past the bottleneck.
#[derive(Clone, Debug)]
struct Flight<P> {
    at: Instant,
    number: u64,
    packet: P,
}

impl<P: Packet> Link<P> {
    /// An empty link. Links that are to differ in their chance need different seeds; any will do.
    pub fn new(config: LinkConfig, seed: u64) -> Self {
        Self {
            chance: Chance::new(seed),
            loss: LossState::default(),
            bottleneck: Bottleneck::new(config.rate),
            flights: BinaryHeap::new(),
            now: Instant::ORIGIN,
            departed: 0,
            latest_arrival: Instant::ORIGIN,
            delivered_up_to: 0,
            statistics: LinkStatistics::default(),
            config,
        }
    }

    /// Puts a packet into the link.
    pub fn send(&mut self, now: Instant, packet: P) {
        self.advance(now);
        let draws = self.chance.draw();
        self.statistics.sent += 1;
        self.statistics.sent_bytes += packet.len() as u64;
        if self.loss.is_lost(&self.config.loss, draws.loss) {
            self.statistics.lost += 1;
            return;
        }
        if happens(self.config.duplicate, draws.duplicate) {
            self.statistics.duplicated += 1;
            self.enqueue(packet.clone(), draws.original);
            self.enqueue(packet, draws.copy);
        } else {
            self.enqueue(packet, draws.original);
        }
    }

    /// When [`recv`](Self::recv) should be called next; `None` if nothing will come without a
    /// [`send`](Self::send) or a [`set_config`](Self::set_config).
    ///
    /// Never later than the next arrival, and the very instant of it unless packets with jitter or
    /// reordering wait for transmission: then `recv` may have nothing yet.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let departing = self.bottleneck.next_departure().map(|departure| {
            let arrival = departure + self.config.min_delay();
            let ordered = self.config.keep_order && self.config.reorder == Reorder::None;
            if ordered { arrival.max(self.latest_arrival) } else { arrival }
        });
        let flying = self.flights.peek().map(|flight| flight.at);
        [departing, flying].into_iter().flatten().min()
    }

    /// The next packet that has arrived by `now`: in the order of arrival, and of departure where
    /// that is the same.
    pub fn recv(&mut self, now: Instant) -> Option<Arrival<P>> {
        self.advance(now);
        if self.flights.peek()?.at > self.now {
            return None;
        }
        let Flight { at, number, packet } = self.flights.pop()?;
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
    /// What waits in the queue stays there, even if it is too much for the new limit, and is
    /// transmitted at the new rate; what has been transmitted arrives when it would have.
    pub fn set_config(&mut self, now: Instant, config: LinkConfig) {
        self.advance(now);
        if config.rate != self.config.rate {
            self.bottleneck.set_rate(self.now, config.rate);
        }
        self.config = config;
        self.advance(now);
    }

    /// The configuration in force.
    pub fn config(&self) -> &LinkConfig {
        &self.config
    }

    /// Packets in the link: in the queue, being transmitted, and on their way.
    pub fn in_flight(&self) -> usize {
        self.bottleneck.len() + self.flights.len()
    }

    /// What the link did so far.
    pub fn statistics(&self) -> &LinkStatistics {
        &self.statistics
    }

    /// Sends on their way the packets that are transmitted by `now`.
    fn advance(&mut self, now: Instant) {
        self.now = self.now.max(now);
        while let Some((departure, (packet, fate))) = self.bottleneck.pop(self.now) {
            let at = self.arrival(departure, fate);
            self.flights.push(Flight { at, number: self.departed, packet });
            self.departed += 1;
        }
        self.statistics.queue_delay_max = self.bottleneck.queue_delay_max();
    }

    fn enqueue(&mut self, mut packet: P, fate: Fate) {
        let bytes = packet.len() as u64;
        if !self.bottleneck.admits(self.now, bytes, self.config.queue) {
            self.statistics.dropped_by_queue += 1;
            return;
        }
        if happens(self.config.corrupt, fate.corrupt) {
            packet.corrupt(fate.corrupt_where);
            self.statistics.corrupted += 1;
        }
        self.bottleneck.push(self.now, bytes, (packet, fate));
        self.advance(self.now);
    }

    /// When a packet arrives that is transmitted at `departure`.
    fn arrival(&mut self, departure: Instant, fate: Fate) -> Instant {
        let delay = self.config.jittered_delay(fate.jitter);
        match self.config.reorder {
            Reorder::Ahead { share, by } if happens(share, fate.reorder) => {
                departure + delay.saturating_sub(by)
            }
            Reorder::Late { share, by } if happens(share, fate.reorder) => {
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
}

impl<P> Ord for Flight<P> {
    /// The earliest is the greatest, because `BinaryHeap` gives the greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

impl<P> PartialOrd for Flight<P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<P> Eq for Flight<P> {}

impl<P> PartialEq for Flight<P> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
