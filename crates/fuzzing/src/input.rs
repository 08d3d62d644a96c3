//! Makes decisions from bytes, and the time at which their consequences begin.

use punctual_units::Instant;

/// When a target's run begins.
pub(crate) const START: Instant = Instant::from_millis(100_000);

/// The rest of the input.
pub(crate) struct FuzzInput<'a>(pub(crate) &'a [u8]);

impl<'a> FuzzInput<'a> {
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

    pub(crate) fn u16(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    pub(crate) fn u32(&mut self) -> u32 {
        u32::from(self.u16()) << 16 | u32::from(self.u16())
    }

    pub(crate) fn u64(&mut self) -> u64 {
        u64::from(self.u32()) << 32 | u64::from(self.u32())
    }

    /// As many bytes as the next one says.
    pub(crate) fn bytes(&mut self) -> &'a [u8] {
        let len = usize::from(self.byte()).min(self.0.len());
        let (bytes, rest) = self.0.split_at(len);
        self.0 = rest;
        bytes
    }
}
