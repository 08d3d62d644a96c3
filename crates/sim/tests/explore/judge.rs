//! The reference model: rules for any world at any time, and for a healed one.

use std::time::Duration;

use punctual_metrics::MeterReport;
use punctual_netem::LinkStatistics;
use punctual_proto::Statistics;
use punctual_sim::{LinkOutcome, StreamOutcome, StreamSample};

use crate::extras::Keys;
use crate::lossless::{self, SafeSince};
use crate::plan::{Plan, Stream};
use crate::run::Explored;

const MS: fn(u64) -> Duration = Duration::from_millis;

/// Judges a world at each look, by its plan and by the looks before.
pub struct Judge<'a> {
    plan: &'a Plan,
    before: Vec<Option<StreamOutcome>>,
    safe: Vec<SafeSince>,
}

impl<'a> Judge<'a> {
    pub fn new(plan: &'a Plan) -> Self {
        let count = plan.streams.len();
        Self { plan, before: vec![None; count], safe: vec![SafeSince::default(); count] }
    }

    /// The rules at any time.
    #[track_caller]
    pub fn look(&mut self, explored: &Explored) {
        for (&link, number) in explored.links.iter().zip(0..) {
            let statistics = explored.world.link_statistics(link);
            check_link(number, statistics, explored.world.in_flight(link));
        }
        let elapsed = explored.elapsed();
        let streams = explored.streams.iter().zip(&self.plan.streams);
        for ((&id, stream), (before, safe)) in
            streams.zip(self.before.iter_mut().zip(&mut self.safe))
        {
            let now = explored.world.outcome(id);
            check_integrity(stream, &now);
            if stream.bonding.is_some() {
                lossless::check_group(stream, &now);
                safe.look(stream, elapsed, &now);
            } else if stream.is_file() {
                lossless::check_file(stream, &now);
            } else {
                check_counts(self.plan, stream, &now);
            }
            if let Some(before) = before {
                check_progress(before, &now);
            }
            *before = Some(now);
        }
    }

    /// Whether every stream is established at both ends, on each link of a group, or never will be.
    pub fn have_connected(&self, explored: &Explored) -> bool {
        let mut streams = explored.streams.iter().zip(&self.plan.streams);
        streams.all(|(&id, stream)| {
            let outcome = explored.world.outcome(id);
            match stream.keys {
                Keys::Refused => outcome.closed.is_some(),
                Keys::Unreadable => outcome.receiver.packets_undecrypted > 0,
                Keys::None | Keys::Same => {
                    stream.srt.is_none()
                        || outcome.messages_received > 0 && outcome.links.iter().all(is_established)
                }
            }
        })
    }

    /// The first stream that is not where it should be: with something that waits at the sender
    /// for longer than an acknowledgement takes, a full send buffer, or a late delivery.
    pub fn lagging(&self, explored: &Explored) -> Option<StreamOutcome> {
        let outcomes = explored.streams.iter().map(|&id| explored.world.outcome(id));
        let is_live = |it: &Stream| it.srt.is_some() && it.keys != Keys::Refused;
        let mut streams = outcomes.zip(&self.plan.streams).filter(|(_, it)| is_live(it));
        let lagging = streams.find(|(outcome, stream)| {
            let late = outcome.series.last().map_or(Duration::ZERO, |sample| sample.late_max);
            if outcome.connected_at.is_none() || stream.is_file() {
                return outcome.connected_at.is_none() || lossless::file_lags(outcome);
            }
            (stream.bonding.is_some() && lossless::group_lags(outcome))
                || outcome.sender.send_buffer_span >= outcome.sender.rtt + MS(40)
                || refuses(&outcome.series)
                || is_timed(stream) && late >= self.lateness()
        });
        lagging.map(|(outcome, _)| outcome)
    }

    /// The latency of the slowest message now: the configured latency, and the time of the
    /// handshake in a queue.
    pub fn longest_latency(&self, explored: &Explored) -> Duration {
        let outcomes = explored.streams.iter().map(|&id| explored.world.outcome(id));
        let longest = outcomes.filter_map(|outcome| outcome.metrics.latency_us_avg).max();
        Duration::from_micros(longest.unwrap_or_default().unsigned_abs())
    }

    /// A healthy message is less late. A correction of the drift may move due times by a
    /// millisecond or two at once, and be wrong by half of the change of a path on one side only.
    pub fn lateness(&self) -> Duration {
        let hosts = self.plan.hosts.iter().map(|host| host.lateness);
        let hosts = hosts.map(|late| late.least + late.most).max().unwrap_or_default();
        MS(2) + hosts
    }

    /// The rules at the end, when the streams were healthy between two moments and have been
    /// stopped since.
    #[track_caller]
    pub fn conclude(&self, explored: &Explored, from: Duration, until: Duration) {
        for (&id, stream) in explored.streams.iter().zip(&self.plan.streams) {
            let outcome = explored.world.outcome(id);
            if !stream.is_readable() {
                check_unreadable(stream, &outcome);
                continue;
            }
            if stream.is_file() {
                lossless::conclude_file(stream, &outcome);
                continue;
            }
            assert_eq!(outcome.closed, None);
            assert!(outcome.messages_sent > 0, "{stream:?}");
            self.check_health(stream, &outcome, from, until);
            if stream.srt.is_some() {
                check_accounts(&outcome);
            }
        }
    }

    /// All that was sent while the stream was well was delivered, when it was due.
    #[track_caller]
    fn check_health(
        &self,
        stream: &Stream,
        outcome: &StreamOutcome,
        from: Duration,
        until: Duration,
    ) {
        let average = outcome.metrics.latency_us_avg.unwrap_or_default().unsigned_abs();
        let promised = Duration::from_micros(average) + MS(300);
        let is_later = |sample: &&StreamSample| stream.start + sample.at >= from + promised;
        let samples: Vec<_> = outcome.series.iter().filter(is_later).collect();
        let [first, .., last] = samples[..] else { panic!("no samples from {from:?} on") };
        assert_eq!(first.metrics.lost, last.metrics.lost, "lost on a healthy link: {stream:?}");
        let damaged = [first, last].map(|sample| sample.metrics.checksum_errors);
        assert_eq!(damaged[0], damaged[1], "damaged on a healthy link: {stream:?}");
        assert_eq!(first.messages_refused, last.messages_refused, "refused: {stream:?}");
        let read = last.metrics.received - first.metrics.received;
        assert!(read > 0, "nothing delivered from {from:?} to {until:?}: {stream:?}");
        // Messages under way at the first sample are counted in addition.
        let unique = |report: &MeterReport| report.received - report.duplicates;
        assert!(
            unique(&outcome.metrics) - unique(&first.metrics)
                >= outcome.messages_sent - first.messages_sent,
            "not delivered to the last one: {stream:?}"
        );
        if is_timed(stream) && !has_delayed_time_base(&outcome.series) {
            let late = samples.iter().map(|sample| sample.late_max).max().unwrap_or_default();
            assert!(late < self.lateness(), "{late:?} late on a healthy link: {stream:?}");
        }
    }
}

/// Whether the sender has just refused messages. If the acknowledgements have stalled for seconds,
/// its estimate of the round trip is long, and so is its retransmission timeout.
fn refuses(series: &[StreamSample]) -> bool {
    let [.., before, last] = series else { return false };
    before.messages_refused != last.messages_refused
}

/// Whether a link is established at both ends: before that there is no round-trip time.
fn is_established(link: &LinkOutcome) -> bool {
    [&link.sender, &link.receiver].iter().all(|end| !end.rtt.is_zero())
}

/// Whether messages are due at a time that a healthy link keeps.
fn is_timed(stream: &Stream) -> bool {
    stream.srt.as_ref().filter(|_| !stream.is_file()).is_some_and(|(sender, receiver, _)| {
        let latency = receiver.receive_latency().max(sender.peer_latency());
        receiver.tsbpd() && latency >= MS(100)
    })
}

/// Whether the handshake that set the receiver's time base had waited for about two seconds, the
/// limit of what the receiver believes: of the packets, some are within it and are delivered two
/// seconds late, and some are beyond it and are delivered a latency after their arrival.
fn has_delayed_time_base(series: &[StreamSample]) -> bool {
    series.iter().any(|sample| sample.receiver.transit_micros < -1_900_000)
}

/// Packets neither vanish nor come from nowhere.
#[track_caller]
fn check_link(number: usize, statistics: &LinkStatistics, in_flight: usize) {
    assert_eq!(
        statistics.sent + statistics.duplicated,
        statistics.delivered + statistics.dropped() + in_flight as u64,
        "link {number}: {statistics:?}"
    );
}

/// Nothing is delivered damaged, and over SRT not twice, not out of order and not early.
#[track_caller]
fn check_integrity(stream: &Stream, outcome: &StreamOutcome) {
    let integrity = &outcome.integrity;
    if !stream.may_be_garbled() {
        assert_eq!(integrity.damaged, 0, "{stream:?}");
    }
    if stream.srt.is_some() {
        assert_eq!((integrity.doubled, integrity.disordered), (0, 0), "{stream:?}");
        assert_eq!(integrity.early, 0, "{stream:?}");
        assert_eq!(integrity.late > 0, integrity.late_max > Duration::ZERO);
    }
    assert!(outcome.messages_received <= outcome.messages_sent + outcome.metrics.duplicates);
}

/// The statistics of the two ends fit each other and the applications' counts.
#[track_caller]
fn check_counts(plan: &Plan, stream: &Stream, outcome: &StreamOutcome) {
    if stream.srt.is_none() {
        return;
    }
    let StreamOutcome { sender, receiver, .. } = outcome;
    assert_eq!(
        sender.packets_sent,
        sender.packets_sent_unique
            + sender.packets_retransmitted
            + sender.packets_send_filter_extra
    );
    assert!(sender.packets_sent_unique <= outcome.messages_sent);
    let waiting = u64::from(sender.send_buffer_packets);
    assert!(
        sender.packets_sent_unique + sender.packets_send_dropped + waiting >= outcome.messages_sent,
        "sent messages that were neither sent nor dropped nor wait: {sender:?}"
    );
    assert!(u64::from(sender.flight_size) <= sender.packets_sent_unique);
    let stored = receiver.packets_received_unique;
    if stream.is_readable() {
        assert!(stored + dropped(receiver) <= outcome.messages_sent);
    }
    assert_eq!(
        stored,
        outcome.messages_received + u64::from(receiver.receive_buffer_packets),
        "stored packets are read or wait"
    );
    let came = receiver.packets_received + receiver.packets_filter_supplied;
    assert!(came >= stored + receiver.packets_belated, "{receiver:?}");
    if !stream.has_filter() {
        let filters = [sender.packets_send_filter_extra, receiver.packets_filter_supplied];
        assert_eq!(filters, [0, 0]);
    }
    if stream.keys == Keys::None {
        assert_eq!(receiver.packets_undecrypted, 0, "{stream:?}");
    }
    assert!(receiver.packets_duplicate <= receiver.packets_belated);
    if !plan.duplicates() {
        assert!(receiver.packets_received <= sender.packets_sent);
        assert!(sender.naks_received <= receiver.naks_sent);
    }
}

/// If the passphrases differ nothing is read: there is no connection, or its packets are dropped.
#[track_caller]
fn check_unreadable(stream: &Stream, outcome: &StreamOutcome) {
    assert_eq!(outcome.messages_received, 0, "{stream:?}");
    if stream.keys == Keys::Refused {
        assert_eq!(outcome.connected_at, None, "{stream:?}");
        assert!(outcome.closed.is_some(), "{stream:?}");
    } else {
        assert_eq!(outcome.closed, None, "{stream:?}");
        assert!(outcome.receiver.packets_undecrypted > 0, "{stream:?}");
    }
}

/// Messages that were given up. A packet that cannot be decrypted counts among the dropped each
/// time that it comes: late copies of packets whose key is gone, too.
fn dropped(receiver: &Statistics) -> u64 {
    receiver.packets_receive_dropped - receiver.packets_undecrypted
}

/// Totals never fall.
#[track_caller]
fn check_progress(before: &StreamOutcome, now: &StreamOutcome) {
    let totals = |statistics: &Statistics| {
        [
            statistics.packets_sent,
            statistics.packets_retransmitted,
            statistics.packets_send_dropped,
            statistics.packets_received,
            statistics.packets_received_unique,
            statistics.packets_receive_lost,
            statistics.packets_receive_dropped,
            statistics.packets_belated,
            statistics.acks_sent,
            statistics.naks_sent,
        ]
    };
    let ends = [(&before.sender, &now.sender), (&before.receiver, &now.receiver)];
    for (before, now) in ends {
        let fell = totals(before).into_iter().zip(totals(now)).any(|(before, now)| now < before);
        assert!(!fell, "{before:?} {now:?}");
    }
    assert!(now.messages_received >= before.messages_received);
}

/// At the end every message was delivered or is counted as dropped.
#[track_caller]
fn check_accounts(outcome: &StreamOutcome) {
    let StreamOutcome { sender, receiver, .. } = outcome;
    assert_eq!(
        outcome.messages_received + dropped(receiver),
        outcome.messages_sent,
        "delivered and dropped: {outcome:?}"
    );
    assert_eq!((sender.flight_size, sender.send_buffer_packets), (0, 0));
    assert_eq!((receiver.receive_buffer_packets, receiver.receive_buffer_bytes), (0, 0));
    if sender.packets_send_dropped == 0 {
        assert_eq!(sender.packets_sent_unique, outcome.messages_sent);
    }
}
