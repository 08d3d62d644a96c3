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
    heap: Vec<Entry>,
    /// By kind and number: the place in the heap, or `NOWHERE`.
    places: [Vec<u32>; KINDS],
}

/// Ordered as the sources are.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Entry {
    at: Instant,
    /// The kind in the upper half, the number in the lower.
    source: u64,
}

const KINDS: usize = 6;
const NOWHERE: u32 = u32::MAX;

impl Source {
    fn pack(self) -> u64 {
        let (kind, index) = match self {
            Self::Link(index) => (0, index),
            Self::Host(index) => (1, index),
            Self::Stream(index) => (2, index),
            Self::Traffic(index) => (3, index),
            Self::StreamSample(index) => (4, index),
            Self::LinkSample(index) => (5, index),
        };
        kind << 32 | index as u64
    }

    fn unpack(packed: u64) -> Self {
        let (kind, index) = split(packed);
        match kind {
            0 => Self::Link(index),
            1 => Self::Host(index),
            2 => Self::Stream(index),
            3 => Self::Traffic(index),
            4 => Self::StreamSample(index),
            _ => Self::LinkSample(index),
        }
    }
}

impl Agenda {
    /// What happens first, and when.
    pub(crate) fn next(&self) -> Option<(Instant, Source)> {
        self.heap.first().map(|entry| (entry.at, Source::unpack(entry.source)))
    }

    /// Sets or clears the next instant of `source`.
    pub(crate) fn set(&mut self, source: Source, at: Option<Instant>) {
        let source = source.pack();
        let place = *self.place(source);
        let Some(at) = at else {
            if place != NOWHERE {
                self.remove(place as usize);
            }
            return;
        };
        let entry = Entry { at, source };
        if place == NOWHERE {
            self.heap.push(entry);
            self.rise(self.heap.len() - 1, entry);
            return;
        }
        let place = place as usize;
        let before = self.heap[place].at;
        if at < before {
            self.rise(place, entry);
        } else if at > before {
            self.sink(place, entry);
        }
    }

    fn remove(&mut self, place: usize) {
        let removed = self.heap.swap_remove(place);
        *self.place(removed.source) = NOWHERE;
        if let Some(&moved) = self.heap.get(place) {
            if moved < removed {
                self.rise(place, moved);
            } else {
                self.sink(place, moved);
            }
        }
    }

    fn place(&mut self, source: u64) -> &mut u32 {
        let (kind, index) = split(source);
        let places = &mut self.places[kind];
        if index >= places.len() {
            places.resize(index + 1, NOWHERE);
        }
        &mut places[index]
    }

    /// Puts `entry` where it belongs, from `place` towards the head.
    fn rise(&mut self, mut place: usize, entry: Entry) {
        while place > 0 {
            let parent = (place - 1) / 2;
            if self.heap[parent] <= entry {
                break;
            }
            self.put(place, self.heap[parent]);
            place = parent;
        }
        self.put(place, entry);
    }

    /// Puts `entry` where it belongs, from `place` towards the end.
    fn sink(&mut self, mut place: usize, entry: Entry) {
        loop {
            let left = 2 * place + 1;
            let Some(&first) = self.heap.get(left) else { break };
            let (child, least) = match self.heap.get(left + 1) {
                Some(&second) if second < first => (left + 1, second),
                _ => (left, first),
            };
            if entry <= least {
                break;
            }
            self.put(place, least);
            place = child;
        }
        self.put(place, entry);
    }

    fn put(&mut self, place: usize, entry: Entry) {
        self.heap[place] = entry;
        *self.place(entry.source) = u32::try_from(place).unwrap_or(NOWHERE);
    }
}

fn split(packed: u64) -> (usize, usize) {
    ((packed >> 32) as usize, (packed & 0xFFFF_FFFF) as usize)
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
