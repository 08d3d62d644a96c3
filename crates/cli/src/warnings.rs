//! What is allowed in a URI but may not be what was meant, said once.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use punctual_uri::Uri;

/// Says what is odd in `uri`. What holds for several of them, or for one that is opened again, is
/// said once.
pub(crate) fn of(uri: &Uri) {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    for warning in uri.warnings() {
        let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
        if said.insert(warning.clone()) {
            tracing::warn!("{uri}: {warning}");
        }
    }
}
