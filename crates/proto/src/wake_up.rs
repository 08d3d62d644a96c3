//! The time of the next action.

use punctual_units::Instant;

/// The time of the next action: at once, at an instant, or never. Earlier times compare as less.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum WakeUp {
    /// At once, at any time.
    Now,
    /// At this instant, or as soon as possible after it.
    At(Instant),
    /// Never, unless an event changes that.
    Never,
}

impl WakeUp {
    /// Whether the action is due at `now`.
    #[inline]
    pub fn is_due(self, now: Instant) -> bool {
        match self {
            Self::Now => true,
            Self::At(at) => at <= now,
            Self::Never => false,
        }
    }

    /// The instant for a timer; `None` for an action that is due at `now`, which needs no timer,
    /// and for never.
    #[inline]
    pub(crate) fn later_than(self, now: Instant) -> Option<Instant> {
        match self {
            Self::At(at) if at > now => Some(at),
            Self::At(_) | Self::Now | Self::Never => None,
        }
    }

    /// The instant of the action: `now` for an action at once, `None` for never.
    #[inline]
    pub const fn instant(self, now: Instant) -> Option<Instant> {
        match self {
            Self::Now => Some(now),
            Self::At(at) => Some(at),
            Self::Never => None,
        }
    }
}

impl From<Option<Instant>> for WakeUp {
    /// `None` means never.
    fn from(at: Option<Instant>) -> Self {
        at.map_or(Self::Never, Self::At)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Instant = Instant::from_millis;

    #[test]
    fn the_earlier_wake_up_is_less() {
        assert_eq!(WakeUp::Now.min(WakeUp::At(MS(0))), WakeUp::Now);
        assert_eq!(WakeUp::At(MS(1)).min(WakeUp::At(MS(2))), WakeUp::At(MS(1)));
        assert_eq!(WakeUp::At(MS(1)).max(WakeUp::Never), WakeUp::Never);
    }

    #[test]
    fn now_is_due_at_any_instant_and_never_at_none() {
        assert!(WakeUp::Now.is_due(Instant::ORIGIN));
        assert!(WakeUp::At(MS(5)).is_due(MS(5)) && !WakeUp::At(MS(5)).is_due(MS(4)));
        assert!(!WakeUp::Never.is_due(MS(u64::MAX / 2_000_000)));
    }

    #[test]
    fn a_timer_is_only_set_for_a_later_instant() {
        assert_eq!(WakeUp::At(MS(5)).later_than(MS(4)), Some(MS(5)));
        assert_eq!(WakeUp::At(MS(5)).later_than(MS(5)), None);
        assert_eq!(WakeUp::Now.later_than(MS(4)), None);
        assert_eq!(WakeUp::Now.instant(MS(4)), Some(MS(4)));
        assert_eq!(WakeUp::from(None), WakeUp::Never);
    }
}
