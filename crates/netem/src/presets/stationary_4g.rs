//! The stationary 4G link of "Examining SRT Streaming over 4G Networks".

use std::time::Duration;

use punctual_units::Bitrate;

use crate::config::{Jitter, LinkConfig, QueueLimit};
use crate::loss::Loss;
use crate::presets::course::{Course, Pauses, State};
use crate::profile::{LinkProfile, PathProfile};
use crate::timeline::{Action, Event, Timeline};

/// An event in which the network has no room for the user for a while, and then delivers the
/// packets that it held.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CongestionEvent {
    /// When it begins.
    pub at: Duration,
    /// The time for which nothing leaves.
    pub stall: Duration,
    /// The time at its beginning in which everything is lost. At least these packets cannot arrive
    /// in time.
    pub lost: Duration,
    /// The rate at which the held packets come.
    pub drain: Bitrate,
}

impl Default for CongestionEvent {
    /// The event of the article's stream at 8 Mb/s and 750 ms of latency, at 20 s.
    ///
    /// Three figures are given: late packets came with 820 ms more delay than the latency, the RTT
    /// rose to 1200 ms, and the held packets came at 12 Mb/s. They fit one another: the first held
    /// packet comes 750 + 820 = 1570 ms late, so the hold lasts for that time; the 8.3 Mb/s that
    /// the stream takes with its headers then make a backlog that takes 8.3 / 12 of that, 1080 ms,
    /// which is the RTT's rise over 150 ms. Since packets were lost and not only late, there is
    /// also a loss, of 100 ms before the first held packet.
    fn default() -> Self {
        Self {
            at: Duration::from_secs(20),
            stall: Duration::from_millis(1_670),
            lost: Duration::from_millis(100),
            drain: Bitrate::from_mbps(12),
        }
    }
}

/// The stationary 4G link of the article, with these events; `4g-stationary` has the
/// [default](CongestionEvent::default) one.
///
/// The sender is at the modem, and its way is `up`. The article's figures, and the parameters that
/// follow:
///
/// - **RTT 150 ms on average, end-to-end delay within a region of about 150 ms**: the delay up is
///   84 ms on average and wanders by 25 ms (standard deviation) over some seconds; down it is
///   50 ms.
/// - **20 Mb/s promised, about 10 usable; 5 clean, 7.5 and 10 with drops and more RTT now and then,
///   12.5 congested; 8 steady, but for an event; a burst at 12 Mb/s when the network recovers**:
///   the rate up is 12 Mb/s on average, with a standard deviation of 2 Mb/s and a memory of 0.7 s,
///   and never less than 6 or more than 20. So 12.5 Mb/s with headers is more than there is, 10 is
///   too much for seconds at a time, 8 for moments that 1200 ms of latency bridge, 5 never.
/// - **1 to 2 packets lost a second, now and then 10 and more**, at 5 Mb/s, that is 475 packets a
///   second: 0.25 % are lost by chance; where the rate falls below 8.5 Mb/s loss rises, to 12 % at
///   6 Mb/s.
/// - **Spikes of an extra 400 ms of delay, and of the RTT to 300 ms**: each 12 to 30 s nothing
///   leaves for 150 to 400 ms. A rate of 5 Mb/s leaves a backlog in 400 ms that 12 Mb/s carry away
///   in 170 ms; the RTT of small packets behind it rises by that.
/// - **Jitter (RFC 3550) of bare UDP about 4 ms, sometimes 8**: jitter of 13 ms, order kept.
/// - **A queue of 1.8 MB**, 1.2 s at 12 Mb/s, because the event lost little of what it held.
pub fn stationary_4g(seed: u64, events: &[CongestionEvent]) -> PathProfile {
    let (trace, pauses) = UPLINK.make(seed);
    let is_apart = |pause: &Event| events.iter().all(|event| pause.at.abs_diff(event.at) > APART);
    let mut timeline: Timeline =
        pauses.events().iter().filter(|it| is_apart(it)).cloned().collect();
    for event in events {
        timeline.push(Event::once(event.at, Action::Outage(event.lost)));
        let stall = Action::Stall { duration: event.stall, drain: Some(event.drain) };
        timeline.push(Event::once(event.at, stall));
    }
    let up = LinkConfig {
        queue: QueueLimit::Bytes(QUEUE),
        jitter: Jitter::Normal { std_dev: Duration::from_millis(13) },
        ..LinkConfig::default()
    };
    let up = LinkProfile::from(up).with_timeline(timeline).with_trace(Some(trace));
    let down = LinkConfig {
        rate: Some(Bitrate::from_mbps(20)),
        queue: QueueLimit::Time(Duration::from_millis(300)),
        delay: Duration::from_millis(50),
        jitter: Jitter::Normal { std_dev: Duration::from_millis(3) },
        loss: Loss::Random(0.001),
        ..LinkConfig::default()
    };
    PathProfile { up, down: down.into() }
}

/// [`stationary_4g`] with its event.
pub(super) fn path(seed: u64) -> PathProfile {
    stationary_4g(seed, &[CongestionEvent::default()])
}

const UPLINK: Course = Course {
    number: 0,
    states: &[State {
        rate: 12_000,
        rate_deviation: 2_000,
        delay: (84_000, 25_000),
        loss: 2_500,
        weak: 8_500,
        lasts: 1,
    }],
    persistence: 890,
    rate_range: (6_000, 20_000),
    delay_range: (35_000, 160_000),
    loss_at_least_rate: 120_000,
    pauses: Pauses { gap: (12_000, 30_000), length: (150, 400), lost: 0 },
};

const QUEUE: usize = 1_800_000;

/// The pauses of the course keep this distance from an event, so that they do not change it.
const APART: Duration = Duration::from_secs(5);
