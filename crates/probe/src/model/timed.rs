//! The rounds of the deadline-aware algorithm: a NAK timer for each packet, and copies of the last
//! retransmission that can be in time.
//!
//! A loss is detected when the next packet comes, and given up when that packet is due, so both
//! cancel out. The first NAK leaves at once, each further one when the retransmission for the one
//! before is overdue, *m* after a round trip *R*. Within a time *L* there are
//!
//! > *n* = 1 + ⌊(*L* − *R* − *e*) / (*R* + *m*)⌋
//!
//! of which the retransmission can be in time. A NAK is sent as *k* = 2 datagrams, one soon after
//! the other, the last one as four, which take the time *e*; the last retransmission is followed by
//! *c* copies, spread over 7/8 of the time that is left. If it is uncertain whether a further round
//! fits, copies are not counted on. Let *p* be the share of retransmissions that are lost, *r* that
//! of NAKs, *s* that of NAKs directly after a lost one. A NAK of *k* datagrams is lost with the
//! probability *r s*ᵏ⁻¹, and a retransmission at the time *τ* after a lost one with
//!
//! > *q*(*τ*) = *p* + (1 − *p*) ((*q*₁ − *p*) / (1 − *p*))^*τ*/*i*
//!
//! where *q*₁ is the loss of the packet directly after a lost one, and *i* the time between packets
//! (E. N. Gilbert, Capacity of a burst-noise channel, 1960). The same holds for NAKs of two rounds
//! with *r*, *s* and the ACKs between them. Without bursts, *s* = *r* = *p* and *q* = *p*, and of
//! the packets that the link lost the share (*p*ᵏ + (1 − *p*ᵏ) *p*)ⁿ⁻¹ (*p*⁴ + (1 − *p*⁴) *p*¹⁺ᶜ)
//! stays missing. Tests compare this with the lab's figures.

use std::time::Duration;

use punctual_proto::{Deadline, Rtt};

use super::gilbert::lost_again;

/// The parameters of the rounds of a link, where each missing packet has a NAK timer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimedRounds {
    /// Round-trip time within which nearly all retransmissions come.
    pub rtt: Duration,
    /// The least round-trip time that must be reckoned with: more rounds may fit then.
    pub least_rtt: Duration,
    /// Mean deviation of the round-trip time.
    pub rtt_variance: Duration,
    /// Time between packets of the stream.
    pub packet: Duration,
    /// Share of retransmissions that are lost, 0 to 1.
    pub loss: f64,
    /// Share of packets that are lost right behind a lost one, 0 to 1.
    pub loss_again: f64,
    /// Share of NAKs that are lost, 0 to 1.
    pub nak_loss: f64,
    /// Share of packets that are lost on the way back right behind a lost one, 0 to 1.
    pub nak_loss_again: f64,
    /// Time until the first NAK, in which the receiver tolerates reordering.
    pub detection: Duration,
}

/// The fate of a packet that the link lost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// The probability that it stays missing.
    pub missing: f64,
    /// The mean number of its retransmissions.
    pub sent: f64,
    /// The probability that its last retransmission is sent, with its copies.
    pub last: f64,
}

/// The probabilities of the outcomes of the last round, for a packet that is still missing.
#[derive(Clone, Copy, Debug)]
struct State {
    /// Nothing was tried.
    fresh: f64,
    /// The last NAK was lost.
    nak_lost: f64,
    /// The last retransmission was lost.
    retransmission_lost: f64,
}

/// The fate of a lost packet up to its last round.
#[derive(Clone, Copy, Debug)]
pub(super) struct UntilLast<'a> {
    rounds: &'a TimedRounds,
    /// `None` where not even one round fits.
    last: Option<LastRound>,
    state: State,
    sent: f64,
}

/// The last round.
#[derive(Clone, Copy, Debug)]
struct LastRound {
    /// The time by which the retransmission could still come later.
    slack: Duration,
    /// Whether it is the last one for certain, so that there are copies.
    certain: bool,
}

/// The probability that a NAK is lost: usually, and if the one before was lost.
#[derive(Clone, Copy, Debug)]
struct NakLoss {
    usual: f64,
    behind: f64,
}

impl TimedRounds {
    /// The number of NAKs that can be answered within `time`, the last with all its datagrams.
    pub fn within(&self, time: Duration) -> u32 {
        let time = time.saturating_sub(self.last_nak());
        self.fit(time, self.rtt, self.period())
    }

    /// The fate of a lost packet within `time`, with this number of copies of its last
    /// retransmission.
    pub fn outcome(&self, time: Duration, copies: u32) -> Outcome {
        self.until_last(time).outcome(copies)
    }

    /// Its fate up to the last round, which is the same for any number of copies.
    pub(super) fn until_last(&self, time: Duration) -> UntilLast<'_> {
        let rounds = self.within(time);
        let nothing = State { fresh: 1.0, nak_lost: 0.0, retransmission_lost: 0.0 };
        let Some(before) = rounds.checked_sub(1) else {
            return UntilLast { rounds: self, last: None, state: nothing, sent: 0.0 };
        };
        let spent = self.detection + self.rtt + self.period().saturating_mul(before);
        // If every round is quick, there is one more, whose NAK and copies have hardly time, and
        // the round before has no copies.
        let quickest = self.least_rtt + apart(self.least_rtt);
        let certain = self.fit(time, self.least_rtt, quickest) <= rounds;
        let last = LastRound { slack: time.saturating_sub(spent), certain };
        let nak = self.nak(DATAGRAMS);
        let lost_again = self.retransmission_lost_again(self.period());
        let (mut state, mut sent) = (nothing, 0.0);
        for _ in 0..before.min(MOST_ROUNDS) {
            let (lost, heard) = nak.of(&state);
            sent += heard.0 + heard.1;
            let retransmission_lost = heard.0 * self.loss + heard.1 * lost_again;
            state = State { fresh: 0.0, nak_lost: lost, retransmission_lost };
            if lost + retransmission_lost < NEVER {
                break;
            }
        }
        UntilLast { rounds: self, last: Some(last), state, sent }
    }

    /// The time from a NAK to its repetition.
    pub fn period(&self) -> Duration {
        self.rtt + (self.rtt_variance * 4).max(LEAST_MARGIN) + apart(self.rtt)
    }

    /// The time that the datagrams of the last NAK take.
    pub fn last_nak(&self) -> Duration {
        apart(self.rtt) * (LAST_DATAGRAMS - 1)
    }

    /// The number of packets that the sender may retransmit for each lost one, copies included, if
    /// recovery must end within `time` and a ceiling does not change it.
    pub fn allowance(&self, time: Duration) -> f64 {
        let rtt = Rtt { smoothed: self.rtt, variance: self.rtt_variance };
        let left = time.saturating_sub(self.detection + self.rtt);
        Deadline::allowance(self.loss, rtt, (self.within(time) <= 1).then_some(left))
    }

    /// The `losstarget` by which a sender sends `copies` of each last retransmission, to leave
    /// no more than `target` of all packets missing, of which the link loses `lost`; 0 for no
    /// copies. It is `target` itself if that suffices.
    ///
    /// A sender measures the share of packets that reach their last retransmission, and the share
    /// of retransmissions that are lost. Its estimate of the former may be half of the truth.
    pub fn sender_target(&self, lost: f64, outcome: &Outcome, copies: u32, target: f64) -> f64 {
        if copies == 0 {
            return 0.0;
        }
        let reached = lost * outcome.last / 2.0;
        // A little more than leaves one copy fewer.
        let enough = reached * libm::pow(self.loss, copies.into()) * 0.9;
        let most = target.min(MOST_SENDER_TARGET);
        // Of a link that loses nothing any target makes as many.
        if enough <= 0.0 || most <= enough { most } else { rounded_down(enough) }
    }

    fn fit(&self, time: Duration, rtt: Duration, period: Duration) -> u32 {
        let Some(left) = time.checked_sub(self.detection + rtt) else { return 0 };
        let rounds = left.as_nanos() / period.as_nanos().max(1) + 1;
        u32::try_from(rounds).unwrap_or(u32::MAX)
    }

    fn nak(&self, datagrams: u32) -> NakLoss {
        let again = self.nak_loss_again.max(self.nak_loss);
        let further = libm::pow(again, f64::from(datagrams) - 1.0);
        let acks = self.period().as_secs_f64() / ACK_PERIOD.as_secs_f64();
        let round_again = lost_again(self.nak_loss, again, acks);
        NakLoss { usual: self.nak_loss * further, behind: round_again * further }
    }

    /// The share of retransmissions that is lost at this time after a lost one.
    fn retransmission_lost_again(&self, time: Duration) -> f64 {
        let packets = time.as_secs_f64() / self.packet.as_secs_f64().max(1e-9);
        lost_again(self.loss, self.loss_again, packets)
    }
}

impl NakLoss {
    /// The probability that it is lost, and that it arrives: if no retransmission was lost before,
    /// and if one was.
    fn of(&self, state: &State) -> (f64, (f64, f64)) {
        let lost =
            (state.fresh + state.retransmission_lost) * self.usual + state.nak_lost * self.behind;
        let heard = state.fresh * (1.0 - self.usual) + state.nak_lost * (1.0 - self.behind);
        (lost, (heard, state.retransmission_lost * (1.0 - self.usual)))
    }
}

impl UntilLast<'_> {
    /// The fate of the packet with this number of copies of the last retransmission.
    pub(super) fn outcome(&self, copies: u32) -> Outcome {
        let Some(LastRound { slack, certain }) = self.last else {
            return Outcome { missing: 1.0, sent: 0.0, last: 0.0 };
        };
        let rounds = self.rounds;
        let (lost, heard) = rounds.nak(LAST_DATAGRAMS).of(&self.state);
        let lost_again = rounds.retransmission_lost_again(rounds.period());
        let copy = rounds.retransmission_lost_again(slack * 7 / 8 / copies.max(1));
        let counted = if certain { copies } else { 0 };
        let all_lost = |first: f64| first * libm::pow(copy, counted.into());
        let missing = lost + heard.0 * all_lost(rounds.loss) + heard.1 * all_lost(lost_again);
        let last = heard.0 + heard.1;
        Outcome { missing, sent: self.sent + last * f64::from(1 + copies), last }
    }
}

/// The time between a NAK and its copy: a sixteenth of the round trip, 0.5 to 5 ms.
pub(super) fn apart(rtt: Duration) -> Duration {
    (rtt / 16).clamp(Duration::from_micros(500), Duration::from_millis(5))
}

/// A share with two digits, no more than this.
fn rounded_down(share: f64) -> f64 {
    let unit = libm::exp10(libm::log10(share).floor() - 1.0);
    (share / unit).floor() * unit
}

/// Least time beyond a round trip after which a retransmission is overdue.
pub(super) const LEAST_MARGIN: Duration = Duration::from_millis(1);
/// Between losses on the way back, as they are measured, lies an ACK (draft section 3.2.4).
pub(super) const ACK_PERIOD: Duration = Duration::from_millis(10);
/// Datagrams of a NAK that is not the last one.
pub(super) const DATAGRAMS: u32 = 2;
/// Datagrams of the last NAK.
pub(super) const LAST_DATAGRAMS: u32 = 4;
/// The greatest `losstarget`.
const MOST_SENDER_TARGET: f64 = 0.1;
/// No useful latency has time for more rounds.
const MOST_ROUNDS: u32 = 4_000;
/// A smaller probability is as good as zero.
const NEVER: f64 = 1e-15;

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// The laboratory link of the published comparison: 20 ms, 10 Mb/s, loss in both directions.
    fn lab(loss: f64) -> TimedRounds {
        TimedRounds {
            rtt: MS(20),
            least_rtt: MS(20),
            rtt_variance: Duration::ZERO,
            packet: Duration::from_micros(1_053),
            loss,
            loss_again: loss,
            nak_loss: loss,
            nak_loss_again: loss,
            detection: Duration::ZERO,
        }
    }

    fn bursts(loss: f64, mean: f64) -> TimedRounds {
        let again = 1.0 - 1.0 / mean;
        TimedRounds { loss_again: again, nak_loss_again: again, ..lab(loss) }
    }

    fn close(told: f64, expected: f64) -> bool {
        (told / expected - 1.0).abs() < 0.005
    }

    #[test]
    fn without_bursts_it_is_the_formula_of_the_page() {
        for (loss, ms, copies, rounds) in [(0.05, 25, 0, 1), (0.1, 50, 1, 2), (0.1, 70, 3, 3)] {
            let p: f64 = loss;
            let round = p * p + (1.0 - p * p) * p;
            let last =
                libm::pow(p, 4.0) + (1.0 - libm::pow(p, 4.0)) * libm::pow(p, f64::from(1 + copies));
            let told = lab(loss).outcome(MS(ms), copies);
            assert_eq!(lab(loss).within(MS(ms)), rounds);
            let expected = libm::pow(round, f64::from(rounds) - 1.0) * last;
            assert!(close(told.missing, expected), "{told:?}, {expected}");
        }
    }

    #[test]
    fn without_time_for_a_round_a_packet_stays_lost_and_costs_nothing() {
        let none = Outcome { missing: 1.0, sent: 0.0, last: 0.0 };
        assert_eq!(lab(0.1).outcome(MS(23), 2), none);
        assert_eq!((lab(0.1).within(MS(23)), lab(0.1).within(MS(24))), (0, 1));
    }

    /// Figures of the lab over the published grid, in percent: loss,
    /// latency in milliseconds, overhead, unrecovered. Without a target the algorithm sends no
    /// copies or some, as the ceiling lets it.
    #[test]
    fn the_lab_measures_between_no_copies_and_three() {
        for (loss, ms, overhead, measured) in [
            (5.0, 30, 5.20, 0.2425),
            (5.0, 40, 5.16, 0.2410),
            (5.0, 50, 5.47, 0.0023),
            (5.0, 60, 5.56, 0.0012),
            (5.0, 80, 5.30, 0.0002),
            (10.0, 30, 10.67, 0.9517),
            (10.0, 40, 10.65, 0.9447),
            (10.0, 50, 11.99, 0.0210),
            (10.0, 60, 12.36, 0.0101),
            (10.0, 70, 11.39, 0.0010),
        ] {
            let told = |copies| lab(loss / 100.0).outcome(MS(ms), copies);
            let most = loss * told(0).missing;
            let least = loss * told(3).missing;
            assert!((least..=most).contains(&measured), "{loss}, {ms}: {least} to {most}");
            let (little, much) = (loss * told(0).sent, loss * told(3).sent);
            assert!((little..=much).contains(&overhead), "{loss}, {ms}: {little} to {much}");
        }
    }

    /// The lab's figures with losses in bursts, 5 % both ways: round trip, latency, mean burst,
    /// unrecovered. Of a burst the first packet is found as many packets later.
    #[test]
    fn with_bursts_the_loss_is_between_a_third_of_the_model_and_the_model() {
        for (rtt, ms, mean, measured) in [
            (20, 50, 3.0, 0.0329),
            (60, 150, 3.0, 0.0115),
            (20, 50, 10.0, 0.2165),
            (60, 150, 10.0, 0.1152),
            (60, 240, 10.0, 0.0523),
        ] {
            let rounds = TimedRounds { rtt: MS(rtt), least_rtt: MS(rtt), ..bursts(0.05, mean) };
            let found = |later: i32| {
                let left = MS(ms).saturating_sub(rounds.packet * later.cast_unsigned());
                libm::pow(1.0 - 1.0 / mean, later.into()) / mean * rounds.outcome(left, 0).missing
            };
            let told = 5.0 * (0..400).map(found).sum::<f64>();
            assert!((0.9..3.5).contains(&(told / measured)), "{rtt}, {ms}, {mean}: {told}");
        }
    }

    #[test]
    fn copies_close_behind_each_other_are_lost_together() {
        let gain = |rounds: &TimedRounds, copies| {
            rounds.outcome(MS(47), 2 * copies).missing / rounds.outcome(MS(47), copies).missing
        };
        let heard = |rounds| TimedRounds { nak_loss: 0.0, nak_loss_again: 0.0, ..rounds };
        let (single, burst) = (heard(lab(0.05)), heard(bursts(0.05, 10.0)));
        assert!(close(gain(&single, 2), 0.05 * 0.05), "{}", gain(&single, 2));
        assert!(gain(&burst, 2) > 0.5, "{}", gain(&burst, 2));
        let spread = TimedRounds { packet: Duration::from_micros(5), ..burst };
        assert!(close(gain(&spread, 2), 0.05 * 0.05), "{}", gain(&spread, 2));
    }

    #[test]
    fn copies_are_not_counted_on_if_a_further_round_may_fit() {
        let wide = TimedRounds { rtt: MS(24), ..lab(0.1) };
        // Two rounds at 24 ms; three at 20 ms, just, or not.
        for (ms, counted) in [(61, true), (63, false)] {
            let told = |copies| wide.outcome(MS(ms), copies).missing;
            assert_eq!((wide.within(MS(ms)), told(3) < told(0)), (2, counted), "{ms} ms");
        }
    }

    #[test]
    fn on_a_dead_link_packets_stay_lost() {
        let dead = TimedRounds { loss: 1.0, loss_again: 1.0, ..lab(0.5) };
        let told = dead.outcome(MS(200), 7).missing;
        assert!((told - 1.0).abs() < 1e-12, "{told}");
    }
}
