//! Warnings about keys in a URI that are legal and may be a mistake.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use punctual_uri::Uri;

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
