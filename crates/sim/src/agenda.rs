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

/// The next instant of each source: a tournament. The sources stand in the leaves of a binary tree,
/// and each node above holds the earlier of the two below, so the root is what happens first. A
/// source keeps its leaf, so a change only climbs from there, as far as it matters.
#[derive(Debug)]
pub(crate) struct Agenda {
    /// The root is node 1, below node n are 2n and 2n + 1; the leaves are the second half.
    nodes: Vec<u128>,
    /// By kind and number: the place among the leaves, or `NOWHERE`.
    places: [Vec<u32>; KINDS],
    taken: u32,
}

/// An instant's nanoseconds in the upper half, and below a source: its kind in the upper quarter and
/// its number in the lowest. As one number they are compared without a branch.
fn entry(at: u64, source: u64) -> u128 {
    u128::from(at) << 64 | u128::from(source)
}

const NEVER: u128 = u128::MAX;
const KINDS: usize = 6;
const NOWHERE: u32 = u32::MAX;
/// Leaves at first.
const LEAVES: usize = 8;

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
        Self { nodes: vec![NEVER; 2 * LEAVES], places: Default::default(), taken: 0 }
    }
}

impl Agenda {
    /// What happens first, and when.
    pub(crate) fn next(&self) -> Option<(Instant, Source)> {
        let [at, source] = [self.nodes[1] >> 64, self.nodes[1] & u128::from(u64::MAX)];
        let [at, source] = [at, source].map(|half| u64::try_from(half).unwrap_or(u64::MAX));
        (at != u64::MAX).then(|| (Instant::from_nanos(at), Source::unpack(source)))
    }

    /// Sets or clears the next instant of `source`.
    pub(crate) fn set(&mut self, source: Source, at: Option<Instant>) {
        let source = source.pack();
        let leaf = self.leaf(source);
        let at = at.map_or(u64::MAX, Instant::as_nanos);
        let mut entry = entry(at, source);
        let mut node = leaf;
        // The other child of a parent differs in the last bit.
        while node > 0 && self.nodes[node] != entry {
            self.nodes[node] = entry;
            entry = entry.min(self.nodes[node ^ 1]);
            node /= 2;
        }
    }

    /// The node of a source, which gets one if it has none.
    fn leaf(&mut self, source: u64) -> usize {
        let (kind, index) = ((source >> 32) as usize, (source & 0xFFFF_FFFF) as usize);
        match self.places[kind].get(index) {
            Some(&place) if place != NOWHERE => self.nodes.len() / 2 + place as usize,
            _ => self.take_leaf(kind, index),
        }
    }

    #[cold]
    fn take_leaf(&mut self, kind: usize, index: usize) -> usize {
        let place = self.taken;
        self.taken += 1;
        let places = &mut self.places[kind];
        places.resize(places.len().max(index + 1), NOWHERE);
        places[index] = place;
        let leaves = self.nodes.len() / 2;
        if place as usize == leaves {
            self.grow(leaves);
        }
        self.nodes.len() / 2 + place as usize
    }

    /// Twice as many leaves.
    fn grow(&mut self, leaves: usize) {
        let mut nodes = vec![NEVER; 4 * leaves];
        nodes[2 * leaves..3 * leaves].copy_from_slice(&self.nodes[leaves..]);
        for node in (1..2 * leaves).rev() {
            nodes[node] = nodes[2 * node].min(nodes[2 * node + 1]);
        }
        self.nodes = nodes;
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
