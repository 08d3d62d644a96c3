//! What carries an SRT stream, as statistics see it.

use punctual::{Group, LinkReport, Socket, Statistics};

/// A connection, or a group of them.
#[derive(Clone)]
pub(crate) enum SrtEnd {
    Socket(Socket),
    Group(Group),
}

/// One row of statistics.
pub(crate) struct Row {
    /// The socket ID, or the group's.
    pub(crate) id: u32,
    /// A link's weight.
    pub(crate) weight: u16,
    pub(crate) statistics: Statistics,
}

impl SrtEnd {
    /// The statistics of the whole.
    pub(crate) fn statistics(&self) -> Statistics {
        match self {
            Self::Socket(socket) => socket.statistics(),
            Self::Group(group) => whole(group.statistics(), &group.links()),
        }
    }

    /// A row for the whole, and one for each link of a group.
    pub(crate) fn rows(&self) -> Vec<Row> {
        match self {
            Self::Socket(socket) => {
                let id = socket.info().socket_id.value();
                vec![Row { id, weight: 0, statistics: socket.statistics() }]
            }
            Self::Group(group) => {
                let links = group.links();
                let statistics = whole(group.statistics(), &links);
                let all = Row { id: group.id(), weight: 0, statistics };
                let links = links.into_iter().map(|link| Row {
                    id: link.socket_id,
                    weight: link.weight,
                    statistics: link.statistics,
                });
                std::iter::once(all).chain(links).collect()
            }
        }
    }
}

/// A group's statistics, with what only its links count: packets sent over them, those that got
/// lost on the way, and the longest round trip.
fn whole(group: Statistics, links: &[LinkReport]) -> Statistics {
    links.iter().map(|link| &link.statistics).fold(group, |mut sum, link| {
        sum.packets_sent += link.packets_sent;
        sum.bytes_sent += link.bytes_sent;
        sum.packets_retransmitted += link.packets_retransmitted;
        sum.packets_send_lost += link.packets_send_lost;
        sum.packets_received += link.packets_received;
        sum.bytes_received += link.bytes_received;
        sum.packets_receive_lost += link.packets_receive_lost;
        sum.packets_received_retransmitted += link.packets_received_retransmitted;
        sum.rtt = sum.rtt.max(link.rtt);
        sum.receive_buffer_span = sum.receive_buffer_span.max(link.receive_buffer_span);
        sum.send_buffer_span = sum.send_buffer_span.max(link.send_buffer_span);
        sum
    })
}
