//! The URIs of a command.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use punctual_uri::{Target, Uri};

use crate::written;

/// Takes a source of the command: logs the warnings about it, and notes its file.
pub(crate) fn source(uri: &Uri) {
    warn_of(uri);
    if let Target::File(target) = &uri.target {
        written::note(&target.path);
    }
}

/// Takes a destination of the command likewise.
pub(crate) fn destination(uri: &Uri) {
    source(uri);
    if matches!(uri.target, Target::Stdio) {
        written::note(Path::new("-"));
    }
}

/// Logs the warnings about `uri`. A warning that several URIs share, or a URI that is opened again,
/// is logged once.
pub(crate) fn warn_of(uri: &Uri) {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    for warning in uri.warnings() {
        let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
        if said.insert(warning.clone()) {
            tracing::warn!("{uri}: {warning}");
        }
    }
}
