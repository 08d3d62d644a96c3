//! Derivation of keys without the lock that connections need.

use std::sync::Arc;

use punctual_proto::KeyDerivation;

use crate::shared::Shared;

/// Derives a key for a caller in a thread for blocking work, and passes it to the protocol.
pub(crate) fn derive(shared: &Arc<Shared>, job: KeyDerivation) {
    let shared = Arc::clone(shared);
    tokio::task::spawn_blocking(move || {
        let derived = job.run();
        shared.call_and_wake(|state, _| state.endpoint().handle_derived_key(derived));
    });
}

/// The largest number of keys that a port derives per second: a tenth of a core's time.
pub(crate) const DERIVATIONS: u32 = 500;
