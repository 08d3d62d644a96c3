//! The record of the blocks of a stream over real sockets: the emulator sees them at both ends of
//! its links.

use punctual_emulator::{LinkDirection, PassedDatagram};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

use crate::backend::blocks::{Record, SeenDatagram};
use crate::outcome::Outcome;
use crate::run::Setup;

/// Follows the blocks of a stream.
pub(super) struct BlockTask(JoinHandle<Record>);

impl BlockTask {
    /// A watch, if the run wants a record of its blocks, and the place for the emulator's notes.
    pub(super) fn new(setup: &Setup) -> Option<(Self, UnboundedSender<PassedDatagram>)> {
        let mut record = Record::new(setup)?;
        let (sender, mut notes) = unbounded_channel::<PassedDatagram>();
        let task = tokio::spawn(async move {
            while let Some(PassedDatagram { at, way, gate, content }) = notes.recv().await {
                record.note(&SeenDatagram {
                    at,
                    is_up: way == LinkDirection::Up,
                    gate,
                    content: &content,
                });
            }
            record
        });
        Some((Self(task), sender))
    }

    /// Writes the totals into an outcome, once the emulator has been stopped.
    pub(super) async fn tell(self, setup: &Setup, outcome: &mut Outcome) -> Result<(), String> {
        let record = self.0.await.map_err(|error| error.to_string())?;
        record.tell(setup, outcome);
        Ok(())
    }
}
