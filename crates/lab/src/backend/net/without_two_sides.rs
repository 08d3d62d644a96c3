//! A system on which the emulator has no two sides.

use punctual_sim::TcpControl;

use crate::outcome::Outcome;
use crate::run::Setup;

/// Why this machine cannot run a stream over the kernel's TCP.
pub(super) fn lacks(_: TcpControl) -> Option<String> {
    Some("the kernel's TCP needs the network namespaces of Linux".to_owned())
}

/// Nothing to run: such a run was left out before.
pub(super) fn run(_: &Setup, control: TcpControl) -> Result<Outcome, String> {
    Err(lacks(control).unwrap_or_default())
}
