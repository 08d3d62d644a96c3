use punctual_wire::SeqNo;

/// The initial number of slots: enough for a 5 Mb/s stream at a common latency.
const FIRST_CAPACITY: usize = 64;

/// A map from sequence numbers to values: a ring that grows with the span of the numbers.
///
/// The slot of a number is its remainder modulo the capacity, a power of two. That divides 2^31, so
/// the ring wraps where the numbers do. The owner must keep all its numbers within
/// [`capacity`](Self::capacity) of each other. Access is O(1), and nothing is allocated while the
/// span stays the same.
#[derive(Debug)]
pub(crate) struct SeqRing<T> {
    slots: Vec<Option<T>>,
    /// The largest span since the ring's size was last checked.
    peak: usize,
    /// The number of values that were removed since then.
    passed: usize,
}

/// The number of removed values between two checks of the ring's size. With an interval this long,
/// a span that changes with each ACK does not make the ring shrink and grow each time.
const CHECK_AFTER: usize = 16_384;

impl<T> SeqRing<T> {
    pub(crate) const fn new() -> Self {
        Self { slots: Vec::new(), peak: 0, passed: 0 }
    }

    /// The largest span of numbers that fits without growing.
    pub(crate) const fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// Makes room for `span` numbers from `first` on; all present numbers must be among them.
    pub(crate) fn reserve(&mut self, first: SeqNo, span: usize) {
        if span <= self.capacity() {
            return;
        }
        self.resize(first, span.next_power_of_two().max(FIRST_CAPACITY));
    }

    /// Shrinks the ring if a small part of it has been sufficient for a long time; the `span`
    /// numbers from `first` on are kept. Called after `passed` values were removed.
    pub(crate) fn shrink(&mut self, first: SeqNo, span: usize, passed: usize) {
        self.peak = self.peak.max(span + passed);
        self.passed += passed;
        if self.passed >= CHECK_AFTER {
            self.check_size(first, span);
        }
    }

    #[cold]
    fn check_size(&mut self, first: SeqNo, span: usize) {
        let wanted = (self.peak * 2).next_power_of_two().max(FIRST_CAPACITY);
        if wanted * 4 <= self.capacity() {
            self.resize(first, wanted);
        }
        self.peak = span;
        self.passed = 0;
    }

    pub(crate) fn get(&self, seq: SeqNo) -> Option<&T> {
        self.slots.get(self.index(seq))?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, seq: SeqNo) -> Option<&mut T> {
        let index = self.index(seq);
        self.slots.get_mut(index)?.as_mut()
    }

    /// Stores `value`. The number must be within the capacity of all others.
    pub(crate) fn insert(&mut self, seq: SeqNo, value: T) {
        let index = self.index(seq);
        self.slots[index] = Some(value);
    }

    pub(crate) fn take(&mut self, seq: SeqNo) -> Option<T> {
        let index = self.index(seq);
        self.slots.get_mut(index)?.take()
    }

    /// Drops the value of `seq` in its slot, which costs less than to take it. Returns the result
    /// of `last`, which gets the value before.
    pub(crate) fn remove<R>(&mut self, seq: SeqNo, last: impl FnOnce(&T) -> R) -> Option<R> {
        let index = self.index(seq);
        let slot = self.slots.get_mut(index)?;
        let result = last(slot.as_ref()?);
        *slot = None;
        Some(result)
    }

    fn resize(&mut self, first: SeqNo, capacity: usize) {
        let old_capacity = self.capacity();
        let mut slots: Vec<Option<T>> = Vec::with_capacity(capacity);
        slots.resize_with(capacity, || None);
        let mut seq = first;
        for _ in 0..old_capacity {
            if let Some(value) = self.take(seq) {
                slots[seq.value() as usize & (capacity - 1)] = Some(value);
            }
            seq = seq.next();
        }
        self.slots = slots;
    }

    const fn index(&self, seq: SeqNo) -> usize {
        seq.value() as usize & self.slots.len().wrapping_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grows_and_shrinks_across_the_wrap_of_numbers() {
        let mut ring = SeqRing::new();
        assert_eq!(ring.get(SeqNo::new(7)), None);
        let first = SeqNo::new(0x7FFF_FFE0);
        for i in 0..2_000 {
            ring.reserve(first, i as usize + 1);
            ring.insert(first.plus(i), i);
        }
        assert_eq!(ring.capacity(), 2_048);
        for i in 0..1_990 {
            assert_eq!(ring.take(first.plus(i)), Some(i));
        }
        for _ in 0..CHECK_AFTER - 1 {
            ring.shrink(first.plus(1_990), 10, 1);
        }
        assert_eq!(ring.capacity(), 2_048);
        ring.shrink(first.plus(1_990), 10, 1);
        assert_eq!(ring.capacity(), FIRST_CAPACITY);
        assert_eq!(ring.get(first.plus(1_995)), Some(&1_995));
        assert_eq!(ring.get(first.plus(1_989)), None);
    }
}
