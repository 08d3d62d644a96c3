//! The stream to a destination that keeps what its receiver has not confirmed.

use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use punctual::Outgoing;
use punctual::resume::{FileSpool, ResumableSender, ResumeError, SpoolError};
use punctual_units::grouped;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::sleep;

use crate::failure::Failure;
use crate::route::batch::Batch;
use crate::stop::Stop;

/// A stream that outlives the connections to its destination, and with a file its process.
pub struct KeptStream {
    pub(super) sender: ResumableSender,
    /// The spool's file, if it has one.
    file: Option<PathBuf>,
    /// Whether the source cannot wait, so that messages are discarded when the spool is full.
    is_live: bool,
}

/// The file of a spool, which is written round and round.
#[derive(Clone, Debug)]
pub struct SpoolFile {
    /// Its path.
    pub path: PathBuf,
    /// The size of a new one, in bytes.
    pub size: u64,
}

/// The end of the messages from a source.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum SourceEnd {
    /// The stream has ended.
    All,
    /// The rest is in the spool's file, for the next start.
    ForNextStart,
}

impl KeptStream {
    /// A stream from `source`, of which up to `memory` bytes that are not confirmed stay in memory,
    /// and more of them in `file` if there is one. If the source `is_live`, messages are discarded
    /// when there is no room.
    ///
    /// # Errors
    ///
    /// The file cannot be opened, is too small, or has the stream of another source.
    pub fn open(
        source: &str,
        memory: u64,
        file: Option<SpoolFile>,
        is_live: bool,
    ) -> Result<Self, Failure> {
        let sender = match &file {
            None => ResumableSender::in_memory(memory).map_err(|error| failure(&error))?,
            Some(SpoolFile { path, size }) => {
                let spool = FileSpool::open(path, source, *size, memory).map_err(|error| {
                    Failure::runtime(format!("the spool {}: {error}", path.display()))
                })?;
                ResumableSender::new(spool.stream(), spool)
            }
        };
        let kept = sender.kept();
        if kept.end > 0 {
            tracing::info!(
                "the spool has {} bytes of a stream, {} of them not confirmed, and goes on with it",
                grouped(kept.end),
                grouped(kept.len())
            );
        }
        Ok(Self { sender, file: file.map(|file| file.path), is_live })
    }

    /// The number of bytes of the stream so far.
    pub fn end(&self) -> u64 {
        self.sender.kept().end
    }

    /// Keeps the messages of `inbox` until no more come.
    pub(super) async fn keep(
        &self,
        mut inbox: UnboundedReceiver<Batch>,
        stop: &Stop,
    ) -> Result<SourceEnd, Failure> {
        let mut discarded = Discarded::default();
        while let Some(batch) = inbox.recv().await {
            let (messages, _taken) = batch.into_parts();
            for Outgoing { payload, .. } in messages {
                if self.is_live {
                    let len = payload.len();
                    discarded.count(self.sender.try_send(payload), len)?;
                } else {
                    self.add(payload, stop).await?;
                }
            }
        }
        if stop.is_told() && self.file.is_some() {
            return Ok(SourceEnd::ForNextStart);
        }
        self.sender.end();
        Ok(SourceEnd::All)
    }

    /// Keeps a message of a source that can wait. While the spool cannot be written, for example
    /// because the disk is full, it is tried again and again.
    async fn add(&self, payload: Bytes, stop: &Stop) -> Result<(), Failure> {
        let mut waits = false;
        loop {
            match self.sender.send(payload.clone()).await {
                Err(ResumeError::Spool(SpoolError::Io(error))) => {
                    if !std::mem::replace(&mut waits, true) {
                        tracing::warn!("the spool: {error}; the source waits until it is written");
                    }
                    if stop.or(sleep(PAUSE)).await.is_none() {
                        return Err(failure(&error));
                    }
                }
                added => {
                    if waits && added.is_ok() {
                        tracing::info!("the spool is written again");
                    }
                    return added.map_err(|error| failure(&error));
                }
            }
        }
    }

    /// Bytes that are not confirmed and that no file keeps.
    pub(super) fn rest(&self) -> u64 {
        match self.file {
            Some(_) => 0,
            None => self.sender.kept().len(),
        }
    }

    /// Removes the spool's file when the whole stream is delivered, or says what is left in it.
    pub(super) fn finish(&self, kept: SourceEnd) {
        let Some(file) = &self.file else { return };
        match kept {
            SourceEnd::All => {
                if let Err(error) = std::fs::remove_file(file) {
                    tracing::warn!("the spool {}: {error}", file.display());
                }
            }
            SourceEnd::ForNextStart => tracing::info!(
                "{} bytes are kept in {}; the stream goes on with the next start",
                grouped(self.sender.kept().len()),
                file.display()
            ),
        }
    }
}

/// Messages of a live source that found no room.
#[derive(Debug, Default)]
struct Discarded {
    messages: u64,
    bytes: u64,
}

impl Discarded {
    fn count(&mut self, sent: Result<(), SpoolError>, len: usize) -> Result<(), Failure> {
        match sent {
            Ok(()) => self.report(),
            Err(SpoolError::Full) => {
                if self.messages == 0 {
                    tracing::warn!(
                        "the spool is full: messages are discarded until the receiver confirms some"
                    );
                }
                self.add(len);
            }
            Err(SpoolError::Io(error)) => {
                if self.messages == 0 {
                    tracing::warn!(
                        "the spool: {error}; messages are discarded until it is written"
                    );
                }
                self.add(len);
            }
            Err(error @ SpoolError::Damaged(_)) => return Err(failure(&error)),
        }
        Ok(())
    }

    fn add(&mut self, len: usize) {
        self.messages += 1;
        self.bytes += len as u64;
    }

    /// Says how many were discarded, and counts from 0 again.
    fn report(&mut self) {
        let messages = std::mem::take(&mut self.messages);
        let bytes = std::mem::take(&mut self.bytes);
        if messages > 0 {
            let (messages, bytes) = (grouped(messages), grouped(bytes));
            tracing::warn!(
                "the spool took no more: {messages} messages, {bytes} bytes were discarded"
            );
        }
    }
}

impl Drop for Discarded {
    fn drop(&mut self) {
        self.report();
    }
}

/// The time from one try to write a spool to the next.
const PAUSE: Duration = Duration::from_secs(1);

fn failure(error: &dyn std::fmt::Display) -> Failure {
    Failure::runtime(format!("the spool: {error}"))
}
