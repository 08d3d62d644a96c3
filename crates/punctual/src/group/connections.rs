//! The connections of a group's links, for programs that use each link as a connection.

use punctual_proto::{LinkId, LinkState};

use super::Group;
use super::calls::CallId;
use crate::socket::Socket;

/// A link of a [`Group`] that is established or has messages left to deliver, with its connection.
#[derive(Clone, Debug)]
pub struct LinkConnection {
    /// Names the link in its group.
    pub id: LinkId,
    /// The call that made it; `None` if the peer has called.
    pub call: Option<CallId>,
    /// The weight of the link.
    pub weight: u16,
    /// The state of the link.
    pub state: LinkState,
    /// The connection of the link. Its messages belong to the group: they are sent and received
    /// there alone.
    pub socket: Socket,
}

/// A caller that was accepted as a link of a group.
#[derive(Clone, Debug)]
pub struct AcceptedLink {
    /// The group.
    pub group: Group,
    /// The link in its group.
    pub id: LinkId,
    /// Whether it is the first link, which has made the group.
    pub is_first: bool,
}
