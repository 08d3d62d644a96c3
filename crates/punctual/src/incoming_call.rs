//! Answers to callers.

use std::net::SocketAddr;
use std::sync::Arc;

use punctual_proto::{
    AcceptError, Config, GroupOffer, RawStreamId, RejectReason, StreamId, StreamIdError,
};

use crate::accept::AcceptQueue;
use crate::error::Error;
use crate::group::{AcceptedLink, Group};
use crate::socket::Socket;
use crate::waiting_caller::WaitingCaller;

/// The connection or group of a caller that was accepted.
#[derive(Clone, Debug)]
pub enum Accepted {
    /// A single connection.
    Socket(Socket),
    /// A group, by its first link.
    Group(Group),
}

/// A caller that waits for an answer. If it is dropped without one, the caller is rejected with
/// [`RejectReason::FALLBACK`].
///
/// The caller gives up after its connect timeout, three seconds by default.
#[derive(Debug)]
pub struct IncomingCall {
    caller: WaitingCaller,
    /// The listener that it called, whose groups it may join.
    callers: Arc<AcceptQueue>,
}

/// The description of a caller that waits for an answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CallerInfo {
    /// The caller's address.
    pub remote: SocketAddr,
    /// The stream ID that the caller sent; empty if it sent none.
    pub stream_id: String,
    /// The caller's SRT version, 0x00MMmmpp.
    pub peer_version: u32,
    /// The group that the caller wants to join as a link; `None` for a single connection.
    pub group: Option<GroupOffer>,
}

impl CallerInfo {
    /// The parsed stream ID; see [`IncomingCall::parsed_stream_id`], also for the errors.
    pub fn parsed_stream_id(&self) -> Result<StreamId, StreamIdError> {
        StreamId::parse(&self.stream_id)
    }
}

impl IncomingCall {
    pub(crate) fn new(caller: WaitingCaller, callers: Arc<AcceptQueue>) -> Self {
        Self { caller, callers }
    }

    /// The caller's address.
    pub fn remote(&self) -> SocketAddr {
        self.caller.remote()
    }

    /// The stream ID that the caller sent; empty if it sent none.
    pub fn stream_id(&self) -> &str {
        self.caller.stream_id()
    }

    /// The stream ID with its bytes, if these are not text.
    pub fn raw_stream_id(&self) -> &RawStreamId {
        self.caller.stream_id()
    }

    /// The parsed stream ID, in any of the common forms.
    ///
    /// Errors: it begins as one of these forms but violates its syntax.
    /// [`StreamIdError::reject_reason`] is the code to reject the caller with.
    pub fn parsed_stream_id(&self) -> Result<StreamId, StreamIdError> {
        StreamId::parse(self.stream_id())
    }

    /// The description of the caller.
    pub fn info(&self) -> CallerInfo {
        CallerInfo {
            remote: self.remote(),
            stream_id: self.stream_id().to_owned(),
            peer_version: self.peer_version(),
            group: self.group(),
        }
    }

    /// The caller's SRT version, 0x00MMmmpp.
    pub fn peer_version(&self) -> u32 {
        self.caller.peer_version()
    }

    /// The group that the caller wants to join as a link; `None` for a single connection.
    pub fn group(&self) -> Option<GroupOffer> {
        self.caller.group()
    }

    /// Accepts the caller as the first link of a group, with the listener's options; the group's
    /// further links join without a call of this method. Returns `None` if the caller joined an
    /// established group.
    ///
    /// Errors as [`accept`](Self::accept); also if the caller is not a link of a group.
    pub fn accept_group(self) -> Result<Option<Group>, Error> {
        self.answer_group(None)
    }

    /// As [`accept_group`](Self::accept_group), with these options, such as a passphrase that
    /// belongs to the stream ID. They apply to the further links as well; a link of an established
    /// group gets the options of that group.
    pub fn accept_group_with(self, config: Config) -> Result<Option<Group>, Error> {
        self.answer_group(Some(config))
    }

    /// Accepts the caller as a link of a group, the first or a further one, where the application
    /// [decides on all links](crate::Listener::decide_on_links). Errors as
    /// [`accept_group`](Self::accept_group).
    pub fn accept_link(self, config: Config) -> Result<AcceptedLink, Error> {
        self.answer_link_call(Some(config))
    }

    fn answer_group(self, config: Option<Config>) -> Result<Option<Group>, Error> {
        let accepted = self.answer_link_call(config)?;
        Ok(accepted.is_first.then_some(accepted.group))
    }

    fn answer_link_call(self, config: Option<Config>) -> Result<AcceptedLink, Error> {
        let refused = Error::Accept(AcceptError::Incompatible(RejectReason::GROUP));
        let Some(offer) = self.group() else { return Err(refused) };
        let listening = self.caller.port().lock().listening().cloned();
        let listening = listening.ok_or(Error::Accept(AcceptError::Gone))?;
        let config = config.unwrap_or(listening);
        self.callers.admit(self.caller, &offer, config)
    }

    /// Accepts the caller as a connection or as a link of a group, as it requests. Returns `None`
    /// if it joined an established group.
    pub(crate) fn answer_any(self, config: Option<Config>) -> Result<Option<Accepted>, Error> {
        if self.group().is_some() {
            return self.answer_group(config).map(|group| group.map(Accepted::Group));
        }
        self.answer(config).map(|socket| Some(Accepted::Socket(socket)))
    }

    /// Accepts the caller with the listener's options.
    ///
    /// Errors: [`Error::Accept`] if the caller has given up or is not compatible with the options,
    /// or if there are too many connections.
    pub async fn accept(self) -> Result<Socket, Error> {
        self.answer(None)
    }

    /// Accepts the caller with these options. Errors as [`accept`](Self::accept).
    pub async fn accept_with(self, config: Config) -> Result<Socket, Error> {
        self.answer(Some(config))
    }

    /// Rejects the caller with this reason.
    pub fn reject(self, reason: RejectReason) {
        self.caller.reject(reason);
    }

    /// Accepts the caller as [`accept_with`](Self::accept_with) does, without a task.
    pub fn accept_now(self, config: Config) -> Result<Socket, Error> {
        self.answer(Some(config))
    }

    fn answer(self, config: Option<Config>) -> Result<Socket, Error> {
        self.caller.accept(config).map(Socket::accepted)
    }
}
