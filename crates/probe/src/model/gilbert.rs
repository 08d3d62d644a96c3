//! Losses in bursts, by Gilbert's chain of a good and a bad state.
//!
//! A packet is lost if the chain is in the bad state, which it leaves with the probability 1 / *b*
//! before each packet, so that bursts are *b* packets long on the mean (E. N. Gilbert, Capacity of
//! a burst-noise channel, 1960, with a bad state that loses everything). To lose the share *p* it
//! enters the bad state with the probability *p* / (*b* (1 − *p*)). With *b* = 1 / (1 − *p*) losses
//! are independent; a shorter mean counts as that one.

/// The share that is lost this number of packets after a lost one; it is `loss` of all packets, and
/// `again` of those directly after a lost one.
///
/// The chain forgets its state by the same factor with each packet, its second eigenvalue.
pub(super) fn lost_again(loss: f64, again: f64, packets: f64) -> f64 {
    let loss = loss.min(1.0);
    let bound = (again - loss) / (1.0 - loss).max(f64::MIN_POSITIVE);
    if bound <= 0.0 {
        return loss;
    }
    loss + (1.0 - loss) * libm::pow(bound.min(1.0), packets.max(1.0))
}

/// The share that is lost this number of packets after one that arrived.
pub(super) fn lost_later(loss: f64, again: f64, packets: f64) -> f64 {
    let arrives = (1.0 - loss).max(f64::MIN_POSITIVE);
    // All packets at this distance follow a lost packet, or one that arrived.
    (loss * (1.0 - lost_again(loss, again, packets)) / arrives).min(loss)
}

/// The share of packets that are lost directly after a lost one, with bursts of this mean length.
pub(super) fn again(loss: f64, burst: f64) -> f64 {
    loss.max(1.0 - 1.0 / burst)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chain_forgets_a_loss_by_the_same_factor_with_each_packet() {
        let (loss, again) = (0.05, again(0.05, 4.0));
        let turns_bad = loss / (4.0 * (1.0 - loss));
        let mut lost = 1.0;
        for packets in 1..50 {
            lost = lost * 0.75 + (1.0 - lost) * turns_bad;
            let told = lost_again(loss, again, f64::from(packets));
            assert!((told - lost).abs() < 1e-12, "{packets}: {told}, {lost}");
        }
    }

    #[test]
    fn losses_after_an_arrival_and_after_a_loss_are_all_losses() {
        let (loss, again) = (0.05, again(0.05, 4.0));
        let mut lost = 0.0;
        let turns_bad = loss / (4.0 * (1.0 - loss));
        for packets in 1..50 {
            lost = lost * 0.75 + (1.0 - lost) * turns_bad;
            let told = lost_later(loss, again, f64::from(packets));
            assert!((told - lost).abs() < 1e-12, "{packets}: {told}, {lost}");
        }
    }

    #[test]
    fn losses_of_short_bursts_are_independent() {
        assert_eq!(again(0.2, 1.0).to_bits(), 0.2_f64.to_bits());
        assert_eq!(lost_again(0.2, again(0.2, 1.25), 3.0).to_bits(), 0.2_f64.to_bits());
    }
}
