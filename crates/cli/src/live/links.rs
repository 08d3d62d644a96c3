//! The links of groups, each by its address.

use std::collections::HashMap;
use std::time::Duration;

use punctual::{Bitrate, LinkReport, LinkState};
use punctual_units::{DisplayDuration, percent};

use super::figures::{Figures, lost_by};
use crate::live::Way;

/// The bytes that the links of a group had carried when they were last shown.
#[derive(Debug, Default)]
pub(super) struct Links {
    bytes_before: HashMap<u32, u64>,
}

impl Links {
    /// A text for each link, over the last `time`.
    pub(super) fn describe(
        &mut self,
        links: &[LinkReport],
        time: Duration,
        way: Way,
    ) -> Vec<String> {
        let all = links.iter().map(|link| {
            let bytes = carried(link, way);
            let before = self.bytes_before.get(&link.socket_id).copied().unwrap_or(0);
            let rate = Bitrate::of(bytes.saturating_sub(before), time);
            let (name, state) = (link.remote, state(link.state));
            (link.socket_id, bytes, format!("{name} {state}: {}", describe(link, rate, way)))
        });
        let all: Vec<_> = all.collect();
        // Links that ended are forgotten.
        self.bytes_before = all.iter().map(|(id, bytes, _)| (*id, *bytes)).collect();
        all.into_iter().map(|(.., text)| text).collect()
    }
}

/// The summary of a link over the `time` of its group, without a state, which no link has at the
/// end.
pub(super) fn summary(link: &LinkReport, time: Duration, way: Way) -> String {
    let rate = Bitrate::of(carried(link, way), time);
    match link.state {
        LinkState::Gone => format!("{}: {}", link.remote, describe(link, rate, way)),
        other => format!("{} {}: {}", link.remote, state(other), describe(link, rate, way)),
    }
}

fn carried(link: &LinkReport, way: Way) -> u64 {
    match way {
        Way::In => link.statistics.bytes_received,
        Way::Out => link.statistics.bytes_sent,
    }
}

fn describe(link: &LinkReport, rate: Bitrate, way: Way) -> String {
    let figures = Figures::of(&link.statistics, way);
    let rtt = DisplayDuration(link.statistics.rtt);
    let lost = percent(figures.lost, figures.packets);
    format!("{rate:#}, RTT {rtt:#}, {} {lost}", lost_by(way))
}

fn state(state: LinkState) -> &'static str {
    match state {
        LinkState::Joining => "joining",
        LinkState::Idle => "idle",
        LinkState::Activating => "activating",
        LinkState::Stable => "stable",
        LinkState::Unstable => "unstable",
        LinkState::Wary => "wary",
        LinkState::Gone => "gone",
    }
}
