//! The links of groups, each by its address.

use std::collections::HashMap;
use std::time::Duration;

use punctual::{Bitrate, LinkReport, LinkState};
use punctual_ends::route::StreamDirection;
use punctual_units::{DisplayDuration, percent};

use super::figures::{Figures, lost_by};

/// The bytes that the links of a group had carried when they were last shown.
#[derive(Debug, Default)]
pub(super) struct Links {
    bytes_before: HashMap<u32, u64>,
}

/// The texts of the links of all groups.
#[derive(Debug, Default)]
pub(super) struct LinkTexts {
    each: Vec<String>,
    states: Vec<LinkState>,
}

impl LinkTexts {
    /// Adds the links of a group, over the last `time`.
    pub(super) fn add(
        &mut self,
        links: &[LinkReport],
        before: &mut Links,
        time: Duration,
        way: StreamDirection,
    ) {
        self.each.extend(before.describe(links, time, way));
        self.states.extend(links.iter().map(|link| link.state));
    }

    #[cfg(test)]
    pub(super) fn of_states(states: &[LinkState]) -> Self {
        Self { each: Vec::new(), states: states.to_vec() }
    }

    /// A text for each link.
    pub(super) fn each(&self) -> &[String] {
        &self.each
    }

    /// The number of links in each state; `None` without any.
    pub(super) fn states(&self) -> Option<String> {
        let counted = STATES.iter().filter_map(|state| {
            let count = self.states.iter().filter(|other| *other == state).count();
            (count > 0).then(|| format!("{count} {}", name(*state)))
        });
        let counted: Vec<String> = counted.collect();
        (!counted.is_empty()).then(|| format!("links: {}", counted.join(", ")))
    }
}

/// The states in the order in which they are shown.
const STATES: [LinkState; 7] = [
    LinkState::Stable,
    LinkState::Activating,
    LinkState::Wary,
    LinkState::Unstable,
    LinkState::Idle,
    LinkState::Joining,
    LinkState::Gone,
];

impl Links {
    /// A text for each link, over the last `time`.
    pub(super) fn describe(
        &mut self,
        links: &[LinkReport],
        time: Duration,
        way: StreamDirection,
    ) -> Vec<String> {
        let all = links.iter().map(|link| {
            let bytes = carried(link, way);
            let before = self.bytes_before.get(&link.socket_id).copied().unwrap_or(0);
            let rate = Bitrate::of(bytes.saturating_sub(before), time);
            let (remote, state) = (link.remote, name(link.state));
            (link.socket_id, bytes, format!("{remote} {state}: {}", describe(link, rate, way)))
        });
        let all: Vec<_> = all.collect();
        // Links that ended are forgotten.
        self.bytes_before = all.iter().map(|(id, bytes, _)| (*id, *bytes)).collect();
        all.into_iter().map(|(.., text)| text).collect()
    }
}

/// The summary of a link over the `time` of its group, without a state, which no link has at the
/// end.
pub(super) fn summary(link: &LinkReport, time: Duration, way: StreamDirection) -> String {
    let rate = Bitrate::of(carried(link, way), time);
    match link.state {
        LinkState::Gone => format!("{}: {}", link.remote, describe(link, rate, way)),
        other => format!("{} {}: {}", link.remote, name(other), describe(link, rate, way)),
    }
}

fn carried(link: &LinkReport, way: StreamDirection) -> u64 {
    match way {
        StreamDirection::In => link.statistics.bytes_received,
        StreamDirection::Out => link.statistics.bytes_sent,
    }
}

fn describe(link: &LinkReport, rate: Bitrate, way: StreamDirection) -> String {
    let figures = Figures::of(&link.statistics, way);
    let rtt = link.statistics.measured_rtt();
    let rtt = rtt.map_or_else(String::new, |rtt| format!("RTT {:#}, ", DisplayDuration(rtt)));
    let lost = percent(figures.lost, figures.packets);
    format!("{rate:#}, {rtt}{} {lost}", lost_by(way))
}

/// The state in words that need no explanation.
fn name(state: LinkState) -> &'static str {
    match state {
        LinkState::Joining => "connecting",
        LinkState::Idle => "on standby",
        LinkState::Activating => "taking over",
        LinkState::Stable => "active",
        LinkState::Unstable => "without answers",
        LinkState::Wary => "recovering",
        LinkState::Gone => "lost",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_states_of_all_links_are_told_in_a_few_words() {
        assert_eq!(LinkTexts::default().states(), None);
        let states = [LinkState::Idle, LinkState::Stable, LinkState::Idle, LinkState::Gone];
        let told = LinkTexts::of_states(&states).states();
        assert_eq!(told.as_deref(), Some("links: 1 active, 2 on standby, 1 lost"));
    }
}
