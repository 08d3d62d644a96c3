//! The queue of the connections' deadlines.

use punctual_units::Instant;

/// The deadlines of all the connections of an endpoint: a binary heap whose entries know their
/// place, so that a deadline is changed where it is.
#[derive(Debug, Default)]
pub(super) struct TimerQueue {
    heap: Vec<(Instant, usize)>,
    /// By key: the place in the heap, or `NOWHERE`.
    places: Vec<usize>,
}

const NOWHERE: usize = usize::MAX;

impl TimerQueue {
    /// The first deadline.
    pub(super) fn next(&self) -> Option<Instant> {
        self.first().map(|(at, _)| at)
    }

    /// The first deadline and its key.
    pub(super) fn first(&self) -> Option<(Instant, usize)> {
        self.heap.first().copied()
    }

    /// Takes out a key whose deadline is `now` or earlier.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<usize> {
        let &(at, key) = self.heap.first()?;
        if at > now {
            return None;
        }
        self.set(key, None);
        Some(key)
    }

    /// Sets or clears the deadline of `key`.
    pub(super) fn set(&mut self, key: usize, at: Option<Instant>) {
        if key >= self.places.len() {
            if at.is_none() {
                return;
            }
            self.places.resize(key + 1, NOWHERE);
        }
        match (self.places[key], at) {
            (NOWHERE, None) => {}
            (NOWHERE, Some(at)) => {
                self.heap.push((at, key));
                self.places[key] = self.heap.len() - 1;
                self.rise(self.heap.len() - 1);
            }
            (place, Some(at)) => {
                let before = std::mem::replace(&mut self.heap[place].0, at);
                if at < before {
                    self.rise(place);
                } else if at > before {
                    self.sink(place);
                }
            }
            (place, None) => {
                self.places[key] = NOWHERE;
                self.heap.swap_remove(place);
                if let Some(&(_, moved)) = self.heap.get(place) {
                    self.places[moved] = place;
                    self.rise(place);
                    self.sink(self.places[moved]);
                }
            }
        }
    }

    /// Gives the memory back that it holds for keys above the highest one in use.
    pub(super) fn shrink(&mut self) {
        let used = self.places.iter().rposition(|&place| place != NOWHERE);
        self.places.truncate(used.map_or(0, |last| last + 1));
        self.places.shrink_to_fit();
        self.heap.shrink_to_fit();
    }

    fn rise(&mut self, mut place: usize) {
        while place > 0 {
            let parent = (place - 1) / 2;
            if self.heap[parent].0 <= self.heap[place].0 {
                break;
            }
            self.swap(place, parent);
            place = parent;
        }
    }

    fn sink(&mut self, mut place: usize) {
        loop {
            let left = 2 * place + 1;
            let Some(&(at_left, _)) = self.heap.get(left) else { break };
            let right_is_less = self.heap.get(left + 1).is_some_and(|&(at, _)| at < at_left);
            let child = left + usize::from(right_is_less);
            if self.heap[place].0 <= self.heap[child].0 {
                break;
            }
            self.swap(place, child);
            place = child;
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        self.places[self.heap[a].1] = a;
        self.places[self.heap[b].1] = b;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn gives_the_deadlines_in_order(
            steps in prop::collection::vec((0usize..40, prop::option::of(0u64..1_000)), 1..300)
        ) {
            let mut queue = TimerQueue::default();
            let mut model = [None; 40];
            for (key, at) in steps {
                queue.set(key, at.map(Instant::from_nanos));
                if key % 4 == 0 {
                    queue.shrink();
                }
                model[key] = at;
                prop_assert_eq!(queue.next(), model.iter().flatten().min().map(|&at| Instant::from_nanos(at)));
            }
            let mut expected: Vec<u64> = model.iter().flatten().copied().collect();
            expected.sort_unstable();
            let mut popped = Vec::new();
            while let Some(key) = queue.pop_due(Instant::from_nanos(1_000)) {
                popped.push(model[key].take().expect("popped once"));
            }
            prop_assert_eq!(popped, expected);
        }
    }
}
