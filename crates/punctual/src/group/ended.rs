//! The totals of the links of a group that have ended.

use std::collections::VecDeque;

use punctual_proto::{LinkState, Statistics};

use super::LinkReport;

/// The largest number of addresses with totals of their own. Links from further addresses, such as
/// those of a caller that changes its address with every call, are counted only in the sums.
const ADDRESSES: usize = 16;

/// The totals of links that have ended, so that sums over a group never shrink.
#[derive(Debug, Default)]
pub(super) struct EndedLinks {
    together: Statistics,
    /// One report per address of the peer; the one that ended last is at the end.
    links: VecDeque<LinkReport>,
    /// The last reports of single links, the newest at the end.
    last: VecDeque<LinkReport>,
}

impl EndedLinks {
    /// Adds the last report of a link that has ended.
    pub(super) fn add(&mut self, mut last: LinkReport) {
        self.together = last.statistics.plus_totals(&self.together);
        last.state = LinkState::Gone;
        if self.last.len() == ADDRESSES {
            self.last.pop_front();
        }
        self.last.push_back(last.clone());
        let known = self.links.iter().position(|link| link.remote == last.remote);
        if let Some(before) = known.and_then(|index| self.links.remove(index)) {
            last.statistics = last.statistics.plus_totals(&before.statistics);
        }
        if self.links.len() == ADDRESSES {
            self.links.pop_front();
        }
        self.links.push_back(last);
    }

    /// The statistics of all ended links: totals are sums, instants those of the last one.
    pub(super) fn together(&self) -> &Statistics {
        &self.together
    }

    /// The last reports of the [`ADDRESSES`] links that ended last.
    pub(super) fn last_reports(&self) -> Vec<LinkReport> {
        self.last.iter().cloned().collect()
    }

    /// The reports of the last [`ADDRESSES`] addresses, one for each.
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
            #[cfg(feature = "quic")]
            quic: None,
        }
    }

    #[test]
    fn totals_of_ended_links_never_shrink() {
        let mut ended = EndedLinks::default();
        for (port, sent) in [(7, 90), (8, 5), (7, 4)] {
            ended.add(link(port, sent));
        }
        assert_eq!(ended.together().packets_sent, 99);
        let links: Vec<_> = ended.links().iter().map(|it| it.statistics.packets_sent).collect();
        assert_eq!(links, [5, 94]);
        let single: Vec<_> =
            ended.last_reports().iter().map(|it| it.statistics.packets_sent).collect();
        assert_eq!(single, [90, 5, 4]);
        assert!(ended.links().iter().all(|link| link.state == LinkState::Gone));
    }

    #[test]
    fn links_from_many_addresses_take_bounded_memory() {
        let mut ended = EndedLinks::default();
        (1..=1_000).for_each(|port| ended.add(link(port, 1)));
        assert_eq!((ended.links().len(), ended.together().packets_sent), (ADDRESSES, 1_000));
        assert_eq!(ended.last_reports().len(), ADDRESSES);
    }
}
