//! Datagrams for one segmenting send call.

/// Most bytes of a batch: a segmenting send call takes no more than one UDP datagram would hold.
const MAX_BYTES: usize = 65_000;

/// Datagrams in one buffer for one segmenting send call. All have the size of the first, except the
/// last, which may be shorter.
#[derive(Debug)]
pub(crate) struct Batch {
    /// Bytes of all datagrams together.
    pub(crate) size: usize,
    /// Bytes of the first datagram.
    pub(crate) segment_size: usize,
    room: usize,
    /// The largest datagram of the path, bytes.
    largest: usize,
    /// Datagrams that are longer than the path carries.
    pub(crate) oversized: Vec<Vec<u8>>,
}

impl Batch {
    /// An empty batch, for `segments` datagrams at most.
    pub(crate) fn new(segments: usize) -> Self {
        Self {
            size: 0,
            segment_size: 0,
            room: segments.max(1),
            largest: usize::MAX,
            oversized: Vec::new(),
        }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.size == 0
    }

    /// Limits the length of the datagrams that follow; `None` for no limit.
    pub(crate) fn limit(&mut self, largest: Option<usize>) {
        self.largest = largest.unwrap_or(usize::MAX);
    }

    /// Adds the datagram that was written to `out` from `begin` on, or moves it to `oversized` if
    /// it is too long for the path. Returns whether another one may follow.
    #[inline(always)]
    pub(crate) fn add(&mut self, out: &mut Vec<u8>, begin: usize) -> bool {
        let length = out.len() - begin;
        if length > self.largest { self.set_aside(out, begin) } else { self.take(length) }
    }

    #[cold]
    fn set_aside(&mut self, out: &mut Vec<u8>, begin: usize) -> bool {
        self.oversized.push(out.split_off(begin));
        true
    }

    /// Adds a datagram of `length` bytes. Returns whether another one may follow. A datagram that
    /// is too long for the batch ends it, and its bytes do not count.
    #[inline(always)]
    const fn take(&mut self, length: usize) -> bool {
        if self.is_empty() {
            self.segment_size = length;
        } else if length > self.segment_size || self.size + length > MAX_BYTES {
            return false;
        }
        self.size += length;
        self.room -= 1;
        self.room > 0 && length == self.segment_size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(segments: usize, lengths: &[usize]) -> (Batch, Vec<bool>) {
        let mut batch = Batch::new(segments);
        let goes_on = lengths.iter().map(|&length| batch.take(length)).collect();
        (batch, goes_on)
    }

    #[test]
    fn a_shorter_datagram_is_the_last() {
        let (batch, goes_on) = taken(10, &[1_332, 1_332, 900]);
        assert_eq!(goes_on, [true, true, false]);
        assert_eq!((batch.size, batch.segment_size), (3_564, 1_332));
    }

    #[test]
    fn a_longer_datagram_stays_out() {
        let (batch, goes_on) = taken(10, &[60, 1_332]);
        assert_eq!(goes_on, [true, false]);
        assert_eq!((batch.size, batch.segment_size), (60, 60));
    }

    #[test]
    fn a_datagram_that_is_too_long_for_the_path_is_taken_out() {
        let (mut batch, mut out) = (Batch::new(9), vec![1; 900]);
        batch.limit(Some(900));
        assert!(batch.add(&mut out, 0));
        out.extend([2; 901]);
        assert!(batch.add(&mut out, 900));
        assert_eq!((out.len(), batch.size), (900, 900));
        assert_eq!(batch.oversized, [vec![2; 901]]);
    }

    #[test]
    fn datagrams_and_bytes_are_limited() {
        assert_eq!(taken(2, &[1_332; 2]).1, [true, false]);
        assert_eq!(taken(0, &[1_332]).1, [false], "one goes out at least");
        let (batch, goes_on) = taken(100, &[1_332; 49]);
        assert_eq!(goes_on.iter().filter(|&&goes_on| goes_on).count(), 48);
        assert_eq!(batch.size, 48 * 1_332);
    }
}
