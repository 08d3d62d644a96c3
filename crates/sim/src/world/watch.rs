use bytes::Bytes;
use punctual_netem::Gate;
use punctual_units::Instant;

use super::{LinkId, World};
use crate::packet::IpPacket;

/// A UDP datagram that passed an end of a watched link.
#[derive(Clone, Debug)]
pub struct Passage {
    /// When.
    pub at: Instant,
    /// The link.
    pub link: LinkId,
    /// The end of the link.
    pub gate: Gate,
    /// The content of the datagram.
    pub content: Bytes,
}

impl World {
    /// Notes from now on every UDP datagram that passes the ends of a link, for
    /// [`take_passages`](Self::take_passages). Streams are notable, cross traffic is not.
    ///
    /// The notes hold the datagrams themselves, and grow until they are taken.
    pub fn watch(&mut self, link: LinkId) {
        self.links[link.index()].is_watched = true;
    }

    /// The datagrams that have passed watched links since the last call, in order of time.
    pub fn take_passages(&mut self) -> Vec<Passage> {
        std::mem::take(&mut self.passages)
    }

    /// Notes a packet that passes the end of a link, if the link is watched.
    pub(super) fn note(&mut self, link: usize, gate: Gate, packet: &IpPacket) {
        if self.links[link].is_watched && !packet.content.is_empty() {
            let content = packet.content.clone();
            let link = LinkId(super::number(link));
            self.passages.push(Passage { at: self.now, link, gate, content });
        }
    }
}
