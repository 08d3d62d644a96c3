use std::time::Duration;

use punctual_units::Bitrate;
use thiserror::Error;

use crate::codel::Discipline;
use crate::generators::{NORMAL_LIMIT, normal, pareto, pareto_least, uniform};
use crate::loss::Loss;

/// The parameters of one direction of a link. The default is a perfect link.
///
/// The `with_` functions refuse probabilities outside 0 to 1. A link that finds one nonetheless
/// takes the nearest bound for it, and 0 for NaN.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkConfig {
    /// Bits a second that the link transmits, one packet after the other; `None` (default) for no
    /// limit. At rate zero packets wait until a change of the configuration.
    pub rate: Option<Bitrate>,
    /// The limit of the packets that wait for transmission while another packet is being
    /// transmitted. Without a rate nothing ever waits. Default 1000 packets, as in Linux.
    pub queue: QueueLimit,
    /// Further drops of the queue. Default none: tail drop alone.
    pub discipline: Discipline,
    /// The longest packet that passes, by its [`len`](crate::Packet::len); `None` (default) for no
    /// limit.
    ///
    /// A packet that is longer is dropped without a word, as where "packet too big" messages are
    /// filtered out. It waits and is transmitted like any other before: the bytes reach the far
    /// end, which then does away with them. The value at the entrance counts.
    pub mtu: Option<usize>,
    /// Bytes that each packet takes on the link beside its own [`len`](crate::Packet::len): the
    /// link's own framing, for instance 38 on Ethernet. They count for the rate and for a queue
    /// limited in bytes. Negative where the rate is to count less than the packet: -28 for what
    /// UDP carries over IPv4. Default 0.
    pub overhead: i32,
    /// Time from the end of a packet's transmission to its arrival. Default zero.
    pub delay: Duration,
    /// Variation of the delay. Default none.
    pub jitter: Jitter,
    /// Whether a packet waits for those before it when jitter or a change of the delay would let it
    /// arrive earlier, as on a path that is one queue after another (default), or overtakes them,
    /// as on a path with parallel ways. [`Reorder`] takes place in either case.
    ///
    /// A packet that waits is late, so under jitter that is much larger than the time between
    /// packets, most packets have nearly the largest delay, and they come in clusters.
    pub keep_order: bool,
    /// Which packets are lost. Default none.
    pub loss: Loss,
    /// Which packets are taken out of their order. Default none.
    pub reorder: Reorder,
    /// Probability that a packet is sent twice, 0 (default) to 1.
    pub duplicate: f64,
    /// Probability that a packet's content is damaged, 0 (default) to 1.
    pub corrupt: f64,
}

/// The limit of the packets that wait for transmission; the packet being transmitted does not
/// count. A packet beyond it is dropped (tail drop).
///
/// Printed and read as `1000` (packets), `64KiB` (bytes), `300ms` (time), `unlimited`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum QueueLimit {
    /// This many bytes.
    Bytes(usize),
    /// This many packets.
    Packets(usize),
    /// As much as is transmitted within this time at the present rate; while the link
    /// [stalls](crate::Action::Stall), at the rate after the stall.
    Time(Duration),
    /// Anything.
    Unlimited,
}

/// Variation of the delay from packet to packet, each independent of the others. The mean delay
/// stays, and no delay is less than zero.
///
/// Printed and read as `none`, `4ms` (normal), `uniform:4ms`, `pareto:4ms`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Jitter {
    /// Every packet has the same delay.
    #[default]
    None,
    /// The delay is uniform within `spread` of the mean, up and down.
    Uniform {
        /// Largest deviation from the mean.
        spread: Duration,
    },
    /// The delay is normal, cut off at four standard deviations.
    Normal {
        /// Standard deviation.
        std_dev: Duration,
    },
    /// The delay has a long tail, as on radio links: a Pareto distribution of shape 3, as Linux'
    /// netem has it. Most packets are a little early, a few are very late: one in 1000 by nearly
    /// 10 standard deviations. No packet is earlier than the mean by more than 0.577 standard
    /// deviations, nor later by more than 100.
    Pareto {
        /// Standard deviation.
        std_dev: Duration,
    },
}

/// Packets that are taken out of their order on purpose.
///
/// Printed and read as `none`, `1%:10ms` (late), `ahead:1%:10ms`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Reorder {
    /// No packet.
    #[default]
    None,
    /// A packet's delay is shorter than the others': it overtakes those just before it.
    Ahead {
        /// Probability for each packet, 0 to 1.
        share: f64,
        /// The difference; the delay is never less than zero.
        by: Duration,
    },
    /// A packet's delay is longer than the others': those just behind overtake it.
    Late {
        /// Probability for each packet, 0 to 1.
        share: f64,
        /// The difference.
        by: Duration,
    },
}

/// A probability outside 0 to 1.
#[derive(Clone, Debug, Error, PartialEq)]
#[error("{name} is {value}; it must be a probability, 0 to 1")]
pub struct LinkConfigError {
    name: &'static str,
    value: f64,
}

impl Default for LinkConfig {
    fn default() -> Self {
        Self {
            rate: None,
            queue: QueueLimit::Packets(1_000),
            discipline: Discipline::TailDrop,
            mtu: None,
            overhead: 0,
            delay: Duration::ZERO,
            jitter: Jitter::None,
            keep_order: true,
            loss: Loss::None,
            reorder: Reorder::None,
            duplicate: 0.0,
            corrupt: 0.0,
        }
    }
}

impl LinkConfig {
    /// Sets [`rate`](Self::rate).
    #[must_use]
    pub fn with_rate(self, rate: Option<Bitrate>) -> Self {
        Self { rate, ..self }
    }

    /// Sets [`queue`](Self::queue).
    #[must_use]
    pub fn with_queue(self, queue: QueueLimit) -> Self {
        Self { queue, ..self }
    }

    /// Sets [`discipline`](Self::discipline).
    #[must_use]
    pub fn with_discipline(self, discipline: Discipline) -> Self {
        Self { discipline, ..self }
    }

    /// Sets [`mtu`](Self::mtu).
    #[must_use]
    pub fn with_mtu(self, mtu: Option<usize>) -> Self {
        Self { mtu, ..self }
    }

    /// Sets [`overhead`](Self::overhead).
    #[must_use]
    pub fn with_overhead(self, overhead: i32) -> Self {
        Self { overhead, ..self }
    }

    /// Sets [`delay`](Self::delay).
    #[must_use]
    pub fn with_delay(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }

    /// Sets [`jitter`](Self::jitter).
    #[must_use]
    pub fn with_jitter(self, jitter: Jitter) -> Self {
        Self { jitter, ..self }
    }

    /// Sets [`keep_order`](Self::keep_order).
    #[must_use]
    pub fn with_keep_order(self, keep_order: bool) -> Self {
        Self { keep_order, ..self }
    }

    /// Sets [`loss`](Self::loss), if all its probabilities are 0 to 1.
    pub fn with_loss(self, loss: Loss) -> Result<Self, LinkConfigError> {
        for (name, value) in loss.probabilities() {
            probability(name, value)?;
        }
        Ok(Self { loss, ..self })
    }

    /// Sets [`reorder`](Self::reorder), if its share is 0 to 1.
    pub fn with_reorder(self, reorder: Reorder) -> Result<Self, LinkConfigError> {
        probability("share of reordered packets", reorder.share())?;
        Ok(Self { reorder, ..self })
    }

    /// Sets [`duplicate`](Self::duplicate), 0 to 1.
    pub fn with_duplicate(self, share: f64) -> Result<Self, LinkConfigError> {
        probability("share of duplicated packets", share)?;
        Ok(Self { duplicate: share, ..self })
    }

    /// Sets [`corrupt`](Self::corrupt), 0 to 1.
    pub fn with_corrupt(self, share: f64) -> Result<Self, LinkConfigError> {
        probability("share of corrupted packets", share)?;
        Ok(Self { corrupt: share, ..self })
    }

    /// The least time from the end of any packet's transmission to its arrival.
    pub fn min_delay(&self) -> Duration {
        self.min_delay_of(self.delay)
    }

    /// [`min_delay`](Self::min_delay) if the delay were this.
    pub(crate) fn min_delay_of(&self, delay: Duration) -> Duration {
        let spread = match self.jitter {
            Jitter::None => Duration::ZERO,
            Jitter::Uniform { spread } => spread,
            Jitter::Normal { std_dev } => std_dev.saturating_mul(NORMAL_LIMIT),
            Jitter::Pareto { std_dev } => {
                Duration::from_nanos(pareto_least(nanos(std_dev)).unsigned_abs())
            }
        };
        let ahead = match self.reorder {
            Reorder::Ahead { by, .. } => by,
            Reorder::None | Reorder::Late { .. } => Duration::ZERO,
        };
        delay.saturating_sub(spread).saturating_sub(ahead)
    }

    /// Bytes that a packet of `len` bytes takes on the link.
    pub(crate) fn bytes(&self, len: usize) -> u64 {
        (len as u64).saturating_add_signed(self.overhead.into())
    }

    /// The delay with its jitter, without reordering.
    pub(crate) fn jittered_delay(&self, draws: [u64; 2]) -> Duration {
        let offset = match self.jitter {
            Jitter::None => return self.delay,
            Jitter::Uniform { spread } => uniform(nanos(spread), draws[0]),
            Jitter::Normal { std_dev } => normal(nanos(std_dev), draws),
            Jitter::Pareto { std_dev } => pareto(nanos(std_dev), draws[0]),
        };
        let size = Duration::from_nanos(offset.unsigned_abs());
        if offset < 0 { self.delay.saturating_sub(size) } else { self.delay.saturating_add(size) }
    }
}

impl Reorder {
    pub(crate) fn share(self) -> f64 {
        match self {
            Self::None => 0.0,
            Self::Ahead { share, .. } | Self::Late { share, .. } => share,
        }
    }
}

fn probability(name: &'static str, value: f64) -> Result<(), LinkConfigError> {
    if (0.0..=1.0).contains(&value) { Ok(()) } else { Err(LinkConfigError { name, value }) }
}

fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_outside_0_to_1_are_refused_by_name() {
        let config = LinkConfig::default();
        let message = config.clone().with_duplicate(1.5).unwrap_err().to_string();
        assert_eq!(message, "share of duplicated packets is 1.5; it must be a probability, 0 to 1");
        assert!(config.clone().with_corrupt(f64::NAN).is_err());
        assert!(config.clone().with_loss(Loss::Random(-0.1)).is_err());
        assert!(config.clone().with_loss(Loss::bursts(0.9, 1.0)).is_err());
        let reorder = Reorder::Late { share: 2.0, by: Duration::ZERO };
        assert!(config.with_reorder(reorder).is_err());
    }

    #[test]
    fn jitter_stays_within_its_bounds() {
        let ms = Duration::from_millis;
        let config =
            LinkConfig::default().with_delay(ms(10)).with_jitter(Jitter::Uniform { spread: ms(3) });
        assert_eq!(config.jittered_delay([0, 0]), ms(7));
        assert_eq!(config.jittered_delay([u64::MAX, 0]), ms(13));
        assert_eq!(config.min_delay(), ms(7));
        let config = config.with_jitter(Jitter::Normal { std_dev: ms(2) });
        assert_eq!(config.jittered_delay([0, 0]), ms(2));
        assert_eq!(config.jittered_delay([u64::MAX, 0]), ms(18));
        assert_eq!(config.min_delay(), ms(2));
        let config = config.with_jitter(Jitter::Uniform { spread: ms(11) });
        assert_eq!(config.jittered_delay([0, 0]), Duration::ZERO);
        assert_eq!(config.min_delay(), Duration::ZERO);
    }
}
