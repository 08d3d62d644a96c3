//! The one queue of everything that will happen.

use punctual_units::Instant;

/// What happens next somewhere. At the same instant, in this order; of one kind, by number. So the
/// order does not depend on what else is in the world, or on when it came there.
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

/// The next instant of each source: a tournament. The sources stand in the lowest row in their
/// order, and each entry of a row above is the earliest of eight below; the last row is one such
/// group. Rows hold nothing but instants: which source is first is looked up on the way down, where
/// the leftmost of equal ones goes first.
#[derive(Debug)]
pub(crate) struct Agenda {
    rows: Vec<Vec<Group>>,
    /// The earliest of all.
    first: u64,
    /// By place in the lowest row.
    sources: Vec<Source>,
    /// By kind and number: the place in the lowest row, or `NOWHERE`.
    places: [Vec<u32>; KINDS],
}

/// Nanoseconds, or `NEVER`.
type Group = [u64; GROUP];

const NEVER: u64 = u64::MAX;
const KINDS: usize = 6;
const NOWHERE: u32 = u32::MAX;
/// Entries of a row that meet in one of the row above.
const GROUP: usize = 8;

impl Source {
    const fn kind_and_number(self) -> (usize, usize) {
        match self {
            Self::Link(number) => (0, number),
            Self::Host(number) => (1, number),
            Self::Stream(number) => (2, number),
            Self::Traffic(number) => (3, number),
            Self::StreamSample(number) => (4, number),
            Self::LinkSample(number) => (5, number),
        }
    }
}

impl Default for Agenda {
    fn default() -> Self {
        Self {
            rows: vec![vec![[NEVER; GROUP]]],
            first: NEVER,
            sources: Vec::new(),
            places: Default::default(),
        }
    }
}

impl Agenda {
    /// What happens first, and when.
    pub(crate) fn next(&self) -> Option<(Instant, Source)> {
        if self.first == NEVER {
            return None;
        }
        let place = self.rows.iter().rev().fold(0, |place, row| {
            let first = row[place].iter().position(|&at| at == self.first).unwrap_or(0);
            place * GROUP + first
        });
        Some((Instant::from_nanos(self.first), self.sources[place]))
    }

    /// Sets or clears the next instant of `source`.
    pub(crate) fn set(&mut self, source: Source, at: Option<Instant>) {
        let place = self.place(source);
        self.put(place, at.map_or(NEVER, Instant::as_nanos));
    }

    fn put(&mut self, mut place: usize, mut at: u64) {
        for row in &mut self.rows {
            let group = &mut row[place / GROUP];
            let entry = &mut group[place % GROUP];
            if *entry == at {
                return;
            }
            *entry = at;
            at = group.iter().fold(NEVER, |first, &at| first.min(at));
            place /= GROUP;
        }
        self.first = at;
    }

    /// The place of a source, which gets one if it has none.
    fn place(&mut self, source: Source) -> usize {
        let (kind, number) = source.kind_and_number();
        match self.places[kind].get(number) {
            Some(&place) if place != NOWHERE => place as usize,
            _ => self.insert(source),
        }
    }

    /// Lets those that come after `source` move up by a place.
    #[cold]
    fn insert(&mut self, source: Source) -> usize {
        let place = self.sources.partition_point(|&other| other < source);
        let mut instants: Vec<u64> = self.rows[0].concat();
        instants.insert(place, NEVER);
        instants.truncate(self.sources.len() + 1);
        self.sources.insert(place, source);
        for (place, source) in self.sources.iter().enumerate().skip(place) {
            let (kind, number) = source.kind_and_number();
            let places = &mut self.places[kind];
            places.resize(places.len().max(number + 1), NOWHERE);
            places[number] = u32::try_from(place).unwrap_or(NOWHERE);
        }
        self.build(&instants);
        place
    }

    fn build(&mut self, instants: &[u64]) {
        let mut below = instants.to_vec();
        self.rows.clear();
        loop {
            below.resize(below.len().next_multiple_of(GROUP), NEVER);
            let (groups, _) = below.as_chunks::<GROUP>();
            self.rows.push(groups.to_vec());
            if groups.len() == 1 {
                return;
            }
            below =
                groups.iter().map(|group| group.iter().copied().min().unwrap_or(NEVER)).collect();
        }
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
