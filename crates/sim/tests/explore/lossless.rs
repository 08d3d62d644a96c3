//! The rules for groups and files beside those for every stream.

use std::time::Duration;

use punctual_proto::GroupKind;
use punctual_sim::StreamOutcome;

use crate::plan::Stream;

const MS: fn(u64) -> Duration = Duration::from_millis;

/// From when on a group must have lost nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct SafeSince {
    /// When the link was established that no fault hits.
    stood_at: Option<Duration>,
    /// The losses up to the last look.
    lost: Option<u64>,
}

/// The counts of an end of a group fit those of its application.
#[track_caller]
pub fn check_group(stream: &Stream, outcome: &StreamOutcome) {
    let StreamOutcome { sender, receiver, .. } = outcome;
    assert_eq!(sender.packets_sent_unique, outcome.messages_sent, "{stream:?}");
    assert_eq!(receiver.packets_received_unique, outcome.messages_received, "{stream:?}");
    assert!(receiver.packets_receive_dropped >= outcome.metrics.lost, "{outcome:?}");
    let known = outcome.messages_received + receiver.packets_receive_dropped;
    assert!(known <= outcome.messages_sent, "{outcome:?}");
    for link in &outcome.links {
        assert!(link.sender.packets_sent >= link.sender.packets_sent_unique, "{link:?}");
    }
}

impl SafeSince {
    /// While one link of a broadcast group delivers everything in time, nothing is lost.
    #[track_caller]
    pub fn look(&mut self, stream: &Stream, now: Duration, outcome: &StreamOutcome) {
        let Some(bonding) = &stream.bonding else { return };
        let Some(sound) = bonding.sound else { return };
        if bonding.kind != GroupKind::Broadcast || outcome.links.is_empty() {
            return;
        }
        if !outcome.links[sound].state.is_up() {
            assert!(self.stood_at.is_none(), "a sound link ended: {outcome:?}");
            return;
        }
        let stood_at = *self.stood_at.get_or_insert(now);
        let latency = outcome.receiver.receive_latency;
        if now > stood_at + latency + MS(500) {
            let lost = *self.lost.get_or_insert(outcome.metrics.lost);
            assert_eq!(outcome.metrics.lost, lost, "lost beside a sound link: {stream:?}");
        }
    }
}

/// A file may wait, but nothing is missing, ever.
#[track_caller]
pub fn check_file(stream: &Stream, outcome: &StreamOutcome) {
    let StreamOutcome { sender, receiver, .. } = outcome;
    assert_eq!((outcome.metrics.lost, outcome.messages_refused), (0, 0), "{stream:?}");
    assert_eq!(sender.packets_send_dropped, 0, "{sender:?}");
    // A packet that comes again after its key is gone is dropped as a duplicate.
    assert_eq!(receiver.packets_receive_dropped - receiver.packets_undecrypted, 0, "{receiver:?}");
    assert_eq!(outcome.closed, None, "{stream:?}");
}

/// All of a file has arrived.
#[track_caller]
pub fn conclude_file(stream: &Stream, outcome: &StreamOutcome) {
    check_file(stream, outcome);
    assert!(outcome.messages_sent > 0, "{stream:?}");
    assert_eq!(outcome.messages_received, outcome.messages_sent, "{stream:?} {outcome:?}");
    let StreamOutcome { sender, receiver, .. } = outcome;
    assert_eq!((sender.flight_size, sender.send_buffer_packets), (0, 0));
    assert_eq!(receiver.receive_buffer_packets, 0);
}

/// Whether not all of a file that was offered has arrived yet.
pub fn file_lags(outcome: &StreamOutcome) -> bool {
    outcome.behind > Duration::ZERO || outcome.messages_received < outcome.messages_sent
}

/// Whether a link of a group is not established, or packets wait in it for long.
pub fn group_lags(outcome: &StreamOutcome) -> bool {
    let links = outcome.links.iter();
    let mut stuck = links.filter(|link| {
        !link.state.is_up() || link.sender.send_buffer_span >= link.sender.rtt + MS(40)
    });
    let lost: Vec<u64> = outcome.series.iter().map(|sample| sample.metrics.lost).collect();
    let loses = lost.last_chunk::<4>().is_none_or(|[first, .., last]| first != last);
    stuck.next().is_some() || loses
}
