//! A playout point that comes too early for any retransmission.

use std::time::Duration;

use punctual::{ConnectionInfo, Statistics, Transmission};
use punctual_units::DisplayDuration;

/// Notices a playout point below the round trip, once for a connection.
#[derive(Debug, Default)]
pub(super) struct PlayoutWarning {
    is_told: bool,
}

impl PlayoutWarning {
    /// The warning about a connection whose packets are all used before a retransmission can come;
    /// `None` if there is no reason for one, or it was given before.
    pub(super) fn warning(
        &mut self,
        info: &ConnectionInfo,
        statistics: &Statistics,
    ) -> Option<String> {
        let playout = info.receive_latency.max(info.peer_latency);
        let is_stream = info.transmission == Transmission::Stream && !playout.is_zero();
        let is_measured = statistics.packets_sent + statistics.packets_received >= SAMPLE;
        if self.is_told || !is_stream || !is_measured {
            return None;
        }
        let warning = of(playout, statistics.rtt)?;
        self.is_told = true;
        Some(warning)
    }
}

fn of(playout: Duration, rtt: Duration) -> Option<String> {
    let least = rtt + rtt / 10;
    (playout < least).then(|| {
        format!(
            "playout={}ms is too short for the round trip of {:#}: no retransmission can be in \
             time; use at least playout={}ms",
            playout.as_millis(),
            DisplayDuration(rtt),
            least.as_millis() + 1,
        )
    })
}

/// Packets after which the round trip is known.
const SAMPLE: u64 = 200;

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn a_playout_point_needs_a_round_trip_and_a_tenth() {
        assert_eq!(of(MS(220), MS(200)), None);
        let warning = of(MS(150), MS(200)).unwrap();
        assert_eq!(
            warning,
            "playout=150ms is too short for the round trip of 200 ms: no retransmission can be in \
             time; use at least playout=221ms"
        );
    }
}
