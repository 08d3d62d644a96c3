//! The time of the next action.

use punctual_units::Instant;

/// The time of the next action: at once, at an instant, or never. Earlier ones compare as less.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum WakeUp {
    /// At once, whatever the time is.
    Now,
    /// At this instant, or as soon after it as somebody looks.
    At(Instant),
    /// Not before something else happens.
    Never,
}

impl WakeUp {
    /// Whether the time has come.
    #[inline]
    pub fn is_due(self, now: Instant) -> bool {
        match self {
            Self::Now => true,
            Self::At(at) => at <= now,
            Self::Never => false,
        }
    }

    /// The instant for a timer, where an action that is due is taken without one.
    #[inline]
    pub(crate) fn later_than(self, now: Instant) -> Option<Instant> {
        match self {
            Self::At(at) if at > now => Some(at),
            Self::At(_) | Self::Now | Self::Never => None,
        }
    }

    /// The instant of the action, `now` if it is to be done at once; `None` for never.
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
    /// `None` stands for never.
    fn from(at: Option<Instant>) -> Self {
        at.map_or(Self::Never, Self::At)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Instant = Instant::from_millis;

    #[test]
    fn the_earlier_of_two_is_the_lesser() {
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
    fn a_timer_is_set_for_an_instant_alone() {
        assert_eq!(WakeUp::At(MS(5)).later_than(MS(4)), Some(MS(5)));
        assert_eq!(WakeUp::At(MS(5)).later_than(MS(5)), None);
        assert_eq!(WakeUp::Now.later_than(MS(4)), None);
        assert_eq!(WakeUp::Now.instant(MS(4)), Some(MS(4)));
        assert_eq!(WakeUp::from(None), WakeUp::Never);
    }
}
