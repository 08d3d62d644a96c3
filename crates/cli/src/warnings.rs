//! Warnings about keys in a URI that are legal and may be a mistake.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use punctual::Bitrate;
use punctual_uri::Uri;

/// Warns of a rate that is set by an option and lower than any stream's: probably a bare number,
/// which counts bits per second.
pub(crate) fn of_rate(option: &str, rate: Bitrate) {
    if rate != Bitrate::ZERO && rate < LEAST_RATE {
        tracing::warn!(
            "{option}: {rate:#} is less than any stream has; a bare number counts bits per second, \
             and 5Mbps megabits"
        );
    }
}

/// The lowest rate that needs no warning.
const LEAST_RATE: Bitrate = Bitrate::from_bits_per_sec(1_000);

/// Logs the warnings about `uri`. A warning that several URIs share, or a URI that is opened again,
/// is logged once.
pub(crate) fn of(uri: &Uri) {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    for warning in uri.warnings() {
        let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
        if said.insert(warning.clone()) {
            tracing::warn!("{uri}: {warning}");
        }
    }
}
