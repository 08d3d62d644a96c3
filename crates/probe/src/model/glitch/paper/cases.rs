//! The setting of the paper's experiments.

use punctual_units::Bitrate;
use std::time::Duration;

/// One of the three streams of the paper.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Case {
    /// The bit rate of the video.
    pub rate: Bitrate,
    /// The blocks in a second of it, which is a readchunk.
    pub blocks: u32,
    /// The bandwidth that the emulated network had for it.
    pub channel: Bitrate,
}

impl Case {
    /// The three streams, in the paper's order of its tables.
    pub const ALL: [Self; 3] = [
        Self { rate: Bitrate::from_mbps(6), blocks: 547, channel: Bitrate::from_mbps(10) },
        Self { rate: Bitrate::from_mbps(10), blocks: 911, channel: Bitrate::from_mbps(15) },
        Self { rate: Bitrate::from_mbps(40), blocks: 3641, channel: Bitrate::from_mbps(50) },
    ];

    /// The payload of a block that the paper's number of blocks has, in whole bytes.
    pub fn payload(&self) -> usize {
        let bytes = self.rate.as_bytes_per_sec() / u64::from(self.blocks);
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }
}

/// The round trip of the paper's network.
pub const ROUND_TRIP: Duration = Duration::from_millis(200);
/// The share of packets that it loses, in each direction.
pub const LOSS: f64 = 0.02;
/// The time of video in a readchunk.
pub const READCHUNK: Duration = Duration::from_secs(1);
/// The size of a block as the paper says it.
pub const BLOCK_BYTES: usize = 1464;
/// Readchunks of one transfer, 30 seconds.
pub const CHUNKS: u32 = 30;
/// Transfers of each stream.
pub const TRANSFERS: u32 = 100;
