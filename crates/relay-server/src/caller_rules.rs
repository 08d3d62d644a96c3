//! The rules of a listener about its callers.

use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use punctual_relay_access::{Action, CallDefaults, Networks};
use punctual_relay_config::{CallerMode, ListenerSettings};

/// The rules of a listener about its callers, from its settings.
pub(crate) struct CallerRules {
    settings: ListenerSettings,
    networks: Networks,
    defaults: CallDefaults,
    pace: CallPace,
}

impl CallerRules {
    pub(crate) fn new(settings: ListenerSettings) -> Self {
        let action = match settings.mode {
            CallerMode::Publish => Action::Publish,
            CallerMode::Request => Action::Read,
        };
        Self {
            networks: Networks::new(settings.allow.clone(), settings.deny.clone()),
            defaults: CallDefaults { stream: settings.stream.clone(), action: Some(action) },
            pace: CallPace::new(settings.calls_per_second),
            settings,
        }
    }

    pub(crate) const fn settings(&self) -> &ListenerSettings {
        &self.settings
    }

    /// The stream and the action of callers whose stream ID names none.
    pub(crate) const fn defaults(&self) -> &CallDefaults {
        &self.defaults
    }

    /// Whether callers from this address are let in.
    pub(crate) fn admit(&self, ip: IpAddr) -> bool {
        self.networks.admit(ip)
    }

    /// Whether another call is possible in this second, and counts it.
    pub(crate) fn has_time(&self) -> bool {
        self.pace.admits(Instant::now())
    }

    /// The most connections of one address.
    pub(crate) fn most_per_address(&self) -> Option<usize> {
        let most = self.settings.max_callers_per_address as usize;
        (most > 0).then_some(most)
    }
}

/// Limits the calls of a second.
struct CallPace {
    most: f64,
    /// The calls that are possible now, and when this was so.
    left: Mutex<(f64, Instant)>,
}

impl CallPace {
    fn new(most: u32) -> Self {
        let most = f64::from(most);
        Self { most, left: Mutex::new((most, Instant::now())) }
    }

    /// Whether another call is possible at `now`.
    fn admits(&self, now: Instant) -> bool {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let since = now.saturating_duration_since(left.1).as_secs_f64();
        *left = ((left.0 + since * self.most).min(self.most), now);
        let is_possible = left.0 >= 1.0;
        left.0 -= if is_possible { 1.0 } else { 0.0 };
        is_possible
    }
}
