//! One stream over several links.

mod calls;
mod drive;
mod ended;
mod link;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use punctual_proto::{
    CloseReason, Config, ConfigError, DrainedLink, GroupDriver, GroupKind, GroupOffer, LinkId,
    LinkState, Message, Readiness, SendOptions, Statistics,
};
use punctual_units::Instant;

use self::calls::Calls;
use self::drive::Sockets;
use self::ended::EndedLinks;
pub use self::link::{GroupLink, GroupReport, LinkReport};
use crate::error::{Error, Sent, sent};
use crate::shared::GroupSignals;
use crate::socket::Socket;

/// One stream over several links: a libsrt group. Clones share it; it closes in the background when
/// the last one is dropped.
///
/// In a broadcast group every message goes over every link, and is delivered once: nothing is lost
/// while one link carries it. In a backup group the link of the highest weight carries the stream,
/// and another one takes over when the peer does not answer. In a balancing group, which only this
/// implementation has, each message goes over one link, as much over each as it carries.
///
/// A caller says over which links to call. A link that ends is called again, once a second, while
/// another one is established; when none is, the group has ended. At a listener that lets groups in
/// ([`Config::with_group_connect`]) the first link is accepted as the group
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
    state: Mutex<State>,
    signals: Arc<GroupSignals>,
    config: Config,
    /// At an accepted group, the stream ID of its first link.
    stream_id: String,
}

#[derive(Debug)]
struct State {
    driver: GroupDriver<Socket>,
    calls: Calls,
    ended: EndedLinks,
    was_up: bool,
    /// Why the last link ended.
    last_end: Option<CloseReason>,
    closing: bool,
    /// When a reader was last told that something is due that the group has already.
    told_due: Instant,
    /// When the group looks at its links next, if nothing happens before.
    sleeps_until: Option<Instant>,
}

impl Group {
    /// Calls over all `links` and waits until the first of them is established; the others join
    /// when they are. All links have the same options.
    ///
    /// Errors: that of the last link, if none comes to stand; [`Error::Config`] with a packet
    /// filter or without TSBPD, which groups do not have.
    ///
    /// Cancel safe: dropping the call takes it back.
    pub async fn connect(
        kind: GroupKind,
        links: Vec<GroupLink>,
        config: Config,
    ) -> Result<Self, Error> {
        if !config.packet_filter().is_empty() {
            let value = config.packet_filter().to_owned();
            let expected = "none in a group, whose links leave numbers out when they join";
            return Err(ConfigError { option: "packetfilter", value, expected }.into());
        }
        if !config.tsbpd() {
            let expected = "on in a group, whose links share one stream by its timestamps";
            return Err(ConfigError { option: "tsbpdmode", value: "0".to_owned(), expected }.into());
        }
        let group = Self::new(kind, config, String::new())?;
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

    pub(crate) fn new(kind: GroupKind, config: Config, stream_id: String) -> Result<Self, Error> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(std::io::Error::other)?;
        let machine = punctual_proto::Group::new(
            kind,
            config.group_min_stability(),
            u64::from_ne_bytes(random),
            punctual_io::now(),
        );
        let state = State {
            driver: GroupDriver::new(machine),
            calls: Calls::default(),
            ended: EndedLinks::default(),
            was_up: false,
            last_end: None,
            closing: false,
            told_due: Instant::ORIGIN,
            sleeps_until: None,
        };
        let signals = Arc::<GroupSignals>::default();
        let inner = Arc::new(Inner { state: Mutex::new(state), signals, config, stream_id });
        drive::start(&inner)?;
        Ok(Self { inner })
    }

    /// Sends one message over the links; waits while all that stand are full.
    ///
    /// Errors: [`Error::Size`] for an empty or too large message, [`Error::Closed`] when the last
    /// link has ended.
    ///
    /// Cancel safe: either the message was taken and this has completed, or it was not.
    pub async fn send(&self, payload: Bytes) -> Result<(), Error> {
        self.send_with(payload, SendOptions::default()).await
    }

    /// Sends one message with options of its own, such as a time to live; else as
    /// [`send`](Self::send).
    pub async fn send_with(&self, payload: Bytes, options: SendOptions) -> Result<(), Error> {
        loop {
            let ticket = self.inner.signals.writable.notified();
            if self.try_send_with(&payload, options)? {
                return Ok(());
            }
            ticket.await;
        }
    }

    /// Sends one message if there is room for it now. Errors as [`send`](Self::send).
    pub fn try_send(&self, payload: &Bytes) -> Result<bool, Error> {
        self.try_send_with(payload, SendOptions::default())
    }

    fn try_send_with(&self, payload: &Bytes, options: SendOptions) -> Result<bool, Error> {
        let mut state = self.inner.lock();
        state.check_open()?;
        let answer = state.driver.send(&mut Sockets, payload.clone(), options);
        // The group may have to look at its links earlier than it thought.
        let next = state.driver.group().poll_timeout();
        let hurry = next.is_some_and(|next| state.sleeps_until.is_none_or(|at| next < at));
        drop(state);
        if hurry {
            self.inner.signals.phase.notify_waiters();
        }
        Ok(matches!(sent(answer)?, Sent::Taken))
    }

    /// The next message of the stream, at its time. After the last link has ended, what was
    /// received before is still delivered; then comes [`Error::Closed`].
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

    /// The next message of the stream, if one is due now. Errors as [`recv`](Self::recv).
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

    /// Whether the group is readable, writable or broken now. It can be asked for at any time, as
    /// often as wanted.
    ///
    /// It is writable while a link that carries the stream has room and nobody has closed the
    /// group. It is broken when its last link has ended; messages that were received before may
    /// still be readable.
    pub fn readiness(&self) -> Readiness {
        let mut state = self.inner.lock();
        let any_ended = state.take_ended_links();
        let mut readiness = state.driver.readiness(&mut Sockets);
        state.forget_drained();
        readiness.writable &= !state.closing;
        let sleeps_too_long = state.sleeps_past_delivery();
        drop(state);
        if any_ended || sleeps_too_long {
            self.inner.signals.wake();
        }
        readiness
    }

    /// Adds a link. The task that is returned completes when the link is established, or could not
    /// be made.
    ///
    /// The attempt goes on if the result is dropped.
    pub fn add_link(&self, link: GroupLink) -> tokio::task::JoinHandle<Result<LinkId, Error>> {
        link::call(&self.inner, link)
    }

    /// Closes a link and does not call over it again. A link that was called again has a new ID;
    /// the one that it had first still names it.
    pub fn remove_link(&self, id: LinkId) {
        let mut state = self.inner.lock();
        let id = state.calls.remove(id);
        let weight = state.driver.group().link_weight(id);
        let socket = state.driver.remove_link(&mut Sockets, id);
        if let (Some(socket), Some(weight)) = (&socket, weight) {
            state.ended.add(LinkReport::new(id, weight, LinkState::Gone, socket));
        }
        drop(state);
        // Others may hold it: the task that waits for its end.
        if let Some(socket) = socket {
            socket.begin_close();
        }
        self.inner.signals.wake();
    }

    /// Closes all links: each sends what is buffered for up to [`linger`](Config::linger), and a
    /// link that is still being called is given up. What was received can still be read.
    ///
    /// Cancel safe: once begun, the group closes whether this is waited for or not.
    pub async fn close(&self) {
        let sockets: Vec<Socket> = {
            let mut state = self.inner.lock();
            state.closing = true;
            state.driver.links().map(|(_, socket)| socket.clone()).collect()
        };
        sockets.iter().for_each(Socket::begin_close);
        for socket in sockets {
            socket.closed().await;
        }
        self.inner.signals.wake();
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
        match self.inner.stream_id.as_str() {
            "" => self.inner.config.stream_id(),
            id => id,
        }
    }

    /// How often another link took over in a backup group.
    pub fn switches(&self) -> u64 {
        self.inner.lock().driver.group().switches()
    }

    /// The statistics of the stream as a whole, in which each message counts once.
    pub fn statistics(&self) -> Statistics {
        self.inner.lock().driver.group().statistics(punctual_io::now())
    }

    /// The links that stand or have something left to deliver, and how they are.
    pub fn links(&self) -> Vec<LinkReport> {
        self.inner.lock().reports()
    }

    /// The stream, its links, and those that have ended, at one moment.
    pub fn report(&self) -> GroupReport {
        let state = self.inner.lock();
        GroupReport {
            stream: state.driver.group().statistics(punctual_io::now()),
            links: state.reports(),
            ended: state.ended.together().clone(),
            ended_links: state.ended.links(),
        }
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a caller that asks for a link of a group means this one.
    pub(crate) fn expects(&self, offer: &GroupOffer, stream_id: &str) -> bool {
        let state = self.lock();
        state.check_open().is_ok()
            && state.driver.group().peer_group() == Some(offer.peer_group)
            && state.driver.group().kind() == offer.kind
            && self.stream_id == stream_id
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.signals.wake();
    }
}

impl State {
    fn check_open(&self) -> Result<(), Error> {
        if self.closing || (self.was_up && !self.driver.group().is_up()) {
            return Err(self.end());
        }
        Ok(())
    }

    /// The links that are established or have something left to deliver.
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

    /// Keeps what each link has counted from which nothing more comes.
    fn forget_drained(&mut self) {
        while let Some(drained) = self.driver.poll_drained() {
            let DrainedLink { id, weight, link } = drained;
            self.ended.add(LinkReport::new(id, weight, LinkState::Gone, &link));
        }
    }

    /// Whether the group's task would wake up after the next message is due.
    fn sleeps_past_delivery(&self) -> bool {
        let next = self.driver.group().next_delivery();
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
