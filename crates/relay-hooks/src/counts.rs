//! How often hooks ran, for metrics.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::event::HookEventKind;

/// The result of a hook for one event.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum HookResult {
    /// The program ended with 0, or because the state ended; the server answered with 2xx.
    Done,
    /// The program could not be started or ended otherwise; no server answered with 2xx.
    Failed,
    /// Too many programs ran or requests waited, and this one was left out.
    LeftOut,
}

impl HookResult {
    /// Its word for metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::LeftOut => "left-out",
        }
    }
}

/// The counts by event and result.
#[derive(Debug, Default)]
pub(crate) struct HookCounts(Mutex<BTreeMap<(HookEventKind, HookResult), u64>>);

impl HookCounts {
    pub(crate) fn add(&self, kind: HookEventKind, result: HookResult) {
        *self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry((kind, result))
            .or_default() += 1;
    }

    pub(crate) fn all(&self) -> Vec<(HookEventKind, HookResult, u64)> {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.iter().map(|(&(kind, result), &count)| (kind, result, count)).collect()
    }
}
