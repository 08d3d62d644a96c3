//! The figures of streams in the live line.

use std::time::Duration;

use punctual::{Bitrate, Statistics};
use punctual_ends::route::StreamDirection;
use punctual_units::{DisplayDuration, percent};

use crate::line::LineText;
use crate::live::WatchedConnection;
use crate::live::links::LinkTexts;
use crate::live::unrecovered::Unrecovered;

/// The figures of a connection's statistics that are shown, from the side that the stream goes to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Figures {
    /// Packets of the stream, each once.
    pub(super) packets: u64,
    pub(super) lost: u64,
    pub(super) retransmitted: u64,
    /// Packets that the filter rebuilt, or that it added at the sender; `None` without a filter.
    pub(super) filter: Option<u64>,
    pub(super) unrecovered: Unrecovered,
    pub(super) buffer: Duration,
    /// The negotiated latency on that side.
    pub(super) latency: Duration,
}

impl Figures {
    pub(super) fn of(statistics: &Statistics, way: StreamDirection) -> Self {
        match way {
            StreamDirection::In => Self {
                packets: statistics.packets_received_unique + statistics.packets_receive_dropped,
                lost: statistics.packets_receive_lost,
                retransmitted: statistics.packets_received_retransmitted,
                filter: (statistics.packets_receive_filter_extra > 0)
                    .then_some(statistics.packets_filter_supplied),
                unrecovered: Unrecovered::of(statistics, way),
                buffer: statistics.receive_buffer_span,
                latency: statistics.receive_latency,
            },
            StreamDirection::Out => Self {
                packets: statistics.packets_sent_unique,
                lost: statistics.packets_send_lost,
                retransmitted: statistics.packets_retransmitted,
                filter: Some(statistics.packets_send_filter_extra).filter(|added| *added > 0),
                unrecovered: Unrecovered::of(statistics, way),
                buffer: statistics.send_buffer_span,
                latency: statistics.peer_latency,
            },
        }
    }
}

/// All connections of one direction together.
#[derive(Debug, Default)]
pub(super) struct Sum {
    connections: usize,
    bytes: u64,
    messages: u64,
    /// The longest round trip that was measured, and the figures.
    srt: Option<(Option<Duration>, Figures)>,
    /// The links of each group.
    links: LinkTexts,
}

impl Sum {
    /// Adds a connection, and the bytes that it has carried since it was last added to a sum,
    /// `time` ago.
    pub(super) fn add(&mut self, watched: &mut WatchedConnection, time: Duration) {
        let bytes = watched.traffic.bytes();
        self.connections += 1;
        self.bytes += bytes - watched.bytes_before;
        self.messages += watched.traffic.messages();
        watched.bytes_before = bytes;
        if let Some(socket) = &watched.socket {
            let statistics = socket.statistics();
            let figures = Figures::of(&statistics, watched.way);
            self.links.add(&socket.links(), &mut watched.links, time, watched.way);
            let (rtt, sum) = self.srt.get_or_insert_default();
            *rtt = (*rtt).max(statistics.measured_rtt());
            sum.packets += figures.packets;
            sum.lost += figures.lost;
            sum.retransmitted += figures.retransmitted;
            if let Some(packets) = figures.filter {
                *sum.filter.get_or_insert_default() += packets;
            }
            sum.unrecovered.add(figures.unrecovered);
            sum.buffer = sum.buffer.max(figures.buffer);
            sum.latency = sum.latency.max(figures.latency);
        }
    }

    /// Whether one of the connections is SRT's.
    pub(super) fn has_srt(&self) -> bool {
        self.srt.is_some()
    }

    /// The figures of the connections of this `way`, over the last `time`; `None` without any.
    pub(super) fn describe(&self, time: Duration, way: StreamDirection) -> Option<LineText> {
        if self.connections == 0 {
            return None;
        }
        let mut line = LineText::default();
        if self.connections > 1 {
            line.push(80, format!("{} connections", self.connections));
        }
        line.push(100, format!("{:#}", Bitrate::of(self.bytes, time)));
        let Some((rtt, figures)) = &self.srt else {
            line.push(30, format!("{} messages", self.messages));
            return Some(line);
        };
        if let Some(rtt) = rtt {
            line.push(70, format!("RTT {:#}", DisplayDuration(*rtt)));
        }
        line.push(60, format!("{} {}", lost_by(way), percent(figures.lost, figures.packets)));
        let again = percent(figures.retransmitted, figures.packets);
        line.push(40, format!("retransmitted {again}"));
        if let Some(packets) = figures.filter {
            let share = percent(packets, figures.packets);
            line.push(30, format!("{} {share}", filtered_by(way)));
        }
        let worth = if figures.unrecovered.is_none() { 80 } else { 90 };
        line.push(worth, figures.unrecovered.to_string());
        let (buffer, latency) = (figures.buffer.as_millis(), figures.latency.as_millis());
        line.push(50, format!("buffer {buffer} of {latency} ms"));
        if let Some(states) = self.links.states() {
            line.push(85, states);
        }
        self.links.each().iter().for_each(|link| line.push(20, link.clone()));
        Some(line)
    }
}

/// The name of losses at this end: a sender knows them by NAKs, which repeat.
pub(super) fn lost_by(way: StreamDirection) -> &'static str {
    match way {
        StreamDirection::In => "lost",
        StreamDirection::Out => "reported lost",
    }
}

/// The name of a packet filter's packets at this end.
pub(super) fn filtered_by(way: StreamDirection) -> &'static str {
    match way {
        StreamDirection::In => "rebuilt",
        StreamDirection::Out => "parity",
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use punctual::LinkState;

    use super::*;
    use punctual_ends::{EndLog, MessageTraffic};

    #[test]
    fn all_connections_make_one_line() {
        let traffic = Arc::new(MessageTraffic::default());
        (0..475).for_each(|_| traffic.count(1_316));
        let watched = |id| WatchedConnection {
            id,
            name: String::new(),
            way: StreamDirection::Out,
            socket: None,
            traffic: Arc::clone(&traffic),
            log: Arc::new(EndLog::new("here", true)),
            bytes_before: 0,
            links: crate::live::Links::default(),
            playout: crate::live::PlayoutWarning::default(),
        };
        let mut sum = Sum::default();
        assert_eq!(sum.describe(Duration::ZERO, StreamDirection::Out), None);
        sum.add(&mut watched(1), Duration::ZERO);
        let second = Duration::from_secs(1);
        assert_eq!(
            sum.describe(second, StreamDirection::Out).unwrap().to_string(),
            "5 Mb/s  475 messages"
        );
        sum.add(&mut watched(2), Duration::ZERO);
        let line = sum.describe(second, StreamDirection::Out).unwrap().to_string();
        assert_eq!(line, "2 connections  10 Mb/s  950 messages");
        sum.srt = Some((
            Some(Duration::from_micros(20_312)),
            Figures {
                packets: 1_000,
                lost: 21,
                retransmitted: 23,
                latency: Duration::from_millis(120),
                ..Figures::default()
            },
        ));
        assert_eq!(
            sum.describe(second, StreamDirection::Out).unwrap().to_string(),
            "2 connections  10 Mb/s  RTT 20.3 ms  reported lost 2.10 %  retransmitted 2.30 %  \
             unrecovered 0  buffer 0 of 120 ms"
        );
        let line = |columns| sum.describe(second, StreamDirection::Out).unwrap().fit(columns);
        assert_eq!(
            line(100),
            "2 connections  10 Mb/s  RTT 20.3 ms  reported lost 2.10 %  unrecovered 0  buffer 0 of \
             120 ms"
        );
        assert_eq!(line(70), "2 connections  10 Mb/s  RTT 20.3 ms  unrecovered 0");
        assert_eq!(line(50), "2 connections  10 Mb/s  RTT 20.3 ms  unrecovered 0");
        sum.srt = Some((
            None,
            Figures { packets: 1_000, lost: 21, filter: Some(19), ..Figures::default() },
        ));
        let line = sum.describe(second, StreamDirection::In).unwrap().to_string();
        assert!(!line.contains("RTT"), "it was not measured: {line}");
        assert!(line.contains("retransmitted 0 %  rebuilt 1.90 %  unrecovered 0"), "{line}");
        let line = sum.describe(second, StreamDirection::Out).unwrap().to_string();
        assert!(line.contains("  parity 1.90 %  "), "{line}");
    }

    #[test]
    fn in_a_narrow_terminal_states_of_links_go_before_a_count_of_zero() {
        let line = |statistics: &Statistics| {
            let sum = Sum {
                connections: 1,
                srt: Some((None, Figures::of(statistics, StreamDirection::In))),
                links: LinkTexts::of_states(&[LinkState::Stable, LinkState::Idle]),
                ..Sum::default()
            };
            sum.describe(Duration::from_secs(1), StreamDirection::In).unwrap().fit(50)
        };
        let mut statistics = Statistics::default();
        assert_eq!(line(&statistics), "0 b/s  links: 1 active, 1 on standby");
        statistics.packets_receive_dropped = 12;
        assert_eq!(line(&statistics), "0 b/s  unrecovered 12");
    }
}
