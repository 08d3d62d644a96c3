//! Deriving keys where connections need not wait for it.

use std::sync::Arc;

use punctual_io::Datagram;
use punctual_proto::{Config, IncomingId, KeyDerivation};

use crate::shared::Shared;

/// Derives a key for a caller in a thread of its own, and tells the machine.
pub(crate) fn derive(shared: &Arc<Shared>, job: KeyDerivation) {
    let shared = Arc::clone(shared);
    tokio::task::spawn_blocking(move || {
        let derived = job.run();
        shared.call_and_wake(|state, _| state.endpoint.handle_derived_key(derived));
    });
}

/// Derives the key that accepting a caller with `config` takes, if it is not the listener's: here,
/// without the lock that connections need.
pub(crate) fn derive_here(shared: &Shared, id: IncomingId, config: Option<&Config>) {
    let Some(config) = config else { return };
    let job = shared.lock().endpoint.key_derivation_for(id, config);
    if let Some(derived) = job.map(KeyDerivation::run) {
        shared.call(|state, _| state.endpoint.handle_derived_key(derived));
    }
}

/// Whether a datagram is a handshake of somebody who has no connection yet. Those of connections
/// come first.
pub(crate) fn is_knock(datagram: &Datagram) -> bool {
    datagram.payload.get(12..16).is_some_and(|socket| socket == [0; 4])
}

/// Keys that a port derives a second at most: a tenth of a core's time.
pub(crate) const DERIVATIONS: u32 = 500;
