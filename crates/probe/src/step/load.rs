//! The load that a step puts on the link.

use std::time::Duration;

use punctual_units::Bitrate;

use super::float;

/// Messages of one size at a constant rate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    rate: Bitrate,
    packets_per_sec: f64,
}

impl Load {
    /// `rate` of payloads, in messages of `payload` bytes.
    pub(crate) fn new(rate: Bitrate, payload: usize) -> Self {
        let packets_per_sec = float(rate.as_bits_per_sec()) / (8.0 * float(payload as u64));
        Self { rate, packets_per_sec }
    }

    /// Rate of the payloads.
    pub(crate) fn rate(&self) -> Bitrate {
        self.rate
    }

    pub(crate) fn packets_per_sec(&self) -> f64 {
        self.packets_per_sec
    }

    /// Packets that are sent in `time`.
    pub(crate) fn packets_in(&self, time: Duration) -> f64 {
        self.packets_per_sec * time.as_secs_f64()
    }

    /// The rate of payloads at which `received` packets arrived in `time`.
    pub(crate) fn delivered(&self, received: u64, time: Duration) -> Bitrate {
        let sent = self.packets_in(time);
        self.scaled(if sent > 0.0 { float(received) / sent } else { 0.0 })
    }

    /// The rate times `factor`.
    pub(crate) fn scaled(&self, factor: f64) -> Bitrate {
        scaled(self.rate, factor)
    }
}

/// `rate` times `factor`.
pub(crate) fn scaled(rate: Bitrate, factor: f64) -> Bitrate {
    #[expect(clippy::cast_possible_truncation, reason = "rates are far below 2^53")]
    #[expect(clippy::cast_sign_loss, reason = "neither is negative")]
    let bits = (float(rate.as_bits_per_sec()) * factor.max(0.0)) as u64;
    Bitrate::from_bits_per_sec(bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delivered_rate_is_the_share_of_packets_that_arrived() {
        let load = Load::new(Bitrate::from_mbps(8), 1_000);
        assert_eq!(
            load.delivered(900, Duration::from_secs(1)),
            Bitrate::from_bits_per_sec(7_200_000)
        );
        assert_eq!(load.delivered(900, Duration::ZERO), Bitrate::ZERO);
    }
}
