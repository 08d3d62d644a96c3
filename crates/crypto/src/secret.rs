use std::fmt;

use zeroize::{Zeroize, ZeroizeOnDrop};

/// Bytes that nobody may see: wiped when dropped, and never shown. They lie on the heap, so that
/// moving the value leaves no copy of them behind.
#[derive(Clone)]
pub(crate) struct Secret(Box<[u8]>);

impl Secret {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }

    /// A secret of `len` bytes that `fill` writes.
    pub(crate) fn filled(len: usize, fill: impl FnOnce(&mut [u8])) -> Self {
        let mut secret = Self(vec![0; len].into());
        fill(&mut secret.0);
        secret
    }

    pub(crate) const fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl PartialEq for Secret {
    /// Takes the same time wherever the first difference lies.
    fn eq(&self, other: &Self) -> bool {
        self.0.len() == other.0.len()
            && self.0.iter().zip(&other.0).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
    }
}

impl Eq for Secret {}

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl ZeroizeOnDrop for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}
