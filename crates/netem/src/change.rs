//! One parameter of a link, and a new value for it.

use std::time::Duration;

use punctual_units::Bitrate;

use crate::codel::Discipline;
use crate::config::{Jitter, LinkConfig, QueueLimit, Reorder};
use crate::loss::Loss;
use crate::text::error::LinkTextError;
use crate::text::key;

/// A new value for one parameter of a [`LinkConfig`], from a timeline, an option of a command, or a
/// plan.
///
/// [`Change::parse`] reads each of them from a key and a value, and lists them.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Change {
    /// [`LinkConfig::rate`].
    Rate(Option<Bitrate>),
    /// [`LinkConfig::queue`].
    Queue(QueueLimit),
    /// [`LinkConfig::discipline`].
    Discipline(Discipline),
    /// [`LinkConfig::mtu`].
    Mtu(Option<usize>),
    /// [`LinkConfig::overhead`].
    Overhead(i32),
    /// [`LinkConfig::delay`].
    Delay(Duration),
    /// [`LinkConfig::jitter`].
    Jitter(Jitter),
    /// [`LinkConfig::keep_order`].
    KeepOrder(bool),
    /// [`LinkConfig::loss`].
    Loss(Loss),
    /// [`LinkConfig::reorder`].
    Reorder(Reorder),
    /// [`LinkConfig::duplicate`].
    Duplicate(f64),
    /// [`LinkConfig::corrupt`].
    Corrupt(f64),
}

impl Change {
    /// Gives the parameter its new value.
    pub fn apply(&self, config: &mut LinkConfig) {
        match self {
            Self::Rate(rate) => config.rate = *rate,
            Self::Queue(queue) => config.queue = *queue,
            Self::Discipline(discipline) => config.discipline = *discipline,
            Self::Mtu(mtu) => config.mtu = *mtu,
            Self::Overhead(bytes) => config.overhead = *bytes,
            Self::Delay(delay) => config.delay = *delay,
            Self::Jitter(jitter) => config.jitter = *jitter,
            Self::KeepOrder(keep_order) => config.keep_order = *keep_order,
            Self::Loss(loss) => config.loss = loss.clone(),
            Self::Reorder(reorder) => config.reorder = *reorder,
            Self::Duplicate(share) => config.duplicate = *share,
            Self::Corrupt(share) => config.corrupt = *share,
        }
    }

    /// Reads a parameter's new value.
    ///
    /// | key | value |
    /// |---|---|
    /// | `loss` | `5%`, `2%:8`, `p,r,good,bad`, `every:100:3:7`, `every:10s:50`, `list:3,7-9`... |
    /// | `burst-loss` | `2%:8`, `0.5%,10%,0.1%,40%`: of these the ones with bursts by chance |
    /// | `delay` | `20ms`; bare numbers are milliseconds |
    /// | `jitter` | `4ms`, `uniform:4ms`, `pareto:4ms`, `none` |
    /// | `overtake` | `on`, `off`: the contrary of [`keep_order`](crate::LinkConfig::keep_order) |
    /// | `rate` | `20Mbps`, `unlimited`; bare numbers are bits a second |
    /// | `queue` | `1000`, `300ms`, `64KiB`, `unlimited` |
    /// | `codel` | `5ms:100ms`, `on`, `off` |
    /// | `mtu` | `1500`, `none`: bytes |
    /// | `overhead` | `38`, `-28`: bytes a packet |
    /// | `reorder` | `1%` (by 10 ms), `1%:10ms`, `ahead:1%:10ms`, `none` |
    /// | `duplicate`, `corrupt` | `1%` |
    ///
    /// More is said with [`Loss`], [`Jitter`], [`QueueLimit`], [`Discipline`] and [`Reorder`].
    pub fn parse(key: &str, value: &str) -> Result<Self, LinkTextError> {
        key::change(key, value)
    }
}
