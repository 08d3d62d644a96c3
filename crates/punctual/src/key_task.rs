//! Derivation of keys without the lock that connections need.

use std::sync::Arc;

use punctual_proto::{Config, IncomingId, KeyDerivation};

use crate::shared::Shared;

/// Derives a key for a caller in a thread for blocking work, and passes it to the protocol.
pub(crate) fn derive(shared: &Arc<Shared>, job: KeyDerivation) {
    let shared = Arc::clone(shared);
    tokio::task::spawn_blocking(move || {
        let derived = job.run();
        shared.call_and_wake(|state, _| state.endpoint().handle_derived_key(derived));
    });
}

/// Derives the key for accepting a caller with `config`, if it is not that of the listener: in this
/// thread, without the lock that connections need.
pub(crate) fn derive_here(shared: &Shared, id: IncomingId, config: Option<&Config>) {
    let Some(config) = config else { return };
    let job = shared.lock().endpoint().key_derivation_for(id, config);
    if let Some(derived) = job.map(KeyDerivation::run) {
        shared.call(|state, _| state.endpoint().handle_derived_key(derived));
    }
}

/// The largest number of keys that a port derives per second: a tenth of a core's time.
pub(crate) const DERIVATIONS: u32 = 500;
