//! The values of `[tcp]`: a live stream over TCP.

use punctual_sim::TcpControl;

use super::setup::Given;
use crate::plan::PlanError;

/// The congestion control of a live stream over a simulated TCP connection, in place of one over
/// SRT, that a plan asks for; `None` if it has no `[tcp]`. Only `sim` has it.
pub(super) fn control(given: &Given<'_>) -> Result<Option<TcpControl>, PlanError> {
    given.named("tcp.control", &CONTROLS)
}

/// The congestion controls by their names in plans.
pub(super) const CONTROLS: [(&str, TcpControl); 4] = [
    ("newreno", TcpControl::NewReno),
    ("cubic", TcpControl::Cubic),
    ("bbr", TcpControl::Bbr),
    ("bbr3", TcpControl::Bbr3),
];
