//! The values of `[tcp]`: a live stream over TCP.

use super::setup::Given;
use crate::plan::PlanError;

/// A live stream over a simulated TCP connection, in place of one over SRT. Only `sim` has it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TcpStream {
    /// `NewReno`.
    NewReno,
    /// CUBIC.
    Cubic,
    /// BBR.
    Bbr,
}

impl TcpStream {
    const ALL: [(Self, &'static str); 3] =
        [(Self::NewReno, "newreno"), (Self::Cubic, "cubic"), (Self::Bbr, "bbr")];

    /// The connection that a plan asks for; `None` if it has no `[tcp]`.
    pub(super) fn read(given: &Given<'_>) -> Result<Option<Self>, PlanError> {
        let word = given.word("tcp.control", &Self::ALL.map(|(_, name)| name))?;
        Ok(word.and_then(|word| Self::ALL.iter().find(|(_, name)| *name == word).map(|it| it.0)))
    }
}
