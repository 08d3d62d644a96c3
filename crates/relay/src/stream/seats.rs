//! The publishers of a stream: the active one, and those that wait.

use punctual_units::Instant;

use crate::{NotAdmitted, SecondPublisher};

/// A publisher of a stream. The caller chooses a new number for each.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct PublisherId(pub u64);

/// The description of a publisher that calls.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Publisher {
    /// Whether it has the rights of the publisher that is active now.
    pub may_replace: bool,
    /// Whether it only stands in for others, and waits although the rules would let it replace.
    pub is_backup: bool,
}

/// The part that a publisher got.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Seat {
    /// Its messages are the stream.
    Active,
    /// It waits until the active one ends.
    Standby,
}

/// A publisher on its seat.
#[derive(Debug)]
struct Seated {
    id: PublisherId,
    /// When its latest message came; at first when it took its seat.
    heard: Instant,
}

/// The publishers of a stream.
#[derive(Debug, Default)]
pub(super) struct Seats {
    active: Option<Seated>,
    standby: Vec<Seated>,
}

/// The result of a publisher's arrival.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct PublisherArrival {
    pub(super) seat: Seat,
    /// The publisher whose seat it took.
    pub(super) replaced: Option<PublisherId>,
}

impl Seats {
    /// Seats a newcomer. A publisher never replaces itself.
    pub(super) fn arrive(
        &mut self,
        now: Instant,
        id: PublisherId,
        publisher: Publisher,
        rule: SecondPublisher,
    ) -> Result<PublisherArrival, NotAdmitted> {
        self.admit(publisher, rule)?;
        let waits = publisher.is_backup || rule == SecondPublisher::Standby;
        let newcomer = Seated { id, heard: now };
        if self.active.is_some() && waits {
            self.standby.push(newcomer);
            return Ok(PublisherArrival { seat: Seat::Standby, replaced: None });
        }
        let replaced = self.active.replace(newcomer).map(|seated| seated.id);
        Ok(PublisherArrival { seat: Seat::Active, replaced })
    }

    /// Whether a newcomer would get a seat.
    pub(super) fn admit(
        &self,
        publisher: Publisher,
        rule: SecondPublisher,
    ) -> Result<(), NotAdmitted> {
        let waits = publisher.is_backup || rule == SecondPublisher::Standby;
        let has_seat = match waits {
            true => self.standby.len() < MOST_STANDBY,
            false => rule == SecondPublisher::Replace && publisher.may_replace,
        };
        if self.active.is_none() || has_seat { Ok(()) } else { Err(NotAdmitted::InUse) }
    }

    /// Takes a publisher off its seat. Returns whether it was the active one.
    pub(super) fn leave(&mut self, id: PublisherId) -> bool {
        self.standby.retain(|seated| seated.id != id);
        self.active.take_if(|seated| seated.id == id).is_some()
    }

    /// Gives the free seat to the publisher that has waited longest.
    pub(super) fn promote(&mut self, now: Instant) -> Option<PublisherId> {
        if self.active.is_some() || self.standby.is_empty() {
            return None;
        }
        let seated = Seated { heard: now, ..self.standby.remove(0) };
        let id = seated.id;
        self.active = Some(seated);
        Some(id)
    }

    /// Notes a message of a publisher. Returns whether it is the active one.
    pub(super) fn hear(&mut self, now: Instant, id: PublisherId) -> bool {
        match &mut self.active {
            Some(seated) if seated.id == id => {
                seated.heard = now;
                true
            }
            _ => false,
        }
    }

    pub(super) fn active(&self) -> Option<PublisherId> {
        self.active.as_ref().map(|seated| seated.id)
    }

    pub(super) fn standby(&self) -> impl Iterator<Item = PublisherId> {
        self.standby.iter().map(|seated| seated.id)
    }

    /// When the active publisher's latest message came.
    pub(super) fn heard(&self) -> Option<Instant> {
        self.active.as_ref().map(|seated| seated.heard)
    }
}

/// The most publishers that wait.
const MOST_STANDBY: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    const ANY: Publisher = Publisher { may_replace: true, is_backup: false };

    fn arrive(
        seats: &mut Seats,
        id: u64,
        publisher: Publisher,
        rule: SecondPublisher,
    ) -> Result<PublisherArrival, NotAdmitted> {
        seats.arrive(Instant::ORIGIN, PublisherId(id), publisher, rule)
    }

    #[test]
    fn the_newest_with_the_same_rights_wins_and_another_one_is_refused() {
        let (mut seats, rule) = (Seats::default(), SecondPublisher::Replace);
        arrive(&mut seats, 1, ANY, rule).unwrap();
        let arrival = arrive(&mut seats, 2, ANY, rule).unwrap();
        assert_eq!(arrival.replaced, Some(PublisherId(1)));
        assert_eq!(arrive(&mut seats, 3, Publisher::default(), rule), Err(NotAdmitted::InUse));
        assert!(!seats.leave(PublisherId(1)), "the end of a replaced one changes nothing");
        assert_eq!(seats.active(), Some(PublisherId(2)));
    }

    #[test]
    fn a_standby_is_promoted_in_the_order_of_arrival() {
        let (mut seats, rule) = (Seats::default(), SecondPublisher::Standby);
        for id in 1..=3 {
            arrive(&mut seats, id, ANY, rule).unwrap();
        }
        assert!(!seats.hear(Instant::ORIGIN, PublisherId(2)), "its messages are no part of it");
        assert!(seats.promote(Instant::ORIGIN).is_none(), "the seat is taken");
        assert!(seats.leave(PublisherId(1)));
        assert_eq!(seats.promote(Instant::ORIGIN), Some(PublisherId(2)));
        assert_eq!(seats.standby().collect::<Vec<_>>(), [PublisherId(3)]);
    }

    #[test]
    fn a_backup_waits_under_any_rule_and_standbys_are_bounded() {
        let (mut seats, rule) = (Seats::default(), SecondPublisher::Refuse);
        arrive(&mut seats, 1, ANY, rule).unwrap();
        assert_eq!(arrive(&mut seats, 2, ANY, rule), Err(NotAdmitted::InUse));
        let backup = Publisher { is_backup: true, ..ANY };
        for id in 10..10 + MOST_STANDBY as u64 {
            assert_eq!(arrive(&mut seats, id, backup, rule).unwrap().seat, Seat::Standby);
        }
        assert_eq!(arrive(&mut seats, 99, backup, rule), Err(NotAdmitted::InUse));
    }
}
