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

/// The next instant of each source: a tournament. The sources stand in the lowest row, and each
/// entry of a row above is the earliest of eight below, so the only one of the last row is what
/// happens first. A source keeps its place, so a change only climbs from there, as far as it
/// matters.
#[derive(Debug)]
pub(crate) struct Agenda {
    rows: Vec<Vec<u128>>,
    /// By kind and number: the place in the lowest row, or `NOWHERE`.
    places: [Vec<u32>; KINDS],
    taken: u32,
}

/// An instant's nanoseconds in the upper half, and below a source: its kind in the upper quarter
/// and its number in the lowest. As one number they are compared without a branch.
fn entry(at: u64, source: u64) -> u128 {
    u128::from(at) << 64 | u128::from(source)
}

const NEVER: u128 = u128::MAX;
const KINDS: usize = 6;
const NOWHERE: u32 = u32::MAX;
/// Entries of a row that meet in one of the row above.
const GROUP: usize = 8;

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
        let (kind, index) = (packed >> 32, (packed & 0xFFFF_FFFF) as usize);
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

impl Default for Agenda {
    fn default() -> Self {
        let rows = vec![vec![NEVER; GROUP], vec![NEVER; 1]];
        Self { rows, places: Default::default(), taken: 0 }
    }
}

impl Agenda {
    /// What happens first, and when.
    pub(crate) fn next(&self) -> Option<(Instant, Source)> {
        let first = *self.rows.last()?.first()?;
        let [at, source] = [first >> 64, first & u128::from(u64::MAX)]
            .map(|half| u64::try_from(half).unwrap_or(u64::MAX));
        (at != u64::MAX).then(|| (Instant::from_nanos(at), Source::unpack(source)))
    }

    /// Sets or clears the next instant of `source`.
    pub(crate) fn set(&mut self, source: Source, at: Option<Instant>) {
        let source = source.pack();
        let mut place = self.place(source);
        let mut new = entry(at.map_or(u64::MAX, Instant::as_nanos), source);
        let mut old = std::mem::replace(&mut self.rows[0][place], new);
        if new == old {
            return;
        }
        for row in 1..self.rows.len() {
            let group = place / GROUP;
            let first = self.rows[row][group];
            if new > first {
                if first != old {
                    return;
                }
                // The first of the group moved back: another one may be first now.
                let members = &self.rows[row - 1][group * GROUP..][..GROUP];
                new = members.iter().fold(NEVER, |first, &member| first.min(member));
            }
            if new == first {
                return;
            }
            self.rows[row][group] = new;
            (old, place) = (first, group);
        }
    }

    /// The place of a source, which gets one if it has none.
    fn place(&mut self, source: u64) -> usize {
        let (kind, index) = ((source >> 32) as usize, (source & 0xFFFF_FFFF) as usize);
        match self.places[kind].get(index) {
            Some(&place) if place != NOWHERE => place as usize,
            _ => self.take_place(kind, index),
        }
    }

    #[cold]
    fn take_place(&mut self, kind: usize, index: usize) -> usize {
        let place = self.taken;
        self.taken += 1;
        let places = &mut self.places[kind];
        places.resize(places.len().max(index + 1), NOWHERE);
        places[index] = place;
        if place as usize == self.rows[0].len() {
            self.grow();
        }
        place as usize
    }

    /// Eight times as many places: what was the last row becomes the first entry of one.
    fn grow(&mut self) {
        for row in &mut self.rows {
            row.resize(row.len() * GROUP, NEVER);
        }
        let first = self.rows.last().map_or(NEVER, |row| row[0]);
        self.rows.push(vec![first]);
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
