//! The work with one connection of an end until it ends.

use std::collections::VecDeque;
use std::time::Duration;

use punctual_units::{DisplayBytes, grouped};
use punctual_uri::Limits;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::timeout;

use crate::end::{Connection, MessageTraffic, Reader, Writer, check_arrival, end_stream};
use crate::failure::Failure;
use crate::route::RouteSettings;
use crate::route::batch::{Batch, Receipt};
use crate::route::fanout::Fanout;
use crate::route::observer::{RouteObserver, StreamDirection};

/// The messages through an end of a route, over any connection that it has.
pub struct Flow {
    /// The direction of the stream at this end.
    way: StreamDirection,
    /// Messages to write, if this end writes any.
    inbox: Option<UnboundedReceiver<Batch>>,
    /// The consumers of messages that are read.
    pub(super) outbox: Fanout,
    /// The part of the stream that was discarded because there was no connection.
    missed: Missed,
}

/// A part of a stream.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Missed {
    messages: u64,
    bytes: u64,
}

/// The reason for which the work with a connection ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ended {
    /// There is no more to do at this end.
    Done,
    /// The peer, or the end of a file, ended it.
    ByPeer,
}

impl Flow {
    /// The messages in `inbox` to write, and those for `outbox` that are read.
    pub fn new(
        way: StreamDirection,
        inbox: Option<UnboundedReceiver<Batch>>,
        outbox: Fanout,
    ) -> Self {
        Self { way, inbox, outbox, missed: Missed::default() }
    }

    /// Works with `connection`, which belongs to the end `name`, until it ends.
    ///
    /// # Errors
    ///
    /// The connection failed, or its peer did not acknowledge the end of the stream.
    pub async fn carry<O: RouteObserver>(
        &mut self,
        name: &str,
        connection: Connection,
        settings: &RouteSettings<O>,
    ) -> Result<Ended, Failure> {
        let observed = connection.observed();
        let Connection { mut reader, mut writer, traffic, limits, socket, .. } = connection;
        let Self { way, inbox, outbox, .. } = self;
        let way = *way;
        let (read_traffic, write_traffic) = match way {
            StreamDirection::In => (Some(&*traffic), None),
            StreamDirection::Out => (None, Some(&*traffic)),
        };
        let is_source = way == StreamDirection::In;
        let abandoned = outbox.abandoned();
        let stop = &settings.stop;
        let work = async {
            let ended = tokio::select! {
                biased;
                result = write_all(&mut writer, inbox, &limits, write_traffic) => {
                    result.map(|()| Ended::Done)
                }
                result = read_all(&mut reader, outbox, read_traffic) => result,
                () = abandoned, if is_source => Ok(Ended::Done),
                () = stop.told(), if is_source => Ok(Ended::Done),
            };
            let end = socket.as_ref().filter(|_| !is_source);
            let closed = end_stream(&mut writer, end, &traffic).await;
            let arrival = match is_source && stop.is_told() {
                true => check_arrival(&reader, &traffic),
                false => Ok(()),
            };
            ended.and_then(|ended| stop.judge(closed.and(arrival)).map(|()| ended))
        };
        settings.observer.observe(name, &observed, way, work).await
    }

    /// Discards messages to write, and counts them, until no more will come; for ever at an end
    /// that writes none.
    pub(super) async fn discard(&mut self) {
        let Some(inbox) = &mut self.inbox else { return std::future::pending().await };
        while let Some(batch) = inbox.recv().await {
            self.missed.count(&batch);
        }
    }

    /// The part of the stream that was discarded since the last call, in words.
    pub(super) fn take_missed(&mut self) -> Option<String> {
        self.missed.take()
    }

    /// Whether no more messages to write will come.
    pub(super) fn has_ended(&self) -> bool {
        self.inbox.as_ref().is_some_and(|inbox| inbox.is_closed() && inbox.is_empty())
    }
}

impl Missed {
    fn count(&mut self, batch: &Batch) {
        self.messages += batch.len() as u64;
        self.bytes += batch.bytes();
    }

    /// The part in words, and nothing from then on; `None` if it is empty.
    fn take(&mut self) -> Option<String> {
        let Self { messages, bytes } = std::mem::take(self);
        (messages > 0).then(|| {
            let bytes = DisplayBytes(bytes);
            format!("{} messages of the stream, {bytes:#}, were missed", grouped(messages))
        })
    }
}

/// Writes messages until no more will come, or a limit is reached; for ever at an end that writes
/// none.
async fn write_all(
    writer: &mut Writer,
    inbox: &mut Option<UnboundedReceiver<Batch>>,
    limits: &Limits,
    traffic: Option<&MessageTraffic>,
) -> Result<(), Failure> {
    let Some(inbox) = inbox else { return std::future::pending().await };
    let write = async {
        let (mut waiting, mut left) = (VecDeque::new(), limits.max_size.unwrap_or(u64::MAX));
        while left > 0
            && let Some(mut batch) = within(limits.max_idle, inbox.recv()).await.flatten()
        {
            shorten(&mut batch, &mut left);
            count(traffic, &batch);
            let (messages, taken) = batch.into_parts();
            waiting.extend(messages);
            if let Err(failure) = writer.write(&mut waiting).await {
                taken.withhold();
                return Err(failure);
            }
        }
        Ok(())
    };
    within(limits.max_time, write).await.unwrap_or(Ok(()))
}

/// Waits for `work`, for this time at most if it is given; `None` if that did not suffice.
async fn within<T>(time: Option<Duration>, work: impl Future<Output = T>) -> Option<T> {
    match time {
        Some(time) => timeout(time, work).await.ok(),
        None => Some(work.await),
    }
}

/// Cuts messages off after the bytes that are left, and takes the others from these.
fn shorten(batch: &mut Batch, left: &mut u64) {
    batch.retain_mut(|message| {
        let room = usize::try_from(*left).unwrap_or(usize::MAX);
        message.payload.truncate(room);
        *left -= message.payload.len() as u64;
        room > 0
    });
}

/// Reads messages and hands them over until the peer ends the stream or no consumer is left.
async fn read_all(
    reader: &mut Reader,
    outbox: &mut Fanout,
    traffic: Option<&MessageTraffic>,
) -> Result<Ended, Failure> {
    let mut messages = Vec::new();
    while reader.read_timed(&mut messages).await? {
        let batch = Batch::new(std::mem::take(&mut messages), receipt_of(reader));
        count(traffic, &batch);
        if !outbox.send(batch).await {
            return Ok(Ended::Done);
        }
    }
    Ok(Ended::ByPeer)
}

/// The receipt of the messages that were read last, if the peer keeps them until they are written.
fn receipt_of(reader: &Reader) -> Option<Receipt> {
    let (written, taken) = reader.taken()?;
    Some(Receipt::new(written, taken))
}

fn count(traffic: Option<&MessageTraffic>, batch: &Batch) {
    if let Some(traffic) = traffic {
        batch.iter().for_each(|message| traffic.count(message.payload.len()));
    }
}
