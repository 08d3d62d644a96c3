//! The one queue of everything that will happen.

use punctual_units::Instant;

/// What happens next somewhere. At the same instant, in this order; of one kind, by number. So the
/// order does not depend on what else is in the world.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Source {
    /// A packet comes out of a link, or the link changes.
    Link(usize),
    /// A host wakes up.
    Host(usize),
    /// A stream's application calls or sends.
    Stream(usize),
    /// Cross traffic sends.
    Traffic(usize),
    /// A stream's statistics are written down.
    StreamSample(usize),
    /// A link's statistics are written down.
    LinkSample(usize),
}

/// The next instant of each source: a binary heap whose entries know their place, so that an
/// instant is changed where it is.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    heap: Vec<(Instant, Source)>,
    /// By kind and number: the place in the heap, or `NOWHERE`.
    places: [Vec<usize>; KINDS],
}

const KINDS: usize = 6;
const NOWHERE: usize = usize::MAX;

impl Source {
    fn split(self) -> (usize, usize) {
        match self {
            Self::Link(index) => (0, index),
            Self::Host(index) => (1, index),
            Self::Stream(index) => (2, index),
            Self::Traffic(index) => (3, index),
            Self::StreamSample(index) => (4, index),
            Self::LinkSample(index) => (5, index),
        }
    }
}

impl Agenda {
    /// What happens first, and when.
    pub(crate) fn next(&self) -> Option<(Instant, Source)> {
        self.heap.first().copied()
    }

    /// Sets or clears the next instant of `source`.
    pub(crate) fn set(&mut self, source: Source, at: Option<Instant>) {
        let place = *self.place(source);
        match (place, at) {
            (NOWHERE, None) => {}
            (NOWHERE, Some(at)) => {
                let last = self.heap.len();
                self.heap.push((at, source));
                *self.place(source) = last;
                self.rise(last);
            }
            (place, Some(at)) => {
                let before = std::mem::replace(&mut self.heap[place].0, at);
                if at < before {
                    self.rise(place);
                } else if at > before {
                    self.sink(place);
                }
            }
            (place, None) => self.remove(place),
        }
    }

    fn remove(&mut self, place: usize) {
        let (_, source) = self.heap.swap_remove(place);
        *self.place(source) = NOWHERE;
        if let Some(&(_, moved)) = self.heap.get(place) {
            *self.place(moved) = place;
            self.rise(place);
            let place = *self.place(moved);
            self.sink(place);
        }
    }

    fn place(&mut self, source: Source) -> &mut usize {
        let (kind, index) = source.split();
        let places = &mut self.places[kind];
        if index >= places.len() {
            places.resize(index + 1, NOWHERE);
        }
        &mut places[index]
    }

    fn rise(&mut self, mut place: usize) {
        while place > 0 {
            let parent = (place - 1) / 2;
            if self.heap[parent] <= self.heap[place] {
                break;
            }
            self.swap(place, parent);
            place = parent;
        }
    }

    fn sink(&mut self, mut place: usize) {
        loop {
            let left = 2 * place + 1;
            let Some(first) = self.heap.get(left) else { break };
            let right_is_less = self.heap.get(left + 1).is_some_and(|second| second < first);
            let child = left + usize::from(right_is_less);
            if self.heap[place] <= self.heap[child] {
                break;
            }
            self.swap(place, child);
            place = child;
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        let (first, second) = (self.heap[a].1, self.heap[b].1);
        *self.place(first) = a;
        *self.place(second) = b;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn gives_what_comes_first_by_instant_then_kind_then_number(
            steps in prop::collection::vec((0usize..2, 0usize..20, prop::option::of(0u64..100)), 1..300)
        ) {
            let mut agenda = Agenda::default();
            let mut model = std::collections::BTreeMap::new();
            for (kind, index, at) in steps {
                let source = [Source::Link(index), Source::Host(index)][kind];
                let at = at.map(Instant::from_nanos);
                agenda.set(source, at);
                model.remove(&source);
                if let Some(at) = at {
                    model.insert(source, at);
                }
                let first = model.iter().map(|(&source, &at)| (at, source)).min();
                prop_assert_eq!(agenda.next(), first);
            }
            while let Some((at, source)) = agenda.next() {
                let first = model.iter().map(|(&source, &at)| (at, source)).min();
                prop_assert_eq!(Some((at, source)), first);
                agenda.set(source, None);
                model.remove(&source);
            }
            prop_assert!(model.is_empty());
        }
    }
}
