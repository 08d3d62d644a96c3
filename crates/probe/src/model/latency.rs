//! The latency that a target needs: the model inverted.

use std::time::Duration;

use punctual_proto::RetransmitAlgorithm;
use punctual_units::{Bitrate, DisplayDuration};
use thiserror::Error;

use super::gilbert;
use super::periodic::Rounds;
use super::timed::TimedRounds;

/// The figures of a path that people know, from which the rounds of each algorithm follow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathFigures {
    pub(super) rtt: Duration,
    pub(super) jitter: Duration,
    pub(super) packet: Duration,
    pub(super) loss: f64,
    pub(super) return_loss: f64,
    pub(super) burst: f64,
}

/// A figure of a path that is out of its range.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("{name} is {value}; it must be {expected}")]
pub struct PathFigureError {
    name: &'static str,
    value: String,
    expected: &'static str,
}

/// The needs of one algorithm to leave no more than the target missing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Need {
    /// The latency, whole milliseconds.
    pub latency: Duration,
    /// NAKs whose retransmission can be in time.
    pub rounds: u32,
    /// Copies of the last retransmission that can be in time.
    pub copies: u32,
    /// Retransmissions for each original.
    pub overhead: f64,
    /// Share of packets that stays missing.
    pub missing: f64,
    /// The `losstarget` that makes the sender send this number of copies; 0 if there are none.
    pub sender_target: f64,
}

/// The needs of each algorithm; `None` and an empty list if no latency is enough.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Needs {
    /// libsrt's algorithm that retransmits on every NAK.
    pub aggressive: Option<Need>,
    /// libsrt's algorithm that retransmits a packet once in a round trip.
    pub efficient: Option<Need>,
    /// The deadline-aware one between two ends that know it: the least latency first, then
    /// latencies that need fewer copies, down to none.
    pub deadline: Vec<Need>,
}

impl PathFigures {
    /// A path with this round-trip time (1 ms to 10 s), its mean deviation (up to the round-trip
    /// time), and a stream of this rate (10 kb/s to 10 Gb/s) in packets of `payload` bytes. It
    /// loses nothing.
    pub fn new(
        rtt: Duration,
        jitter: Duration,
        rate: Bitrate,
        payload: usize,
    ) -> Result<Self, PathFigureError> {
        if !(LEAST_RTT..=LONGEST_RTT).contains(&rtt) {
            return Err(PathFigureError::time("the round-trip time", rtt, "1 ms to 10 s"));
        }
        if jitter > rtt {
            return Err(PathFigureError::time(
                "the jitter",
                jitter,
                "no more than the round-trip time",
            ));
        }
        if !(LEAST_RATE..=HIGHEST_RATE).contains(&rate) {
            let value = rate.to_string();
            let expected = "10 kb/s to 10 Gb/s";
            return Err(PathFigureError { name: "the rate of the stream", value, expected });
        }
        let packet = rate.time_for(payload.max(1) as u64);
        Ok(Self { rtt, jitter, packet, loss: 0.0, return_loss: 0.0, burst: 1.0 })
    }

    /// Loses these shares of packets on the way there and back (0 to 0.5), in bursts of this mean
    /// length (1 to 1000 packets; 1 for independent losses).
    pub fn with_loss(self, there: f64, back: f64, burst: f64) -> Result<Self, PathFigureError> {
        for (name, share) in [("the loss", there), ("the loss on the way back", back)] {
            if !(0.0..=MOST_LOSS).contains(&share) {
                let value = format!("{} %", share * 100.0);
                return Err(PathFigureError { name, value, expected: "0 to 50 %" });
            }
        }
        if !(1.0..=LONGEST_BURST).contains(&burst) {
            let value = format!("{burst}");
            let expected = "1 to 1000 packets, 1 for independent losses";
            return Err(PathFigureError { name: "the mean length of a burst", value, expected });
        }
        Ok(Self { loss: there, return_loss: back, burst, ..self })
    }

    /// The rounds of one of libsrt's algorithms.
    pub fn rounds(&self, algorithm: &RetransmitAlgorithm) -> Rounds {
        Rounds {
            rtt: self.rtt,
            rtt_variance: self.jitter,
            loss: self.loss,
            nak_loss: self.return_loss,
            nak_loss_again: self.again(self.return_loss),
            detection: self.packet,
            holds_back: true,
        }
        .with_algorithm(algorithm)
    }

    /// The rounds of the deadline-aware algorithm.
    pub fn timed_rounds(&self) -> TimedRounds {
        TimedRounds {
            rtt: self.rtt,
            least_rtt: self.rtt.saturating_sub(self.jitter),
            rtt_variance: self.jitter,
            packet: self.packet,
            loss: self.loss,
            loss_again: self.again(self.loss),
            nak_loss: self.return_loss,
            nak_loss_again: self.again(self.return_loss),
            detection: Duration::ZERO,
        }
    }

    /// The share lost of packets right behind a lost one.
    fn again(&self, loss: f64) -> f64 {
        gilbert::again(loss, self.burst)
    }
}

impl Need {
    /// The keys of a URI that set up the sender for this, where it is a need of the deadline-aware
    /// algorithm.
    pub fn deadline_keys(&self) -> Vec<(&'static str, String)> {
        let mut keys = vec![
            ("latency", self.latency.as_millis().to_string()),
            ("retransmitalgo", "deadline".to_owned()),
        ];
        if self.sender_target > 0.0 {
            keys.push(("losstarget", as_typed(self.sender_target)));
        }
        keys
    }
}

/// A share as it is written in a URI: in percent, without needless digits.
fn as_typed(share: f64) -> String {
    let percent: f64 = format!("{:.5e}", share * 100.0).parse().unwrap_or(0.0);
    format!("{percent}%")
}

impl PathFigureError {
    fn time(name: &'static str, time: Duration, expected: &'static str) -> Self {
        Self { name, value: DisplayDuration(time).to_string(), expected }
    }
}

/// The least number of retransmissions for each original with which every packet arrives: no
/// algorithm that recovers everything sends less.
pub fn bound(loss: f64) -> f64 {
    loss / (1.0 - loss).max(f64::MIN_POSITIVE)
}

/// The latency that each algorithm needs on this path to leave no more than `target` missing, a
/// share of all packets, up to `longest`. The deadline-aware one sends at most `ceiling`, in
/// retransmissions for each original; `None` for its own limit, which is one of copies.
pub fn needs(path: &PathFigures, target: f64, ceiling: Option<f64>, longest: Duration) -> Needs {
    let mut search = Search::new(path, target, ceiling);
    let mut latency = Duration::ZERO;
    while latency <= longest.min(LONGEST_LATENCY) && !search.is_done() {
        search.look(latency);
        latency += GRAIN;
    }
    search.found
}

/// Looks at one latency after the other, the lowest first.
struct Search<'a> {
    path: &'a PathFigures,
    target: f64,
    ceiling: Option<f64>,
    periodic: [Periodic; 2],
    timed: (TimedRounds, [Spread; COPIES as usize]),
    found: Needs,
}

/// One of libsrt's algorithms.
struct Periodic {
    rounds: Rounds,
    spread: Spread,
    /// The number of rounds, and the share that is missing after them.
    missing: (u32, f64),
}

/// The mean of a probability over the losses of bursts, of which the first are found last.
#[derive(Clone, Copy, Debug)]
struct Spread {
    /// The probability that a loss that is detected by now was detected a millisecond earlier, too.
    longer: f64,
    mean: f64,
}

impl<'a> Search<'a> {
    fn new(path: &'a PathFigures, target: f64, ceiling: Option<f64>) -> Self {
        let packets = GRAIN.as_secs_f64() / path.packet.as_secs_f64().max(1e-9);
        let spread = Spread { longer: libm::pow(1.0 - 1.0 / path.burst, packets), mean: 1.0 };
        let rounds =
            |algorithm| Periodic { rounds: path.rounds(&algorithm), spread, missing: (0, 1.0) };
        Self {
            path,
            target,
            ceiling,
            periodic: [RetransmitAlgorithm::Aggressive, RetransmitAlgorithm::Efficient].map(rounds),
            timed: (path.timed_rounds(), [spread; COPIES as usize]),
            found: Needs::default(),
        }
    }

    /// Whether nothing more is to be found.
    fn is_done(&self) -> bool {
        let least_copies = self.found.deadline.last().map(|need| need.copies);
        self.found.aggressive.is_some() && self.found.efficient.is_some() && least_copies == Some(0)
    }

    fn look(&mut self, latency: Duration) {
        let loss = self.path.loss;
        let [aggressive, efficient] = &mut self.periodic;
        let found = [&mut self.found.aggressive, &mut self.found.efficient];
        for (periodic, found) in [aggressive, efficient].into_iter().zip(found) {
            if found.is_some() {
                continue;
            }
            let missing = loss * periodic.missing(latency);
            let rounds = &periodic.rounds;
            if missing <= self.target {
                *found = Some(Need {
                    latency,
                    rounds: rounds.within(latency),
                    copies: 0,
                    overhead: loss * rounds.retransmissions(latency),
                    missing,
                    sender_target: 0.0,
                });
            }
        }
        self.look_timed(latency);
    }

    fn look_timed(&mut self, latency: Duration) {
        let (rounds, spreads) = &mut self.timed;
        let fewest = self.found.deadline.last().map_or(COPIES, |need| need.copies);
        let until_last = rounds.until_last(latency);
        let mut found = None;
        for (copies, spread) in (0..).zip(spreads).take(fewest as usize) {
            let outcome = until_last.outcome(copies);
            let missing = self.path.loss * spread.take(outcome.missing);
            if found.is_some() || missing > self.target {
                continue;
            }
            let fits = rounds.within(latency);
            let overhead = self.path.loss * outcome.sent;
            let allowed = rounds.allowance(latency) * self.path.loss;
            let is_too_much = match self.ceiling {
                Some(ceiling) => overhead > ceiling,
                // By itself the sender limits copies only.
                None => copies > 0 && overhead > allowed,
            };
            if is_too_much {
                continue;
            }
            found = Some(Need {
                latency,
                rounds: fits,
                copies,
                overhead,
                missing,
                sender_target: rounds.sender_target(self.path.loss, &outcome, copies, self.target),
            });
        }
        self.found.deadline.extend(found);
    }
}

impl Periodic {
    fn missing(&mut self, latency: Duration) -> f64 {
        let rounds = self.rounds.within(latency);
        if rounds != self.missing.0 {
            self.missing = (rounds, self.rounds.missing_after(latency));
        }
        self.spread.take(self.missing.1)
    }
}

impl Spread {
    fn take(&mut self, now: f64) -> f64 {
        self.mean = now + (self.mean - now) * self.longer;
        self.mean
    }
}

const GRAIN: Duration = Duration::from_millis(1);
/// The longest latency that a handshake can carry.
const LONGEST_LATENCY: Duration = Duration::from_millis(65_530);
/// Numbers of copies of a retransmission: none, and up to seven.
const COPIES: u32 = 8;
const LEAST_RTT: Duration = Duration::from_millis(1);
const LONGEST_RTT: Duration = Duration::from_secs(10);
const LEAST_RATE: Bitrate = Bitrate::from_bits_per_sec(10_000);
const HIGHEST_RATE: Bitrate = Bitrate::from_mbps(10_000);
const MOST_LOSS: f64 = 0.5;
const LONGEST_BURST: f64 = 1_000.0;

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;
    const NONE: Duration = Duration::ZERO;
    const LONG: Duration = Duration::from_secs(8);

    /// The laboratory link of the published comparison.
    fn lab(loss: f64, burst: f64) -> PathFigures {
        let path = PathFigures::new(MS(20), NONE, Bitrate::from_mbps(10), 1_316).expect("a path");
        path.with_loss(loss, loss, burst).expect("a loss")
    }

    /// With 21.3 ms a round it takes three rounds and three copies, or six
    /// rounds. Here it is a millisecond more, and the last NAK has time for all its datagrams.
    #[test]
    fn one_in_a_million_at_10_percent_takes_3_rounds_with_copies_6_without() {
        let needs = needs(&lab(0.1, 1.0), 1e-6, None, LONG);
        let (least, frugal) = (&needs.deadline[0], needs.deadline.last().expect("some"));
        assert_eq!((least.rounds, least.copies), (3, 3), "{needs:?}");
        assert_eq!((frugal.rounds, frugal.copies), (6, 0), "{needs:?}");
        assert!((MS(64)..=MS(70)).contains(&least.latency), "{least:?}");
        assert!((MS(131)..=MS(136)).contains(&frugal.latency), "{frugal:?}");
        assert!((least.overhead - frugal.overhead - 0.0036).abs() < 0.0005, "{needs:?}");
        let [aggressive, efficient] = [needs.aggressive, needs.efficient].map(Option::unwrap);
        assert!(least.latency < aggressive.latency && aggressive.latency < efficient.latency);
        for need in needs.deadline.iter().chain([&aggressive, &efficient]) {
            assert!(need.missing <= 1e-6 && need.overhead > bound(0.1) - 0.001, "{need:?}");
        }
    }

    #[test]
    fn a_ceiling_allows_a_latency_of_hardly_more_than_a_round_trip() {
        let path = lab(0.01, 1.0);
        let by = |ceiling| needs(&path, 1e-6, ceiling, LONG).deadline[0];
        let (usual, generous) = (by(None), by(Some(0.05)));
        assert_eq!(usual.rounds, 2, "{usual:?}");
        assert_eq!((generous.rounds, generous.copies), (1, 2), "{generous:?}");
        assert!(generous.overhead <= 0.05, "{generous:?}");
        assert!(generous.latency < MS(26), "{generous:?}");
    }

    #[test]
    fn below_the_least_overhead_of_a_loss_no_latency_is_enough() {
        let path = lab(0.05, 1.0);
        let by = |ceiling| needs(&path, 1e-6, Some(ceiling), LONG).deadline;
        assert_eq!(by(0.05), []);
        let [need] = by(0.0527)[..] else { panic!("one need, without copies") };
        assert!(need.copies == 0 && need.overhead <= 0.0527, "{need:?}");
    }

    #[test]
    fn the_keys_of_a_uri_set_up_the_need() {
        let keys = |target, ceiling| {
            let need = needs(&lab(0.01, 1.0), target, ceiling, LONG).deadline[0];
            let keys = need.deadline_keys();
            keys.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join("&")
        };
        assert_eq!(keys(2e-4, None), "latency=24&retransmitalgo=deadline");
        assert_eq!(
            keys(1e-6, Some(0.045)),
            "latency=24&retransmitalgo=deadline&losstarget=0.000044%"
        );
        assert_eq!(keys(2e-6, None), "latency=46&retransmitalgo=deadline");
        assert_eq!([1e-6, 0.2, 1.25e-5].map(as_typed), ["0.0001%", "20%", "0.00125%"]);
    }

    #[test]
    fn bursts_take_longer_by_about_their_length() {
        let mut before = NONE;
        for burst in [1.0, 3.0, 10.0, 50.0] {
            let needs = needs(&lab(0.01, burst), 1e-5, None, LONG);
            let latency = needs.deadline[0].latency;
            assert!(latency > before, "{burst}: {needs:?}");
            assert!(needs.efficient.is_some_and(|need| need.latency > latency), "{burst}");
            before = latency;
        }
        // The rest of a burst of 50 on the mean is as long as another; three of them at least.
        assert!(before > MS(150), "{before:?}");
    }

    #[test]
    fn a_target_out_of_reach_is_not_promised() {
        let dead = lab(0.5, 1_000.0);
        assert_eq!(needs(&dead, 1e-9, None, MS(1_000)), Needs::default());
        let soon = needs(&lab(0.05, 1.0), 1e-6, None, MS(40));
        assert_eq!((soon.deadline.len(), soon.efficient), (0, None));
    }

    #[test]
    fn a_link_that_loses_no_more_than_wanted_needs_no_time() {
        let needs = needs(&lab(0.001, 1.0), 0.01, None, LONG);
        assert_eq!(needs.deadline[0].latency, NONE);
        assert_eq!(needs.efficient.map(|need| need.latency), Some(NONE));
    }

    #[test]
    fn an_invalid_path_is_refused_with_the_range() {
        let rate = Bitrate::from_mbps(10);
        let error = PathFigures::new(MS(20_000), NONE, rate, 1_316).unwrap_err();
        let text = "the round-trip time is 20 s; it must be 1 ms to 10 s";
        assert_eq!(error.to_string(), text);
        assert!(PathFigures::new(MS(20), MS(21), rate, 1_316).is_err());
        assert!(PathFigures::new(MS(20), NONE, Bitrate::ZERO, 1_316).is_err());
        let path = PathFigures::new(MS(20), NONE, rate, 1_316).unwrap();
        let error = path.with_loss(0.05, 0.6, 1.0).unwrap_err().to_string();
        assert_eq!(error, "the loss on the way back is 60 %; it must be 0 to 50 %");
        assert!(path.with_loss(0.05, 0.05, 0.5).is_err());
        assert!(path.with_loss(f64::NAN, 0.05, f64::NAN).is_err());
    }
}
