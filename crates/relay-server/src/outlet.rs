//! The ways by which viewers get their messages.

use std::collections::VecDeque;
use std::sync::Arc;

use punctual::{Instant, Outgoing, SendOptions};
use punctual_ends::{Connection, MessageTraffic, SrtEnd, SrtWriter};
use punctual_relay::{Message, ViewerLink};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::oneshot;

/// The way by which one viewer gets its messages. When the viewer has to go, it is dropped.
pub(crate) trait Outlet: Send {
    /// Takes a message, if there is room for it.
    fn take(&mut self, message: &Message) -> bool;

    /// Sends what was taken. Returns whether the viewer is still there.
    fn flush(&mut self) -> bool;

    /// The state of the viewer's link, if it is known.
    fn link(&self) -> Option<ViewerLink>;
}

/// A viewer by SRT, over one connection or a group.
pub(crate) struct SrtOutlet {
    writer: SrtWriter,
    end: SrtEnd,
    traffic: Arc<MessageTraffic>,
    queue: VecDeque<Outgoing>,
    /// When the connection was there. A message that is older would have a timestamp from before
    /// the connection, which receivers take for one of an hour later.
    opened: Instant,
    /// Dropped with the outlet, so that the connection is closed.
    _here: oneshot::Sender<()>,
}

impl SrtOutlet {
    /// The outlet to the peer of `connection`, and what completes when the outlet is dropped;
    /// `None` if the connection is not SRT's.
    pub(crate) fn of(connection: &Connection) -> Option<(Self, oneshot::Receiver<()>)> {
        let (here, dropped) = oneshot::channel();
        let end = connection.socket.clone()?;
        if let SrtEnd::Socket(socket) = &end {
            // The stream leaves out what is too late. A packet that the sender dropped would still
            // fill the viewer's link, uncounted.
            let _ = socket.configure(|config| Ok(config.with_send_drop_delay(None)));
        }
        let outlet = Self {
            writer: connection.writer.to_same_peer()?,
            end,
            traffic: Arc::clone(&connection.traffic),
            queue: VecDeque::new(),
            opened: punctual::now(),
            _here: here,
        };
        Some((outlet, dropped))
    }
}

impl Outlet for SrtOutlet {
    fn take(&mut self, message: &Message) -> bool {
        if self.queue.len() >= QUEUE {
            return false;
        }
        self.traffic.count(message.payload.len());
        let origin = Some(message.origin.max(self.opened));
        let options = SendOptions { origin, ..SendOptions::default() };
        self.queue.push_back(Outgoing { payload: message.payload.clone(), options });
        true
    }

    fn flush(&mut self) -> bool {
        self.writer.try_write(&mut self.queue).is_ok()
    }

    fn link(&self) -> Option<ViewerLink> {
        let statistics = self.end.statistics();
        let (unacknowledged, oldest) = self.end.unacknowledged();
        Some(ViewerLink {
            unacknowledged,
            dropped: statistics.bytes_send_dropped,
            oldest,
            round_trip: statistics.rtt,
            latency: statistics.peer_latency,
            missed: statistics.reports_too_late + statistics.packets_peer_dropped,
        })
    }
}

/// A viewer that takes messages from a channel: a part of the relay, or a client of HTTP.
pub(crate) struct ChannelOutlet(Sender<Message>);

impl ChannelOutlet {
    /// An outlet with room for this number of messages, and the messages.
    pub(crate) fn with_room(messages: usize) -> (Self, Receiver<Message>) {
        let (sender, receiver) = channel(messages);
        (Self(sender), receiver)
    }
}

impl Outlet for ChannelOutlet {
    fn take(&mut self, message: &Message) -> bool {
        !matches!(self.0.try_send(message.clone()), Err(TrySendError::Full(_)))
    }

    fn flush(&mut self) -> bool {
        !self.0.is_closed()
    }

    fn link(&self) -> Option<ViewerLink> {
        None
    }
}

/// The most messages that wait for one viewer outside its send buffer.
const QUEUE: usize = 64;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use punctual::{Config, Listener, Socket};
    use punctual_ends::EndLog;

    use super::*;

    #[tokio::test]
    async fn a_message_that_is_older_than_the_connection_arrives_at_once() {
        let listener = Listener::bind(([127, 0, 0, 1], 0).into(), Config::default()).await.unwrap();
        let call = Socket::connect(listener.local_addr(), Config::default());
        let (accepted, viewer) = tokio::try_join!(listener.accept(), call).unwrap();
        let log = Arc::new(EndLog::new("viewers".to_owned(), false));
        let connection = Connection::of_socket(accepted, &log);
        let (mut outlet, _dropped) = SrtOutlet::of(&connection).unwrap();
        let origin = punctual::now() - Duration::from_secs(5);
        let message = Message { payload: "first".into(), origin, is_break: false };
        assert!(outlet.take(&message) && outlet.flush());
        let received = tokio::time::timeout(Duration::from_secs(5), viewer.recv()).await;
        assert_eq!(received.expect("it arrives in time").unwrap().payload, "first");
    }
}
