//! One end of a group, as tests drive it.

use bytes::Bytes;
use punctual_proto::{
    Acceptance, Attempt, Config, ConnectionId, Endpoint, Event, Group, GroupDriver, Incoming,
    LinkId, LinkUpError, LocalEndpoints, Message, SendError, SendOptions,
};
use punctual_units::Instant;

/// One end of a group: its endpoints, and the driver of the group. A link is the place of its
/// endpoint and the connection there.
#[derive(Debug)]
pub struct GroupEnd {
    /// The endpoints that hold the links.
    pub endpoints: Vec<Endpoint>,
    driver: GroupDriver<(usize, ConnectionId)>,
}

impl GroupEnd {
    /// A group without links over these endpoints.
    pub fn new(group: Group, endpoints: Vec<Endpoint>) -> Self {
        Self { endpoints, driver: GroupDriver::new(group) }
    }

    /// Replaces the group, which must not have links yet.
    pub fn set_group(&mut self, group: Group) {
        assert_eq!(self.driver.links().count(), 0, "the group has links");
        self.driver = GroupDriver::new(group);
    }

    /// The group.
    pub fn group(&self) -> &Group {
        self.driver.group()
    }

    /// The driver of the group.
    pub fn driver(&self) -> &GroupDriver<(usize, ConnectionId)> {
        &self.driver
    }

    fn parts(
        &mut self,
        now: Instant,
    ) -> (&mut GroupDriver<(usize, ConnectionId)>, LocalEndpoints<'_>) {
        (&mut self.driver, LocalEndpoints { now, endpoints: &mut self.endpoints })
    }

    /// Calls `remote` from the endpoint at `place`; `None` if it cannot be called.
    pub fn call(
        &mut self,
        now: Instant,
        place: usize,
        remote: std::net::SocketAddr,
        config: Config,
        weight: u16,
    ) -> Option<(LinkId, ConnectionId)> {
        let (driver, at) = self.parts(now);
        let link = driver.add_link(now, weight, |membership| {
            let attempt = Attempt::link(config, membership);
            let id = at.endpoints[place].connect(now, remote, attempt);
            id.map(|id| (place, id))
        });
        let link = link.ok()?;
        self.driver.link(link).map(|&(_, id)| (link, id))
    }

    /// Accepts a caller of the endpoint at `place` as a link, with the listener's options; `None`
    /// if it does not fit. The link is up if it belongs to this group.
    pub fn accept(
        &mut self,
        now: Instant,
        place: usize,
        incoming: &Incoming,
    ) -> Option<(LinkId, ConnectionId)> {
        let weight = incoming.group?.weight;
        let (driver, at) = self.parts(now);
        let link = driver.add_link(now, weight, |membership| {
            let acceptance = Acceptance::link(None, membership);
            let id = at.endpoints[place].accept(now, incoming.id, acceptance);
            id.map(|id| (place, id))
        });
        let link = link.ok()?;
        let &(_, id) = self.driver.link(link)?;
        let _closed = self.link_up(now, place, id);
        Some((link, id))
    }

    /// The link with this connection.
    pub fn link_of(&self, place: usize, id: ConnectionId) -> Option<LinkId> {
        self.driver.find(|link| *link == (place, id))
    }

    /// The handshake of a link is over. A connection that cannot be a link of the group is closed.
    ///
    /// # Errors
    ///
    /// Why it cannot.
    pub fn link_up(
        &mut self,
        now: Instant,
        place: usize,
        id: ConnectionId,
    ) -> Result<(), LinkUpError> {
        let link = self.link_of(place, id).ok_or(LinkUpError::NotEstablished)?;
        let (driver, mut at) = self.parts(now);
        let up = driver.link_up(&mut at, link);
        if up.is_err()
            && let Some(mut connection) = self.endpoints[place].connection(now, id)
        {
            connection.close();
        }
        up
    }

    /// Handles an event of the endpoint at `place`, except calls of strangers. Received messages
    /// are then to be taken by [`recv`](Self::recv).
    pub fn handle_event(&mut self, now: Instant, place: usize, event: &Event) {
        match event {
            Event::Connected(id) => {
                // The connection of a link that was removed meanwhile is closed already.
                let _closed = self.link_up(now, place, *id);
            }
            Event::LinkNews(_) => self.update(now),
            Event::Closed(id, _) => {
                if let Some(link) = self.link_of(place, *id) {
                    let (driver, mut at) = self.parts(now);
                    driver.link_ended(&mut at, link);
                }
            }
            _ => {}
        }
    }

    /// Submits a message.
    ///
    /// # Errors
    ///
    /// As [`Group::send`].
    pub fn send(
        &mut self,
        now: Instant,
        payload: impl Into<Bytes>,
        options: SendOptions,
    ) -> Result<(), SendError> {
        let (driver, mut at) = self.parts(now);
        driver.send(&mut at, payload.into(), options)
    }

    /// The messages that are due.
    pub fn recv(&mut self, now: Instant) -> Vec<Message> {
        let (driver, mut at) = self.parts(now);
        let messages = std::iter::from_fn(|| driver.recv(&mut at)).collect();
        while driver.poll_drained().is_some() {}
        messages
    }

    /// Ends the stream. Messages may go out until `until`.
    pub fn close(&mut self, now: Instant, until: Instant) {
        let (driver, mut at) = self.parts(now);
        driver.close(&mut at, until);
    }

    /// Handles the group's timers.
    pub fn update(&mut self, now: Instant) {
        let (driver, mut at) = self.parts(now);
        driver.update(&mut at);
    }

    /// When something happens here next by itself, `now` if at once.
    pub fn poll_timeout(&self, now: Instant) -> Option<Instant> {
        let timers = self.endpoints.iter().filter_map(|it| it.poll_timeout().instant(now));
        timers.chain(self.driver.poll_timeout()).min()
    }
}
