//! Makes decisions from bytes.

/// The rest of the input.
pub(crate) struct Input<'a>(pub(crate) &'a [u8]);

impl<'a> Input<'a> {
    /// The next byte, if there is one left.
    pub(crate) fn next(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    /// The next byte, or zero.
    pub(crate) fn byte(&mut self) -> u8 {
        self.next().unwrap_or(0)
    }

    /// Whether the next byte is one of the first `share` in 256.
    pub(crate) fn is(&mut self, share: u8) -> bool {
        self.byte() < share
    }

    pub(crate) fn i32(&mut self) -> i32 {
        i32::from_be_bytes([self.byte(), self.byte(), self.byte(), self.byte()])
    }

    /// One of these values.
    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::from(self.byte()) % from.len()]
    }

    /// A number that tests a bound, or any number.
    pub(crate) fn number(&mut self) -> i32 {
        match self.byte() {
            200.. => self.i32(),
            at => NUMBERS[usize::from(at) % NUMBERS.len()],
        }
    }

    /// As many bytes as the next one says.
    pub(crate) fn bytes(&mut self) -> &'a [u8] {
        let len = usize::from(self.byte()).min(self.0.len());
        let (bytes, rest) = self.0.split_at(len);
        self.0 = rest;
        bytes
    }
}

/// Numbers near the bounds of options, lengths and times.
const NUMBERS: [i32; 20] = [
    0,
    1,
    2,
    -1,
    -2,
    5,
    16,
    32,
    75,
    76,
    100,
    1_000,
    1_316,
    1_456,
    1_500,
    8_192,
    65_536,
    1 << 24,
    i32::MAX,
    i32::MIN,
];
