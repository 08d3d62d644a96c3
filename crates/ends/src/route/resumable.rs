//! A destination of a route whose stream is resumed when its connection was lost.

use std::pin::pin;
use std::sync::Arc;

use punctual::Socket;
use punctual::resume::{Carried, CarryError, ResumeError, Resumption, Sent, SpoolError};
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::end::{Connection, Opener, SrtEnd, resumed};
use crate::failure::Failure;
use crate::route::RouteSettings;
use crate::route::batch::Batch;
use crate::route::kept_stream::{KeptStream, SourceEnd};
use crate::route::observer::{RouteObserver, StreamDirection};
use crate::route::openings::DestinationOpening;

/// A destination whose stream outlives its connections.
pub struct ResumableDestination {
    opener: Opener,
    inbox: UnboundedReceiver<Batch>,
    stream: KeptStream,
    opening: DestinationOpening,
}

impl ResumableDestination {
    /// A destination that `opener` opens, for the messages of `inbox`, which `stream` keeps.
    pub const fn new(
        opener: Opener,
        inbox: UnboundedReceiver<Batch>,
        stream: KeptStream,
        opening: DestinationOpening,
    ) -> Self {
        Self { opener, inbox, stream, opening }
    }

    /// Keeps the messages that come, and sends them over one connection after the other, until the
    /// receiver has confirmed the end of the stream.
    ///
    /// # Errors
    ///
    /// The spool is damaged, the receiver has another past of the stream, or it is time to stop and
    /// not everything is confirmed.
    pub async fn run<O: RouteObserver>(
        self,
        settings: Arc<RouteSettings<O>>,
    ) -> Result<(), Failure> {
        let uri = self.opener.uri().clone();
        let ended = self.deliver(&settings).await;
        if ended.is_err() {
            settings.observer.lost(&uri);
        }
        ended.map_err(|failure| failure.at(&uri))
    }

    async fn deliver<O: RouteObserver>(self, settings: &RouteSettings<O>) -> Result<(), Failure> {
        let Self { opener, inbox, stream, opening } = self;
        let leave = Notify::new();
        let mut carrier = Carrier { opener, opening, stream: &stream, leave: &leave, settings };
        let mut carry = pin!(carrier.run());
        let kept = tokio::select! {
            kept = stream.keep(inbox, &settings.stop) => kept?,
            carried = &mut carry => return carried,
        };
        if kept == SourceEnd::ForNextStart {
            leave.notify_one();
        }
        carry.await?;
        stream.finish(kept);
        Ok(())
    }
}

/// The connections that carry the stream one after the other.
struct Carrier<'a, O> {
    opener: Opener,
    opening: DestinationOpening,
    stream: &'a KeptStream,
    /// Is told when the connection is to end before the stream, which the next start goes on with.
    leave: &'a Notify,
    settings: &'a RouteSettings<O>,
}

impl<O: RouteObserver> Carrier<'_, O> {
    async fn run(&mut self) -> Result<(), Failure> {
        loop {
            let Some(connection) = self.next().await? else { return self.unconfirmed() };
            self.opening.done();
            let Some(SrtEnd::Socket(socket)) = connection.socket.clone() else {
                return Err(Failure::runtime("the connection is no single SRT connection"));
            };
            let lost = tokio::select! {
                carried = self.carry(&connection, &socket) => carried,
                () = self.leave.notified() => {
                    socket.close().await;
                    return Ok(());
                }
            };
            let Err(lost) = lost else {
                socket.close().await;
                return Ok(());
            };
            if let CarryError::Protocol(
                ResumeError::Ahead { .. } | ResumeError::Spool(SpoolError::Damaged(_)),
            ) = lost
            {
                return Err(resumed::failure(lost));
            }
            if self.settings.stop.is_told() {
                return self.unconfirmed();
            }
            let (uri, lost) = (self.opener.uri(), resumed::failure(lost));
            self.opener.log().lost(format_args!("{uri}: {lost}; waiting for it to come back"));
        }
    }

    /// The next connection; `None` if it is time to stop first.
    async fn next(&mut self) -> Result<Option<Connection>, Failure> {
        let _absence = self.settings.observer.absent(self.opener.uri());
        tokio::select! {
            opened = self.settings.stop.or(self.settings.open(&mut self.opener)) => opened.transpose(),
            () = self.leave.notified() => Ok(None),
        }
    }

    /// Sends the stream over one connection until its end is confirmed.
    async fn carry(&self, connection: &Connection, socket: &Socket) -> Result<(), CarryError> {
        if !socket.info().resumable {
            let uri = self.opener.uri();
            tracing::warn!(
                "{uri}: the peer cannot resume a stream: bytes on their way are lost with the \
                 connection (a route of Punctual that reconnects can)"
            );
        }
        let work = self.stream.sender.carry(socket, |event| match event {
            Carried::Sent(Sent { messages, bytes }) => {
                connection.traffic.count_many(messages, bytes);
            }
            Carried::Resumed(resumption) => self.say(resumption),
        });
        let (name, observed) = (self.opener.uri().to_string(), connection.observed());
        self.settings.observer.observe(&name, &observed, StreamDirection::Out, work).await
    }

    fn say(&self, resumption: Resumption) {
        let (uri, Resumption { offset, missing, .. }) = (self.opener.uri(), resumption);
        if missing > 0 {
            tracing::warn!(
                "{uri}: the receiver lacks {missing} bytes before byte {offset}, which are no \
                 longer kept"
            );
        } else if offset > 0 {
            tracing::info!("{uri}: the stream goes on at byte {offset}");
        }
    }

    /// The end of the work when it is time to stop.
    fn unconfirmed(&self) -> Result<(), Failure> {
        match self.stream.rest() {
            0 => Ok(()),
            rest => {
                Err(Failure::runtime(format!("the last {rest} bytes are not confirmed and lost")))
            }
        }
    }
}
