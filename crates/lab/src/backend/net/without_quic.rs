//! A build without QUIC.

use punctual::PortConfig;

use crate::backend::real::LOOPBACK;
use crate::outcome::Outcome;
use crate::run::Setup;

/// The ports of the listener and of the caller.
pub(super) fn ports(_: &Setup) -> Result<[PortConfig; 2], String> {
    Ok([(); 2].map(|()| PortConfig { local: Some(LOOPBACK), ..Default::default() }))
}

/// Nothing to run: such a run was refused before.
pub(super) async fn run(_: &Setup) -> Result<Outcome, String> {
    Err("this build has no QUIC".to_owned())
}
