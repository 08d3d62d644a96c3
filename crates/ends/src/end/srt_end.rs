//! The SRT connection or group of an end, as statistics see it.

use std::time::Duration;

use punctual::{Group, GroupKind, GroupReport, LinkReport, LinkState, Socket, Statistics};

use punctual_stats::QuicStatistics;

use crate::end::quic;

/// A connection, or a group of them.
#[derive(Clone)]
pub enum SrtEnd {
    /// A connection.
    Socket(Socket),
    /// A group.
    Group(Group),
}

/// One row of statistics.
pub struct Row {
    /// The socket ID, or the group's.
    pub id: u32,
    /// A link's weight.
    pub weight: u16,
    /// The peer's address; empty for a group, which has several.
    pub peer: String,
    /// The statistics since the connection was established.
    pub statistics: Statistics,
    /// The statistics of the QUIC connection that carries it.
    pub quic: Option<QuicStatistics>,
    /// Whether it is the last row of a link that has ended.
    pub is_last: bool,
}

impl SrtEnd {
    /// The address of the peer; for a group, the addresses of its links.
    pub fn peer(&self) -> String {
        match self {
            Self::Socket(socket) => socket.peer_addr().to_string(),
            Self::Group(group) => {
                let links = group.links();
                let links: Vec<_> = links.iter().map(|link| link.remote.to_string()).collect();
                links.join(" + ")
            }
        }
    }

    /// Waits until the peer is gone. Messages that it has sent may still be waiting.
    pub async fn closed(&self) {
        match self {
            Self::Socket(socket) => socket.closed().await,
            Self::Group(group) => group.closed().await,
        };
    }

    /// The statistics of the connection or of the whole group.
    pub fn statistics(&self) -> Statistics {
        match self {
            Self::Socket(socket) => socket.statistics(),
            Self::Group(group) => whole(&group.report()),
        }
    }

    /// The statistics of the connection, or those of each link of the group. Their sums never fall,
    /// also as links end.
    pub fn each_statistics(&self) -> Vec<Statistics> {
        match self {
            Self::Socket(socket) => vec![socket.statistics()],
            Self::Group(_) => self.links_in_all().into_iter().map(|it| it.statistics).collect(),
        }
    }

    /// The links of a group, with links that have ended and were not established again.
    pub fn links(&self) -> Vec<LinkReport> {
        let Self::Group(group) = self else { return Vec::new() };
        let GroupReport { mut links, ended_links, .. } = group.report();
        for ended in ended_links {
            if links.iter().all(|link| link.remote != ended.remote) {
                links.push(ended);
            }
        }
        links
    }

    /// The links of a group by their addresses, each with the counts of all its connections.
    pub fn links_in_all(&self) -> Vec<LinkReport> {
        match self {
            Self::Socket(_) => Vec::new(),
            Self::Group(group) => by_address(group.report()),
        }
    }

    /// The bytes that were sent, or wait to be sent, and that the peer has not acknowledged, and
    /// the age of the oldest of them. Bytes that one link of a group waits for do not count if
    /// another link has brought them.
    pub fn unacknowledged(&self) -> (u64, Duration) {
        let of = |it: &Statistics| (it.send_buffer_bytes, it.send_buffer_span);
        match self {
            Self::Socket(socket) => of(&socket.statistics()),
            Self::Group(group) => {
                let links = group.links();
                waiting(group.kind(), links.iter().map(|it| (it.state, of(&it.statistics))))
            }
        }
    }

    /// The statistics of the QUIC connection that carries the connection; `None` over UDP, and of a
    /// group, whose links each have their own.
    pub fn quic(&self) -> Option<QuicStatistics> {
        match self {
            Self::Socket(socket) => quic::of_socket(socket),
            Self::Group(_) => None,
        }
    }

    /// A row for the whole, and one for each link of a group, also the last one of each link that
    /// has ended.
    pub fn rows(&self) -> Vec<Row> {
        match self {
            Self::Socket(socket) => {
                let id = socket.info().socket_id.value();
                let peer = socket.peer_addr().to_string();
                let quic = quic::of_socket(socket);
                let statistics = socket.statistics();
                vec![Row { id, weight: 0, peer, statistics, quic, is_last: false }]
            }
            Self::Group(group) => {
                let report = group.report();
                let statistics = whole(&report);
                let (id, peer) = (group.id(), String::new());
                let all = Row { id, weight: 0, peer, statistics, quic: None, is_last: false };
                let row = |link: LinkReport, is_last| Row {
                    id: link.socket_id,
                    weight: link.weight,
                    peer: link.remote.to_string(),
                    quic: quic::of_link(&link),
                    statistics: link.statistics,
                    is_last,
                };
                let ended = report.last_reports.into_iter().map(|link| row(link, true));
                let links = report.links.into_iter().map(|link| row(link, false));
                std::iter::once(all).chain(ended).chain(links).collect()
            }
        }
    }
}

/// One report for each address: that of the established link, with the counts of the links before
/// it.
fn by_address(report: GroupReport) -> Vec<LinkReport> {
    let GroupReport { mut links, ended_links, .. } = report;
    for ended in ended_links {
        match links.iter_mut().find(|link| link.remote == ended.remote) {
            Some(link) => link.statistics = link.statistics.plus_totals(&ended.statistics),
            None => links.push(ended),
        }
    }
    links
}

/// The unacknowledged bytes of a group and their age: of links that carry the same, those of the
/// link that is ahead; of links that share the stream, those of all that answer.
fn waiting(
    kind: GroupKind,
    links: impl Iterator<Item = (LinkState, (u64, Duration))>,
) -> (u64, Duration) {
    let active = links.filter(|(state, _)| state.is_active());
    if kind == GroupKind::Balance {
        let answering = active.filter(|(state, _)| *state != LinkState::Unstable);
        return answering.fold((0, Duration::ZERO), |(bytes, age), (_, link)| {
            (bytes + link.0, age.max(link.1))
        });
    }
    active.map(|(_, link)| link).min_by_key(|link| link.1).unwrap_or_default()
}

/// A group's statistics, with the counts that only its links have, also links that have ended:
/// packets sent, packets lost, and the longest round trip.
fn whole(report: &GroupReport) -> Statistics {
    let add = |mut sum: Statistics, link: &Statistics| {
        sum.packets_sent += link.packets_sent;
        sum.bytes_sent += link.bytes_sent;
        sum.packets_retransmitted += link.packets_retransmitted;
        sum.bytes_retransmitted += link.bytes_retransmitted;
        sum.packets_send_lost += link.packets_send_lost;
        sum.packets_received += link.packets_received;
        sum.bytes_received += link.bytes_received;
        sum.packets_receive_lost += link.packets_receive_lost;
        sum.bytes_receive_lost += link.bytes_receive_lost;
        sum.packets_received_retransmitted += link.packets_received_retransmitted;
        // All links of a group agree on one latency.
        sum.peer_latency = sum.peer_latency.max(link.peer_latency);
        sum
    };
    report.links.iter().map(|link| &link.statistics).fold(
        add(report.stream.clone(), &report.ended),
        |sum, link| {
            let mut sum = add(sum, link);
            if link.measured_rtt() > sum.measured_rtt() {
                (sum.rtt, sum.rtt_variance) = (link.rtt, link.rtt_variance);
            }
            sum.receive_buffer_span = sum.receive_buffer_span.max(link.receive_buffer_span);
            sum.send_buffer_span = sum.send_buffer_span.max(link.send_buffer_span);
            sum
        },
    )
}

#[cfg(test)]
mod tests {
    use punctual::{Config, GroupLink, Listener};

    use super::*;

    /// Two links to one address end one after the other, as at the end of a stream.
    #[tokio::test]
    async fn sums_over_links_to_one_address_never_fall() {
        let accepts = Config::default().with_group_connect(true);
        let listener = Listener::bind(([127, 0, 0, 1], 0).into(), accepts).await.unwrap();
        let links =
            vec![GroupLink::to(listener.local_addr()), GroupLink::to(listener.local_addr())];
        let call = Group::connect(GroupKind::Balance, links, Config::default());
        let (group, _receiver) = tokio::join!(call, listener.accept_any());
        let group = group.unwrap();
        let acks = |links: &[LinkReport]| {
            links.iter().map(|it| it.statistics.acks_received).collect::<Vec<_>>()
        };
        while group.links().len() < 2 || acks(&group.links()).contains(&0) {
            group.send("a message".into()).await.unwrap();
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let end = SrtEnd::Group(group.clone());
        let sum = || end.each_statistics().iter().map(|it| it.acks_received).sum::<u64>();
        let mut before = sum();
        for link in group.links() {
            group.remove_link(link.id);
            let now = sum();
            assert!(now >= before, "{now} acknowledgements after {before}");
            before = now;
        }
    }

    #[test]
    fn a_group_waits_for_no_message_that_another_link_has_brought() {
        let waits = |bytes, ms| (bytes, Duration::from_millis(ms));
        let links = [
            (LinkState::Stable, waits(2_000, 20)),
            (LinkState::Stable, waits(900_000, 2_000)),
            (LinkState::Idle, waits(0, 0)),
            (LinkState::Unstable, waits(500_000, 3_000)),
        ];
        let waiting = |kind| waiting(kind, links.into_iter());
        assert_eq!(waiting(GroupKind::Broadcast), waits(2_000, 20));
        assert_eq!(waiting(GroupKind::Backup), waits(2_000, 20));
        assert_eq!(waiting(GroupKind::Balance), waits(902_000, 2_000));
    }

    #[test]
    fn links_that_ended_count_in_the_statistics_of_a_group() {
        let mut stream = Statistics::default();
        stream.packets_sent_unique = 474;
        let mut ended = Statistics::default();
        (ended.packets_sent, ended.packets_receive_lost) = (948, 90);
        ended.peer_latency = Duration::from_millis(120);
        ended.send_buffer_span = Duration::from_millis(1_017);
        let (links, ended_links, last_reports) = (Vec::new(), Vec::new(), Vec::new());
        let all = whole(&GroupReport { stream, links, ended, ended_links, last_reports });
        assert_eq!(all.measured_rtt(), None);
        assert_eq!((all.packets_sent_unique, all.packets_sent), (474, 948));
        assert_eq!(all.packets_receive_lost, 90);
        assert_eq!(all.peer_latency, Duration::from_millis(120));
        assert_eq!(all.send_buffer_span, Duration::ZERO, "nothing waits where no link is");
    }
}
