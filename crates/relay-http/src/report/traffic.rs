//! The traffic of a stream in one direction, and the health of its transport stream.

use std::time::Duration;

use serde::Serialize;
use utoipa::ToSchema;

use super::Timestamp;

/// The packets of a stream in one direction: from its source, or to all its viewers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
pub struct Traffic {
    /// The bytes of the stream itself, without headers and retransmissions.
    pub bytes: u64,
    /// The rate over the last second, in bits a second, of the stream itself.
    pub rate_bps: u64,
    /// SRT packets, retransmissions included.
    pub packets: u64,
    /// Packets that did not arrive at the first transmission.
    pub packets_lost: u64,
    /// Packets that were lost for the application: not repaired in time.
    pub packets_unrecovered: u64,
    /// Retransmissions.
    pub packets_retransmitted: u64,
    /// Packets that could not be decrypted.
    pub packets_undecryptable: u64,
    /// The round-trip time: of the source, or the median over all viewers.
    pub rtt_ms: Option<f64>,
    /// The agreed latency: of the source, or the greatest of the viewers.
    pub latency_ms: Option<u32>,
    /// The time span in the buffer: the receive buffer of the source, or the fullest send buffer.
    pub buffer_ms: Option<u32>,
    /// The round-trip times measured once a second on each connection, for metrics.
    #[serde(skip)]
    #[schema(ignore)]
    pub rtts: DurationCounts,
}

/// The upper bounds of the buckets of [`DurationCounts`], in seconds.
pub const DURATION_BOUNDS_S: [f64; 12] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0];

/// Durations, counted in buckets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DurationCounts {
    counts: [u64; DURATION_BOUNDS_S.len()],
    longer: u64,
    sum_s: f64,
}

impl DurationCounts {
    /// Counts a duration.
    pub fn observe(&mut self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        self.sum_s += seconds;
        match DURATION_BOUNDS_S.iter().position(|bound| seconds <= *bound) {
            Some(bucket) => self.counts[bucket] += 1,
            None => self.longer += 1,
        }
    }

    /// Adds the durations of `other`.
    pub fn add(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count += more;
        }
        self.longer += other.longer;
        self.sum_s += other.sum_s;
    }

    /// The sum of all durations, in seconds.
    pub fn sum_s(&self) -> f64 {
        self.sum_s
    }

    /// The number of durations.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum::<u64>() + self.longer
    }

    /// Each upper bound with the durations up to it and above the bound before.
    pub fn buckets(&self) -> Vec<(f64, u64)> {
        DURATION_BOUNDS_S.into_iter().zip(self.counts).collect()
    }
}

/// The health of a transport stream: the first and the second priority of ETSI TR 101 290, as far
/// as a relay sees them. Each number counts errors.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, ToSchema)]
pub struct StreamHealth {
    /// Packets of 188 bytes.
    pub packets: u64,
    /// Losses of synchronisation (1.1).
    pub sync_losses: u64,
    /// Packets without the sync byte 0x47 (1.2).
    pub sync_byte_errors: u64,
    /// No PAT for 0.5 s, or another table in its place (1.3).
    pub pat_errors: u64,
    /// Wrong steps of a continuity counter (1.4).
    pub continuity_errors: u64,
    /// No PMT of a program for 0.5 s (1.5).
    pub pmt_errors: u64,
    /// A PID of a program without packets for 5 s (1.6).
    pub pid_errors: u64,
    /// Packets with the transport error indicator (2.1).
    pub transport_errors: u64,
    /// Tables with a wrong CRC (2.2).
    pub crc_errors: u64,
    /// More than 100 ms from PCR to PCR (2.3a).
    pub pcr_repetition_errors: u64,
    /// Jumps of the PCR by more than 100 ms that no flag announces (2.3b).
    pub pcr_discontinuities: u64,
    /// PCRs that are wrong by more than 500 ns (2.4).
    pub pcr_accuracy_errors: u64,
    /// More than 700 ms from PTS to PTS (2.5).
    pub pts_errors: u64,
    /// The time from one random access point to the next; `null` before the second one.
    pub random_access_interval_ms: Option<u32>,
    /// The time of the latest error.
    pub last_error_at: Option<Timestamp>,
}

impl StreamHealth {
    /// The errors of the first priority: with one of these a receiver may lose the picture.
    pub fn first_priority(&self) -> u64 {
        self.sync_losses
            + self.sync_byte_errors
            + self.pat_errors
            + self.continuity_errors
            + self.pmt_errors
            + self.pid_errors
    }
}

/// A number of occurrences for one reason.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, ToSchema)]
pub struct Tally {
    /// The reason: one of a small fixed set of words with hyphens.
    pub reason: String,
    /// The number.
    pub count: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_fall_into_the_bucket_whose_bound_they_do_not_pass() {
        let mut counts = DurationCounts::default();
        for millis in [1, 2, 100, 101, 60_000] {
            counts.observe(Duration::from_millis(millis));
        }
        let filled: Vec<_> = counts.buckets().into_iter().filter(|it| it.1 > 0).collect();
        assert_eq!(filled, [(0.001, 1), (0.0025, 1), (0.1, 1), (0.25, 1)]);
        assert_eq!(counts.count(), 5);
        let mut twice = counts;
        twice.add(&counts);
        assert_eq!((twice.count(), twice.sum_s()), (10, 2.0 * counts.sum_s()));
    }
}
