//! The connections of publishers and viewers that called.

use std::sync::Arc;
use std::time::Duration;

use punctual::{CloseReason, Error, Message, Outgoing, SendOptions};
use punctual_ends::{Connection, Failure, SrtEnd};
use punctual_relay::{PublisherId, Viewer, ViewerId};
use punctual_relay_http::report::{ConnectionRole, EventKind};

use crate::admitted_call::AdmittedCall;
use crate::hub::Hub;
use crate::live_stream::LiveStream;
use crate::outlet::SrtOutlet;

/// Carries the stream of a publisher to its viewers, until one end ends it.
pub(crate) async fn serve_publisher(
    hub: &Arc<Hub>,
    connection: Connection,
    call: &AdmittedCall,
    protocol: &'static str,
) {
    let known = hub.connected(call.describe(&connection, ConnectionRole::Publisher, protocol));
    let id = PublisherId(known.id);
    match hub.publish(call.admitted.stream(), id, Some(&call.admitted), call.is_backup) {
        Ok(stream) => {
            let mut source = StreamSource::of(connection);
            tokio::select! {
                () = carry(hub, &stream, id, &mut source) => {}
                () = known.stop.told() => {}
                () = over(call.admitted.lifetime()) => known.end(OVER),
            }
            let turn = stream.unpublish(id);
            hub.settle(&stream, turn);
            source.close().await;
        }
        Err(refused) => {
            known.end(refused.to_string());
            StreamSource::of(connection).close().await;
        }
    }
    hub.disconnected(&known);
}

/// Takes messages of a source into the stream until the source ends.
pub(crate) async fn carry(
    hub: &Arc<Hub>,
    stream: &Arc<LiveStream>,
    id: PublisherId,
    source: &mut StreamSource,
) {
    let mut messages = Vec::new();
    while let Ok(true) = source.read(&mut messages).await {
        let turn = stream.push(id, &mut messages);
        if !turn.events.is_empty() {
            hub.settle(stream, turn);
        }
    }
}

/// The source of a stream.
pub(crate) enum StreamSource {
    /// A live connection or group of SRT, whose messages come with their due times.
    Live { end: SrtEnd, received: Vec<Message>, connection: Connection },
    /// Another end.
    End(Connection),
}

impl StreamSource {
    pub(crate) fn of(connection: Connection) -> Self {
        match &connection.socket {
            Some(end) if is_live(end) => {
                Self::Live { end: end.clone(), received: Vec::new(), connection }
            }
            _ => Self::End(connection),
        }
    }

    /// Waits for the next messages. Returns `false` at the end.
    pub(crate) async fn read(&mut self, messages: &mut Vec<Outgoing>) -> Result<bool, Failure> {
        match self {
            Self::Live { end, received, connection } => {
                match receive(end, received).await {
                    Ok(()) => {}
                    Err(Error::Closed(CloseReason::Peer | CloseReason::Local)) => return Ok(false),
                    Err(error) => return Err(error.into()),
                }
                messages.extend(received.drain(..).map(|message| {
                    connection.traffic.count(message.payload.len());
                    // The time at which it was due keeps the spacing of the sender.
                    let options =
                        SendOptions { origin: Some(message.due), ..SendOptions::default() };
                    Outgoing { payload: message.payload, options }
                }));
                Ok(true)
            }
            Self::End(connection) => {
                let more = connection.reader.read_timed(messages).await?;
                for message in &*messages {
                    connection.traffic.count(message.payload.len());
                }
                Ok(more)
            }
        }
    }

    /// Ends the connection.
    pub(crate) async fn close(self) {
        let (Self::Live { mut connection, .. } | Self::End(mut connection)) = self;
        connection.writer.close().await;
    }
}

fn is_live(end: &SrtEnd) -> bool {
    match end {
        SrtEnd::Socket(socket) => socket.info().transmission == punctual::Transmission::Live,
        SrtEnd::Group(_) => true,
    }
}

/// Waits for the next messages of a live connection.
async fn receive(end: &SrtEnd, received: &mut Vec<Message>) -> Result<(), Error> {
    match end {
        SrtEnd::Socket(socket) => socket.recv_many(received, BATCH).await.map(drop),
        SrtEnd::Group(group) => {
            received.push(group.recv().await?);
            while received.len() < BATCH
                && let Ok(Some(message)) = group.try_recv()
            {
                received.push(message);
            }
            Ok(())
        }
    }
}

/// Gives a viewer the stream until one end ends it.
pub(crate) async fn serve_viewer(
    hub: &Arc<Hub>,
    connection: Connection,
    call: &AdmittedCall,
    protocol: &'static str,
) {
    let Some((outlet, dropped)) = SrtOutlet::of(&connection) else { return };
    let known = hub.connected(call.describe(&connection, ConnectionRole::Viewer, protocol));
    let id = ViewerId(known.id);
    let Some(stream) = hub.wanted(call.admitted.stream()).await else {
        known.end("the stream has just ended");
        StreamSource::of(connection).close().await;
        return hub.disconnected(&known);
    };
    let user = call.admitted.user().map(str::to_owned);
    let viewer = Viewer { user, ..Viewer::default() };
    match stream.view(id, viewer, Box::new(outlet)) {
        Ok(turn) => {
            hub.settle(&stream, turn);
            let text = format!("{} views `{}`", known.address, stream.name());
            hub.tell(EventKind::Read, Some(stream.name()), Some(known.id), text);
        }
        Err(refused) => known.end(refused.to_string()),
    }
    let Connection { mut reader, mut writer, .. } = connection;
    let discard = async {
        let mut messages = Vec::new();
        while matches!(reader.read(&mut messages).await, Ok(true)) {
            messages.clear();
        }
    };
    tokio::select! {
        () = discard => {}
        () = known.stop.told() => {}
        _ = dropped => {}
        () = over(call.admitted.lifetime()) => known.end(OVER),
    }
    stream.unview(id);
    writer.close().await;
    let text = format!("{} views `{}` no longer", known.address, stream.name());
    hub.tell(EventKind::Unread, Some(stream.name()), Some(known.id), text);
    hub.disconnected(&known);
}

/// Completes when the time is over that a caller was admitted for.
pub(crate) async fn over(lifetime: Option<Duration>) {
    match lifetime {
        Some(time) => tokio::time::sleep(time).await,
        None => std::future::pending().await,
    }
}

/// Why a connection ends then.
pub(crate) const OVER: &str = "the time that it was admitted for is over";

/// The number of messages to read at once.
const BATCH: usize = 64;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use punctual::{Config, Group, GroupKind, GroupLink, Instant, Listener};
    use punctual_ends::EndLog;

    use super::*;

    /// A group submits three messages with pauses that its clock knows, all at once.
    #[tokio::test]
    async fn messages_of_a_group_keep_the_spacing_of_their_sender() {
        let accepts = Config::default().with_group_connect(true);
        let listener = Listener::bind(([127, 0, 0, 1], 0).into(), accepts).await.unwrap();
        let links = vec![GroupLink::to(listener.local_addr())];
        let call = Group::connect(GroupKind::Broadcast, links, Config::default());
        let (called, accepted) = tokio::join!(call, listener.accept_any());
        let punctual::Accepted::Group(accepted) = accepted.unwrap() else { unreachable!() };
        let called = called.unwrap();
        let log = Arc::new(EndLog::new("publishers".to_owned(), false));
        let mut source = StreamSource::of(Connection::of_group(accepted, &log));
        let now = punctual::now();
        for pause in [0, 30, 50] {
            let origin = Some(now + Duration::from_millis(pause));
            let options = SendOptions { origin, ..SendOptions::default() };
            called.send_with("a message".into(), options).await.unwrap();
        }
        let mut messages = Vec::new();
        while messages.len() < 3 {
            assert!(source.read(&mut messages).await.unwrap());
        }
        let origins: Option<Vec<Instant>> = messages.iter().map(|it| it.options.origin).collect();
        let origins = origins.expect("each message has its time");
        assert_eq!(origins[1] - origins[0], Duration::from_millis(30));
        assert_eq!(origins[2] - origins[1], Duration::from_millis(20));
    }
}
