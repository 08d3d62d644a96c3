//! The one queue of everything that will happen.

use punctual_units::Instant;

/// The source of an event. Sources with the same instant are handled in this order; those of one
/// kind by number. So the order depends neither on other sources nor on when they were added.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Source {
    /// A packet comes out of a link, or the link changes.
    Link(usize),
    /// A host wakes up.
    Host(usize),
    /// A group looks at its links: that of a stream's sender, or of its receiver.
    Group(usize),
    /// A stream's application calls or sends.
    Stream(usize),
    /// Cross traffic sends.
    Traffic(usize),
    /// A stream's statistics are written down.
    StreamSample(usize),
    /// A link's statistics are written down.
    LinkSample(usize),
}

/// The next instant of each source: a tournament. The sources are in the lowest row in their
/// order, and each entry of a row above is the earliest of eight below; the last row is one such
/// group. Rows hold nothing but instants: the first source is looked up on the way down, where
/// the leftmost of equal ones comes first.
///
/// New sources are added at the end of the lowest row, and the rows above are built when the next
/// event is asked for: a large world is sorted once.
#[derive(Debug)]
pub(crate) struct Agenda {
    rows: Vec<Vec<Group>>,
    /// The earliest of all.
    first: u64,
    /// By place in the lowest row.
    sources: Vec<Source>,
    /// By kind and number: the place in the lowest row, or `NOWHERE`.
    places: [Vec<u32>; KINDS],
    /// Whether the sources are in their order, and the rows above are right.
    sorted: bool,
}

/// Nanoseconds, or `NEVER`.
type Group = [u64; GROUP];

const NEVER: u64 = u64::MAX;
const KINDS: usize = 7;
const NOWHERE: u32 = u32::MAX;
/// Entries of a row that meet in one of the row above.
const GROUP: usize = 8;

impl Source {
    const fn kind_and_number(self) -> (usize, usize) {
        match self {
            Self::Link(number) => (0, number),
            Self::Host(number) => (1, number),
            Self::Group(number) => (2, number),
            Self::Stream(number) => (3, number),
            Self::Traffic(number) => (4, number),
            Self::StreamSample(number) => (5, number),
            Self::LinkSample(number) => (6, number),
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
            sorted: true,
        }
    }
}

impl Agenda {
    /// The first event and its instant.
    pub(crate) fn next(&mut self) -> Option<(Instant, Source)> {
        if !self.sorted {
            self.sort();
        }
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
        let at = at.map_or(NEVER, Instant::as_nanos);
        if self.sorted {
            self.put(place, at);
        } else {
            self.rows[0][place / GROUP][place % GROUP] = at;
        }
    }

    fn put(&mut self, mut place: usize, mut at: u64) {
        for row in &mut self.rows {
            let group = &mut row[place / GROUP];
            let entry = &mut group[place % GROUP];
            if *entry == at {
                return;
            }
            *entry = at;
            at = earliest(group);
            place /= GROUP;
        }
        self.first = at;
    }

    /// The place of a source, which gets one if it has none.
    fn place(&mut self, source: Source) -> usize {
        let (kind, number) = source.kind_and_number();
        match self.places[kind].get(number) {
            Some(&place) if place != NOWHERE => place as usize,
            _ => self.append(source),
        }
    }

    #[cold]
    fn append(&mut self, source: Source) -> usize {
        let place = self.sources.len();
        self.sources.push(source);
        self.note(place);
        if place == self.rows[0].len() * GROUP {
            self.rows[0].push([NEVER; GROUP]);
        }
        self.sorted = false;
        place
    }

    /// Remembers the place of the source at `place`.
    fn note(&mut self, place: usize) {
        let (kind, number) = self.sources[place].kind_and_number();
        let places = &mut self.places[kind];
        places.resize(places.len().max(number + 1), NOWHERE);
        places[number] = u32::try_from(place).unwrap_or(NOWHERE);
    }

    /// Puts the sources in their order, and builds the rows anew.
    #[cold]
    fn sort(&mut self) {
        let instants = self.rows[0].as_flattened();
        let mut entries: Vec<(Source, u64)> =
            self.sources.iter().copied().zip(instants.iter().copied()).collect();
        entries.sort_unstable_by_key(|&(source, _)| source);
        let mut below: Vec<u64>;
        (self.sources, below) = entries.into_iter().unzip();
        (0..self.sources.len()).for_each(|place| self.note(place));
        self.rows.clear();
        while self.rows.last().is_none_or(|row| row.len() > 1) {
            below.resize(below.len().next_multiple_of(GROUP), NEVER);
            let (groups, _) = below.as_chunks::<GROUP>();
            self.rows.push(groups.to_vec());
            below = groups.iter().map(earliest).collect();
        }
        self.first = below.first().copied().unwrap_or(NEVER);
        self.sorted = true;
    }
}

fn earliest(group: &Group) -> u64 {
    group.iter().fold(NEVER, |first, &at| first.min(at))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn sources_are_ordered_by_instant_then_kind_then_number(
            steps in prop::collection::vec(
                (0usize..2, 0usize..20, prop::option::of(0u64..100), any::<bool>()), 1..300)
        ) {
            let mut agenda = Agenda::default();
            let mut model = std::collections::BTreeMap::new();
            for (kind, index, at, asked) in steps {
                let source = [Source::Link(index), Source::Host(index)][kind];
                let at = at.map(Instant::from_nanos);
                agenda.set(source, at);
                model.remove(&source);
                if let Some(at) = at {
                    model.insert(source, at);
                }
                let first = model.iter().map(|(&source, &at)| (at, source)).min();
                prop_assert!(!asked || agenda.next() == first);
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
