//! One stream over several links.

mod calls;
mod connections;
mod drive;
mod ended;
mod link;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytes::Bytes;
use punctual_proto::{
    CloseReason, Config, ConfigError, DrainedLink, GroupDriver, GroupKind, GroupOffer, LinkId,
    LinkState, Message, RawStreamId, Readiness, SendOptions, Statistics,
};
use punctual_units::Instant;
use tokio::task::JoinHandle;

pub use self::calls::CallId;
use self::calls::GroupCalls;
pub use self::connections::{AcceptedLink, LinkConnection};
use self::drive::Sockets;
use self::ended::EndedLinks;
pub use self::link::{GroupLink, GroupReport, LinkReport};
use crate::error::{Error, Sent, sent};
use crate::signals::{GroupSignals, Watcher};
use crate::socket::{Socket, Submitted};
use crate::state::Phase;
use crate::waiting_caller::WaitingCaller;

/// One stream over several links: a libsrt group. Clones share it; it closes in the background when
/// the last one is dropped.
///
/// In a broadcast group every message goes over every link, and is delivered once: nothing is lost
/// while one link works. In a backup group the link with the highest weight carries the stream, and
/// another one takes over when the peer does not answer. In a balancing group, which only this
/// implementation has, each message goes over one link, and each link gets a share according to its
/// capacity.
///
/// A caller names the links. A link that ends is called again, once a second, while another one is
/// established; without any established link, the group has ended. At a listener that accepts
/// groups ([`Config::with_group_connect`]) the first link is accepted as the group
/// ([`Listener::accept_any`](crate::Listener::accept_any)), and the others join it.
///
/// ```
/// use punctual::{Accepted, Config, Group, GroupKind, GroupLink, Listener};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), punctual::Error> {
/// let config = Config::default().with_group_connect(true);
/// let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), config).await?;
///
/// let links = [GroupLink::to(listener.local_addr()), GroupLink::to(listener.local_addr())];
/// let call = Group::connect(GroupKind::Broadcast, links.to_vec(), Config::default());
/// let (sender, accepted) = tokio::try_join!(call, listener.accept_any())?;
/// let Accepted::Group(receiver) = accepted else { panic!("a group called") };
///
/// sender.send("on time".into()).await?;
/// assert_eq!(receiver.recv().await?.payload, "on time");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Group {
    inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    /// The group's task shares it, so that a group that is dropped can still send what it holds.
    state: Arc<Mutex<State>>,
    signals: Arc<GroupSignals>,
    /// The stream ID of the calling end: of an accepted group that of its first link.
    stream_id: RawStreamId,
}

#[derive(Debug)]
struct State {
    /// The options of links that are yet to come.
    config: Config,
    driver: GroupDriver<Socket>,
    calls: GroupCalls,
    ended: EndedLinks,
    /// Whether a link was ever established.
    was_up: bool,
    /// The reason why the last link ended.
    last_end: Option<CloseReason>,
    closing: bool,
    /// The latest due time of a message for which waiting readers were woken.
    notified_due: Instant,
    /// Whether links have ended that the watcher has not heard of.
    owes_watcher: bool,
    /// When the task of the group wakes up next, unless an event comes earlier; `None` for never.
    sleeps_until: Option<Instant>,
}

impl Group {
    /// Calls over all `links` and waits until the first of them is established; the others join
    /// when they are established. All links have the same options.
    ///
    /// Errors: that of the last link, if none is established; [`Error::Config`] with a packet
    /// filter or without TSBPD, since groups support neither.
    ///
    /// Cancel safe: dropping the call takes it back.
    pub async fn connect(
        kind: GroupKind,
        links: Vec<GroupLink>,
        config: Config,
    ) -> Result<Self, Error> {
        let group = Self::open(kind, config)?;
        let attempts: Vec<_> = links.into_iter().map(|link| group.add_link(link)).collect();
        let mut last = Error::Closed(CloseReason::Local);
        let signals = Arc::clone(&group.inner.signals);
        for mut attempt in attempts {
            loop {
                let ticket = signals.phase.notified();
                if group.inner.lock().was_up {
                    return Ok(group);
                }
                tokio::select! {
                    result = &mut attempt => {
                        match result {
                            Ok(Ok(_)) => return Ok(group),
                            Ok(Err(error)) => last = error,
                            Err(_) => last = Error::Stopped,
                        }
                        break;
                    }
                    () = ticket => {}
                }
            }
        }
        Err(last)
    }

    /// Opens a group without links: see [`add_link`](Self::add_link). Must be called within a tokio
    /// runtime.
    ///
    /// Errors: [`Error::Config`] with a packet filter or without TSBPD, since groups support
    /// neither.
    pub fn open(kind: GroupKind, config: Config) -> Result<Self, Error> {
        if !config.packet_filter().is_empty() {
            let value = config.packet_filter().to_owned();
            let expected = "none in a group, whose links skip sequence numbers when they join";
            return Err(ConfigError { option: "packetfilter", value, expected }.into());
        }
        if !config.tsbpd() {
            let expected = "on in a group, which merges its links by their timestamps";
            return Err(ConfigError { option: "tsbpdmode", value: "0".to_owned(), expected }.into());
        }
        let stream_id = config.raw_stream_id().clone();
        Self::new(kind, config, stream_id)
    }

    pub(crate) fn new(
        kind: GroupKind,
        config: Config,
        stream_id: RawStreamId,
    ) -> Result<Self, Error> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(std::io::Error::other)?;
        let machine = punctual_proto::Group::new(
            kind,
            config.group_min_stability(),
            u64::from_ne_bytes(random),
            punctual_io::now(),
        );
        let state = State {
            config,
            driver: GroupDriver::new(machine),
            calls: GroupCalls::default(),
            ended: EndedLinks::default(),
            was_up: false,
            last_end: None,
            closing: false,
            notified_due: Instant::ORIGIN,
            owes_watcher: false,
            sleeps_until: None,
        };
        let signals = Arc::<GroupSignals>::default();
        let inner = Arc::new(Inner { state: Arc::new(Mutex::new(state)), signals, stream_id });
        drive::start(&inner)?;
        Ok(Self { inner })
    }

    /// Sends one message over the links; waits while the send buffers of all established links are
    /// full.
    ///
    /// Errors: [`Error::Size`] for an empty or too large message, [`Error::Closed`] when the last
    /// link has ended.
    ///
    /// Cancel safe: if it is dropped before it completes, the message is not sent.
    pub async fn send(&self, payload: Bytes) -> Result<(), Error> {
        self.send_with(payload, SendOptions::default()).await
    }

    /// Sends one message as [`send`](Self::send) does, with options for this message, such as a
    /// time to live.
    pub async fn send_with(&self, payload: Bytes, options: SendOptions) -> Result<(), Error> {
        loop {
            let ticket = self.inner.signals.writable.notified();
            if self.try_send_with(&payload, options)?.is_some() {
                return Ok(());
            }
            ticket.await;
        }
    }

    /// Sends one message if there is room for it now: `Ok(true)` if it was sent, `Ok(false)` if the
    /// send buffers are full. Errors as [`send`](Self::send).
    pub fn try_send(&self, payload: &Bytes) -> Result<bool, Error> {
        Ok(self.try_send_with(payload, SendOptions::default())?.is_some())
    }

    /// Sends one message as [`try_send`](Self::try_send) does, with options for this message, and
    /// returns its numbers in the group; `None` if the send buffers are full.
    pub fn try_send_with(
        &self,
        payload: &Bytes,
        options: SendOptions,
    ) -> Result<Option<Submitted>, Error> {
        let mut state = self.inner.lock();
        state.check_open()?;
        let (seq, msgno) = state.driver.group().next_message();
        let answer = state.driver.send(&mut Sockets, payload.clone(), options);
        // The group may have to be updated earlier than planned.
        let next = state.driver.group().poll_timeout();
        let hurry = next.is_some_and(|next| state.sleeps_until.is_none_or(|at| next < at));
        let has_room = state.driver.group().has_room();
        drop(state);
        if hurry {
            self.inner.signals.phase.notify_waiters();
        }
        let taken = matches!(sent(answer)?, Sent::Taken);
        Ok(taken.then_some(Submitted { seq, msgno, at: punctual_io::now(), has_room }))
    }

    /// Waits for the next message of the stream, which is delivered at its time. After the last
    /// link has ended, messages that were received before are still delivered; then comes
    /// [`Error::Closed`].
    ///
    /// Cancel safe: a message is taken only as this completes.
    pub async fn recv(&self) -> Result<Message, Error> {
        tokio::task::coop::consume_budget().await;
        loop {
            let ticket = self.inner.signals.readable.notified();
            if let Some(message) = self.try_recv()? {
                return Ok(message);
            }
            ticket.await;
        }
    }

    /// Returns the next message of the stream if one is due now. Errors as [`recv`](Self::recv).
    pub fn try_recv(&self) -> Result<Option<Message>, Error> {
        let mut state = self.inner.lock();
        if let Some(message) = state.driver.recv(&mut Sockets) {
            return Ok(Some(message));
        }
        state.forget_drained();
        if state.is_drained() {
            return Err(state.end());
        }
        let sleeps_too_long = state.sleeps_past_delivery();
        drop(state);
        if sleeps_too_long {
            self.inner.signals.phase.notify_waiters();
        }
        Ok(None)
    }

    /// Whether the group is readable, writable or broken now. It may be called at any time and any
    /// number of times.
    ///
    /// The group is writable while a link that carries the stream has room and
    /// [`close`](Self::close) was not called. It is broken when its last link has ended; messages
    /// that were received before may still be readable.
    pub fn readiness(&self) -> Readiness {
        let mut state = self.inner.lock();
        let any_ended = drive::take_ended_links(&mut state);
        let mut readiness = state.driver.readiness(&mut Sockets);
        state.forget_drained();
        readiness.writable &= !state.closing;
        let sleeps_too_long = state.sleeps_past_delivery();
        state.owes_watcher |= any_ended;
        drop(state);
        if any_ended || sleeps_too_long {
            self.inner.signals.wake_tasks();
        }
        readiness
    }

    /// Changes options that may be changed at any time, on all links and on later ones
    /// ([`Socket::configure`] has an example).
    ///
    /// # Errors
    ///
    /// The error of `change`; also if an option differs that can only be set before connecting. On
    /// an error no option is changed.
    pub fn configure(
        &self,
        change: impl Fn(Config) -> Result<Config, ConfigError>,
    ) -> Result<(), ConfigError> {
        let mut state = self.inner.lock();
        let sockets: Vec<Socket> = state.driver.links().map(|(_, link)| link.clone()).collect();
        let configs = sockets.iter().map(Socket::config).chain([state.config.clone()]);
        let changed: Result<Vec<Config>, ConfigError> = configs
            .map(|config| {
                let changed = change(config.clone())?;
                config.check_change(&changed).map(|()| changed)
            })
            .collect();
        let mut changed = changed?;
        if let Some(config) = changed.pop() {
            state.config = config;
        }
        drop(state);
        for (socket, config) in sockets.iter().zip(changed) {
            socket.configure(|_| Ok(config))?;
        }
        Ok(())
    }

    /// Adds a link. The returned task completes when the link is established, or with the error of
    /// the first attempt. The group keeps calling in either case.
    ///
    /// Dropping the result does not end the attempt.
    pub fn add_link(&self, link: GroupLink) -> JoinHandle<Result<LinkId, Error>> {
        self.begin_call(link, None).1
    }

    /// Closes a link and does not call over it again. A link that was called again has a new ID;
    /// its earlier IDs name it as well.
    pub fn remove_link(&self, id: LinkId) {
        let mut state = self.inner.lock();
        let id = state.calls.remove(id);
        let weight = state.driver.group().link_weight(id);
        let socket = state.driver.remove_link(&mut Sockets, id);
        if let (Some(socket), Some(weight)) = (&socket, weight) {
            state.ended.add(LinkReport::new(id, weight, LinkState::Gone, socket));
        }
        drop(state);
        // Closed explicitly: the task that waits for its end holds a clone.
        if let Some(socket) = socket {
            socket.begin_close();
        }
        self.inner.signals.wake();
    }

    /// Ends the stream: messages that the peer does not have yet are sent, over any link, for up to
    /// [`linger`](Config::linger). Then all links are closed, and links that are still being called
    /// are given up. Messages that were received can still be read.
    ///
    /// Cancel safe: once polled, the group closes even if this is dropped.
    pub async fn close(&self) {
        self.begin_close();
        let sockets: Vec<Socket> =
            self.inner.lock().driver.links().map(|(_, socket)| socket.clone()).collect();
        for socket in sockets {
            socket.closed().await;
        }
        self.inner.signals.wake();
    }

    /// Closes the group as [`close`](Self::close) does, and does not wait until this is done.
    pub fn begin_close(&self) {
        self.inner.lock().begin_close();
        self.inner.signals.wake();
    }

    /// Closes all links at once: discards messages that are buffered or not acknowledged, notifies
    /// the peer, and does not wait until this is done. A waiting [`close`](Self::close) completes.
    pub fn begin_abort(&self) {
        self.inner.lock().close_until(punctual_io::now());
        self.inner.signals.wake();
    }

    /// Tells `watcher` of the changes of the group from now on, for programs that do not wait in
    /// tasks: see [`Socket::watch`](crate::Socket::watch).
    pub fn watch(&self, watcher: Weak<dyn Watcher>) {
        self.inner.signals.watcher.set(watcher);
    }

    /// The phase of the group. It is connected while a link is established.
    pub fn phase(&self) -> Phase {
        let state = self.inner.lock();
        match (state.was_up, state.driver.group().is_up()) {
            (_, true) => Phase::Connected,
            (false, false) if !state.closing => Phase::Connecting,
            _ => Phase::Closed(state.last_end.clone().unwrap_or(CloseReason::Local)),
        }
    }

    /// Waits until the group has been established and its last link has ended, or it was closed.
    /// Returns the reason. Messages that were received before may still be readable.
    ///
    /// Cancel safe.
    pub async fn closed(&self) -> CloseReason {
        loop {
            let ticket = self.inner.signals.phase.notified();
            if let Phase::Closed(reason) = self.phase() {
                return reason;
            }
            ticket.await;
        }
    }

    /// Whether a link was ever established.
    pub fn was_connected(&self) -> bool {
        self.inner.lock().was_up
    }

    /// The kind of the group: what it does with its links.
    pub fn kind(&self) -> GroupKind {
        self.inner.lock().driver.group().kind()
    }

    /// This end's ID of the group.
    pub fn id(&self) -> u32 {
        self.inner.lock().driver.group().id()
    }

    /// The stream ID that the caller sent; empty if it sent none.
    pub fn stream_id(&self) -> &str {
        &self.inner.stream_id
    }

    /// The number of times that another link took over, in a backup group.
    pub fn switches(&self) -> u64 {
        self.inner.lock().driver.group().switches()
    }

    /// The statistics of the stream as a whole, in which each message counts once.
    pub fn statistics(&self) -> Statistics {
        self.inner.lock().driver.group().statistics(punctual_io::now())
    }

    /// Reports on the links that are established or have messages left to deliver.
    pub fn links(&self) -> Vec<LinkReport> {
        self.inner.lock().reports()
    }

    /// A report on the stream, its links, and its ended links, all at one moment.
    pub fn report(&self) -> GroupReport {
        let state = self.inner.lock();
        GroupReport {
            stream: state.driver.group().statistics(punctual_io::now()),
            links: state.reports(),
            ended: state.ended.together().clone(),
            ended_links: state.ended.links(),
            last_reports: state.ended.last_reports(),
        }
    }

    /// Adds a link as [`add_link`](Self::add_link) does, with options of its own or with those of
    /// the group. Also returns a name of the call, by which [`end_call`](Self::end_call) ends it at
    /// any time. Fails outside a tokio runtime.
    pub fn begin_call(
        &self,
        link: GroupLink,
        config: Option<Config>,
    ) -> (CallId, JoinHandle<Result<LinkId, Error>>) {
        link::call(&self.inner, link, config)
    }

    /// Does not call any more over the link of this call, and closes it.
    pub fn end_call(&self, call: CallId) {
        let link = self.inner.lock().calls.end(call);
        if let Some(link) = link {
            self.remove_link(link);
        }
    }

    pub(crate) const fn of(inner: Arc<Inner>) -> Self {
        Self { inner }
    }

    /// The links that are established or have messages left to deliver.
    pub fn connections(&self) -> Vec<LinkConnection> {
        let mut state = self.inner.lock();
        // Links whose end the task of the group has not seen yet are no connections any more.
        let any_ended = drive::take_ended_links(&mut state);
        if any_ended {
            state.driver.update(&mut Sockets);
            state.forget_drained();
            state.owes_watcher = true;
        }
        let group = state.driver.group();
        let connections = state.established().filter_map(|(id, socket)| {
            Some(LinkConnection {
                id,
                call: state.calls.of(id),
                weight: group.link_weight(id)?,
                state: group.link_state(id)?,
                socket: socket.clone(),
            })
        });
        let connections = connections.collect();
        drop(state);
        if any_ended {
            self.inner.signals.wake_tasks();
        }
        connections
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Whether a caller with this offer and stream ID is a further link of this group.
    pub(crate) fn expects(&self, offer: &GroupOffer, stream_id: &RawStreamId) -> bool {
        let state = self.lock();
        state.check_open().is_ok()
            && state.driver.group().peer_group() == Some(offer.peer_group)
            && state.driver.group().kind() == offer.kind
            && self.stream_id == *stream_id
    }

    /// Accepts a caller as a link. Returns its name in the group.
    pub(crate) fn join(&self, call: WaitingCaller, offer: &GroupOffer) -> Result<LinkId, Error> {
        link::join(self, call, offer)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.signals.wake();
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    /// Ends the stream; messages that the peer does not have yet are sent for the linger time.
    fn begin_close(&mut self) {
        self.close_until(punctual_io::now() + self.config.linger());
    }

    /// Ends the stream; messages that the peer does not have yet are sent until then at most.
    fn close_until(&mut self, until: Instant) {
        self.closing = true;
        self.driver.close(&mut Sockets, until);
    }

    fn check_open(&self) -> Result<(), Error> {
        if self.closing || (self.was_up && !self.driver.group().is_up()) {
            return Err(self.end());
        }
        Ok(())
    }

    /// The links that are established or have messages left to deliver.
    fn established(&self) -> impl Iterator<Item = (LinkId, &Socket)> {
        let state = |id| self.driver.group().link_state(id);
        self.driver.links().filter(move |&(id, _)| state(id) != Some(LinkState::Joining))
    }

    fn reports(&self) -> Vec<LinkReport> {
        let group = self.driver.group();
        let reports = self.established().filter_map(|(id, socket)| {
            Some(LinkReport::new(id, group.link_weight(id)?, group.link_state(id)?, socket))
        });
        reports.collect()
    }

    /// Keeps the statistics of each link that has ended and has delivered everything.
    fn forget_drained(&mut self) {
        while let Some(drained) = self.driver.poll_drained() {
            let DrainedLink { id, weight, link } = drained;
            self.ended.add(LinkReport::new(id, weight, LinkState::Gone, &link));
        }
    }

    /// Whether the group's task would wake up after the next message is due of which it has not
    /// told yet.
    fn sleeps_past_delivery(&self) -> bool {
        let next = self.driver.group().next_delivery().filter(|&at| at > self.notified_due);
        next.is_some_and(|next| self.sleeps_until.is_none_or(|at| next < at))
    }

    fn end(&self) -> Error {
        Error::Closed(self.last_end.clone().unwrap_or(CloseReason::Local))
    }

    /// Whether no link is established and nothing is left to deliver.
    fn is_drained(&self) -> bool {
        self.was_up
            && !self.driver.group().is_up()
            && self.established().next().is_none()
            && self.driver.group().next_delivery().is_none()
    }
}
