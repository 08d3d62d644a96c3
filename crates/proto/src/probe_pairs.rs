//! Probe pairs: two packets that are sent at once, so that their distance at the receiver tells the
//! capacity of the link.

use punctual_units::Bitrate;

/// A packet whose number is divisible by this starts a probe pair.
pub(crate) const PROBE_INTERVAL: u32 = 16;

/// The bit rate of `packets_per_sec` packets of full size.
pub(crate) fn capacity(packets_per_sec: u32, mss: usize) -> Bitrate {
    Bitrate::from_bytes_per_sec(u64::from(packets_per_sec) * mss as u64)
}
