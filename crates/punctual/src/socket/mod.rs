//! Connections.

pub(crate) mod byte_stream;
pub(crate) mod stream;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock, Weak};

use bytes::Bytes;
use futures_core::future::BoxFuture;
use punctual_proto::{
    self as proto, CloseReason, Config, ConfigError, ConnectionId, ConnectionInfo, Message, MsgNo,
    PeerError, RawStreamId, Readiness, SendOptions, SeqNo, Statistics, StreamId, StreamIdError,
};
use punctual_units::Instant;
use tokio::sync::Notify;
use tokio::task::coop;

use self::byte_stream::ByteStream;
use self::stream::{MessageSink, MessageStream};
use crate::calls;
use crate::config::PortConfig;
use crate::error::{Error, Sent, sent, written};
use crate::outgoing::Outgoing;
use crate::shared::{Begun, Shared};
use crate::signals::{Signals, Watcher};
use crate::state::{Phase, State};
use crate::statistics::PortStatistics;

/// One SRT connection. Clones share it; it closes in the background when the last one is dropped.
///
/// Messages go both ways. Any number of tasks may send and receive at once; each message is
/// received by one of them.
///
/// All futures are cancel safe, except [`write_all`](Self::write_all): if they are dropped before
/// they complete, they have sent or received nothing. So they can be used with `select!` and with
/// timeouts.
#[derive(Clone, Debug)]
pub struct Socket {
    connection: Arc<Connection>,
}

impl Socket {
    /// Calls the listener at `remote` from a new UDP port and waits for the answer.
    ///
    /// See [`Port::connect`](crate::Port::connect) for the errors; use it to call from a port with
    /// options, or from one that several connections share.
    ///
    /// Cancel safe: dropping the call takes it back.
    pub async fn connect(remote: SocketAddr, config: Config) -> Result<Self, Error> {
        let port = calls::bind(&calls::any_port(remote))?;
        let socket = Self::new(calls::connect(&port, remote, config)?);
        socket.connected().await?;
        Ok(socket)
    }

    /// Connects by rendezvous to the end at `remote`, from a new UDP port bound to `local`, while
    /// that end does the same with the addresses exchanged.
    ///
    /// See [`Port::rendezvous`](crate::Port::rendezvous) for the purpose and the errors; use it for
    /// a port with options.
    ///
    /// Cancel safe: dropping it ends the attempt.
    pub async fn rendezvous(
        local: SocketAddr,
        remote: SocketAddr,
        config: Config,
    ) -> Result<Self, Error> {
        let local = Some(local);
        let port = calls::bind(&PortConfig { local, ..PortConfig::default() })?;
        let socket = Self::new(calls::rendezvous(&port, remote, config)?);
        socket.connected().await?;
        Ok(socket)
    }

    pub(crate) fn new(begun: Begun) -> Self {
        Self::of(begun, false)
    }

    /// The connection to a caller of a listener.
    pub(crate) fn accepted(begun: Begun) -> Self {
        Self::of(begun, true)
    }

    fn of(begun: Begun, was_accepted: bool) -> Self {
        let Begun { shared, id, signals } = begun;
        let stream_id = OnceLock::new();
        Self { connection: Arc::new(Connection { shared, id, signals, stream_id, was_accepted }) }
    }

    /// Whether the peer has called a listener of this end; this end has called it otherwise.
    pub(crate) fn was_accepted(&self) -> bool {
        self.connection.was_accepted
    }

    /// Sends one message of 1 to [`max_payload`](ConnectionInfo::max_payload) bytes; waits while
    /// the send buffer is full.
    ///
    /// Errors: [`Error::Size`] for an empty or too large message, [`Error::Peer`] when the peer has
    /// reported an error, [`Error::Closed`] when the connection has ended.
    ///
    /// Cancel safe: if it is dropped before it completes, the message is not sent.
    pub async fn send(&self, payload: Bytes) -> Result<(), Error> {
        self.send_with(payload, SendOptions::default()).await
    }

    /// Sends one message as [`send`](Self::send) does, with options for this message, such as a
    /// time to live.
    pub async fn send_with(&self, payload: Bytes, options: SendOptions) -> Result<(), Error> {
        self.until(Signals::writable, |state, now, id| {
            match sent(state.connection(now, id).send(payload.clone(), options))? {
                Sent::Taken => Ok(Some(())),
                Sent::Full => Ok(None),
            }
        })
        .await
    }

    /// Sends messages from the front of `messages`, payloads or [`Outgoing`] with options: waits
    /// until there is room for one, then removes and sends as many as there is room for, and
    /// returns their number. It costs less than sending one by one.
    ///
    /// Errors as [`send`](Self::send). If a message has a wrong size, those before it are sent, and
    /// the error comes from the call that finds it at the front. With no messages, the result is
    /// `Ok(0)`.
    ///
    /// Cancel safe: messages that were not sent are still in `messages`.
    pub async fn send_many<M>(&self, messages: &mut VecDeque<M>) -> Result<usize, Error>
    where
        M: Clone + Into<Outgoing>,
    {
        if messages.is_empty() {
            return Ok(0);
        }
        self.until(Signals::writable, |state, now, id| {
            let mut connection = state.connection(now, id);
            let mut taken = 0;
            while let Some(message) = messages.front() {
                let Outgoing { payload, options } = message.clone().into();
                match sent(connection.send(payload, options)) {
                    Ok(Sent::Taken) => {
                        messages.pop_front();
                        taken += 1;
                    }
                    Err(error) if taken == 0 => return Err(error),
                    Ok(Sent::Full) | Err(_) => break,
                }
            }
            Ok((taken > 0).then_some(taken))
        })
        .await
    }

    /// Sends one message if there is room for it now: `Ok(true)` if it was sent, `Ok(false)` if the
    /// send buffer is full. Errors as [`send`](Self::send).
    pub fn try_send(&self, payload: &Bytes) -> Result<bool, Error> {
        let Connection { shared, id, .. } = &*self.connection;
        shared.call(|state, now| {
            let answer = state.connection(now, *id).send(payload.clone(), SendOptions::default());
            Ok(matches!(sent(answer)?, Sent::Taken))
        })
    }

    /// Sends one message as [`try_send`](Self::try_send) does, with options for this message, and
    /// returns its numbers; `None` if the send buffer is full. With `msgno`, the message and those
    /// after it are counted from this message number. Once the buffer is full, the connection
    /// becomes [writable](Watcher::writable) when there is room.
    pub fn try_send_with(
        &self,
        payload: Bytes,
        options: SendOptions,
        msgno: Option<MsgNo>,
    ) -> Result<Option<Submitted>, Error> {
        self.submit(msgno, |connection| {
            Ok(matches!(sent(connection.send(payload, options))?, Sent::Taken))
        })
    }

    /// The numbers that the next message gets: the sequence number of its first packet, and its
    /// message number. `None` before the handshake is complete.
    pub fn next_message(&self) -> Option<(SeqNo, MsgNo)> {
        let Connection { shared, id, .. } = &*self.connection;
        shared.lock().read(*id).next_message()
    }

    /// Whether there is room to send one packet now. If not, the connection becomes
    /// [writable](Watcher::writable) when there is.
    pub fn await_room(&self) -> bool {
        let Connection { shared, id, .. } = &*self.connection;
        shared.call(|state, now| state.connection(now, *id).await_room())
    }

    /// Sends bytes from the front of `data` over a connection whose
    /// [`Transmission`](crate::Transmission) is `Stream`: waits until there is room for some, then
    /// removes and sends as many as there is room for, and returns their number. With no bytes, the
    /// result is `Ok(0)`.
    ///
    /// Errors: [`Error::NoStream`] on a connection that carries messages, [`Error::Peer`] when the
    /// peer has reported an error, [`Error::Closed`] when the connection has ended.
    ///
    /// Cancel safe: bytes that were not sent are still in `data`.
    pub async fn write(&self, data: &mut Bytes) -> Result<usize, Error> {
        self.until(Signals::writable, |state, now, id| {
            written(state.connection(now, id).write(data))
        })
        .await
    }

    /// Sends all of `data`. Errors as [`write`](Self::write).
    ///
    /// Not cancel safe: if it is dropped before it completes, a part may have been sent.
    pub async fn write_all(&self, mut data: Bytes) -> Result<(), Error> {
        while !data.is_empty() {
            self.write(&mut data).await?;
        }
        Ok(())
    }

    /// Sends bytes from the front of `data` if there is room for some now, and returns their
    /// number; `None` if there is no room. Errors as [`write`](Self::write).
    pub fn try_write(&self, data: &mut Bytes) -> Result<Option<usize>, Error> {
        let Connection { shared, id, .. } = &*self.connection;
        shared.call(|state, now| {
            let taken = written(state.connection(now, *id).write(data))?;
            if taken.is_none() && state.stopped { Err(Error::Stopped) } else { Ok(taken) }
        })
    }

    /// Sends as [`try_write`](Self::try_write) does, and returns the numbers of the bytes; or under
    /// a message number of the caller's, which the protocol does not check. All bytes of one call
    /// have the same message number.
    pub fn try_write_with(
        &self,
        data: &mut Bytes,
        msgno: Option<MsgNo>,
    ) -> Result<Option<Submitted>, Error> {
        self.submit(msgno, |connection| Ok(written(connection.write(data))?.is_some()))
    }

    /// Submits by `attempt`, which returns whether there was room, under this message number if
    /// there is one. Returns the numbers; `None` without room.
    fn submit(
        &self,
        msgno: Option<MsgNo>,
        attempt: impl FnOnce(&mut proto::Connection) -> Result<bool, Error>,
    ) -> Result<Option<Submitted>, Error> {
        let Connection { shared, id, .. } = &*self.connection;
        shared.call(|state, now| {
            let stopped = state.stopped;
            let mut connection = state.connection(now, *id);
            if let Some(msgno) = msgno {
                connection.count_from(msgno);
            }
            let numbers = connection.next_message();
            if !attempt(&mut connection)? {
                return if stopped { Err(Error::Stopped) } else { Ok(None) };
            }
            let has_room = connection.await_room();
            Ok(numbers.map(|(seq, msgno)| Submitted { seq, msgno, at: now, has_room }))
        })
    }

    /// Completes when room to send may have been freed since it was first polled.
    pub(crate) fn room(&self) -> BoxFuture<'static, ()> {
        let signals = Arc::clone(&self.connection.signals);
        Box::pin(async move { signals.writable().notified().await })
    }

    /// Waits for the next message, which is delivered at its time: its origin time + the latency.
    ///
    /// After the connection has ended, messages that were received before are still delivered, each
    /// at its time; then comes [`Error::Closed`]. Of a stream of bytes, the next piece is delivered
    /// as soon as it has arrived.
    ///
    /// Cancel safe: a message is taken only as this completes.
    pub async fn recv(&self) -> Result<Message, Error> {
        self.receive(|state, now, id| Ok(state.connection(now, id).recv()?)).await
    }

    /// Waits for at least one message, then appends all that are due to `messages`, at most
    /// `limit`, and returns their number. It costs less than receiving one by one. Errors as
    /// [`recv`](Self::recv); with a `limit` of zero, the result is `Ok(0)`.
    ///
    /// Cancel safe: messages are taken only as this completes.
    pub async fn recv_many(
        &self,
        messages: &mut Vec<Message>,
        limit: usize,
    ) -> Result<usize, Error> {
        if limit == 0 {
            return Ok(0);
        }
        let signals = &self.connection.signals;
        self.receive(|state, now, id| {
            let stopped = state.stopped;
            let mut connection = state.connection(now, id);
            let before = messages.len();
            while messages.len() - before < limit {
                match connection.recv() {
                    Ok(Some(message)) => messages.push(message),
                    Err(error) if messages.len() == before => return Err(error.into()),
                    Ok(None) => {
                        // Without its driver, the connection has nothing more to announce.
                        signals.set_announced(stopped);
                        break;
                    }
                    Err(_) => break,
                }
            }
            let received = messages.len() - before;
            Ok((received > 0).then_some(received))
        })
        .await
    }

    /// Returns the next message if one is due now. Errors as [`recv`](Self::recv).
    pub fn try_recv(&self) -> Result<Option<Message>, Error> {
        let Connection { shared, id, .. } = &*self.connection;
        shared.call(|state, now| Ok(state.connection(now, *id).recv()?))
    }

    /// Appends the messages that are due now to `messages`, at most `limit`. Returns whether
    /// further ones are due; if not, the connection becomes [readable](Watcher::readable) with the
    /// next one. Errors as [`recv`](Self::recv), if no message was taken.
    pub fn try_recv_many(&self, messages: &mut Vec<Message>, limit: usize) -> Result<bool, Error> {
        let Connection { shared, id, .. } = &*self.connection;
        shared.call(|state, now| {
            let stopped = state.stopped;
            let mut connection = state.connection(now, *id);
            let before = messages.len();
            loop {
                if messages.len() - before == limit && connection.readiness().readable {
                    return Ok(true);
                }
                match connection.recv() {
                    Ok(Some(message)) => messages.push(message),
                    Ok(None) if messages.len() == before && stopped => {
                        return Err(Error::Stopped);
                    }
                    Err(error) if messages.len() == before => return Err(error.into()),
                    Ok(None) => return Ok(false),
                    // The end, which the next call reports.
                    Err(_) => return Ok(true),
                }
            }
        })
    }

    /// Tells `watcher` of the changes of this connection from now on, for programs that do not wait
    /// in tasks. A change just before is not reported: read [`phase`](Self::phase) and
    /// [`readiness`](Self::readiness) after this call. A connection has one watcher, the first.
    pub fn watch(&self, watcher: Weak<dyn Watcher>) {
        self.connection.signals.watch(watcher);
    }

    /// The phase of the connection.
    pub fn phase(&self) -> Phase {
        let Connection { shared, id, .. } = &*self.connection;
        let state = shared.lock();
        match state.phase(*id) {
            Phase::Connecting | Phase::Connected if state.stopped => {
                Phase::Closed(CloseReason::Local)
            }
            phase => phase,
        }
    }

    /// Whether the handshake was completed, even if the connection has ended since.
    pub fn was_connected(&self) -> bool {
        let Connection { shared, id, .. } = &*self.connection;
        shared.lock().was_connected(*id)
    }

    /// Reports to the peer that the files that it sends cannot be stored, for example with
    /// [`PeerError::FILE`] when the disk is full. Sending at the peer fails with [`Error::Peer`]; a
    /// libsrt peer that waits for room to send fails with `SRT_EPEERERR`. The connection stays open
    /// until one end closes it. Has no effect in live mode.
    pub fn tell_error(&self, error: PeerError) {
        self.with_driver(|connection| connection.tell_error(error));
    }

    /// Closes the connection: sends the buffered data for up to [`linger`](Config::linger), then
    /// notifies the peer, and waits until this is done. Messages that were received can still be
    /// read.
    ///
    /// Cancel safe: once begun, the connection closes whether this is waited for or not.
    pub async fn close(&self) {
        self.begin_close();
        self.closed().await;
    }

    /// Closes the connection at once: discards messages that are buffered or not acknowledged, and
    /// notifies the peer. A waiting [`close`](Self::close) completes as well. Messages that were
    /// received can still be read.
    ///
    /// Cancel safe: once begun, the connection closes whether this is waited for or not.
    pub async fn abort(&self) {
        self.begin_abort();
        self.closed().await;
    }

    /// Closes the connection as [`abort`](Self::abort) does, and does not wait until this is done.
    pub fn begin_abort(&self) {
        let Connection { shared, id, .. } = &*self.connection;
        shared.call_and_wake(|state, now| {
            if !matches!(state.phase(*id), Phase::Closed(_)) {
                state.connection(now, *id).abort();
            }
        });
    }

    /// Closes the connection as [`close`](Self::close) does, and does not wait until this is done.
    pub fn begin_close(&self) {
        let Connection { shared, id, .. } = &*self.connection;
        shared.call_and_wake(|state, now| {
            if !matches!(state.phase(*id), Phase::Closed(_)) {
                state.connection(now, *id).close();
            }
        });
    }

    /// The reason why the connection has ended; `None` while it has not.
    pub(crate) fn ended(&self) -> Option<CloseReason> {
        match self.phase() {
            Phase::Closed(reason) => Some(reason),
            Phase::Connecting | Phase::Connected => None,
        }
    }

    /// Calls verbs that cause no events: the driver wakes up when something is due.
    pub(crate) fn with_connection<R>(&self, call: impl FnOnce(&mut proto::Connection) -> R) -> R {
        let Connection { shared, id, .. } = &*self.connection;
        shared.call(|state, now| call(&mut state.connection(now, *id)))
    }

    /// Calls verbs that cause events or must be sent at once, and wakes the driver.
    pub(crate) fn with_driver<R>(&self, call: impl FnOnce(&mut proto::Connection) -> R) -> R {
        let Connection { shared, id, .. } = &*self.connection;
        shared.call_and_wake(|state, now| call(&mut state.connection(now, *id)))
    }

    /// Waits until the connection has ended. Returns the reason.
    ///
    /// Cancel safe.
    pub async fn closed(&self) -> CloseReason {
        let ended = self.until(Signals::phase, |state, _, id| match state.phase(id) {
            Phase::Closed(reason) => Ok(Some(reason)),
            Phase::Connecting | Phase::Connected => Ok(None),
        });
        // A connection without its driver has ended, too.
        ended.await.unwrap_or(CloseReason::Local)
    }

    /// Waits until the handshake is done. It also succeeds if the peer has closed since: messages
    /// that it sent before can be received.
    pub(crate) async fn connected(&self) -> Result<(), Error> {
        self.until(Signals::phase, |state, _, id| match state.phase(id) {
            _ if state.was_connected(id) => Ok(Some(())),
            Phase::Closed(reason) => Err(Error::Closed(reason)),
            Phase::Connecting | Phase::Connected => Ok(None),
        })
        .await
    }

    /// The connection as [`AsyncRead`](tokio::io::AsyncRead) and
    /// [`AsyncWrite`](tokio::io::AsyncWrite), if it carries a stream of bytes.
    pub fn byte_stream(&self) -> ByteStream {
        ByteStream::new(self.clone())
    }

    /// The received messages as a [`Stream`](futures_core::Stream).
    pub fn stream(&self) -> MessageStream {
        MessageStream::new(self.clone())
    }

    /// A [`Sink`](futures_sink::Sink) for the payloads of messages to send.
    pub fn sink(&self) -> MessageSink {
        MessageSink::new(self.clone())
    }

    /// A snapshot of the connection's statistics.
    pub fn statistics(&self) -> Statistics {
        let Connection { shared, id, .. } = &*self.connection;
        shared.call(|state, now| state.read(*id).statistics(now))
    }

    /// Whether the connection is readable, writable or broken now. It may be called at any time and
    /// any number of times.
    pub fn readiness(&self) -> Readiness {
        let Connection { shared, id, .. } = &*self.connection;
        let mut state = shared.lock();
        // No work follows from the question, so that the driver's schedule stays as it is.
        state.connection(punctual_io::now(), *id).readiness()
    }

    /// The present options of the connection.
    pub fn config(&self) -> Config {
        let Connection { shared, id, .. } = &*self.connection;
        shared.lock().read(*id).config().clone()
    }

    /// Changes options of the established connection: `change` gets the present options and returns
    /// the new ones, which take effect at once. It must not call the socket. The options that can
    /// be changed are those with [`OptionPhase::AnyTime`](crate::OptionPhase::AnyTime): `maxbw`,
    /// `inputbw`, `mininputbw`, `oheadbw`, `maxrexmitbw`, `snddropdelay`, `linger`, `lossmaxttl`
    /// and `drifttracer`.
    ///
    /// Errors: the error of `change`; also if an option differs that can only be set before
    /// connecting. On an error no option is changed.
    ///
    /// ```
    /// # use punctual::{Bitrate, Config, ConfigError, MaxBandwidth, Socket};
    /// # fn example(socket: &Socket) -> Result<(), ConfigError> {
    /// let limit = MaxBandwidth::Absolute(Bitrate::from_mbps(8));
    /// socket.configure(|config| Ok(config.with_max_bandwidth(limit)))?;
    /// socket.configure(|config| config.with_option("oheadbw", 40))?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn configure(
        &self,
        change: impl FnOnce(Config) -> Result<Config, ConfigError>,
    ) -> Result<(), ConfigError> {
        self.with_driver(|connection| connection.configure(change))
    }

    /// The terms that both ends agreed on, such as the latency.
    pub fn info(&self) -> ConnectionInfo {
        let Connection { shared, id, .. } = &*self.connection;
        shared.lock().read(*id).info()
    }

    /// The state and statistics of the QUIC connection that carries this one, or its last ones
    /// after the end; `None` over UDP. Several SRT connections may share one of QUIC.
    #[cfg(feature = "quic")]
    pub fn quic_info(&self) -> Option<punctual_quic::QuicInfo> {
        let Connection { shared, id, .. } = &*self.connection;
        let mut state = shared.lock();
        let path = state.read(*id).info().path;
        state.machine.quic_info(path)
    }

    /// The peer's present address. It may change during a connection between two ends of this
    /// implementation, unless [`path_update`](Config::path_update) is off at either end.
    pub fn peer_addr(&self) -> SocketAddr {
        let Connection { shared, id, .. } = &*self.connection;
        let address = shared.lock().peer_addr(*id);
        address.expect("a connection is released only after its last socket is dropped")
    }

    /// The local address. The IP address is unspecified if the port was bound to all addresses.
    pub fn local_addr(&self) -> SocketAddr {
        self.connection.shared.udp.local_addr()
    }

    /// The statistics of the UDP port that carries this connection, and perhaps others.
    pub fn port_statistics(&self) -> PortStatistics {
        *self.connection.shared.statistics()
    }

    /// The stream ID that the caller sent; empty if it sent none.
    pub fn stream_id(&self) -> &str {
        self.raw_stream_id()
    }

    /// The stream ID with its bytes, if these are not text.
    pub fn raw_stream_id(&self) -> &RawStreamId {
        self.connection.stream_id.get_or_init(|| self.info().stream_id)
    }

    /// The parsed stream ID, in any of the common forms. Errors as
    /// [`IncomingCall::parsed_stream_id`](crate::IncomingCall::parsed_stream_id).
    pub fn parsed_stream_id(&self) -> Result<StreamId, StreamIdError> {
        StreamId::parse(self.stream_id())
    }

    /// Repeats `attempt` each time there may be something to receive, until it succeeds or fails.
    async fn receive<R>(
        &self,
        mut attempt: impl FnMut(&mut State, Instant, ConnectionId) -> Result<Option<R>, Error>,
    ) -> Result<R, Error> {
        let Connection { shared, id, signals, .. } = &*self.connection;
        // A task that never has to wait must still yield to the driver.
        coop::consume_budget().await;
        loop {
            let ticket = signals.readable().notified();
            if signals.is_announced() {
                let received = shared.call(|state, now| match attempt(state, now, *id)? {
                    None if state.stopped => Err(Error::Stopped),
                    None => {
                        signals.set_announced(false);
                        Ok(None)
                    }
                    received => Ok(received),
                })?;
                if let Some(received) = received {
                    return Ok(received);
                }
            }
            ticket.await;
        }
    }

    /// Repeats `attempt` after each signal, until it succeeds or fails.
    async fn until<R>(
        &self,
        signal: fn(&Signals) -> &Notify,
        mut attempt: impl FnMut(&mut State, Instant, ConnectionId) -> Result<Option<R>, Error>,
    ) -> Result<R, Error> {
        let Connection { shared, id, signals, .. } = &*self.connection;
        coop::consume_budget().await;
        loop {
            let ticket = signal(signals).notified();
            let done = shared.call(|state, now| match attempt(state, now, *id)? {
                None if state.stopped => Err(Error::Stopped),
                done => Ok(done),
            })?;
            match done {
                Some(done) => return Ok(done),
                None => ticket.await,
            }
        }
    }
}

/// A message, or bytes of a stream, that were submitted for sending.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Submitted {
    /// The sequence number of its first packet.
    pub seq: SeqNo,
    /// Its message number.
    pub msgno: MsgNo,
    /// When it was submitted.
    pub at: Instant,
    /// Whether there is room for another packet.
    pub has_room: bool,
}

/// A connection with at least one [`Socket`]. It closes when it is dropped.
#[derive(Debug)]
struct Connection {
    shared: Arc<Shared>,
    id: ConnectionId,
    signals: Arc<Signals>,
    /// Cached on first use, which is after the handshake: from then on it does not change.
    stream_id: OnceLock<RawStreamId>,
    was_accepted: bool,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.shared.call_and_wake(|state, now| state.orphan(now, self.id));
    }
}
