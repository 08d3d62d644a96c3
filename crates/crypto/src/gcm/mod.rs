//! AES-GCM with one key: by aws-lc with the feature `aws-lc`, and otherwise in pure Rust.

#[cfg(feature = "aws-lc")]
mod aws_lc;
#[cfg(any(test, not(feature = "aws-lc")))]
mod pure_rust;

#[cfg(feature = "aws-lc")]
pub(crate) use aws_lc::GcmKey;
#[cfg(not(feature = "aws-lc"))]
pub(crate) use pure_rust::GcmKey;

/// The nonce of a packet.
pub(crate) type Nonce = [u8; 12];
/// The tag that authenticates a packet.
pub(crate) type Tag = [u8; TAG_LEN];

/// Bytes of a [`Tag`].
pub(crate) const TAG_LEN: usize = 16;

#[cfg(test)]
mod tests;
