//! One stream over several links.

mod calls;
mod drive;
mod ended;
mod link;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use punctual_proto::{
    CloseReason, Config, ConfigError, Endpoint, GroupKind, GroupOffer, LinkAction, LinkId,
    LinkState, Message, SendOptions, Statistics,
};
use punctual_units::Instant;

use self::calls::Calls;
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
/// another one stands; when none stands the group has ended. At a listener that lets groups in
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
    machine: punctual_proto::Group,
    members: BTreeMap<LinkId, Socket>,
    calls: Calls,
    ended: EndedLinks,
    was_up: bool,
    /// Why the last link ended.
    last_end: Option<CloseReason>,
    closing: bool,
    /// Everything that was due at the links by then has been handed to the machine.
    collected: Instant,
    /// When a reader was last told that something is due that the group has already.
    told_due: Instant,
    /// When the group looks at its links next, if nothing happens before.
    sleeps_until: Option<Instant>,
}

impl Group {
    /// Calls over all `links` and waits until the first of them stands; the others join when they
    /// do. All links have the same options.
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
            machine,
            members: BTreeMap::new(),
            calls: Calls::default(),
            ended: EndedLinks::default(),
            was_up: false,
            last_end: None,
            closing: false,
            collected: Instant::ORIGIN,
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
        state.ask_links();
        let now = punctual_io::now();
        let answer = state.machine.send(now, payload.clone(), options);
        state.carry_out();
        // The group may have to look at its links earlier than it thought.
        let next = state.machine.poll_timeout();
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
        let mut complete = false;
        loop {
            let collected = state.collected;
            if let Some(message) = state.machine.recv(collected) {
                return Ok(Some(message));
            }
            if complete {
                break;
            }
            // What falls due while the links are asked has its turn in the next round: another
            // link, asked already, may have something that comes before it. Nobody tells of it
            // again, so the round that finds nothing more is not the last look.
            state.collected = punctual_io::now();
            complete = !state.collect();
        }
        if state.is_drained() {
            return Err(state.end());
        }
        let next = state.machine.next_delivery();
        let hurry = next.is_some_and(|next| state.sleeps_until.is_none_or(|at| next < at));
        drop(state);
        if hurry {
            self.inner.signals.phase.notify_waiters();
        }
        Ok(None)
    }

    /// Adds a link. What this gives completes when the link stands, or could not be made.
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
        let socket = state.forget(id);
        state.carry_out();
        drop(state);
        // Others may hold it: the task that waits for its end.
        if let Some(socket) = socket {
            socket.begin_close();
        }
        self.inner.signals.wake();
    }

    /// Closes all links: each sends what is buffered for up to [`linger`](Config::linger). What was
    /// received can still be read.
    ///
    /// Cancel safe: once begun, the group closes whether this is waited for or not.
    pub async fn close(&self) {
        let sockets: Vec<Socket> = {
            let mut state = self.inner.lock();
            state.closing = true;
            state.members.values().cloned().collect()
        };
        sockets.iter().for_each(Socket::begin_close);
        for socket in sockets {
            socket.closed().await;
        }
        self.inner.signals.wake();
    }

    /// What the group does with its links.
    pub fn kind(&self) -> GroupKind {
        self.inner.lock().machine.kind()
    }

    /// This end's ID of the group.
    pub fn id(&self) -> u32 {
        self.inner.lock().machine.id()
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
        self.inner.lock().machine.switches()
    }

    /// What is counted of the stream as a whole, each message once.
    pub fn statistics(&self) -> Statistics {
        self.inner.lock().machine.statistics(punctual_io::now())
    }

    /// The links that stand or have something left to deliver, and how they are.
    pub fn links(&self) -> Vec<LinkReport> {
        self.inner.lock().reports()
    }

    /// The stream, its links, and those that have ended, at one moment.
    pub fn report(&self) -> GroupReport {
        let state = self.inner.lock();
        GroupReport {
            stream: state.machine.statistics(punctual_io::now()),
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
            && state.machine.peer_group() == Some(offer.peer_group)
            && state.machine.kind() == offer.kind
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
        if self.closing || (self.was_up && !self.machine.is_up()) {
            return Err(self.end());
        }
        Ok(())
    }

    fn reports(&self) -> Vec<LinkReport> {
        let reports = self.machine.links().filter_map(|(id, weight, state)| {
            Some(LinkReport::new(id, weight, state, self.members.get(&id)?))
        });
        reports.collect()
    }

    /// Nothing more comes from a link, or is to come. What it counted is kept.
    fn forget(&mut self, id: LinkId) -> Option<Socket> {
        let socket = self.members.remove(&id);
        let weight = self.machine.links().find(|link| link.0 == id).map_or(0, |link| link.1);
        if let Some(socket) = &socket {
            self.ended.add(LinkReport::new(id, weight, LinkState::Gone, socket));
        }
        self.machine.remove_link(punctual_io::now(), id);
        socket
    }

    fn end(&self) -> Error {
        Error::Closed(self.last_end.clone().unwrap_or(CloseReason::Local))
    }

    /// Whether no link stands and nothing is left to deliver.
    fn is_drained(&self) -> bool {
        self.was_up
            && !self.machine.is_up()
            && self.members.is_empty()
            && self.machine.next_delivery().is_none()
    }

    /// Tells the machine how its links are.
    fn ask_links(&mut self) {
        for (&id, socket) in &self.members {
            if let Some(status) = socket.with_endpoint(|endpoint, _, id| endpoint.link_status(id)) {
                self.machine.update(id, status);
            }
        }
    }

    /// Gives the machine what the links of a balancing group leave to it.
    fn take_losses(&mut self) {
        if self.machine.kind() != GroupKind::Balance {
            return;
        }
        for (&link, socket) in &self.members {
            let lost = socket.with_endpoint(|endpoint, _, id| endpoint.take_link_losses(id));
            self.machine.handle_losses(punctual_io::now(), link, lost);
        }
    }

    /// Does what the machine wants done at its links.
    fn carry_out(&mut self) {
        while let Some((id, action)) = self.machine.poll_action() {
            let Some(socket) = self.members.get(&id) else { continue };
            let result = match action {
                LinkAction::Submit(_) => {
                    socket.with_endpoint(|endpoint, now, id| endpoint.apply(now, id, action))
                }
                _ => socket.with_driver(|endpoint, now, id| endpoint.apply(now, id, action)),
            };
            if let Err(error) = result {
                tracing::trace!(link = ?id, %error, "a link did not do what its group wants");
            }
        }
    }

    /// Hands everything that is due at the links to the machine; whether there was anything.
    fn collect(&mut self) -> bool {
        let Self { machine, members, .. } = self;
        let balances = machine.kind() == GroupKind::Balance;
        let mut any = false;
        let mut drained = Vec::new();
        for (&link, socket) in members.iter() {
            if balances {
                let early = socket.with_endpoint(|endpoint, _, id| endpoint.take_link_messages(id));
                any |= !early.is_empty();
                early.into_iter().for_each(|message| machine.handle_message(link, message));
            }
            loop {
                match socket.with_endpoint(Endpoint::recv) {
                    // The group has it already.
                    Ok(Some(_)) if balances => {}
                    Ok(Some(message)) => {
                        machine.handle_message(link, message);
                        any = true;
                    }
                    Ok(None) => break,
                    // Nothing more will come, unless nobody has noticed its end yet.
                    Err(_) => {
                        let mut links = machine.links();
                        let gone = links.any(|it| it.0 == link && it.2 == LinkState::Gone);
                        drained.extend(gone.then_some(link));
                        break;
                    }
                }
            }
        }
        if !drained.is_empty() {
            for link in drained {
                self.forget(link);
            }
            self.carry_out();
        }
        any
    }
}
