//! The sockets of an event set, and what they have to report.

use std::collections::BTreeMap;

use punctual_blocking::Events;
use rustc_hash::FxHashMap;

/// The sockets of an event set. Ready ones are reported in the order in which they became ready, as
/// in libsrt: if a wait has room for a few of them, a socket that is soon ready again comes after
/// the others.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    sockets: FxHashMap<i32, Subscription>,
    /// The sockets that have something to report, by their places.
    queue: BTreeMap<u64, i32>,
    /// The number of places that were ever taken.
    places: u64,
}

#[derive(Clone, Copy, Debug)]
struct Subscription {
    wanted: Events,
    /// The events that are reported once when they come.
    edges: Events,
    /// The events to report.
    ready: Events,
    /// The place in the queue, while there are any.
    place: u64,
}

impl Subscription {
    /// The part of a socket's events that is reported. The end of a connection reaches every
    /// subscriber as a whole.
    fn reported(self, events: Events) -> Events {
        if events.any(Events::ERR) { events } else { events & self.wanted }
    }
}

impl Subscriptions {
    /// Adds a socket, or changes the events that are wanted of it. `present` are its events.
    pub(crate) fn insert(&mut self, socket: i32, wanted: Events, present: Events) {
        let edge = wanted.any(Events::EDGE);
        let wanted = wanted & !Events::EDGE;
        let edges = if edge { wanted } else { Events::UPDATE };
        let (ready, place) =
            self.sockets.get(&socket).map_or((Events::NONE, 0), |it| (it.ready, it.place));
        let subscription = Subscription { wanted, edges, ready, place };
        self.sockets.insert(socket, subscription);
        self.set_ready(socket, subscription.reported(present));
    }

    /// Removes a socket.
    pub(crate) fn remove(&mut self, socket: i32) {
        self.set_ready(socket, Events::NONE);
        self.sockets.remove(&socket);
    }

    /// Removes all sockets.
    pub(crate) fn clear(&mut self) {
        self.sockets.clear();
        self.queue.clear();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.sockets.is_empty()
    }

    /// The numbers of the sockets, in any order.
    pub(crate) fn numbers(&self) -> Vec<i32> {
        self.sockets.keys().copied().collect()
    }

    /// Whether one of these events is wanted of a socket.
    pub(crate) fn wants(&self, socket: i32, events: Events) -> bool {
        self.sockets.get(&socket).is_some_and(|it| it.wanted.any(events))
    }

    /// Adds events of a socket. Returns whether there is anything to report of them.
    pub(crate) fn raise(&mut self, socket: i32, events: Events) -> bool {
        let Some(subscription) = self.sockets.get(&socket) else { return false };
        let news = subscription.reported(events);
        if news.is_empty() {
            return false;
        }
        self.set_ready(socket, subscription.ready | news);
        true
    }

    /// Takes events of a socket back.
    pub(crate) fn lower(&mut self, socket: i32, events: Events) {
        let Some(subscription) = self.sockets.get(&socket) else { return };
        self.set_ready(socket, subscription.ready & !events);
    }

    /// Takes what there is to report of the `wanted` events, at most `room` sockets; then whether
    /// there was no room for further ones. Events on an edge are reported once, whether they are
    /// wanted now or not.
    pub(crate) fn report(&mut self, wanted: Events, room: usize) -> (Vec<(i32, Events)>, bool) {
        let mut reported = Vec::new();
        let mut more = false;
        let Self { sockets, queue, .. } = self;
        queue.retain(|_, socket| {
            let Some(subscription) = sockets.get_mut(socket) else { return false };
            let events = subscription.ready & wanted;
            if !events.is_empty() {
                if reported.len() == room {
                    more = true;
                    return true;
                }
                reported.push((*socket, events));
            }
            subscription.ready = subscription.ready & !subscription.edges;
            !subscription.ready.is_empty()
        });
        (reported, more)
    }

    /// Sets the events to report of a socket. One that has some already keeps its place.
    fn set_ready(&mut self, socket: i32, events: Events) {
        let Self { sockets, queue, places } = self;
        let Some(subscription) = sockets.get_mut(&socket) else { return };
        let before = std::mem::replace(&mut subscription.ready, events);
        match (before.is_empty(), events.is_empty()) {
            (true, false) => {
                subscription.place = *places;
                queue.insert(*places, socket);
                *places += 1;
            }
            (false, true) => {
                queue.remove(&subscription.place);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Events = Events(0x1D);

    /// Three sockets of which data are wanted, the second of them on an edge.
    fn three() -> Subscriptions {
        let mut three = Subscriptions::default();
        three.insert(1, Events::IN, Events::NONE);
        three.insert(2, Events::IN | Events::EDGE, Events::NONE);
        three.insert(3, Events::IN, Events::NONE);
        three
    }

    fn numbers(subscriptions: &mut Subscriptions, room: usize) -> (Vec<i32>, bool) {
        let (reported, more) = subscriptions.report(ALL, room);
        (reported.into_iter().map(|(socket, _)| socket).collect(), more)
    }

    #[test]
    fn a_level_is_reported_while_it_lasts_and_an_edge_once() {
        let mut three = three();
        assert!(three.raise(1, Events::IN));
        assert!(three.raise(2, Events::IN | Events::OUT));
        assert!(!three.raise(3, Events::OUT) && !three.raise(4, Events::IN));
        assert_eq!(three.report(ALL, 3).0, [(1, Events::IN), (2, Events::IN)]);
        assert_eq!(three.report(ALL, 3).0, [(1, Events::IN)]);
        three.lower(1, Events::IN);
        assert_eq!(three.report(ALL, 3), (vec![], false));
    }

    #[test]
    fn sockets_are_reported_in_the_order_in_which_they_became_ready() {
        let mut three = three();
        for socket in [3, 1, 2, 3] {
            three.raise(socket, Events::IN);
        }
        assert_eq!(numbers(&mut three, 1), (vec![3], true));
        // One that is read and ready again comes last, and one that is not read stays first.
        three.lower(3, Events::IN);
        three.raise(3, Events::IN);
        assert_eq!(numbers(&mut three, 1), (vec![1], true));
        assert_eq!(numbers(&mut three, 1), (vec![1], true));
        assert_eq!(numbers(&mut three, 3), (vec![1, 2, 3], false));
        assert_eq!(numbers(&mut three, 0), (vec![], true));
    }

    #[test]
    fn a_socket_that_is_removed_is_not_reported() {
        let mut three = three();
        three.raise(1, Events::IN);
        three.raise(3, Events::IN);
        three.remove(1);
        assert_eq!(numbers(&mut three, 3), (vec![3], false));
        let mut left = three.numbers();
        left.sort_unstable();
        assert_eq!(left, [2, 3]);
        // A new subscription starts with the events that hold.
        three.insert(3, Events::OUT, Events::NONE);
        three.insert(1, Events::OUT, Events::IN | Events::OUT);
        assert_eq!(three.report(ALL, 3).0, [(1, Events::OUT)]);
        three.clear();
        assert!(three.is_empty() && !three.wants(3, Events::OUT));
        assert_eq!(numbers(&mut three, 3), (vec![], false));
    }

    #[test]
    fn the_end_of_a_connection_reaches_every_subscriber_as_a_whole() {
        let mut three = three();
        three.raise(1, Events::BROKEN);
        assert_eq!(three.report(ALL, 1).0, [(1, Events::BROKEN)]);
    }
}
