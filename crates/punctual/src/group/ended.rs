//! The links of a group that have ended: their totals and their addresses.

use std::collections::VecDeque;

use punctual_proto::{LinkState, Statistics};

use super::LinkReport;

/// Addresses of which it is told what their links counted, at most. Who calls from ever new ones is
/// counted with the others, and no more.
const ADDRESSES: usize = 16;

/// The totals of links that have ended, so that sums over a group never shrink.
#[derive(Debug, Default)]
pub(super) struct EndedLinks {
    together: Statistics,
    /// By their addresses, those that ended last at the end.
    links: VecDeque<LinkReport>,
}

impl EndedLinks {
    /// A link is no more; this is its last report.
    pub(super) fn add(&mut self, mut last: LinkReport) {
        self.together = last.statistics.plus_totals(&self.together);
        last.state = LinkState::Gone;
        let known = self.links.iter().position(|link| link.remote == last.remote);
        if let Some(before) = known.and_then(|index| self.links.remove(index)) {
            last.statistics = last.statistics.plus_totals(&before.statistics);
        }
        if self.links.len() == ADDRESSES {
            self.links.pop_front();
        }
        self.links.push_back(last);
    }

    /// Totals are sums over all of them. Instants are the last one's.
    pub(super) fn together(&self) -> &Statistics {
        &self.together
    }

    /// One report for each address.
    pub(super) fn links(&self) -> Vec<LinkReport> {
        self.links.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use punctual_proto::{Group, GroupKind};
    use punctual_units::Instant;

    use super::*;

    fn link(port: u16, sent: u64) -> LinkReport {
        let least = Duration::from_millis(60);
        let mut group = Group::new(GroupKind::Broadcast, least, 1, Instant::ORIGIN);
        let mut statistics = Statistics::default();
        statistics.packets_sent = sent;
        LinkReport {
            id: group.add_link(0),
            weight: 0,
            state: LinkState::Stable,
            socket_id: 1,
            local: ([127, 0, 0, 1], 1).into(),
            remote: ([127, 0, 0, 1], port).into(),
            statistics,
        }
    }

    #[test]
    fn what_ended_links_counted_is_never_less() {
        let mut ended = EndedLinks::default();
        for (port, sent) in [(7, 90), (8, 5), (7, 4)] {
            ended.add(link(port, sent));
        }
        assert_eq!(ended.together().packets_sent, 99);
        let links: Vec<_> = ended.links().iter().map(|it| it.statistics.packets_sent).collect();
        assert_eq!(links, [5, 94]);
        assert!(ended.links().iter().all(|link| link.state == LinkState::Gone));
    }

    #[test]
    fn links_from_ever_new_addresses_take_no_more_room() {
        let mut ended = EndedLinks::default();
        (1..=1_000).for_each(|port| ended.add(link(port, 1)));
        assert_eq!((ended.links().len(), ended.together().packets_sent), (ADDRESSES, 1_000));
    }
}
