//! Records datagrams as they are put on the links.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use punctual_units::Instant;
use punctual_wire::Handshake;

use crate::datagram::{Kind, handshake, kind};
use crate::node::EPOCH;
use crate::pair::Side;

/// Datagrams as they were put on the links, with the time since the start.
#[derive(Clone, Default)]
pub struct Record(Rc<RefCell<Vec<Sent>>>);

/// When, from which end, and what.
type Sent = (Duration, Side, Vec<u8>);

impl Record {
    /// Adds a datagram that `side` puts on its link.
    pub fn push(&self, now: Instant, side: Side, datagram: &[u8]) {
        self.0.borrow_mut().push((now - EPOCH, side, datagram.to_vec()));
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// The number of datagrams.
    pub fn len(&self) -> usize {
        self.0.borrow().len()
    }

    /// Shows each datagram of both sides to `look`.
    pub fn each(&self, mut look: impl FnMut(Duration, Side, &[u8])) {
        self.0.borrow().iter().for_each(|(at, side, datagram)| look(*at, *side, datagram));
    }

    /// All datagrams from `side`.
    pub fn from(&self, side: Side) -> Vec<(Duration, Vec<u8>)> {
        let all = self.0.borrow();
        let from = all.iter().filter(|(_, from, _)| *from == side);
        from.map(|(at, _, datagram)| (*at, datagram.clone())).collect()
    }

    /// All datagrams of a kind from `side`.
    pub fn of_kind(&self, side: Side, wanted: Kind) -> Vec<(Duration, Vec<u8>)> {
        let mut from = self.from(side);
        from.retain(|(_, datagram)| kind(datagram) == wanted);
        from
    }

    /// All handshakes from `side`.
    pub fn handshakes(&self, side: Side) -> Vec<(Duration, Handshake, Vec<u8>)> {
        let from = self.from(side).into_iter();
        from.filter_map(|(at, datagram)| Some((at, handshake(&datagram)?, datagram))).collect()
    }
}
